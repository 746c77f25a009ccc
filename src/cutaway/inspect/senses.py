"""One word in two texts: the vectors that each layer has for it, beside the one vector it has without any text.

What a word's vector is like is said by its neighbours: the words of some example sentences whose vectors, made by the
same model at the same layer, point most nearly the same way. Everything reads `residual.0` and the blocks' `residual`,
so it is the same for a GPT-2, a BERT and an ELMo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from cutaway.errors import CutawayError
from cutaway.inspect.numbers import Array, Line, Table, Token, ViewResult, array, tokens_of
from cutaway.inspect.runs import Run
from cutaway.inspect.runs import run as carry_on
from cutaway.models.architecture import context_of, places
from cutaway.parts.versions import versions

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

SENTENCES = Path(__file__).parents[1] / "data" / "senses" / "sentences.txt"
MIXED = "mixed"
WORDS = re.compile(r"\w+(?:['’]\w+)*")
LEAST = 3
"""A word of fewer letters is no neighbour: it says little."""


@dataclass(frozen=True)
class Neighbour(ViewResult):
    """A word of an example sentence, with what stands before and after it, and how near its vector is."""

    before: str
    word: str
    after: str
    cosine: float


@dataclass(frozen=True)
class Near(ViewResult):
    """A word of the static vectors, and how near it is."""

    word: str
    cosine: float


@dataclass(frozen=True)
class Senses(ViewResult):
    """A word in two texts."""

    word: str
    tokens: tuple[Token, ...]
    """Of the other text."""
    positions: tuple[tuple[int, ...], tuple[int, ...]]
    """The tokens that are the word, in either text: several, where the vocabulary divides it; their mean is taken."""
    layers: tuple[str, ...]
    """What can be compared, by its name in a trace: `residual.0` before the blocks, then after each; an ELMo's mix."""
    layer: int
    """The one whose vectors and neighbours these are."""
    cosines: Line
    """How alike the word's two vectors are in each layer: 1 is the same direction."""
    vectors: Table
    """Both. [text, column]"""
    neighbours: tuple[tuple[Neighbour, ...], tuple[Neighbour, ...]]
    """Among the words of the example sentences, nearest first, for either text."""
    sentences: int
    """How many example sentences there are."""
    static_name: str
    """Whose the static vectors are."""
    static: Line
    """The word's one vector without a text; empty where there is none."""
    static_neighbours: tuple[Near, ...]


@dataclass(frozen=True)
class Example:
    """A word of an example sentence: which sentence, where in it, and which tokens it is."""

    sentence: int
    start: int
    end: int
    positions: tuple[int, ...]


@torch.no_grad()
def senses(run: Run, other: str, word: str = "", layer: int | None = None, k: int = 6) -> Senses:
    """The word's vectors in the run's text and in the other one; without a word, the longest that both have.

    Without a layer it is the mix of all, if the model has one, else that after the middle block: the last ones are made
    for what the model predicts.
    """
    from cutaway.words.included import static_vectors

    right = carry_on(run.lm, run.lm.ids(other))
    word = word.strip() or common(run, right)
    places_of = tuple(occurrence(one, word) for one in (run, right))
    names = layers_of(run.lm)
    layer = checked(usual(names) if layer is None else layer, names)
    pairs = [
        [one[name][list(at)].float().mean(0) for one, at in zip((run, right), places_of, strict=True)] for name in names
    ]
    vectors = torch.stack(pairs[layer])
    near = [nearest(run.lm, names[layer], vector, k) for vector in vectors]
    table = static_vectors()
    known = word.lower() in table
    return Senses(
        word, right.tokens, (places_of[0], places_of[1]), names, layer,
        array(torch.stack([F.cosine_similarity(one, two, dim=0) for one, two in pairs])), array(vectors),
        (near[0], near[1]), len(sentences()), table.name,
        table[word.lower()] if known else array(torch.empty(0)),
        tuple(Near(one, cosine) for one, cosine in table.nearest(word.lower(), k)) if known else (),
    )  # fmt: skip


def layers_of(lm: LanguageModel) -> tuple[str, ...]:
    """What can be compared of a model."""
    known = places(lm.config)
    blocks = [f"blocks.{number}.residual" for number in range(len(known)) if f"blocks.{number}.residual" in known]
    return ("residual.0", *blocks, *([MIXED] if MIXED in known else []))


def usual(names: Sequence[str]) -> int:
    """The layer that is shown unless another is asked for."""
    return len(names) - 1 if names[-1] == MIXED else len(names) // 2


def checked(layer: int, names: Sequence[str]) -> int:
    if not -len(names) <= layer < len(names):
        raise CutawayError(f"There is no layer {layer}: they are numbered from 0 ({names[0]}) to {len(names) - 1}.")
    return layer % len(names)


def common(left: Run, right: Run) -> str:
    """The longest word that both texts have; of equally long ones the first."""
    there = {one.lower() for one in WORDS.findall(written(right))}
    both = [one for one in WORDS.findall(written(left)) if one.lower() in there]
    if not both:
        raise CutawayError("The two texts have no word in common: name one that stands in both.", "no_common_word")
    return max(both, key=len)


def written(run: Run) -> str:
    """The text of a run, without the marks an encoder puts around it."""
    text = run.text
    for mark in getattr(run.lm.tokenizer, "specials", {}):
        text = text.replace(mark, " ")
    return text


def pieces(run: Run) -> list[tuple[str, bool]]:
    """The tokens as letters without spaces, and whether each goes on with the word before it."""
    spelled = hasattr(run.lm.tokenizer, "read_as")
    return cleaned(run.tokens, spelled)


def cleaned(tokens: Sequence[Token], apart: bool) -> list[tuple[str, bool]]:
    """See `pieces`; `apart`: every token is a word."""
    found: list[tuple[str, bool]] = []
    for number, one in enumerate(tokens):
        text = one.text or "\ufffd"
        inside = text.startswith("##")
        letters = text.removeprefix("##").strip().lower()
        before = tokens[number - 1].text or "" if number else ""
        runs_on = bool(number) and bool(letters) and text[:1].isalnum() and before[-1:].isalnum()
        found.append((letters, inside or (runs_on and not apart)))
    return found


def spans(tokens: Sequence[Token], lm: LanguageModel) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every word, and the tokens that are it."""
    wordpiece = hasattr(lm.tokenizer, "frame")  # words never run on there but by ##
    word, at = "", list[int]()
    for number, (letters, goes_on) in enumerate(cleaned(tokens, wordpiece)):
        if at and not goes_on:
            yield word, tuple(at)
            word, at = "", []
        word += letters
        at.append(number)
    if at:
        yield word, tuple(at)


def occurrence(run: Run, word: str) -> tuple[int, ...]:
    """The tokens of the first place where a word stands in a run."""
    wanted = word.lower()
    for found, positions in spans(run.tokens, run.lm):
        if found == wanted:
            return positions
    raise CutawayError(
        f"{word!r:.80} is no word of {run.text!r:.80}. Name one that stands in both texts.",
        "no_such_word",
        word=word[:80],
    )


@lru_cache(maxsize=1)
def sentences() -> tuple[str, ...]:
    """The example sentences that come with the program."""
    return tuple(line for line in SENTENCES.read_text(encoding="utf-8").splitlines() if line.strip())


_READ: WeakKeyDictionary[LanguageModel, dict[str, tuple[object, Array, list[Example]]]] = WeakKeyDictionary()


def read_examples(lm: LanguageModel, name: str) -> tuple[Tensor, list[Example]]:
    """The vectors of all words of the example sentences at one layer, each of length 1; made once for each model."""
    mine = _READ.setdefault(lm, {})
    now = versions(lm.model)
    if name not in mine or mine[name][0] != now:
        every = layers_of(lm)
        gathered: dict[str, list[Tensor]] = {one: [] for one in every}
        examples: list[Example] = []
        read = [(number, text, lm.ids(text)) for number, text in enumerate(sentences())]
        read = [one for one in read if len(one[2]) <= context_of(lm.config)]  # what the model cannot read is no example
        from cutaway.runtime.torch_texts import trace_texts

        traces = trace_texts(lm.model, [ids for _, _, ids in read], every)
        for (number, text, one), trace in zip(read, traces, strict=True):
            for example in words_in(lm, number, text, tokens_of(lm.tokenizer, one)):
                examples.append(example)
                for place in every:
                    gathered[place].append(trace[place][list(example.positions)].float().mean(0))
        for place in every:
            found = torch.stack(gathered[place]) if examples else torch.empty(0, 1)
            mine[place] = now, array(F.normalize(found, dim=-1)), examples
    _, vectors, examples = mine[name]
    return torch.from_numpy(vectors), examples


def words_in(lm: LanguageModel, number: int, text: str, tokens: Sequence[Token]) -> Iterator[Example]:
    """The words of an example sentence that can be neighbours, the first left out: nothing has been read before it."""
    places = list(WORDS.finditer(text))
    found = [(word, at) for word, at in spans(tokens, lm) if WORDS.fullmatch(word)]
    here = 0
    for word, at in found:
        match = next((n for n in range(here, len(places)) if places[n][0].lower() == word), None)
        if match is None:
            continue
        here = match + 1
        if match and len(word) >= LEAST:
            yield Example(number, places[match].start(), places[match].end(), at)


def nearest(lm: LanguageModel, name: str, vector: Tensor, k: int) -> tuple[Neighbour, ...]:
    """The words of the example sentences whose vectors are nearest."""
    vectors, examples = read_examples(lm, name)
    if not examples:
        return ()
    near = vectors @ F.normalize(vector, dim=0).cpu()
    best = near.topk(min(k, len(examples)))
    return tuple(
        told(examples[at], cosine) for cosine, at in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    )


def told(example: Example, cosine: float) -> Neighbour:
    text = sentences()[example.sentence]
    return Neighbour(text[: example.start], text[example.start : example.end], text[example.end :], cosine)
