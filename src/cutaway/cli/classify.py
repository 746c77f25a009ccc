"""`cutaway classify`: by the judge of films that ships, or a model that was trained on labelled records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cutaway.cli import lines, options, screen
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.tasks import ClassTask
    from cutaway.tasks.answer import Judgement, TextClassifier


def classify(
    text: Annotated[
        list[str] | None,
        options.argument(metavar="TEXT", help="The text; for tasks with two or more texts, each of them."),
    ] = None,
    file: lines.File = None,
    model: options.Model = "builtin",
    device: options.Device = None,
    as_json: options.AsJson = False,
) -> None:
    """Classify a text, or many, line by line.

    The model included tells whether a sentence about a film is positive or negative.

    The text is the argument; a file or a pipe has one on each line, and each line is answered by one.

    If the task needs several texts (entailment, similarity, choice), separate them by tabs in a line.

    A tagger marks the names in a text; a model that answers questions takes a question and a context.

    Example: cutaway classify "A warm and funny film."

    Example: cutaway classify "A man sleeps." "Somebody is awake." --model my-entailment

    Example: cutaway classify "Who sat?" "The fox sat on the mat." --model my-reader
    """
    from cutaway.tasks import Choice, Labelled, Marks, load_task

    model = lines.shipped(model, "classifier")
    task = load_task(options.locate(model))
    if isinstance(task, Marks):
        from cutaway.cli.marks import mark

        mark(task, model, lines.read_lines("\t".join(text) if text else None, file), device, as_json)
        return
    if not isinstance(task, Labelled | Choice):
        raise lines.untrained(model, task, "classification", "labelled.tsv")
    if text and len(text) > 1 and len(task.fields) == 2:
        raise CutawayError(f"{model} reads one text at a time, and {len(text)} were given: put quotes around it.")
    texts = lines.read_lines("\t".join(text) if text else None, file)
    classifier = load_classifier(model, device)
    count = cut = 0
    for record, judgement in judged(classifier, texts):
        count, cut = count + 1, cut + (judgement is not None and judgement.cut > 0)
        if as_json:
            screen.show_json({"model": model, **record, **(asdict(judgement) if judgement else {"label": None})})
        elif judgement is None:
            screen.put("\n")
        elif text:
            show(judgement)
        else:
            screen.put(f"{judgement.label}\t{judgement.probability:.4f}\n")
    if not as_json:
        lines.tell(count, {"too long, and not read as a whole": cut})


def load_classifier(model: str, device: str | None) -> TextClassifier:
    """The classifier by name, with a sign of life while it wakes up."""
    with screen.working(f"waking {model}"):
        from cutaway.loading import find_device
        from cutaway.tasks import answer

        return answer.load_classifier(model, str(find_device(device)))


def judged(classifier: TextClassifier, texts: lines.Texts) -> Iterator[tuple[dict[str, Any], Judgement | None]]:
    """Every text as a record, with its class; a blank line has none, and keeps its place."""
    from cutaway.tasks import answer

    waiting: deque[dict[str, Any]] = deque()

    def records(each: Iterable[str]) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(each, 1):
            waiting.append(record_of(line, number, classifier.task) if line.strip() else {"text": line})
            if line.strip():
                yield waiting[-1]

    for judgement in answer.classify(classifier, records(texts.each), texts.at_once):
        while blank(waiting[0]):
            yield waiting.popleft(), None
        yield waiting.popleft(), judgement
    yield from ((record, None) for record in waiting)


def blank(record: dict[str, Any]) -> bool:
    return "text" in record and not record["text"].strip()


def record_of(line: str, number: int, task: ClassTask) -> dict[str, Any]:
    """A line as a record without its label."""
    first, *more = task.fields[:-1]
    if not more:
        return {first: line}
    parts = line.split("\t")
    choices = more == ["choices"]
    wanted = 1 + (task.classes if choices else len(more))
    if len(parts) != wanted:
        what = f"a context and {task.classes} choices" if choices else f"{first} and {more[0]}"
        raise CutawayError(
            f"Text {number:,}: {task.name} needs {what} separated by tabs, and this has {len(parts)} of {wanted} parts."
        )
    return {first: parts[0], "choices": parts[1:]} if choices else dict(zip((first, *more), parts, strict=True))


def show(judgement: Judgement) -> None:
    """All classes, likeliest first."""
    order = sorted(judgement.probabilities.items(), key=lambda pair: -pair[1])
    screen.show(screen.bars([screen.Row(label, share) for label, share in order], number=False))
