"""LAMBADA: the last word of a passage, given all before it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cutaway.errors import CutawayError
from cutaway.evaluate.likelihood import Progress, Row, score
from cutaway.evaluate.perplexity import power
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import context_of
from cutaway.text.tokenizer import Tokenizer

STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being below between
    both but by can could did do does doing down during each few for from further had has have having he her
    here hers herself him himself his how i if in into is it its itself just me more most my myself no nor not
    now of off on once only or other our ours ourselves out over own same she should so some such than that
    the their theirs them themselves then there these they this those through to too under until up very was
    we were what when where which while who whom why will with would you your yours yourself yourselves
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Lambada:
    """How often a model knows the last word, by the three ways of counting that are in use."""

    accuracy: float
    """The share of passages whose last word, all its tokens, is what the model finds likeliest (as lm-eval counts)."""
    perplexity: float
    """e to the mean loss of a last word (as lm-eval has it)."""
    token_accuracy: float
    """The share of passages whose last token is the likeliest, the word's earlier ones given: the count that comes
    closest to the GPT-2 paper's figures."""
    token_perplexity: float
    """e to the mean loss of that last token."""
    filtered_accuracy: float
    """Like `accuracy`, but a word never begins with a stop word: the filter the GPT-2 paper speaks of."""
    passages: int
    shortened: int
    """How many passages lost their beginning, because the model cannot look at so much."""

    @property
    def how(self) -> str:
        """In words, how the numbers were got."""
        return (
            f"{self.passages:,} passages; the last word is what follows the last space, and the space belongs to it; "
            f"nothing stands before a passage; {self.shortened:,} lost their beginning to fit the context. Accuracy "
            "and perplexity are over whole last words, token accuracy and token perplexity over each last token; "
            f"filtered accuracy never begins a word with one of {len(STOP_WORDS)} stop words."
        )


def lambada(lm: LanguageModel, passages: Iterable[str], progress: Progress | None = None) -> Lambada:
    """Measure a model on passages, each a text whose last word is to be found."""
    whole = [row(lm, passage, number) for number, passage in enumerate(passages, 1)]
    if not whole:
        raise CutawayError("There are no passages: there is nothing to measure.")
    fitting = [shortened(one, context_of(lm.config)) for one in whole]
    scores = score(lm.model, fitting, barred=stop_tokens(lm.tokenizer), progress=progress)
    count = len(scores)
    return Lambada(
        accuracy=sum(bool(one.likeliest.all()) for one in scores) / count,
        perplexity=power(-math.fsum(float(one.logprobs.sum()) for one in scores) / count),
        token_accuracy=sum(bool(one.likeliest[-1]) for one in scores) / count,
        token_perplexity=power(-math.fsum(float(one.logprobs[-1]) for one in scores) / count),
        filtered_accuracy=sum(one.likeliest_allowed and bool(one.likeliest[1:].all()) for one in scores) / count,
        passages=count,
        shortened=sum(len(one.ids) < len(before.ids) for one, before in zip(fitting, whole, strict=True)),
    )


def row(lm: LanguageModel, passage: str, number: int) -> Row:
    """The passage as tokens, those of its last word to be scored."""
    before, space, word = passage.rstrip().rpartition(" ")
    if not before.strip():
        raise CutawayError(f"Passage {number:,} has no last word with others before it: {passage!r:.60}")
    context = lm.tokenizer.encode(before)
    return Row([*context, *lm.tokenizer.encode(space + word)], start=len(context))


def shortened(row: Row, context: int) -> Row:
    """The row without as much of its beginning as it takes to fit."""
    over = max(0, len(row.ids) - 1 - context)
    if over >= row.start:
        raise CutawayError(f"A last word of {len(row.ids) - row.start:,} tokens does not fit a context of {context:,}.")
    return Row(row.ids[over:], row.start - over)


def stop_tokens(tokenizer: Tokenizer) -> list[int]:
    """The tokens that are a stop word by themselves, with a space before it or not."""
    words = {word.encode() for word in STOP_WORDS}
    return [token for token in range(len(tokenizer)) if tokenizer.token_bytes(token).strip().lower() in words]
