"""What a sentence about a text may claim, as numbers: the guided tour says only what holds on the model being shown.

A fact is asked for by its kind and what it is about, `{"of": "looking", "start": "his", "end": "ball"}`, and gives
named values. Words of the text stand for tokens: the last token of the last place where the word occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cutaway.decoding.sampling import Sampling, probabilities
from cutaway.errors import CutawayError, nearest
from cutaway.inspect import attention
from cutaway.inspect.change import AblateHead
from cutaway.inspect.gallery import stuck
from cutaway.inspect.gaps import gaps
from cutaway.inspect.lens import lens
from cutaway.inspect.numbers import Token, rounded
from cutaway.inspect.pairs import attentions, pair_run, translation, unrolled
from cutaway.inspect.parameters import parameters
from cutaway.inspect.runs import Run, run
from cutaway.inspect.saliency import saliency
from cutaway.inspect.senses import senses
from cutaway.models.architecture import places as architecture_places
from cutaway.models.gpt2.shape import SIZES

IN_TEXT = ("at", "start", "end", "word")
"""What a question calls words of its text."""
CANDIDATES = 4
"""Heads that are really taken out, to find the one that is missed most."""


@dataclass(frozen=True)
class Value:
    """A value of a fact, and how it is written: a count, a percent, a number, tokens; or part of an address."""

    kind: str
    value: Any

    def to_dict(self) -> dict[str, Any]:
        if self.kind == "tokens":
            return {"as": self.kind, "value": [token.to_dict() for token in self.value]}
        return {"as": self.kind, "value": rounded(self.value)}


Fact = dict[str, Value]


def count(value: int) -> Value:
    return Value("count", int(value))


def percent(value: float | Tensor) -> Value:
    return Value("percent", float(value))


def number(value: float | Tensor) -> Value:
    return Value("number", float(value))


def words(*tokens: Token) -> Value:
    return Value("tokens", tokens)


def position(seen: Run, at: int) -> Fact:
    """Where to stand; the last token need not be named."""
    return {} if at == len(seen) - 1 else {"position": count(at)}


def facts(seen: Run, asked: Mapping[str, Mapping[str, Any]], own: bool = False) -> dict[str, Fact]:
    """Each of these facts about a text carried through the model, by the name it was asked under.

    With `own`, the text is another than the questions were written for: a word that does not occur in it is left out,
    and the fact is about what it is about by itself (the last token; what that one looks at; the word most cut up).
    """
    found = {}
    for name, question in asked.items():
        given = {key: value for key, value in question.items() if key != "of"}
        if own:
            given = {key: value for key, value in given.items() if key not in IN_TEXT or occurs(seen, value)}
        kind = question.get("of", "")
        if kind not in FACTS:
            raise CutawayError(f"There is no fact of the kind {kind!r}.{nearest(str(kind), FACTS)}")
        try:
            found[name] = FACTS[kind](seen, **given)
        except TypeError:
            raise CutawayError(f"A fact of the kind {kind} is not about {', '.join(given) or 'nothing'}.") from None
    return found


def place_of(seen: Run, word: str) -> int:
    """The position of the token that ends a word of the text, where it occurs last; "" is the last token."""
    if not word:
        return len(seen) - 1
    pieces = [token.bytes for token in seen.tokens]
    end = b"".join(pieces).rfind(word.encode()) + len(word.encode())
    if end < len(word.encode()):
        raise CutawayError(f"{word!r:.80} does not occur in the text.")
    length = 0
    for position, piece in enumerate(pieces):
        length += len(piece)
        if length >= end:
            return position
    return len(seen) - 1


def occurs(seen: Run, word: Any) -> bool:
    return isinstance(word, str) and word.encode() in b"".join(token.bytes for token in seen.tokens)


def place(seen: Run, at: str = "") -> Fact:
    """Where a word stands."""
    found = place_of(seen, at)
    return {"token": words(seen.tokens[found]), **position(seen, found)}


def following(seen: Run, at: str = "", word: str = "") -> Fact:
    """What comes next after a word: the likeliest token and its probability; and whether it is the word that should."""
    here = place_of(seen, at)
    chances, best = seen.logits([here])[0].softmax(-1), seen.likeliest(here)
    fact = {"after": words(seen.tokens[here]), "token": words(seen.token(best)), "share": percent(chances[best])}
    return {**fact, "right": count(best == first_of(seen, word))} if word else fact


def branches(seen: Run, tokens: int = 3) -> Fact:
    """The likeliest way on from a text, and another that begins with the second likeliest token, as a tree."""
    chances = seen.logits([-1])[0].softmax(-1)
    first, second = chances[: len(seen.lm.tokenizer)].topk(2).indices.tolist()
    way, other = ([*one, *greedy(seen, one, tokens - 1)] for one in ([first], [second]))
    nested = [f"{''.join(f'{one}(' for one in path[:-1])}{path[-1]}{')' * (len(path) - 1)}" for path in (way, other)]
    return {
        "token": words(seen.token(first)), "share": percent(chances[first]), "other": words(seen.token(second)),
        "other_share": percent(chances[second]), "more": Value("ids", way), "tree": Value("text", ",".join(nested)),
    }  # fmt: skip


def greedy(seen: Run, path: Sequence[int], tokens: int) -> list[int]:
    room = min(tokens, seen.lm.config.context - len(seen) - len(path))
    return seen.lm.generate([*seen.ids, *path], max_tokens=room, top_k=1).ids if room > 0 else []


def loop(seen: Run, tokens: int = 60, seed: int = 1) -> Fact:
    """Whether the likeliest tokens go round in circles, in how many tokens, and whether drawing them does not."""
    room = min(tokens, seen.lm.config.context - len(seen))
    likeliest = seen.lm.generate(list(seen.ids), max_tokens=room, top_k=1).ids
    drawn = seen.lm.generate(list(seen.ids), max_tokens=room, temperature=1.0, top_k=40, seed=seed).ids
    _, around = stuck(list(likeliest))
    return {
        "found": count(around is not None), "period": count(around or 0), "written": count(len(likeliest)),
        "seed": count(seed), "freed": count(stuck(list(drawn))[1] is None),
    }  # fmt: skip


def cut(seen: Run, word: str = "") -> Fact:
    """How a text is cut: its tokens and words, and the pieces of one word, or of the one that has the most."""
    word = word or max(seen.text.split() or [""], key=lambda one: pieces_of(seen, one))
    before = place_of(seen, word)
    pieces = [seen.tokens[before]]
    while len(b"".join(piece.bytes for piece in pieces).strip()) < len(word.encode()):
        before -= 1
        pieces.insert(0, seen.tokens[before])
    return {
        "words": count(len(seen.text.split())), "tokens": count(len(seen)), "pieces": count(len(pieces)),
        "list": words(*pieces),
    }  # fmt: skip


def pieces_of(seen: Run, word: str) -> int:
    return min(len(seen.lm.ids(word)), len(seen.lm.ids(f" {word}")))


@torch.no_grad()
def alike(seen: Run, at: str = "") -> Fact:
    """The tokens whose rows of the embedding matrix point most nearly in the direction of this one's."""
    here = place_of(seen, at)
    one = seen.ids[here]
    rows = seen.lm.model.token_embedding.weight[: len(seen.lm.tokenizer)].float()
    near = torch.cosine_similarity(rows, rows[one][None])
    near[one] = -2
    best = near.topk(min(3, len(near) - 1))
    return {
        "token": words(seen.token(one)), "list": words(*(seen.token(i) for i in best.indices.tolist())),
        "nearest": number(best.values[0]), **position(seen, here),
    }  # fmt: skip


def looking(seen: Run, start: str = "", end: str = "") -> Fact:
    """The head that looks most from one word to another, and what else that row of its table says.

    Without an end: to the token that some head looks at most, other than itself and the first, where many just rest.
    """
    here = place_of(seen, start)
    key = place_of(seen, end) if end else looked_at(seen, here)
    found = attention.looking(seen, here, key)
    layer, head, weight = found.layer, found.head, found.weight
    row = seen[f"blocks.{layer}.attention.weights"][head, here, : here + 1].float()
    scores = seen[f"blocks.{layer}.attention.scores"][head, here, : here + 1].float()
    best = int(row.argmax())
    return {
        "layer": count(layer), "head": count(head), "weight": percent(weight), "tokens": count(len(seen)),
        "from": words(seen.tokens[here]), "to": words(seen.tokens[key]), "most": words(seen.tokens[best]),
        "share": percent(row[best]), "score": number(scores[best]), "is_most": count(best == key),
        **position(seen, here),
    }  # fmt: skip


def looked_at(seen: Run, here: int) -> int:
    """The token that some head looks at most from here: not the first, nor this one, unless there are no others."""
    if here < 2:
        return 0
    rows = [seen[f"blocks.{layer}.attention.weights"][:, here, 1:here] for layer in range(seen.lm.config.layers)]
    return 1 + int(torch.stack(rows).float().amax((0, 1)).argmax())


def kinds(seen: Run) -> Fact:
    """The heads that look most clearly at the token before, at the first, and at what followed the same token."""
    found = attention.heads(seen)
    fact: Fact = {"heads": count(found.entropy.size)}
    for name in ("previous", "first"):
        table = getattr(found, name)
        if table is None:
            continue
        layer, head = divmod(int(table.argmax()), table.shape[1])
        fact |= {name: percent(table[layer, head]), f"{name}_layer": count(layer), f"{name}_head": count(head)}
    return fact


@torch.no_grad()
def neurons(seen: Run, layer: int = 0, at: str = "") -> Fact:
    """The first layer of an MLP at one token: how many of its sums are negative, and what becomes of them."""
    layer, here = min(layer, seen.lm.config.layers - 1), place_of(seen, at)
    sums = seen[f"blocks.{layer}.mlp.hidden"][here].float()
    fired = seen[f"blocks.{layer}.mlp.activation"][here].float()
    return {
        "layer": count(layer), "negative": percent((sums < 0).float().mean()), "lowest": number(sums.min()),
        "lowest_after": number(fired.min()), "above": percent((fired > 0.5).float().mean()),
        "all": count(seen.lm.config.layers * seen.lm.config.mlp_width),
    }  # fmt: skip


@torch.no_grad()
def added(seen: Run, layer: int = 0, at: str = "") -> Fact:
    """How long what an MLP adds is, beside the stream it is added to; and how long the stream is at both ends."""
    layer, here = min(layer, seen.lm.config.layers - 1), place_of(seen, at)
    before = seen[f"blocks.{layer}.residual.middle"][here].float()
    update = seen[f"blocks.{layer}.mlp.output"][here].float()
    first, last = seen["residual.0"][here].float(), seen.before(seen.lm.config.layers - 1)[here].float()
    return {
        "layer": count(layer), "share": percent(update.norm() / before.norm()), "first": number(first.norm()),
        "last": number(last.norm()), "growth": number(last.norm() / first.norm()),
        "top": count(seen.lm.config.layers - 1), "root": number(seen.lm.config.width**0.5),
    }  # fmt: skip


def layers(seen: Run) -> Fact:
    """What each layer would already say: how often the first repeats its input, and where the answer settles."""
    found = lens(seen, k=1)
    best = found.top[..., 0]  # [layer, position]
    settled = len(best) - 1
    while settled and best[settled - 1, -1] == best[-1, -1]:
        settled -= 1
    right = found.rank[-1, :-1] == 1
    return {
        "tokens": count(len(seen)), "repeats": count(sum(one == id for one, id in zip(best[0], seen.ids, strict=True))),  # noqa: A001
        "repeated": percent(sum(one == id for one, id in zip(best[0], seen.ids, strict=True)) / len(seen)),  # noqa: A001
        "agrees": count((best[0] == best[-1]).sum()), "token": words(seen.token(int(best[-1, -1]))),
        "settled": count(settled - 1), "places": count(len(right)), "first": count(right.sum()),
        "worst": count(found.rank[-1, :-1].max(initial=1)),
    }  # fmt: skip


@torch.no_grad()
def temperatures(seen: Run, cold: float = 0.3, hot: float = 2.0, top_k: int | None = None) -> Fact:
    """How often the likeliest token is drawn at a low and at a high temperature, from the `top_k` likeliest or all."""
    logits, best = seen.logits([-1])[0].numpy(), seen.likeliest(-1)
    low, own, high = (probabilities(logits, Sampling(heat, top_k))[best] for heat in (cold, 1.0, hot))
    return {
        "token": words(seen.token(best)), "cold": percent(low), "own": percent(own), "hot": percent(high),
        "kept": count(min(top_k or len(logits), len(logits))),
    }  # fmt: skip


def size(seen: Run) -> Fact:
    """The weights of this model and of the smallest GPT-2, and the share of the MLPs in a block."""
    here, small = parameters(seen.lm.config), parameters(SIZES["gpt2"])
    inside = sum(matrix.count for matrix in here.block() if ".mlp." in matrix.name)
    largest = max(here.parts().items(), key=lambda part: part[1])
    return {
        "total": count(here.total), "small": count(small.total), "same": count(here.total == small.total),
        "mlp": percent(inside / here.per_block), "largest": percent(largest[1] / here.total),
        "tied": count(seen.lm.config.tied), "blocks": count(seen.lm.config.layers),
        "width": count(seen.lm.config.width),
    }  # fmt: skip


def cause(seen: Run) -> Fact:
    """The token that counted most for the likeliest next one, and whether it speaks for it or against it."""
    found = saliency(seen, [len(seen)])
    best = int(found.share[0].argmax())
    return {
        "target": words(found.targets[0].token),
        "token": words(seen.tokens[best]),
        "share": percent(found.share[0, best]),
        "against": count(found.signed[0, best] < 0),
    }


def race(seen: Run, one: str, other: str) -> Fact:
    """Two next words from layer to layer: which is ahead at the end, and how often the lead changes."""
    ids = [first_of(seen, word) for word in (one, other)]
    found = lens(seen, [-1], 1, watch=tuple(ids))
    ranks = [followed.rank[:, 0] for followed in found.watch]
    ahead = [int(a < b) for a, b in zip(*ranks, strict=True)]
    changes = [at for at in range(1, len(ahead)) if ahead[at] != ahead[at - 1]]
    winner = 0 if ahead[-1] else 1
    return {
        "winner": words(seen.token(ids[winner])), "loser": words(seen.token(ids[1 - winner])),
        "crossings": count(len(changes)), "layer": count(changes[-1] - 1 if changes else 0),
        "rank": count(ranks[winner][-1]), "beaten": count(ranks[1 - winner][-1]), "first_wins": count(winner == 0),
    }  # fmt: skip


def first_of(seen: Run, word: str) -> int:
    """The token of a next word: with its space as one token, else as it is, else the first of its pieces."""
    cuts = [seen.lm.ids(f" {word}"), seen.lm.ids(word)]
    return next((ids[0] for ids in cuts if len(ids) == 1), cuts[0][0])


@torch.no_grad()
def missed(seen: Run) -> Fact:
    """The head without which the likeliest next token loses most, among those that speak for it most directly."""
    chances, best = seen.logits([-1])[0].softmax(-1), seen.likeliest(-1)
    found = [
        (float(run(seen.lm, list(seen.ids), changes=[AblateHead(*at)]).logits([-1])[0].softmax(-1)[best]), at)
        for at in speakers(seen, best)
    ]
    after, (layer, head) = min(found)
    return {
        "layer": count(layer), "head": count(head), "token": words(seen.token(best)), "before": percent(chances[best]),
        "after": percent(after), "change": number(after - float(chances[best])),
    }  # fmt: skip


@torch.no_grad()
def speakers(seen: Run, token: int) -> Sequence[tuple[int, int]]:
    """The heads whose part in the last vector raises a token's score most: (layer, head), the strongest first."""
    model, config = seen.lm.model, seen.lm.config
    row = model.output_matrix[token].float()
    way = row * model.final_norm.weight.float()  # the norm's scale is the same for all of them
    way = way - way.mean()
    parts = torch.stack(
        [
            torch.einsum(
                "hd,whd,w->h",
                seen[f"blocks.{layer}.attention.heads"][:, -1].float(),
                seen.block(layer).attention.projection.weight.float().unflatten(1, (config.heads, -1)),
                way,
            )
            for layer in range(config.layers)
        ]
    )  # [layer, head]
    best = parts.flatten().topk(min(CANDIDATES, parts.numel())).indices.tolist()
    return [divmod(one, config.heads) for one in best]


def carried(seen: Run) -> Fact:
    """What a recurrent encoder carries from word to word: how many tokens it reads, and how long its state is."""
    found = unrolled(pair_run(seen.lm, seen.ids))
    return {
        "tokens": count(len(found.source)), "width": count(len(found.last[-1])), "both": count(found.bidirectional),
    }  # fmt: skip


def aligned(seen: Run, one: str, other: str) -> Fact:
    """For two words of a translation, the token of the source that the decoder looked at most as it wrote them."""
    lm, found = seen.lm, translation(pair_run(seen.lm, seen.ids), max_tokens=60)
    ids = [token.id for token in found.target]
    table = attentions(pair_run(lm, [*seen.ids, *ids[: -1 if found.ended else None]]))
    shares = torch.as_tensor(table.weights).mean(0)  # [row, source token], over all heads
    places: list[int] = []
    given: dict[str, Any] = {}
    for name, word in (("one", one), ("other", other)):
        said = [at for at, token in enumerate(found.target) if str(token.text).strip() == word]
        if not said:
            raise CutawayError(f"{word!r:.80} is no token of the translation, {found.text!r:.200}.")
        row = shares[said[-1]]  # what stands in a row chooses the token of this number
        places.append(best := int(row.argmax()))
        given |= {
            name: words(found.target[said[-1]]), f"{name}_at": words(found.source[best]),
            f"{name}_weight": percent(row[best]),
        }  # fmt: skip
    return given | {"turned": count(places[0] > places[1])}


def stacked(seen: Run) -> Fact:
    """How many blocks a model has, and how many attentions are in each."""
    config: Any = seen.lm.config
    scores = [name for name in architecture_places(config) if name.endswith(".scores")]
    return {"blocks": count(config.layers), "attentions": count(len(scores) // config.layers)}


def gap(seen: Run) -> Fact:
    """What an encoder puts into the first gap, `[MASK]`; of any other model only that there is nothing."""
    if not getattr(seen.lm.config, "scores_words", False):
        return {"there": count(0)}
    found = gaps(seen, k=1).gaps
    if not found:
        raise CutawayError("The text has no [MASK] to fill.")
    [guess] = found[0].guesses
    return {"there": count(1), "token": words(guess.token), "share": percent(guess.probability)}


def sense(seen: Run, other: str, word: str) -> Fact:
    """A word in this text and in another: how alike its two vectors are before the blocks and after the last one."""
    found = senses(seen, other, word)
    return {"first": number(found.cosines[0]), "last": number(found.cosines[-1])}


FACTS: dict[str, Callable[..., Fact]] = {
    "place": place,
    "next": following,
    "branches": branches,
    "loop": loop,
    "cut": cut,
    "alike": alike,
    "looking": looking,
    "kinds": kinds,
    "neurons": neurons,
    "added": added,
    "layers": layers,
    "temperatures": temperatures,
    "size": size,
    "cause": cause,
    "race": race,
    "missed": missed,
    "carried": carried,
    "aligned": aligned,
    "stacked": stacked,
    "gap": gap,
    "sense": sense,
}
