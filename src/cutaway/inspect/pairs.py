"""What a model of two texts makes of a source: a run of both, and the views of it.

The encoder's values have a row for each token of the source. The decoder's have one for the start token and one for
each token of the target so far: what stands in a row is what the token after it is chosen by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Cube, Line, Table, Token, ViewResult, array, token
from cutaway.inspect.runs import Run
from cutaway.models.architecture import architecture, context_of, places, start_of
from cutaway.models.transformer.model import sinusoids as waves
from cutaway.parts.trace import within

if TYPE_CHECKING:
    from cutaway.decoding.sequence import Result
    from cutaway.language_model import LanguageModel

RECURRENT = "decoder.attention.weights"
KINDS = {
    "cross": "decoder.blocks.{}.cross",
    "encoder": "encoder.blocks.{}.attention",
    "decoder": "decoder.blocks.{}.attention",
}
"""The attentions of a Transformer, and where each is in a block."""
LAYOUTS = ("interleaved", "halves")


@torch.inference_mode(False)
@torch.no_grad()
def pair_run(lm: LanguageModel, ids: Sequence[int]) -> Run:
    """Carry `source <start> target` through the model, as far as the target goes, and keep all it makes."""
    begins = divided(lm, ids)
    room = context_of(lm.config)
    if len(ids) - begins > room:
        raise CutawayError(
            f"The target is {len(ids) - begins - 1:,} tokens long, and {lm.name} has room for {room - 1:,}."
        )
    return Run(lm, tuple(ids), begins + 1, (), lm.trace(list(ids)))


def divided(lm: LanguageModel, ids: Sequence[int]) -> int:
    """Where the start token is; a model of one text is refused."""
    start = start_of(lm.config)
    if start is None:
        raise CutawayError(
            f"{architecture(lm.config.kind).title} reads one text, not two: {lm.name} has no source and target."
        )
    if start not in ids:
        raise CutawayError(
            f"A text for {lm.name} is source, start token ({start}) and target, and this one has no start token."
        )
    return list(ids).index(start)


def named(lm: LanguageModel, ids: Sequence[int]) -> tuple[Token, ...]:
    return tuple(token(lm.tokenizer, one) for one in ids)


@dataclass(frozen=True)
class Sides:
    """The two texts of a run: the source's ids, and the decoder's, which begin with the start token."""

    source: tuple[int, ...]
    decoder: tuple[int, ...]


def sides(run: Run) -> Sides:
    begins = divided(run.lm, run.ids)
    return Sides(run.ids[:begins], run.ids[begins:])


@dataclass(frozen=True)
class Written(ViewResult):
    """How a token of the target was chosen."""

    probability: float
    """Of the token that stands here."""
    top: tuple[Token, ...]
    """The likeliest, the first one first."""
    probabilities: Line


@dataclass(frozen=True)
class Translation(ViewResult):
    """A source, its translation, and how likely each token was when it was written."""

    source: tuple[Token, ...]
    start: Token
    target: tuple[Token, ...]
    """With the end token, if the translation came to its end."""
    given: int
    """So many tokens of the target were given; those after them the model wrote."""
    ended: bool
    text: str
    steps: tuple[Written, ...]
    """One for each token of the target."""


@torch.no_grad()
def translation(run: Run, beams: int = 1, k: int = 5, max_tokens: int = 100) -> Translation:
    """Let the model go on from the run: greedily, or by beams; then how each token was chosen."""
    lm, two = run.lm, sides(run)
    begun = list(two.decoder[1:])
    room = min(max_tokens, context_of(lm.config) - len(two.decoder))
    if (ended := bool(begun) and begun[-1] == lm.config.end) or room < 1:
        target = begun
    else:
        way: dict[str, Any] = {"beams": beams} if beams > 1 else {"top_k": 1}
        result: Result = lm.generate(list(run.ids), max_tokens=room, **way)
        ended = result.reason == "end"
        target = [*begun, *result.ids, *([lm.config.end] if ended else [])]
    chances = lm.trace([*run.ids[: len(two.source) + 1], *target[:-1]], keep="logits")["logits"].float().softmax(-1)
    chances = chances[: len(target), : len(lm.tokenizer)]
    steps = tuple(written(lm, row, one, k) for row, one in zip(chances, target, strict=True))
    words = target[:-1] if ended else target
    return Translation(
        named(lm, two.source), token(lm.tokenizer, two.decoder[0]), named(lm, target), len(begun), ended,
        lm.tokenizer.target.decode(words).strip(), steps,
    )  # fmt: skip


def written(lm: LanguageModel, row: Tensor, chosen: int, k: int) -> Written:
    best = row.topk(min(k, len(row)))
    return Written(float(row[chosen]), named(lm, best.indices.tolist()), array(best.values))


@dataclass(frozen=True)
class Attentions(ViewResult):
    """What every head of one attention looks at."""

    of: str
    """cross (from the target to the source), encoder or decoder (each to itself)."""
    layer: int
    layers: int
    """How many layers have such an attention."""
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    weights: Cube
    """[head, query, key]: each row sums to one."""


def attentions(run: Run, of: str = "cross", layer: int = -1) -> Attentions:
    """The weights of one of the three attentions, all heads of a layer; a recurrent model has one, with one head."""
    two, lm = sides(run), run.lm
    source, decoder = named(lm, two.source), named(lm, two.decoder)
    if of not in KINDS:
        raise CutawayError(f"There is no attention {of!r:.40}. Known: {', '.join(KINDS)}.")
    known = places(lm.config)
    if RECURRENT in known:
        if of != "cross":
            raise CutawayError(f"{lm.name} is recurrent: its only attention is from the target to the source (cross).")
        return Attentions(of, 0, 1, decoder, source, array(run[RECURRENT][None]))
    layers = sum(fnmatchcase(name, f"{KINDS[of].format('*')}.weights") for name in known)
    layer = within("layer", layer, layers)
    weights = array(run[f"{KINDS[of].format(layer)}.weights"])
    queries, keys = source if of == "encoder" else decoder, decoder if of == "decoder" else source
    return Attentions(of, layer, layers, queries, keys, weights)


@dataclass(frozen=True)
class HiddenStates(ViewResult):
    """What one layer of the network holds after each word."""

    name: str
    stack: str
    layer: int
    values: Table
    """[token, column]"""


@dataclass(frozen=True)
class Unrolled(ViewResult):
    """A recurrent network, unrolled: its hidden states word by word, and what goes over to the decoder."""

    cell: str
    attention: str
    bidirectional: bool
    """Whether the second half of each of the encoder's vectors was read from the end."""
    source: tuple[Token, ...]
    decoder: tuple[Token, ...]
    """What goes into the decoder: the start token, and each token that was written."""
    states: tuple[HiddenStates, ...]
    last: tuple[Line, ...]
    """The state that each layer of the decoder begins with."""
    context: Table | None
    """[target token, column]: what attention brings from the source; None without attention."""


def unrolled(run: Run) -> Unrolled:
    """The hidden states of both networks, the states that go over, and the contexts."""
    two, lm = sides(run), run.lm
    shape: Any = lm.config
    known = places(shape)
    states = tuple(
        HiddenStates(f"{stack}.blocks.{layer}.hidden", stack, layer, array(run[f"{stack}.blocks.{layer}.hidden"]))
        for stack in ("encoder", "decoder")
        for layer in range(shape.layers)
    )
    context = "decoder.attention.context"
    return Unrolled(
        shape.cell, shape.attention, shape.bidirectional, named(lm, two.source), named(lm, two.decoder), states,
        tuple(array(run[f"encoder.blocks.{layer}.last"]) for layer in range(shape.layers)),
        array(run[context]) if context in known else None,
    )  # fmt: skip


@dataclass(frozen=True)
class Level(ViewResult):
    """A vector on its way up a stack."""

    name: str
    """Of the place, as a trace knows it."""
    stack: str
    layer: int | None
    """None before the first block and after the last."""
    part: str
    """attention, cross, mlp; entry before the blocks, end after them."""
    norm: float
    """How long the vector is."""
    values: Line


@dataclass(frozen=True)
class Stacks(ViewResult):
    """One token's vectors up the encoder, and one's up the decoder."""

    source: int
    target: int
    heads: int
    norm: str
    """Whether a part is normed before it (pre) or after (post)."""
    levels: tuple[Level, ...]


def stacks(run: Run, word: int = -1, row: int = -1) -> Stacks:
    """What each part of each block leaves of one token of the source, and of one row of the decoder."""
    two = sides(run)
    shape: Any = run.lm.config
    source, target = within("token", word, len(two.source)), within("token", row, len(two.decoder))
    at = {"encoder": source, "decoder": target}
    levels = tuple(level(run, name, at[name.partition(".")[0]]) for name in stages(run.lm, shape.norm == "post"))
    return Stacks(source, target, shape.heads, shape.norm, levels)


def stages(lm: LanguageModel, post: bool) -> Iterator[str]:
    """The places where the stream stands: the entry, after each part of each block, and at the end."""
    ends = ".norm" if post else ".sum"
    for name in places(lm.config):
        if name.endswith((".entry", ".final_norm")) or (".blocks." in name and name.endswith(ends)):
            yield name


def level(run: Run, name: str, row: int) -> Level:
    stack, *inside = name.split(".")
    vector = run[name][row].float()
    if inside[0] == "blocks":
        return Level(name, stack, int(inside[1]), inside[2], float(vector.norm()), array(vector))
    return Level(name, stack, None, "entry" if inside[0] == "entry" else "end", float(vector.norm()), array(vector))


@dataclass(frozen=True)
class Compared(ViewResult):
    """What may stand at one place of the target: before training, after it, and what should."""

    token: Token
    """The one that should."""
    before: float
    after: float
    """What it is given."""
    words: tuple[Token, ...]
    """The likeliest after training, and with them the one that should stand here."""
    untrained: Line
    trained: Line
    """What each of these words is given, before and after."""


@dataclass(frozen=True)
class Learned(ViewResult):
    """The probabilities of a reference, word by word, in this model and in one of its shape with random weights."""

    seed: int
    loss_before: float
    """The mean of -log of what the right words are given, in nats."""
    loss_after: float
    places: tuple[Compared, ...]


@torch.no_grad()
def learned(run: Run, reference: str, k: int = 5, seed: int = 0) -> Learned:
    """What this model gives each word of a reference, beside one that has learned nothing yet."""
    lm, two = run.lm, sides(run)
    wanted = [*lm.tokenizer.target.encode(reference), lm.config.end]
    if len(wanted) == 1:
        raise CutawayError("There is no reference: give the translation that would be right.", "no_reference")
    if len(wanted) > (room := context_of(lm.config)):
        raise CutawayError(
            f"The reference has {len(wanted):,} tokens, and {lm.name} has room for {room:,}. Shorten it."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = architecture(lm.config.kind).build(lm.config).eval().to(lm.device)
    ids = torch.tensor([[*two.source, two.decoder[0], *wanted[:-1]]], device=lm.device)
    both = [
        model(ids)[0, len(two.source) :, : len(lm.tokenizer)].float().log_softmax(-1).cpu()
        for model in (fresh, lm.model)
    ]
    losses = [-float(one.gather(1, torch.tensor(wanted)[:, None]).mean()) for one in both]
    found = []
    for row, right in enumerate(wanted):
        words = both[1][row].topk(k).indices.tolist()
        words = words if right in words else [*words[:-1], right]
        before, after = (array(one[row][words].exp()) for one in both)
        place = words.index(right)
        chances = float(before[place]), float(after[place])
        found.append(Compared(token(lm.tokenizer, right), *chances, named(lm, words), before, after))
    return Learned(seed, losses[0], losses[1], tuple(found))


@dataclass(frozen=True)
class Sinusoids(ViewResult):
    """What is added to each position, in one layout."""

    layout: str
    own: str
    """The layout that the model was made with."""
    values: Table
    """[position, column]"""


def sinusoids(run: Run, layout: str = "", positions: int = 64, width: int = 0) -> Sinusoids:
    """Sine and cosine of each position at many frequencies; without a layout, in the model's own."""
    shape: Any = run.lm.config
    chosen = layout or shape.positions
    if chosen not in LAYOUTS:
        raise CutawayError(f"There is no layout {layout!r:.40}. Known: {', '.join(LAYOUTS)}.")
    return Sinusoids(chosen, shape.positions, array(waves(torch.arange(positions), width or shape.width, chosen)))
