"""How good a model is at its task: its answers to records, scored by the task's own measure."""

from __future__ import annotations

from collections.abc import Sequence

from cutaway.errors import CutawayError
from cutaway.evaluate.likelihood import Progress
from cutaway.language_model import LanguageModel
from cutaway.tasks import Record, Task
from cutaway.tasks.answer import TextClassifier
from cutaway.tasks.scores import Score


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
    return task.score(task.answer(model, records, beams, progress), records, beams)
