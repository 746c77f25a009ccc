"""One sentence through several translators: what each of them wrote, word by word, and what it looked at.

Every model cuts texts into tokens of its own. What can stand side by side are words: a word is made of whole tokens and
begins with one that begins with a space, or with a Chinese or Japanese character.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cutaway.checkpoint.locate import DATA
from cutaway.inspect.numbers import Line, Table, ViewResult, array
from cutaway.inspect.pairs import KINDS as ATTENTIONS
from cutaway.inspect.pairs import RECURRENT, pair_run
from cutaway.inspect.runs import Run, run
from cutaway.models.architecture import count_parameters, places, start_of

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel
    from cutaway.text.tokenizer import Tokenizer

RESULTS = DATA / "contest" / "results.json"
"""What `benchmarks/contest.py --ship` wrote; the explorer says nothing of it where there is none."""
KINDS = ("plain", "attention", "transformer", "gpt2", "other")
"""A recurrent network without attention and with it, encoder and decoder, the decoder alone; in the order in which they
were invented."""
WIDE = range(0xE3, 0xEA)
"""How the characters of a script without spaces begin, in UTF-8 (U+3000 to U+9FFF)."""

SIGNS = re.compile(r"^\W+|\W+$")
"""Around a word."""


@dataclass(frozen=True)
class Look(ViewResult):
    """How much of each word of the source went into each word of the translation; the mean over all heads."""

    weights: Table
    """[word, source word]"""
    rest: Line
    """What went elsewhere (to separators, to the translation so far); with the weights it adds up to 1. [word]"""


@dataclass(frozen=True)
class Word(ViewResult):
    """A word of a translation."""

    text: str
    name: str
    """The same in every translation that has the word: without signs around it, in small letters, and which of several
    it is."""
    logprob: float
    """Of all its tokens, given the source and what stands before it, in nats."""


@dataclass(frozen=True)
class Entry(ViewResult):
    """What one model made of the sentence."""

    kind: str
    weights: int
    """How many the model has."""
    source: tuple[str, ...]
    """The words of the sentence, as its tokens make them up."""
    text: str
    ended: bool
    """Whether it came to the end of the translation."""
    words: tuple[Word, ...]
    logprob: float
    """Of the whole translation and its end, given the source."""
    per_word: float
    """The same for each word, in the mean."""
    seconds: float
    """The processor time that writing it took."""
    mean: Look | None
    """Over all layers; None where no attention goes from the translation to the source."""
    last: Look | None
    """Of the last layer."""


def kind_of(shape: Any) -> str:
    """Which of the machines of the contest a model is."""
    if shape.kind == "seq2seq":
        return "plain" if shape.attention == "none" else "attention"
    return shape.kind if shape.kind in KINDS else "other"


@torch.inference_mode(False)
@torch.no_grad()
def entry(lm: LanguageModel, prompt: Sequence[int], source: int, target: Sequence[int], seconds: float) -> Entry:
    """What a model wrote after this prompt, whose first tokens (so many: `source`) are the sentence.

    `target` ends with the end token, if the model came to it.
    """
    ended = bool(target) and target[-1] == lm.config.end
    written = list(target[:-1] if ended else target)
    two = start_of(lm.config) is not None
    seen = pair_run(lm, [*prompt, *written]) if two else run(lm, [*prompt, *written])
    first = 0 if two else len(prompt) - 1  # the row that the first token of the translation was chosen at
    chances = seen["logits"][first : first + len(target)].float().cpu().log_softmax(-1)
    logprobs = chances.gather(1, torch.tensor(list(target), dtype=torch.long)[:, None])[:, 0].tolist()
    sources, own = words_of(lm.tokenizer, prompt[:source]), words_of(lm.tokenizer.target, written)
    spelled = [lm.tokenizer.target.decode([written[at] for at in word]).strip() for word in own]
    words = [
        Word(text, name, sum(logprobs[at] for at in word))
        for word, text, name in zip(own, spelled, names(spelled), strict=True)
    ]
    table = looked(seen, source, first, len(written))
    mean, last = (None, None) if table is None else (by_word(one, own, sources) for one in (table.mean(0), table[-1]))
    whole = sum(logprobs)
    return Entry(
        kind_of(lm.config), count_parameters(lm.config),
        tuple(lm.tokenizer.decode([prompt[at] for at in word]).strip() for word in sources),
        lm.tokenizer.target.decode(written).strip(), ended, tuple(words), whole, whole / max(1, len(words)), seconds,
        mean, last,
    )  # fmt: skip


def words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> list[range]:
    """Which tokens make up each word; spaces by themselves belong to the word after them, at the end to the last."""
    found: list[range] = []
    blank = True  # whether the last word found so far is nothing but spaces
    for at, one in enumerate(ids):
        piece = tokenizer.token_bytes(one)
        begins = not blank and (piece[:1].isspace() or (piece != b"" and piece[0] in WIDE))
        if begins or not found:
            found.append(range(at, at))
        found[-1] = range(found[-1].start, at + 1)
        blank = (begins or blank) and not piece.strip()
    if found and blank:
        last = found.pop()
        found[-1:] = [range(found[-1].start, last.stop)] if found else []
    return found


def names(words: Sequence[str]) -> list[str]:
    """What each word is known by in all translations: a word that stands there twice has two names."""
    known: Counter[str] = Counter()
    found = []
    for word in words:
        plain = word.casefold()
        plain = SIGNS.sub("", plain) or plain
        known[plain] += 1
        found.append(f"{plain} {known[plain]}")
    return found


def looked(seen: Run, source: int, first: int, count: int) -> Tensor | None:
    """What each token of the translation took from each of the source, the mean over heads. [layer, token, token]"""
    known = places(seen.lm.config)
    if RECURRENT in known:
        layers = [seen[RECURRENT]]
    else:
        patterns = (f"{ATTENTIONS['cross'].format('*')}.weights", "blocks.*.attention.weights")
        found = next((some for one in patterns if (some := [name for name in known if fnmatchcase(name, one)])), None)
        if found is None:
            return None
        layers = [seen[name].float().mean(0) for name in found]
    return torch.stack([one[first : first + count, :source].float().cpu() for one in layers])


def by_word(table: Tensor, rows: Sequence[range], columns: Sequence[range]) -> Look:
    """A word's row is the mean over its tokens', its column their sum."""
    weights = torch.zeros(len(rows), len(columns))
    for r, own in enumerate(rows):
        row = table[own.start : own.stop].mean(0)
        for c, other in enumerate(columns):
            weights[r, c] = row[other.start : other.stop].sum()
    return Look(array(weights), array((1 - weights.sum(-1)).clamp_min(0)))
