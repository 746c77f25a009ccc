"""Large arrays on their way to the page: numbers as they lie in memory, the shape in a header."""

from __future__ import annotations

import numpy as np
from fastapi import Response
from numpy.typing import ArrayLike

EXACT = 1 << 18
"""Up to so many numbers go as float32; larger pictures as float16, which is finer than any screen."""


def binary(values: ArrayLike, exact: bool = False) -> Response:
    """Little-endian numbers, with X-Shape (`512,512`) and X-Type (`float32`, or `float16` if they are many)."""
    array = np.asarray(values, dtype=np.float32)
    if array.size > EXACT and not exact:
        with np.errstate(over="ignore"):  # what is too large for float16 is infinite there, as masked scores are
            array = array.astype(np.float16)
    kind = array.dtype.name
    return Response(
        np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes(),
        media_type="application/octet-stream",
        headers={"X-Shape": ",".join(map(str, array.shape)), "X-Type": kind},
    )
