"""Which engine writes: torch, unless weights of another kind are wanted, which only the compiled kernels run.

Left to itself a checkpoint is run by torch, in the numbers it was stored in: the same text on every machine, with a
compiler and without one.
"""

from __future__ import annotations

from cutaway.engine.library import check_kind, need
from cutaway.errors import CutawayError, nearest

ENGINES = ("auto", "torch", "native")


def choose(engine: str, weights: str | None, device: str, float32: bool) -> str | None:
    """The kind of weights the native engine is to hold, or None for torch; what cannot be had together is refused.

    `device` is where the model lies, and `float32` whether no other number type was asked of torch.
    """
    if engine not in ENGINES:
        raise CutawayError(f"There is no engine {engine!r}.{nearest(engine, ENGINES)} Known: {', '.join(ENGINES)}.")
    if weights is not None:
        check_kind(weights)
    if engine == "torch":
        if weights not in (None, "float32"):
            raise CutawayError(
                f"Weights held as {weights} need the native engine. For torch, choose a number type (dtype) instead."
            )
        return None
    if engine == "native" or weights is not None:
        if device != "cpu":
            raise CutawayError(f"The native engine runs on the processor (device 'cpu'), not on {device!r}.")
        if not float32:
            raise CutawayError("A number type (dtype) is for torch; the native engine takes `weights` instead.")
        need()
        return weights or "float32"
    return None
