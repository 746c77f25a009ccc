"""What a model says of itself, so that the rest of the house need not know it by name.

A folder in models/ holds one architecture: its shape, its forward pass, the table of its tensors and the map of what a
forward pass makes on its way. Checkpoints, packing and the parameter page read the table; traces, the walk and the
arithmetic of a number read the map. A model from outside is made known with `register`.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from cutaway.errors import CutawayError, nearest
from cutaway.plugins import load_plugins

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cutaway.parts.cache import Cache
    from cutaway.parts.trace import Trace

UNLIMITED = sys.maxsize
"""The context of a model whose shape states none."""


@dataclass(frozen=True)
class TensorSpec:
    """One matrix or vector of weights."""

    name: str
    """Its name in this program, as in `model.named_parameters()`."""
    stored: str
    """Its name in a checkpoint."""
    shape: tuple[int, ...]
    """As a checkpoint stores it."""
    what: str
    """What it does, in a few words."""
    part: str
    """The kind of work that it is counted under: attention, MLP, ..."""
    block: int | None = None
    """The block it belongs to, by its name if that begins with `blocks.N.`; None outside the stack."""
    transposed: bool = False
    """Whether a checkpoint stores it the other way round: inputs x outputs, where torch has outputs x inputs."""

    def __post_init__(self) -> None:
        stack, number, *_ = [*self.name.split("."), ""]
        if self.block is None and stack == "blocks" and number.isdecimal():
            object.__setattr__(self, "block", int(number))

    @property
    def ours(self) -> tuple[int, ...]:
        """The shape it has in this program."""
        return self.shape[::-1] if self.transposed else self.shape

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Place:
    """One named intermediate of a forward pass: its axes, and what made it from what."""

    name: str
    """What a trace calls it; inside a stack it begins with `blocks.N.`. The scores over the vocabulary are `logits`."""
    axes: tuple[str, ...]
    """Without the batch: token, column (of a vector), head, key (a token that is attended to)."""
    operation: str
    """look up, add, norm, linear, score, mask, softmax, mix, merge or activate: for these there is a picture, and the
    arithmetic. Any other is shown as what goes in and what comes out.
    """
    inputs: tuple[str, ...]
    """The places it is made of; a look-up is made of the `ids` or the `positions`."""
    module: str = ""
    """The module whose weights or settings the operation uses."""
    share: tuple[int, int] = (0, 1)
    """Which part of the module's outputs it is, of how many: one matrix may make query, key and value."""
    steps: tuple[str, ...] = ()
    """The steps of the walk that show it: the one that makes it first. Without any it is a step of its own name."""
    kind: str = ""
    """What it is in a picture, for its colour and its word: query, hidden, ...; else what the operation makes."""

    @property
    def block(self) -> int | None:
        """The block that makes it; None outside the stack."""
        first, _, rest = self.name.partition(".")
        number = rest.partition(".")[0]
        return int(number) if first == "blocks" and number.isdecimal() else None

    @property
    def pattern(self) -> str:
        """Its name in every block: `blocks.*.attention.scores`."""
        return self.name if self.block is None else f"blocks.*.{self.name.split('.', 2)[2]}"


class Architecture(Protocol):
    """One for each folder in models/."""

    kind: str
    """The `model_type` of its checkpoints."""
    Shape: type[Any]
    """A frozen dataclass with the same `kind`, and of a language model with `vocabulary` and `end` (the token that ends
    a text). One without `context` reads texts of any length.
    """

    title: str
    """What it is called in a message: "GPT-2"."""
    native: bool
    """Whether the native engine's kernels can run it."""
    prefix: str
    """What the names in a checkpoint may begin with."""
    copies: dict[str, str]
    """Tensors that a checkpoint may hold once more under another name, by that name: a tied output matrix."""

    def read_shape(self, given: Mapping[str, Any]) -> Any:
        """The shape that a checkpoint's `config.json` states."""
        ...

    def write_shape(self, shape: Any) -> dict[str, Any]:
        """`config.json` for such a model."""
        ...

    def ignores(self, stored: str) -> bool:
        """Whether a tensor of this name in a checkpoint is none of the model's weights."""
        ...

    def build(self, shape: Any) -> nn.Module:
        """A model with new weights. `model(ids, trace=None)` are its scores.

        Loading calls it on torch's meta device first; a model that makes constants besides its weights is built again.
        """
        ...

    def tensors(self, shape: Any) -> Iterable[TensorSpec]:
        """Every tensor, in the order in which a token meets them."""
        ...

    def places(self, shape: Any) -> Iterable[Place]:
        """Every named intermediate, in the order of computation."""
        ...


class Trainable(Protocol):
    """What a model (as `build` made it) may show of itself for training. All of it may be left out."""

    blocks: Iterable[nn.Module]
    """The stack: compiled, computed again, divided between processes or adapted by LoRA block by block."""
    output_matrix: Tensor
    """[vocabulary, width], which the vectors of `read(ids)` are multiplied by: the loss then needs no logits."""
    body: nn.Module
    """Of a model under a head: the model itself."""


class Cached(Protocol):
    """What a model declares that reads on from a KV cache, and so writes a token without reading the text again.

    Of a model without the declaration `model(ids)` is all that is asked, and whatever it writes is read whole for every
    token.
    """

    cached: bool
    """True. It is the declaration: methods of these names may also be there for something else."""
    token_embedding: nn.Embedding

    def read(
        self, ids: Tensor, cache: Cache | None = None, trace: Trace | None = None, padding: Tensor | None = None
    ) -> Tensor:
        """The new tokens [row, token], after those in the cache, as vectors [row, token, width].

        `padding` [row] columns on the left of each row are no tokens; with a cache, the cache says how many.
        """
        ...

    def score(self, hidden: Tensor, trace: Trace | None = None) -> Tensor:
        """These vectors as logits."""
        ...


class Encoder(Protocol):
    """What a model declares that reads a text in both directions at once. It writes none: there is no next token."""

    encoder: bool
    """True. It is the declaration."""

    def read(
        self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None, trace: Trace | None = None
    ) -> Tensor:
        """Token ids [row, token] as vectors [row, token, width].

        `segments` [row, token] says to which of two sentences each belongs, `mask` [row, token] is False where a row
        was filled up on its right.
        """
        ...

    def score(self, hidden: Tensor, trace: Trace | None = None) -> Tensor:
        """These vectors as scores over the vocabulary, refused by a model without that head."""
        ...

    def segments_of(self, ids: Tensor) -> Tensor:
        """The segments that are meant where none are given. [row, token]"""
        ...


class StoredOtherwise(Protocol):
    """What an architecture may also say, where `prefix` and `config.json` do not tell all about its files."""

    def shape_with(self, shape: Any, stored: Collection[str]) -> Any:
        """The shape as a file's tensors show it, by their names: which head is there, say."""
        ...

    def plain_name(self, stored: str) -> str:
        """A name in a file as the table of tensors has it."""
        ...

    def file_name(self, shape: Any, plain: str) -> str:
        """The other way round."""
        ...


def encoder(model: Any) -> bool:
    """Whether a model declares itself an `Encoder`; or an architecture, that its models are."""
    return getattr(model, "encoder", False) is True  # not a part of that name, as an encoder-decoder has


class Decoding(Protocol):
    """Where the decoder of an encoder-decoder is, in every row: what the encoder said, and what was read since."""

    @property
    def batch(self) -> int: ...

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may be named twice (a beam that forks)."""
        ...

    def join(self, other: Any) -> None:
        """Put the rows of another one below these."""
        ...


class TwoTexts(Protocol):
    """What a model has whose shape names a `start` token: it reads one text and writes another.

    A text for it is the sequence `source <start> target`, and `model(ids)` are its scores, as of any model; the shape's
    `between` is what stands between the two. A decoder reads on from a state that holds what the encoder said.
    """

    token_embedding: nn.Embedding

    def begin(self, sources: list[list[int]]) -> Decoding:
        """The encoder reads these sources."""
        ...

    def decode(self, target: Tensor, state: Any) -> Tensor:
        """The target's new tokens [row, token] are read; as vectors [row, token, width]."""
        ...

    def score(self, hidden: Tensor) -> Tensor:
        """These vectors as logits."""
        ...


def start_of(shape: Any) -> int | None:
    """The token that a target begins with; None for a model of one text."""
    return getattr(shape, "start", None)


def cached(model: Any) -> bool:
    """Whether a model declares itself `Cached`."""
    return bool(getattr(model, "cached", False))


def context_of(shape: Any) -> int:
    """How many tokens a text may have."""
    return getattr(shape, "context", UNLIMITED)


def body(model: nn.Module) -> Any:
    """The model under a task's head; one without a head is its own."""
    return getattr(model, "body", model)


def blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks of a model's stack; none if it shows none."""
    return list(getattr(body(model), "blocks", ()))


_INCLUDED = {
    "gpt2": "cutaway.models.gpt2.architecture",
    "transformer": "cutaway.models.transformer.architecture",
    "seq2seq": "cutaway.models.seq2seq.architecture",
    "bert": "cutaway.models.bert.architecture",
    "elmo": "cutaway.models.elmo.architecture",
}
_KNOWN: dict[str, Architecture] = {}
_ALSO = {"cutaway-gpt2": "gpt2", "marian": "transformer", "distilbert": "bert"}
"""Further types of the included models: what others must not take for theirs."""


def register(architecture: Architecture) -> None:
    """Make a model known: from now on it can be traced, counted and looked into like the included ones."""
    _KNOWN[architecture.kind] = architecture


def architecture(kind: str) -> Architecture:
    """The architecture of this kind, imported when it is first asked for."""
    kind = _ALSO.get(kind, kind)
    if kind not in _KNOWN and kind not in _INCLUDED:
        load_plugins()
    if kind not in _KNOWN:
        if kind not in _INCLUDED:
            known = sorted({*_KNOWN, *_INCLUDED})
            some = ", ".join(map(repr, known))
            raise CutawayError(
                f"the model's type is {kind!r}, and only {some} {'is' if len(known) == 1 else 'are'} supported."
                f"{nearest(kind, known)} Another kind is made known by whoever registers it (CONTRIBUTING.md): import "
                "that module first, or install its package."
            )
        register(importlib.import_module(_INCLUDED[kind]).ARCHITECTURE)
    return _KNOWN[kind]


@lru_cache(maxsize=16)
def tensors(shape: Any) -> tuple[TensorSpec, ...]:
    """Every tensor of a model of this shape."""
    return tuple(architecture(shape.kind).tensors(shape))


@lru_cache(maxsize=16)
def places(shape: Any) -> dict[str, Place]:
    """Every named intermediate of a model of this shape, by its name, in the order of computation."""
    return {place.name: place for place in architecture(shape.kind).places(shape)}


def count_parameters(shape: Any) -> int:
    """How many weights a model of this shape has."""
    return sum(one.count for one in architecture(shape.kind).tensors(shape))
