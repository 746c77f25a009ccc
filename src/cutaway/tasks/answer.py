"""Asking a trained model: texts in, translations, summaries or labels out, many at once and in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from cutaway.checkpoint.locate import locate
from cutaway.decoding.sequence import Result
from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import context_of
from cutaway.tasks import TASKS, ClassTask, Example, LeftOut, Record, Summary, Task, Translation, load_task
from cutaway.tasks.encoder_head import EncoderClassifier
from cutaway.tasks.head import Classifier, by_record, read_classifier
from cutaway.tasks.sequences import Pair, Progress
from cutaway.tasks.task import text
from cutaway.text.tokenizer import Tokenizer

BATCH = 32
FORBIDDEN = float("-inf")

Kind = TypeVar("Kind")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Answer:
    """What the model wrote for one text."""

    source: str
    text: str
    """The translation or summary."""
    whole: bool = True
    """Whether the model came to its end, and was not stopped by a full context or `max_tokens`."""
    logprob: float = 0.0
    """The model's mean log-probability of a token of the answer."""
    cut: int = 0
    """How many tokens at the end of the source were not read, because they do not fit."""


@dataclass(frozen=True)
class Judgement:
    """The class the model finds for one record, and how sure it is."""

    label: str
    number: int
    """The class by its number, from 0; for a choice, the choice."""
    probability: float
    probabilities: dict[str, float]
    cut: int = 0
    """How many tokens of the record were not read, because they do not fit."""


class TextClassifier:
    """A classifier with its tokenizer and its task: records in, classes out."""

    def __init__(
        self, model: Classifier | EncoderClassifier, tokenizer: Tokenizer, task: ClassTask, name: str = "model"
    ):
        if model.score.out_features != task.outputs:
            raise CutawayError(
                f"The head of {name} gives {model.score.out_features} scores and its task asks for {task.outputs}: "
                "they do not belong together."
            )
        self.model, self.tokenizer, self.name = model.eval(), tokenizer, name
        self.task: ClassTask = task.within(model.body.config.context)
        if model.body.config.end_token is None:  # a BERT, whose config.json does not say which token [SEP] is
            model.body.config = model.body.config.but(end_token=tokenizer.end)

    @torch.inference_mode()
    def scores(self, forms: Sequence[list[Example]]) -> Tensor:
        """The score of every class for every record [record, class], each given in its task's `forms`."""
        rows = [form.ids for record in forms for form in record]
        length = max(map(len, rows))
        device = self.model.score.weight.device
        ids = torch.tensor([[*row, *[0] * (length - len(row))] for row in rows], device=device)  # [row, token]
        last = torch.tensor([len(row) - 1 for row in rows], device=device)
        return by_record(self.model(ids, last).float(), self.task)


def load_classifier(name: str | Path, device: str | None = None) -> TextClassifier:
    """A trained classifier by the name of its folder."""
    folder = locate(name)
    task = load_task(folder)
    if not isinstance(task, ClassTask):
        raise CutawayError(f"{name} was trained for {task.name}, and has no classes to choose from.")
    return TextClassifier(read_classifier(folder, device), Tokenizer.load(folder), task, str(name))


def trained_for(name: str | Path, kind: type[Kind]) -> Kind:
    """The task of a model, refused if it is of another kind: `trained_for("my-model", Translation)`."""
    task: Task = load_task(locate(name))
    if isinstance(task, kind):
        return task
    wanted = next(word for word, one in TASKS.items() if one is kind)
    raise CutawayError(f"{name} was trained for {task.name}, not for {wanted}. Choose another model.")


def translate(
    lm: LanguageModel,
    task: Translation,
    texts: Iterable[str],
    beams: int = 4,
    max_tokens: int | None = None,
    length_penalty: float = 1.0,
    batch: int = BATCH,
) -> Iterator[Answer]:
    """Each text's translation, in order, taken and given back `batch` at a time. An empty text stays empty.

    `beams=1` takes the likeliest token each time; more look for the likeliest sentence.
    For the other direction of a two-way model, give `task.turned()`.
    """
    return write(lm, task, texts, Writing(beams, max_tokens, length_penalty, batch))


def summarize(
    lm: LanguageModel,
    task: Summary,
    texts: Iterable[str],
    beams: int = 4,
    max_tokens: int | None = None,
    length_penalty: float = 1.0,
    batch: int = BATCH,
) -> Iterator[Answer]:
    """Each text's summary, in order, as in `translate`. The end of one that is too long is not read (`Answer.cut`)."""
    return write(lm, task, texts, Writing(beams, max_tokens, length_penalty, batch))


def classify(classifier: TextClassifier, records: Iterable[Record | str], batch: int = BATCH) -> Iterator[Judgement]:
    """The class of each record, in order, `batch` at a time; a plain text stands for the record `{"text": text}`."""
    task, done = classifier.task, 0
    for some in batches(records, batch):
        forms = []
        for number, one in enumerate(some, done + 1):
            with about(number):
                forms.append(task.forms({"text": one} if isinstance(one, str) else one, classifier.tokenizer))
        done += len(some)
        for chances, form in zip(classifier.scores(forms).softmax(dim=-1).tolist(), forms, strict=True):
            cut = max(row.cut for row in form)
            best = chances.index(max(chances))
            named = {task.class_name(one): chance for one, chance in enumerate(chances)}
            yield Judgement(task.class_name(best), best, chances[best], named, cut)


@dataclass(frozen=True)
class Writing:
    """How answers are written."""

    beams: int = 4
    max_tokens: int | None = None
    length_penalty: float = 1.0
    batch: int = BATCH


def write(lm: LanguageModel, task: Pair, texts: Iterable[str], settings: Writing) -> Iterator[Answer]:
    """The answer to each text."""
    done = 0
    for some in batches(texts, settings.batch):
        asked: dict[int, tuple[list[int], int]] = {}
        for at, source in enumerate(some):
            if source.strip():
                with about(done + at + 1):
                    asked[at] = question(lm, task, source)
        results = dict(zip(asked, written(lm, task, [ids for ids, _ in asked.values()], settings), strict=True))
        for at, source in enumerate(some):
            if at not in results:
                yield Answer(source, "")
                continue
            result = results[at]
            logprob = sum(result.logprobs) / max(1, len(result.logprobs))
            yield Answer(source, result.text.strip(), result.reason == "end", logprob, asked[at][1])
        done += len(some)


def answer_records(
    lm: LanguageModel, task: Pair, records: Sequence[Record], beams: int, progress: Progress | None
) -> list[Answer]:
    """The answer to each record's text; one that is too long is answered as an empty one."""
    task, given = task.within(context_of(lm.config)), task.fields[0]
    sources = []
    for number, record in enumerate(records):
        with about(number + 1, "Record"):
            source, _ = (text(record, one, task) for one in task.fields)
            try:
                task.prompt({given: source}, lm.tokenizer)
            except LeftOut:
                source = ""
        sources.append(source)
    answers: list[Answer] = []
    for some in batches(sources, BATCH):
        answers += write(lm, task, some, Writing(beams))
        if progress:
            progress(len(answers), len(sources))
    return answers


def judge_records(
    classifier: TextClassifier, records: Sequence[Record], progress: Progress | None
) -> list[Judgement | None]:
    """The class of each record; None for one that is too long."""
    task, readable = classifier.task, dict[int, Record]()
    for number, record in enumerate(records):
        with about(number + 1, "Record"):
            task.class_of(record)
            try:
                task.forms(record, classifier.tokenizer)
                readable[number] = record
            except LeftOut:
                continue
    judged: list[Judgement] = []
    for some in batches(readable.values(), BATCH):
        judged += classify(classifier, some)
        if progress:
            progress(len(judged), len(readable))
    found = dict(zip(readable, judged, strict=True))
    return [found.get(number) for number in range(len(records))]


def question(lm: LanguageModel, task: Pair, source: str) -> tuple[list[int], int]:
    """The prompt a text makes, and how many of its tokens were cut off for it."""
    return task.within(context_of(lm.config)).prompt_and_cut({task.fields[0]: source}, lm.tokenizer)


def written(lm: LanguageModel, task: Pair, prompts: list[list[int]], settings: Writing) -> list[Result]:
    """What the model writes after each prompt: never a separator."""
    never = {lm.tokenizer.specials[special]: FORBIDDEN for special in task.specials if special in lm.tokenizer.specials}
    search = (
        {"top_k": 1} if settings.beams == 1 else {"beams": settings.beams, "length_penalty": settings.length_penalty}
    )
    return lm.generate(prompts, max_tokens=settings.max_tokens, logit_bias=never, **search) if prompts else []


@contextmanager
def about(number: int, what: str = "Text") -> Iterator[None]:
    """Lets an error say which text it is about."""
    try:
        yield
    except CutawayError as error:
        raise CutawayError(f"{what} {number:,}: {error}") from None


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items, so many at a time; none is taken before those before it have been given back."""
    waiting = iter(items)
    while some := list(islice(waiting, max(1, size))):
        yield some
