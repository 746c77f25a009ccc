"""One text carried through the model once, and everything it made on its way: where every view begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from cutaway.checks import is_id
from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Token, token, tokens_of
from cutaway.models.architecture import Place, cached, places, start_of
from cutaway.models.gpt2.model import GPT, Block
from cutaway.parts.cache import Cache
from cutaway.parts.trace import Fused, Trace, check_name, within

if TYPE_CHECKING:
    from cutaway.inspect.change import Change
    from cutaway.language_model import LanguageModel, Prompt

KEEP_WHOLE = 32 << 20
"""Below this many bytes everything a text makes is kept; above, the residual stream, and blocks are run again."""
STREAM = (
    "token_embedding", "position_embedding", "residual.0", "blocks.*.residual", "blocks.*.residual.middle",
    "blocks.*.attention.keys", "blocks.*.attention.values", "blocks.*.attention.merged", "final_norm",
)  # fmt: skip
"""What is kept of a longer text: what is as large as the tokens are many, and what a text that goes on needs."""
MADE_AGAIN = 128 << 20
"""So many bytes of what was made again stay at hand; what was asked for longest ago goes first."""
SHAPE = ("layers", "heads", "width", "head_width", "mlp_width", "vocabulary", "context")
"""The numbers of a model's shape that pictures are drawn by."""
WORTHWHILE = 16
"""A common beginning of fewer tokens is not taken over."""


@dataclass(frozen=True, eq=False)
class Run:
    """A text and what the model made of it; `run["blocks.5.attention.weights"]` is one of the intermediates.

    Of a longer text only the residual stream is kept: what is inside a block is then made again by the block itself.
    """

    lm: LanguageModel
    ids: tuple[int, ...]
    prompt: int
    """How many of the tokens are the prompt's; those after it are its continuation."""
    changes: tuple[Change, ...]
    trace: Trace
    _latest: dict[str, Trace] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.tokens if hasattr(self.lm.tokenizer, "read_as") else self.ids)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tokens_of(self.lm.tokenizer, self.ids)

    @property
    def text(self) -> str:
        return self.lm.shown(self.ids)

    @property
    def nbytes(self) -> int:
        return self.trace.nbytes + sum(block.nbytes for block in self._latest.values())

    @torch.no_grad()
    def __getitem__(self, name: str) -> Tensor:
        if name in self.trace:
            return self.trace[name]
        if name == "logits":
            return self.logits()
        check_name(name, places(self.lm.config))
        scope, _, part = name.rpartition(".")  # blocks.5.attention, weights
        if part == "heads" and f"{scope}.merged" not in self.trace.replace:
            return self.block(int(scope.split(".")[1])).attention.split(self.trace[f"{scope}.merged"][None])[0]
        found = self._latest.pop(scope, None) or self._inside(scope)
        self._latest[scope] = found
        while len(self._latest) > 1 and sum(one.nbytes for one in self._latest.values()) > MADE_AGAIN:
            del self._latest[next(iter(self._latest))]
        return found[name]

    def _inside(self, scope: str) -> Trace:
        """What the attention or the MLP of a block makes on its way, by running it again on what it was given."""
        _, number, part = scope.split(".")
        trace, block = Trace(f"{scope}.*", self.trace.replace), self.block(int(number))
        watch = trace.within(scope)
        if part == "attention":
            block.attention(watch("norm", block.attention_norm(self.before(int(number))[None])), None, None, watch)
        else:
            block.mlp(watch("norm", block.mlp_norm(self.trace[f"blocks.{number}.residual.middle"][None])), watch)
        return trace.row(0)

    @torch.no_grad()
    def activations(self, layer: int, rows: slice = slice(None)) -> Tensor:
        """The activations of an MLP at these tokens; of a long text, without running the rest of it. [token, neuron]"""
        name, inside = f"blocks.{self.layer(layer)}.mlp.activation", f"blocks.{self.layer(layer)}.mlp."
        if name in self.trace or any(changed.startswith(inside) for changed in self.trace.replace):
            return self[name][rows]
        if (made := self._latest.get(inside[:-1])) is not None:
            return made[name][rows]
        block = self.block(layer)
        return block.mlp.activation(block.mlp.widen(block.mlp_norm(self.trace[f"{inside[:-4]}residual.middle"][rows])))

    def activation(self, layer: int, position: int) -> Tensor:
        """The activations of an MLP at one token. [neuron]"""
        at = self.position(position)
        return self.activations(layer, slice(at, at + 1))[0]

    def block(self, layer: int) -> Block:
        """The block itself, with its weights."""
        return cast(Block, self.lm.model.blocks[self.layer(layer)])

    def before(self, layer: int) -> Tensor:
        """The residual stream that enters a block. [token, width]"""
        layer = self.layer(layer)
        return self.trace[f"blocks.{layer - 1}.residual" if layer else "residual.0"]

    @torch.no_grad()
    def logits(self, positions: Sequence[int] | None = None) -> Tensor:
        """The scores after these tokens (all, if none are named). [position, vocabulary]"""
        positions = None if positions is None else [self.position(position) for position in positions]
        if "logits" in self.trace:
            found = self.trace["logits"]
            return found.float() if positions is None else found[positions].float()
        hidden = self.trace["final_norm"]
        if "logits" in self.trace.replace:
            logits = self.lm.model.score(hidden[None], Trace((), self.trace.replace))[0].float()
            return logits if positions is None else logits[positions]
        return self.lm.model.score(hidden if positions is None else hidden[positions]).float()

    def looked_up(self, place: Place, position: int) -> int:
        """Which row of a matrix a look-up takes for a token: by its id, its position, or its segment."""
        if place.inputs == ("segments",):
            model = cast(Any, self.lm.model)
            return int(model.segments_of(torch.tensor([self.ids]))[0, position])
        return self.ids[position] if place.inputs == ("ids",) else position

    def layer(self, layer: int) -> int:
        """A layer's number, checked; negative ones count from the last."""
        return within("layer", layer, getattr(self.lm.config, "layers", 1))

    def head(self, head: int) -> int:
        return within("head", head, getattr(self.lm.config, "heads", 1))

    def position(self, position: int) -> int:
        """A token's position, checked; -1 is the last."""
        return within("token", position, len(self))

    def layers(self, layers: Sequence[int] | None) -> list[int]:
        """These layers, checked, each once; all, if nothing is said."""
        if layers is None:
            return list(range(self.lm.config.layers))
        chosen = list(dict.fromkeys(self.layer(layer) for layer in layers))
        if not chosen:
            raise CutawayError("No layer is named. Name one or more, or leave them out for all.")
        return chosen

    def token(self, given: int | str) -> Token:
        """Any entry of the vocabulary: by its number, or by its text."""
        return token(self.lm.tokenizer, token_id(self.lm, given))

    def next(self, position: int) -> int:
        """The id of the token after this one: the one that stands there, or after the last one the likeliest."""
        position = self.position(position)
        return self.ids[position + 1] if position + 1 < len(self) else self.likeliest(position)

    def likeliest(self, position: int) -> int:
        """The id of the likeliest next token. A padded vocabulary has scores for more than there are tokens."""
        return int(self.logits([position])[0, : len(self.lm.tokenizer)].argmax())

    def to_dict(self) -> dict[str, Any]:
        config = self.lm.config
        shape = [name for name in SHAPE if hasattr(config, name)]
        return {
            "model": self.lm.name,
            "text": self.text,
            "tokens": [one.to_dict() for one in self.tokens],
            "prompt": self.prompt,
            "shape": {name: getattr(config, name) for name in shape if hasattr(config, name)},
            "recommended": self.lm.recommended,
            "names": list(places(config)),
            "changes": [change.to_dict() for change in self.changes],
        }


def token_id(lm: LanguageModel, given: int | str) -> int:
    """An entry of the vocabulary by its number, as `id:N`, or by its text: `" ball"`, or `"ball"` where only the word
    with its space is one token.
    """
    if not isinstance(given, str):
        if not is_id(given):
            raise CutawayError(f"A token is named by its text or its id, not {given!r:.80}.")
        return lm.ids([given])[0]
    if given.startswith("id:") and given[3:].isdecimal():
        return lm.ids([int(given[3:])])[0]
    for spelled in (given, given.replace("·", " "), f" {given}") if given else ():
        ids = lm.tokenizer.encode(spelled, special=True)
        if len(ids) == 1:
            return ids[0]
    pieces = [token(lm.tokenizer, one) for one in lm.tokenizer.encode(given)]
    shown = "│".join((one.text or one.bytes.hex(" ")).replace(" ", "·") for one in pieces)
    raise CutawayError(
        f"{given!r:.80} is not one token of this vocabulary but {shown or 'none':.80}. "
        "Name one of its tokens, or id:N.",
        "not_one_token",
        text=given[:80],
        pieces=shown[:80],
    )


def run(
    lm: LanguageModel,
    text: Prompt,
    continuation: Prompt = "",
    changes: Sequence[Change] = (),
    after: Run | None = None,
) -> Run:
    """Carry a text through the model, with the changes if there are any, and keep what it makes.

    What a longer text has in common with the beginning of another (`after`) is taken over from there, not read again.
    """
    prompt = lm.ids(text)
    ids = [*prompt, *(lm.ids(continuation) if len(continuation) else ())]
    return carry(lm, ids, len(prompt), changes, len(ids), after)


@torch.inference_mode(False)  # plain tensors, whoever asks
@torch.no_grad()
def carry(
    lm: LanguageModel, ids: list[int], prompt: int, changes: Sequence[Change], counted: int, after: Run | None = None
) -> Run:
    """The same for tokens; the positions of the changes count among the first `counted` of them."""
    from cutaway.inspect.change import check_made, replacements

    check(lm, ids)
    check_made(changes, counted, len(ids))
    if not cached(lm.model):  # everything it makes is kept: nothing can be read on from it
        return Run(lm, tuple(ids), prompt, tuple(changes), lm.trace(ids, replace=replacements(lm, changes, counted)))
    keep = keep_for(lm, len(ids))
    trace = (Trace if keep == "*" else Fused)(keep, replacements(lm, changes, counted, read=len(ids)))
    known = 0 if after is None or changes or keep == "*" else common(after, lm, ids)
    if after is not None and known >= WORTHWHILE:
        dtype = lm.model.token_embedding.weight.dtype
        cache = Cache(lm.config, 1, len(ids), dtype=dtype, device=lm.device)
        lend(after, known, cache)
        lm.model.read(torch.tensor([ids[known:]], device=lm.device), cache, trace)
        trace = trace.row(0)
        trace.kept = {name: torch.cat((after[name][..., :known, :], new), -2) for name, new in trace.kept.items()}
        return Run(lm, tuple(ids), prompt, (), trace)
    text = torch.tensor([ids], device=lm.device)
    if keep == "*":
        lm.model(text, trace=trace)
    else:
        lm.model.read(text, trace=trace)  # the scores over the vocabulary would be the largest of all
    return Run(lm, tuple(ids), prompt, tuple(changes), trace.row(0))


def common(run: Run, lm: LanguageModel, ids: Sequence[int]) -> int:
    """How many tokens of another text a run can lend: the same ones at its beginning, and never the last."""
    if run.lm is not lm or run.changes:
        return 0
    pairs = zip(run.ids, ids[:-1], strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(run), len(ids) - 1))


def lend(run: Run, tokens: int, cache: Cache) -> None:
    """Put the keys and values of the first tokens of a run into an empty cache."""
    for layer in range(run.lm.config.layers):
        scope = f"blocks.{layer}.attention"
        cache.extend(layer, run[f"{scope}.keys"][None, :, :tokens], run[f"{scope}.values"][None, :, :tokens])
    cache.advance(tokens)


def unread(lm: LanguageModel, ids: Sequence[int]) -> Run:
    """A text that has not been carried through: for a view that asks for the model and the ids only."""
    return Run(lm, tuple(ids), len(ids), (), Trace(()))


def written(
    lm: LanguageModel, prompt: Prompt, max_tokens: int = 20, changes: Sequence[Change] = (), **settings: Any
) -> Run:
    """Let the model continue the prompt (greedily, unless settings say otherwise), and carry both through it.

    The changes are the same while it writes and in the run: their positions count in the prompt.
    """
    from cutaway.inspect.generation import generation

    ids = lm.ids(prompt)
    check(lm, ids)
    settings = {"top_k": 1, **settings}
    result = generation(lm, ids, max_tokens=max_tokens, keep=(), changes=changes, **settings).result
    return carry(lm, [*ids, *result.ids], len(ids), changes, len(ids))


def check(lm: LanguageModel, ids: Sequence[int]) -> None:
    """Refuse a text with nothing to look at, or more than the model can look at."""
    if not ids:
        raise CutawayError("There is no text to inspect. Give at least one word.")
    if start_of(lm.config) is not None:
        raise CutawayError(
            f"{lm.name} reads one text and writes another, and these views show models of one text. What it makes on "
            "its way is in lm.trace(lm.pair(source, target)), by the names of its map."
        )
    if len(ids) > getattr(lm.config, "context", len(ids)):
        raise CutawayError(
            f"The text is {len(ids):,} tokens long and {lm.name} has a context of {lm.config.context:,}. Shorten it."
        )


def keep_for(lm: LanguageModel, tokens: int) -> str | tuple[str, ...]:
    """Everything, if it is not too much for so many tokens, or if the blocks cannot be run again one by one; else the
    residual stream.
    """
    shape = lm.config
    if not isinstance(lm.model, GPT):
        return "*"
    inside = 3 * shape.heads * tokens + 10 * shape.width + 2 * shape.mlp_width
    numbers = tokens * (shape.layers * inside + shape.vocabulary)
    return "*" if 4 * numbers <= KEEP_WHOLE else STREAM
