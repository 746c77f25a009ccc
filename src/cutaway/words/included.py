"""The static vectors that come with the program: small, and learned here (see docs/words.md)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from cutaway.words.vectors import WordVectors

FOLDER = Path(__file__).parents[1] / "data" / "words"


@lru_cache(maxsize=1)
def static_vectors() -> WordVectors:
    """Read once; numbers of half precision, so that they take little room."""
    words = (FOLDER / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return WordVectors(words, np.load(FOLDER / "vectors.npy").astype(np.float32), "cutaway's word vectors")
