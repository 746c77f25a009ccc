"""Memory for training on a processor, asked of the system once and in large pages.

Each step makes and drops the same large tensors. As a rule glibc gives each back to the system and asks for it again,
which hands it over in small pages, cleared one by one: a tenth of the time of a step, and more with whole logits.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # of mallopt, in malloc.h
LARGE_PAGES = 14  # of madvise
PAGE = 2 << 20
USUAL_TRIM, USUAL_MMAPS = 128 << 10, 65_536


@contextmanager
def kept() -> Iterator[None]:
    """Keep what is dropped for the next tensor, in large pages where the system has them; at the end give it back."""
    libc = glibc()
    if libc is None:
        yield
        return
    libc.mallopt(MMAP_MAX, 0)  # everything from the one heap,
    libc.mallopt(TRIM_THRESHOLD, -1)  # which does not shrink
    reserve(libc)
    try:
        yield
    finally:
        libc.mallopt(MMAP_MAX, USUAL_MMAPS)
        libc.mallopt(TRIM_THRESHOLD, USUAL_TRIM)
        libc.malloc_trim(0)


def glibc() -> ctypes.CDLL | None:
    """The C library, if it is the one whose ways these are."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return None
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def reserve(libc: ctypes.CDLL) -> None:
    """Stretch the heap, by addresses alone, to half of what the machine has, and ask for large pages there."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    start = libc.malloc(size)
    if start:
        first = -(-start // PAGE) * PAGE
        libc.madvise(first, (start + size - first) // PAGE * PAGE, LARGE_PAGES)
        libc.free(start)
