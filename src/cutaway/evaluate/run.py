"""Evaluate a model on a data set by its name, or on a file: find the data, choose the measure, say how."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from cutaway.errors import CutawayError, nearest
from cutaway.evaluate import wikitext
from cutaway.evaluate.answers import score_answers
from cutaway.evaluate.lambada import Lambada, lambada
from cutaway.evaluate.likelihood import Progress
from cutaway.evaluate.perplexity import Perplexity, perplexity
from cutaway.language_model import LanguageModel
from cutaway.tasks import Language, Task
from cutaway.tasks.answer import TextClassifier
from cutaway.tasks.scores import Score
from cutaway.train.data.records import records


@dataclass(frozen=True)
class DataSet:
    """A data set known by name: the files it may be found under, and where people get it."""

    files: tuple[str, ...]
    source: str
    detokenizer: str = "none"


DATA_SETS = {
    "wikitext2": DataSet(
        ("wikitext2_raw/wiki.test.raw", "wikitext-2-raw/wiki.test.raw", "wikitext2/wiki.test.raw"),
        "wikitext-2-raw-v1 of huggingface.co/datasets/Salesforce/wikitext",
        "wikitext",
    ),
    "wikitext103": DataSet(
        ("wikitext103/wiki.test.tokens", "wikitext-103/wiki.test.tokens"),
        "wikitext-103-v1 of huggingface.co/datasets/Salesforce/wikitext",
        "wikitext",
    ),
    "lambada": DataSet(
        ("lambada/lambada_test.jsonl", "lambada_test.jsonl"),
        "OpenAI's lambada_test.jsonl, huggingface.co/datasets/EleutherAI/lambada_openai",
    ),
}
DETOKENIZERS = ("wikitext", "none")


@dataclass(frozen=True)
class Evaluation:
    """A measured model."""

    model: str
    on: str
    file: str
    result: Perplexity | Lambada | Score

    @property
    def how(self) -> str:
        return self.result.how

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        result = asdict(self.result)
        return {"model": self.model, "on": self.on, "file": self.file, **result, "how": self.how}


def evaluate(
    model: LanguageModel | TextClassifier,
    on: str | Path,
    task: Task | None = None,
    window: int | None = None,
    stride: int | None = None,
    detokenizer: str | None = None,
    beams: int = 4,
    limit: int | None = None,
    columns: Mapping[str, str | int] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a model on "wikitext2", "wikitext103", "lambada", or a file or folder of text or of the task's records.

    A language model's measure is perplexity (see there for `window` and `stride`), a task's is BLEU, ROUGE or accuracy.
    `detokenizer` is "wikitext" or "none"; WikiText itself gets its own unless told otherwise. `limit` takes the first
    so many records, passages or documents. `columns` says where a record's fields are in the file.
    """
    path, known = find(on)
    kind = known.detokenizer if known and detokenizer is None else detokenizer or "none"
    if kind not in DETOKENIZERS:
        raise CutawayError(f"There is no detokenizer {kind!r}. Known: {', '.join(DETOKENIZERS)}.")
    if limit is not None and limit < 1:
        raise CutawayError(f"The number of records to take must be 1 or more, not {limit}.")
    task = getattr(model, "task", None) or task or Language()
    result: Perplexity | Lambada | Score
    if str(on) == "lambada":
        passages = [str(record["text"]) for record, _ in islice(records([path]), limit)]
        result = lambada(writer(model, on), passages, progress)
    elif kind == "wikitext":
        if limit is not None:
            raise CutawayError("WikiText is measured as one long text: it has no records to take the first of.")
        result = measure_wikitext(writer(model, on), read(path), window, stride, progress)
    elif task.packed or known:
        texts = list(islice(documents(path), limit))
        result = perplexity(writer(model, on), texts, window, stride, progress=progress)
    else:
        rows = [record for record, _ in islice(records([path], columns, task.fields), limit)]
        result = score_answers(model, task, rows, beams, progress)
    return Evaluation(model.name, str(on), str(path), result)


def writer(model: LanguageModel | TextClassifier, on: str | Path) -> LanguageModel:
    """The model, if it is one that predicts text."""
    if not isinstance(model, LanguageModel):
        raise CutawayError(f"{model.name} is a classifier and predicts no text: {on} cannot be measured with it.")
    return model


def measure_wikitext(
    lm: LanguageModel, text: str, window: int | None, stride: int | None, progress: Progress | None
) -> Perplexity:
    """The perplexity of WikiText in ordinary form, also over its words as it counts them."""
    words = wikitext.count_words(text)
    return perplexity(lm, wikitext.detokenize(text), window, stride, words, wikitext.NAME, progress)


def read(path: Path) -> str:
    """A whole file as it is."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CutawayError(f"{path}: byte {error.start:,} is not UTF-8 text.") from None
    except OSError as error:
        raise CutawayError(f"{path} cannot be read: {error.strerror}.") from None


def documents(path: Path) -> Iterator[str]:
    """The documents in a file or folder; a long one comes in parts, which are put together again."""
    parts: list[str] = []
    for record, where in records([path]):
        if parts and not where.continues:
            yield "".join(parts)
            parts = []
        parts.append(str(record["text"]))
    if parts:
        yield "".join(parts)


def find(on: str | Path) -> tuple[Path, DataSet | None]:
    """The file meant by a data set's name (in $CUTAWAY_DATA or ../shared/data) or by a path."""
    known = DATA_SETS.get(str(on))
    if known is None:
        if not Path(on).exists() and os.sep not in str(on) and not Path(on).suffix:
            names = ", ".join(DATA_SETS)
            raise CutawayError(
                f"There is no file {on}, and no data set of that name: {names}.{nearest(str(on), DATA_SETS)}"
            )
        return Path(on), None
    places = [Path(place) for place in (os.environ.get("CUTAWAY_DATA"), "../shared/data") if place]
    for place in places:
        for file in known.files:
            if (place / file).is_file():
                return place / file, known
    raise CutawayError(
        f"The data set {on} is not on this machine. Get {known.source}, and put it at $CUTAWAY_DATA/{known.files[0]}."
    )
