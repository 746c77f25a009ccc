"""How good a model is at its task: its answers to records, scored by the task's own measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutaway.errors import CutawayError
from cutaway.evaluate.likelihood import Progress
from cutaway.evaluate.scores import Score, accuracy, bleu, rouge
from cutaway.language_model import LanguageModel
from cutaway.tasks import Language, LeftOut, Record, Summary, Task, Translation
from cutaway.tasks.answer import BATCH, Answer, TextClassifier, about, batches, classify, summarize, translate
from cutaway.tasks.task import text


def score_answers(
    model: LanguageModel | TextClassifier,
    task: Task,
    records: Sequence[Record],
    beams: int = 4,
    progress: Progress | None = None,
) -> Score:
    """BLEU of translations, ROUGE of summaries, accuracy of classes, against what the records say is right.

    A record that is too long for the model counts as answered wrongly; `how` says how many there were.
    """
    if not records:
        raise CutawayError("There are no records to answer.")
    if isinstance(model, TextClassifier):
        return score_classes(model, records, progress)
    if isinstance(task, Translation | Summary):
        return score_written(model, task, records, beams, progress)
    if isinstance(task, Language):
        raise CutawayError("A model trained for language answers no records: measure its perplexity.")
    raise CutawayError(
        f"There is no score for the answers of a model trained for {task.name}. Its loss on held-out records is in the "
        "report.json of its training."
    )


def score_written(
    lm: LanguageModel, task: Translation | Summary, records: Sequence[Record], beams: int, progress: Progress | None
) -> Score:
    """Translations or summaries against those in the records."""
    task = task.within(lm.config.context)
    given, wanted = task.fields
    sources, references = [], []
    too_long = 0
    for number, record in enumerate(records, 1):
        with about(number, "Record"):
            source, reference = text(record, given, task), text(record, wanted, task)
            try:
                task.prompt({given: source}, lm.tokenizer)
            except LeftOut:
                source, too_long = "", too_long + 1  # an empty text is answered with an empty one
        sources.append(source)
        references.append(reference)
    answers: list[Answer] = []
    for some in batches(sources, BATCH):
        answers += (
            translate(lm, task, some, beams) if isinstance(task, Translation) else summarize(lm, task, some, beams)
        )
        if progress:
            progress(len(answers), len(sources))
    score = (bleu if isinstance(task, Translation) else rouge)([answer.text for answer in answers], references)
    search = "greedy" if beams == 1 else f"{beams} beams"
    unended = sum(not answer.whole for answer in answers)
    cut = sum(answer.cut > 0 for answer in answers)
    notes = f"{too_long:,} too long and counted as empty, {cut:,} read without their end, {unended:,} answers cut off"
    return replace(score, how=f"{score.how}; {search}; {notes}")


def score_classes(classifier: TextClassifier, records: Sequence[Record], progress: Progress | None) -> Score:
    """Classes against the labels in the records."""
    task = classifier.task
    labels, readable, too_long = list[str](), list[Record](), 0
    for number, record in enumerate(records, 1):
        with about(number, "Record"):
            try:
                labels.append(task.class_name(task.class_of(record)))
                task.forms(record, classifier.tokenizer)
                readable.append(record)
            except LeftOut:
                labels.pop()
                too_long += 1
    answers: list[str] = []
    for some in batches(readable, BATCH):
        answers += [judgement.label for judgement in classify(classifier, some)]
        if progress:
            progress(len(answers), len(readable))
    score = accuracy([*answers, *[""] * too_long], [*labels, *["(too long)"] * too_long])
    return replace(score, how=f"{score.how}; {too_long:,} too long and counted as wrong")
