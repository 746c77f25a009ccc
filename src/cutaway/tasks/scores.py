"""Scores for answers against references: BLEU, ROUGE, accuracy, and SQuAD's, each with how it was computed."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import string
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from cutaway.errors import CutawayError


@dataclass(frozen=True)
class Score:
    """A number, and how it was got."""

    name: str
    value: float
    count: int
    how: str
    parts: dict[str, float] = field(default_factory=dict)
    """The numbers it is made of, or that usually stand beside it."""


def bleu(answers: Sequence[str], references: Sequence[str]) -> Score:
    """Corpus BLEU by sacrebleu, 0 to 100, one reference for each answer; `how` is sacrebleu's signature."""
    require(answers, references)
    metric = library("sacrebleu").metrics.BLEU()
    found = metric.corpus_score(list(answers), [list(references)])
    parts = {f"precision-{n}": share for n, share in enumerate(found.precisions, 1)}
    parts |= {"brevity penalty": found.bp, "length ratio": found.sys_len / max(1, found.ref_len)}
    return Score("BLEU", found.score, len(answers), f"sacrebleu {metric.get_signature()}", parts)


def rouge(answers: Sequence[str], references: Sequence[str]) -> Score:
    """ROUGE by rouge-score, 0 to 100: the mean F-measure of the answers. The value is ROUGE-L; `parts` has all."""
    require(answers, references)
    kinds = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
    scorer = library("rouge_score.rouge_scorer", "rouge-score").RougeScorer(list(kinds), use_stemmer=True)
    every = [scorer.score(reference, answer) for answer, reference in zip(answers, references, strict=True)]
    parts = {name: 100 * sum(one[kind].fmeasure for one in every) / len(every) for kind, name in kinds.items()}
    how = f"rouge-score {importlib.metadata.version('rouge-score')}, Porter stemmer, mean F-measure"
    return Score("ROUGE-L", parts["ROUGE-L"], len(answers), how, parts)


def accuracy(answers: Sequence[Hashable], truth: Sequence[Hashable]) -> Score:
    """The share of answers that are right, in percent; `parts` has the share for each class."""
    require(answers, truth)
    right = [answer == true for answer, true in zip(answers, truth, strict=True)]
    parts: dict[str, float] = {}
    for one in sorted(set(truth), key=str):
        own = [ok for ok, true in zip(right, truth, strict=True) if true == one]
        parts[str(one)] = 100 * sum(own) / len(own)
    return Score("accuracy", 100 * sum(right) / len(right), len(right), "right answers in 100", parts)


ARTICLES = re.compile(r"\b(a|an|the)\b")


def plain_words(answer: str) -> list[str]:
    """An answer's words as SQuAD compares them: without capitals, punctuation and articles."""
    kept = "".join(sign for sign in answer.lower() if sign not in string.punctuation)
    return ARTICLES.sub(" ", kept).split()


def exact_and_f1(answers: Sequence[str], truths: Sequence[Sequence[str]]) -> Score:
    """SQuAD's two measures, 0 to 100: the value is F1 over words, `parts` has the exact matches as well.

    Each answer is compared with every one that counts as right, and the best counts.
    """
    require(answers, truths)
    exact = total = 0.0
    for answer, right in zip(answers, truths, strict=True):
        said = plain_words(answer)
        exact += max(float(said == plain_words(one)) for one in right)
        total += max(overlap(said, plain_words(one)) for one in right)
    parts = {"exact match": 100 * exact / len(answers)}
    how = "SQuAD's: words without capitals, punctuation and articles; the best of several right answers"
    return Score("F1", 100 * total / len(answers), len(answers), how, parts)


def overlap(said: Sequence[str], wanted: Sequence[str]) -> float:
    """F1 of the words that two answers share; of an answer and none, whether both are empty."""
    if not said or not wanted:
        return float(said == wanted)
    shared = (Counter(said) & Counter(wanted)).total()
    return 2 * shared / (len(said) + len(wanted))


def require(answers: Sequence[object], references: Sequence[object]) -> None:
    if len(answers) != len(references):
        raise CutawayError(
            f"There are {len(answers):,} answers and {len(references):,} references: one each is needed."
        )
    if not answers:
        raise CutawayError("There are no answers to score.")


def library(module: str, package: str | None = None) -> ModuleType:
    """A module of the extra `evaluate`, or how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = package or module
        raise CutawayError(f"{package} is needed for this score: pip install 'cutaway[evaluate]'.") from None
