"""Which engine writes. Left to itself: the compiled kernels on a processor, torch everywhere else.

In float32 the kernels' scores are torch's but for the last digits, and come twice as fast; they hold a second copy of
the weights, so that a large model is left to torch until packed weights are asked for.
"""

from __future__ import annotations

from cutaway.errors import CutawayError, nearest
from cutaway.runtime.native.library import check_kind, load, need

ENGINES = ("auto", "torch", "native")
SECOND_COPY = 1 << 30
"""How many bytes of weights are held twice without being asked."""


def choose_weights(engine: str, weights: str | None, device: str, float32: bool, size: int = 0) -> str | None:
    """The kind of weights the native engine is to hold, or None for torch; what cannot be had together is refused.

    `device` is where the model lies, `float32` whether no other number type was asked of torch, and `size` how many
    bytes its weights take.
    """
    if engine not in ENGINES:
        raise CutawayError(f"There is no engine {engine!r}.{nearest(engine, ENGINES)} Known: {', '.join(ENGINES)}.")
    if weights is not None:
        check_kind(weights)
    if engine == "torch":
        if weights not in (None, "float32"):
            raise CutawayError(
                f"Weights stored as {weights} need the native engine. For torch, choose a data type (dtype) instead."
            )
        return None
    if engine == "native" or weights is not None:
        if device != "cpu":
            raise CutawayError(f"The native engine runs on the processor (device 'cpu'), not on {device!r}.")
        if not float32:
            raise CutawayError("A data type (dtype) is for torch; the native engine takes `weights` instead.")
        need()
        return weights or "float32"
    better = device == "cpu" and float32 and size <= SECOND_COPY and load() is not None
    return "float32" if better else None
