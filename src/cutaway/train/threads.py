"""How many threads of a processor compute a training: chosen by its shape, written into its recipe, kept to its end.

A sum is divided between threads, and its last digits depend on how. So a training goes on
with as many as it began with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from cutaway.train.recipe import Train

SMALL = 1 << 16
"""Up to so many numbers in the vectors that go through a layer together (tokens x width) one thread computes: two took
a tenth more of the processor's time for 32,768 numbers, and a hundredth more for 131,072."""


def threads_for(settings: Train, width: int) -> tuple[int, str]:
    """How many threads to compute in, by the shape and by no clock; and why."""
    if settings.at_once * settings.length * width <= SMALL:
        return 1, "with so few numbers at a time, threads would wait for each other"
    return torch.get_num_threads(), "as many as torch takes here"


@contextmanager
def computing_in(threads: int) -> Iterator[None]:
    """Compute in so many threads; 0: in as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
