"""What if: a head or neuron taken out, a direction added, a value brought from another text; and what that changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch
from torch import Tensor

from cutaway.checks import check_count
from cutaway.errors import CutawayError, nearest
from cutaway.inspect.numbers import Array, Line, Table, Token, ViewResult, array
from cutaway.inspect.runs import Run, token_id
from cutaway.inspect.source import source_run
from cutaway.inspect.view import has
from cutaway.models.architecture import places
from cutaway.parts.trace import added, check_name, in_turn, where, within, zeroed

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

Step = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Change:
    """Something done to one intermediate: at one token, or at all of them (None).

    A change of one's own is a frozen dataclass with a `kind`, and says which intermediate it changes and how. Its
    fields `layer` and `position`, if it has them, are checked, and counted from 0, before it is asked.
    """

    kind: ClassVar[str]

    def intermediate(self) -> str:
        """The name of the intermediate that is changed."""
        raise NotImplementedError

    def at(self) -> int | None:
        """The token it is changed at; None for all."""
        return getattr(self, "position", None)

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        """The replacement: a function from the value [token, width], or [head, token, ...] inside attention, to the new
        one of the same shape.

        `position` is the row of it to change (None: every row). While a text is written, the value has the rows of the
        tokens that are new. `tokens` is the length of the text the change is for.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class AblateHead(Change):
    """Take one attention head out: what it found is zero."""

    kind: ClassVar[str] = "ablate_head"
    layer: int
    head: int
    position: int | None = None

    def intermediate(self) -> str:
        return f"blocks.{self.layer}.attention.heads"

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        return zeroed(where(head=self.head, position=position))


@dataclass(frozen=True)
class AblateNeuron(Change):
    """Take one neuron of an MLP out: its activation is zero."""

    kind: ClassVar[str] = "ablate_neuron"
    layer: int
    neuron: int
    position: int | None = None

    def intermediate(self) -> str:
        return f"blocks.{self.layer}.mlp.activation"

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        neuron = within("neuron", self.neuron, lm.config.mlp_width)
        return zeroed(where(position=position, column=neuron))


@dataclass(frozen=True)
class Steer(Change):
    """Add a direction to the residual stream after a block: from what one text makes there to what another makes.

    The direction is the vector of the last token of `toward` less that of `away` (nothing, if it is empty), times
    `strength`.
    """

    kind: ClassVar[str] = "steer"
    layer: int
    toward: str
    away: str = ""
    strength: float = 1.0
    position: int | None = None

    def intermediate(self) -> str:
        return f"blocks.{self.layer}.residual"

    def vector(self, lm: LanguageModel) -> Tensor:
        """What is added. [width]"""
        name = f"blocks.{within('layer', self.layer, lm.config.layers)}.residual"
        vector = source_run(lm, self.toward)[name][-1]
        return (vector - source_run(lm, self.away)[name][-1] if self.away else vector) * self.strength

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        return added(self.vector(lm), where(position=position))


@dataclass(frozen=True)
class Toward(Change):
    """Push the residual stream after a block in the direction of one token: its row of the output matrix.

    At strength 1 what is added is as long as the vector that is there.
    """

    kind: ClassVar[str] = "toward"
    layer: int
    token: str
    """The text of one token, with its space: `" happy"`."""
    strength: float = 1.0
    position: int | None = None

    def intermediate(self) -> str:
        return f"blocks.{self.layer}.residual"

    def direction(self, lm: LanguageModel) -> Tensor:
        """What is added, at length 1. [width]"""
        if not has(lm.model, "output_matrix"):
            raise CutawayError(
                f"{lm.name} cannot be pushed towards a token: a model of the kind {lm.config.kind} has no "
                "output matrix (`output_matrix`) to take the direction from."
            )
        row = lm.model.output_matrix[token_id(lm, self.token)].detach().float()
        return row / row.norm()

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        place, way = where(position=position), self.direction(lm) * self.strength

        def push(value: Tensor) -> Tensor:
            pushed, at = value.clone(), place.of(value)
            pushed[at] += (way * value[at].float().norm(dim=-1, keepdim=True)).to(value)
            return pushed

        return push


@dataclass(frozen=True)
class Patch(Change):
    """Put a value from another text in its place: at every token (of a text as long), or at one, from one."""

    kind: ClassVar[str] = "patch"
    name: str
    """The name of the intermediate, like `blocks.3.attention.output`."""
    text: str
    """The other text."""
    position: int | None = None
    source: int | None = None
    """The token of the other text, where it is not the same position."""
    head: int | None = None

    def intermediate(self) -> str:
        return self.name

    def step(self, lm: LanguageModel, position: int | None, tokens: int) -> Step:
        if self.name not in places(lm.config):
            check_name(self.name, places(lm.config))
            raise CutawayError(f"{self.name!r} names several intermediates: a patch is of one. Make a patch for each.")
        found = source_run(lm, self.text)
        value, length = found[self.name], len(found)
        square = self.name.rpartition(".")[2] in ("scores", "masked", "weights")
        if (position is None or square) and length != tokens:
            raise CutawayError(
                f"The other text has {length:,} tokens, this one {tokens:,}: "
                + ("attention can only be patched between texts of one length." if square else "name a position."),
                "patch_lengths",
                other=length,
                tokens=tokens,
            )
        if (position is None) != (self.source is None):
            raise CutawayError("A patch with a source needs a position: the token that the source's value goes to.")
        heads = slice(None)
        if self.head is not None:
            if value.ndim != 3:
                raise CutawayError(f"{self.name} is not divided into heads: leave the head out.")
            heads = _slice(within("head", self.head, lm.config.heads))
        to, taken = slice(length), slice(length)
        if position is not None and self.source is not None:
            to, taken = _slice(position), _slice(within("token", self.source, length))
        place = (to, slice(length) if square else slice(None))  # of a text that goes on, the first tokens
        new = value[heads][..., taken, :] if value.ndim == 3 else value[taken]

        def patch(value: Tensor) -> Tensor:
            patched = value.clone()
            patched[(heads, *place) if value.ndim == 3 else place] = new.to(value)
            return patched

        return patch


def _slice(index: int) -> slice:
    return slice(index, index + 1)


TYPES: dict[str, Any] = {"int": int, "int | None": int | None, "str": str, "float": int | float}
KINDS: dict[str, type[Change]] = {kind.kind: kind for kind in (AblateHead, AblateNeuron, Steer, Toward, Patch)}


def from_dict(given: Mapping[str, Any]) -> Change:
    """A change from its JSON form."""
    kind = KINDS.get(given.get("kind", ""))
    if kind is None:
        raise CutawayError(f"There is no change of the kind {given.get('kind')!r}. Known: {', '.join(KINDS)}.")
    known = {field.name: TYPES[str(field.type)] for field in fields(kind)}
    wanted = {name: value for name, value in given.items() if name != "kind"}
    for name, value in wanted.items():
        if name not in known:
            raise CutawayError(f"A change of the kind {kind.kind} has no {name!r}.{nearest(name, known)}")
        if isinstance(value, bool) or not isinstance(value, known[name]):
            raise CutawayError(f"The {name} of a change cannot be {value!r:.80}.")
    try:
        return kind(**wanted)
    except TypeError:
        raise CutawayError(f"A change of the kind {kind.kind} needs: {', '.join(known)}.") from None


def replacements(
    lm: LanguageModel, changes: Sequence[Change], tokens: int, start: int = 0, read: int = 0
) -> dict[str, Step]:
    """What a trace must replace to make these changes, when the model is given the tokens from `start` on.

    `tokens` is the length of the whole text, and `read` of the piece (all of it, if 0).
    """
    steps = defaultdict[str, list[Step]](list)
    for given in changes:
        check_possible(given, lm)
        change = located(given, lm, tokens)
        name, position = change.intermediate(), change.at()
        check_name(name, places(lm.config))
        if position is not None:
            position -= start
            if not 0 <= position < (read or tokens):
                continue  # made when that token was read
        elif start and isinstance(change, Patch):
            continue
        step, written = change.step(lm, position, tokens), max(0, tokens - start)
        rows = {"prompt": slice(written), "written": slice(written, None)}.get(getattr(change, "during", "all"))
        steps[name].append(step if rows is None else in_rows(step, rows))
    return {name: in_turn(found) for name, found in steps.items()}


def in_rows(step: Step, rows: slice) -> Step:
    """The change in these rows only."""

    def change(value: Tensor) -> Tensor:
        changed = value.clone()
        changed[..., rows, :] = step(value)[..., rows, :]
        return changed

    return change


def check_made(changes: Sequence[Change], prompt: int, tokens: int) -> None:
    """Refuse a change that a text of so many tokens, of which so many are the prompt, has no place for."""
    for change in changes:
        during = getattr(change, "during", "all")
        if during not in ("all", "prompt", "written"):
            raise CutawayError(f"A change is made during 'all', 'prompt' or 'written', not {during!r:.80}.")
        position = getattr(change, "position", None)
        if during == "written" and (tokens <= prompt or position is not None):
            raise CutawayError(
                "A change during 'written' is made to what comes after the prompt: here it would change nothing. "
                "Let the model write, and name no position, which is one of the prompt's."
            )


def check_possible(change: Change, lm: LanguageModel) -> None:
    """Refuse an included change of what the model has in no layer at all, such as heads."""
    if not isinstance(change, AblateHead | AblateNeuron | Steer | Toward):
        return
    name = replace(change, layer=0).intermediate()
    if name not in places(lm.config):
        raise CutawayError(
            f"The change {change.kind} does not fit {lm.name}: it changes {name.replace('.0.', '.*.')}, which a model "
            f"of the kind {lm.config.kind} does not have. Choose another change, or another model."
        )


def located(change: Change, lm: LanguageModel, tokens: int) -> Change:
    """The change with its layer and its position checked, and counted from 0."""
    counts = {"layer": ("layer", getattr(lm.config, "layers", 1)), "position": ("token", tokens)}
    found: dict[str, int | None] = {
        name: within(what, getattr(change, name), count)
        for name, (what, count) in counts.items()
        if getattr(change, name, None) is not None
    }
    if isinstance(change, Patch) and change.source is None:
        found["source"] = change.position  # as it was given: -1 is the last token of either text
    return replace(change, **found) if found else change


@dataclass(frozen=True)
class Candidate(ViewResult):
    """How likely a token is as the next one."""

    token: Token
    logit: float
    probability: float
    rank: int


@dataclass(frozen=True)
class Moved(ViewResult):
    """A token whose probability changed."""

    token: Token
    before: float
    after: float


@dataclass(frozen=True)
class Changed(ViewResult):
    """What changed between two runs over one text: in the stream, in the predictions, at one token in detail."""

    changes: tuple[Change, ...]
    position: int
    kl: Line
    """How much the predictions after each token moved, in nats: before || after. [token]"""
    stream: Table
    """How far the residual stream moved, as a share of its length before. [layer, token]"""
    before: tuple[Candidate, ...]
    after: tuple[Candidate, ...]
    moved: tuple[Moved, ...]
    """The tokens whose probability changed most."""
    run: Run
    """The changed run."""
    id: str | None = None
    """What a server remembers the changed run by."""
    told = ("top_changed",)
    hidden = ("run",)
    optional = ("id",)

    @property
    def top_changed(self) -> bool:
        return self.before[0].token != self.after[0].token


_effects: WeakKeyDictionary[Run, tuple[ref[Run], tuple[Array, Array]]] = WeakKeyDictionary()
"""For each changed run: the run before, and the effect; over a long text it takes seconds to make."""


def effect(before: Run, after: Run) -> tuple[Array, Array]:
    """How much the predictions after each token moved [token], and the residual stream [layer, token]."""
    known = _effects.get(after)
    if known is None or known[0]() is not before:
        known = _effects[after] = ref(before), _effect(before, after)
    return known[1]


@torch.no_grad()
def _effect(before: Run, after: Run) -> tuple[Array, Array]:
    if before.ids != after.ids:
        raise CutawayError("Before and after must be runs over the same text.")
    if before is after:
        layers = before.lm.config.layers
        return np.zeros(len(before), np.float32), np.zeros((layers, len(before)), np.float32)
    kl = [divergence(before.logits(piece), after.logits(piece)) for piece in pieces(len(before))]
    stream = [
        (after[name] - before[name]).float().norm(dim=-1) / before[name].float().norm(dim=-1)
        for name in (f"blocks.{layer}.residual" for layer in range(before.lm.config.layers))
    ]
    return array(torch.cat(kl)), array(torch.stack(stream))


@torch.no_grad()
def changed(before: Run, after: Run, position: int = -1, k: int = 10) -> Changed:
    """What the changes of one run changed against another over the same text."""
    check_count(k, 0)
    kl, stream = effect(before, after)
    position = before.position(position)
    was, now = before.logits([position])[0], after.logits([position])[0]
    moves = (now.softmax(-1) - was.softmax(-1))[: len(before.lm.tokenizer)]
    most = moves.abs().topk(min(k, len(moves))).indices.tolist()
    return Changed(
        after.changes,
        position,
        kl,
        stream,
        candidates(before, was, k),
        candidates(after, now, k),
        tuple(Moved(before.token(one), float(was.softmax(-1)[one]), float(now.softmax(-1)[one])) for one in most),
        after,
    )


def pieces(tokens: int, size: int = 64) -> list[range]:
    """The positions in runs, so that the scores of a long text are never all there at once."""
    return [range(first, min(first + size, tokens)) for first in range(0, tokens, size)]


def divergence(before: Tensor, after: Tensor) -> Tensor:
    """How much information is lost by taking one distribution for the other, in nats. [position]"""
    was, now = before.log_softmax(-1), after.log_softmax(-1)
    return (was.exp() * (was - now)).sum(-1).clamp(min=0)


def candidates(run: Run, logits: Tensor, k: int) -> tuple[Candidate, ...]:
    """The k likeliest next tokens, likeliest first."""
    best, chances = logits[: len(run.lm.tokenizer)].topk(min(k, len(run.lm.tokenizer))), logits.softmax(-1)
    return tuple(
        Candidate(run.token(one), logit, float(chances[one]), rank)
        for rank, (one, logit) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True), 1)
    )
