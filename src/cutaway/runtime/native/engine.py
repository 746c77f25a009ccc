"""The engine: a packed model, and the texts it is reading. One call into the kernels carries new tokens up the stack.

What a text's scores are does not depend on the other texts in the call, on how its tokens are cut into calls, or on the
number of threads: the same numbers, to the last bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cutaway.decoding.runtime import Batch, Scores
from cutaway.errors import CutawayError
from cutaway.models.gpt2.shape import Config
from cutaway.processor import pretended
from cutaway.runtime.native.library import default_threads, need, shape_of
from cutaway.runtime.native.ngrams import NGrams
from cutaway.runtime.native.pack import Packed
from cutaway.runtime.native.reading_cost import Cost


class Text:
    """What the engine keeps of one text: the keys and values of the tokens it has read."""

    def __init__(self, engine: Engine, handle: int | None = None):
        self.engine = engine  # alive as long as its texts are
        self.handle = handle if handle is not None else engine.library.cutaway_text_new(engine.handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.engine.library.cutaway_text_free(self.handle)

    def __len__(self) -> int:
        return int(self.engine.library.cutaway_text_length(self.handle))

    @property
    def nbytes(self) -> int:
        return int(self.engine.library.cutaway_text_bytes(self.handle))

    def fork(self) -> Text:
        """A second text that begins like this one, and shares its memory as far as it can."""
        handle = self.engine.library.cutaway_text_fork(self.handle)
        if not handle:
            raise MemoryError(self.engine.library.cutaway_error().decode())
        return Text(self.engine, handle)

    def trim(self, length: int) -> None:
        """Forget the tokens from `length` on."""
        if self.engine.library.cutaway_text_trim(self.handle, max(0, length)):
            raise MemoryError(self.engine.library.cutaway_error().decode())


class Engine:
    """A model the kernels can run. `read` is all it does: new tokens of some texts in, scores out.

    See `cutaway.decoding.runtime.Runtime` for what decoding asks of it.
    """

    def __init__(self, packed: Packed, threads: int | None = None, kernels: str = ""):
        self.packed, self.library = packed, need()
        self.look_up = True
        """Whether one text alone is read ahead on guesses (see speculation.py): only the speed changes."""
        self.ngrams: NGrams | None = None
        """What usually follows: guesses where the text's own past has none."""
        self.draft: Engine | None = None
        """A smaller model that guesses instead."""
        self.cost = Cost()
        self.threads = threads or default_threads()
        found = self.library.cutaway_kernels((kernels or pretended()).encode())
        if found is None and not kernels:
            found = self.library.cutaway_kernels(b"")  # no pretending helps where the instructions are missing
        if found is None:
            raise CutawayError(f"This processor cannot run the kernels called {kernels!r}.")
        self.kernels = found.decode()
        shape = shape_of(packed.config, packed.weights)
        self.handle = self.library.cutaway_open(
            ctypes.byref(shape), packed.memory.ctypes.data, self.threads, self.kernels.encode()
        )
        if not self.handle:
            raise MemoryError(self.library.cutaway_error().decode())

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.library.cutaway_close(self.handle)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy opens the same weights anew: what the kernels hold cannot be copied."""
        return (
            Engine,
            (self.packed, self.threads, self.kernels),
            {
                "look_up": self.look_up,
                "ngrams": self.ngrams,
                "draft": self.draft,
            },
        )

    @property
    def config(self) -> Config:
        return self.packed.config

    @property
    def weights(self) -> str:
        return self.packed.weights

    def open(self) -> Batch:
        from cutaway.runtime.native.batch import NativeBatch

        return NativeBatch(self)

    def text(self) -> Text:
        return Text(self)

    def read(self, texts: Sequence[Text], new: Sequence[Sequence[int]], wanted: Sequence[int] | int = 1) -> Scores:
        """Each text reads its new tokens; the scores after the last `wanted` of them, text by text. [n, vocabulary]"""
        counts = np.array([len(ids) for ids in new], dtype=np.int32)
        wants = np.minimum(np.broadcast_to(np.asarray(wanted, dtype=np.int32), counts.shape), counts)
        wants = np.ascontiguousarray(wants, dtype=np.int32)
        ids = np.array([token for one in new for token in one], dtype=np.int64)
        self.check(texts, counts, ids)
        ids = ids.astype(np.int32)
        handles: Any = (ctypes.c_void_p * len(texts))(*[text.handle for text in texts])
        scores = np.empty((int(wants.sum()), self.config.vocabulary), dtype=np.float32)
        failed = self.library.cutaway_read(
            self.handle, len(texts), handles, counts.ctypes.data, ids.ctypes.data, wants.ctypes.data, scores.ctypes.data
        )
        if failed:
            raise MemoryError(self.library.cutaway_error().decode())
        return scores

    def check(self, texts: Sequence[Text], counts: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]) -> None:
        """Nothing that the kernels would stumble over goes in."""
        if len(texts) != len(counts) or len({id(text) for text in texts}) != len(texts):
            raise ValueError("every text reads once, and each needs its tokens")
        if any(text.engine is not self for text in texts):
            raise ValueError("a text belongs to the engine that began it")
        if ids.size and not 0 <= ids.min() <= ids.max() < self.config.vocabulary:
            raise CutawayError(
                f"There is no token {int(ids.max() if ids.min() >= 0 else ids.min()):,}: the vocabulary has "
                f"{self.config.vocabulary:,} entries."
            )
        for text, count in zip(texts, counts.tolist(), strict=True):
            if len(text) + count > self.config.context:
                raise CutawayError(
                    f"{len(text) + count:,} tokens do not fit: this model has {self.config.context:,} positions. "
                    "Shorten the text, or let generation slide its window (overflow='slide')."
                )
