"""What a task is: it owns its learning, from records to named arrays, to batches, to the loss; and answer and score."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cutaway.atomic import write_text
from cutaway.checkpoint.opened import TASK
from cutaway.errors import CutawayError, nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from cutaway.tasks.scores import Score
    from cutaway.text.tokenizer import Tokenizer

Record = Mapping[str, Any]
"""One row of data, `{"source": ..., "target": ...}` or `{"text": ..., "label": ...}`, as the task's `fields` say."""
Arrays = Mapping[str, "NDArray[Any]"]
"""An example as it comes back from the disk: `ids`, and the task's other arrays, by name."""


@dataclass(frozen=True)
class Example:
    """One sequence to learn from, as named arrays of whole numbers."""

    ids: Sequence[int]
    """The whole sequence, separators and end token included."""
    arrays: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """What else `collate` needs, under the names in the task's `arrays`: where the answer begins, targets, a label."""
    cut: int = 0
    """How many tokens of the record were cut away, by the task's rule, to fit the limit."""


@dataclass(frozen=True)
class Batch:
    """What goes through the model at once."""

    tensors: Mapping[str, Tensor]
    """By names that the task's `loss` knows; the first axis of each is the row."""
    tokens: int
    """How many tokens the model reads, padding left out."""
    count: int
    """How many losses are added up: one for a target, or one for a record. The mean is taken over these."""


@dataclass(frozen=True)
class Loss:
    """What one way through the model comes to."""

    sum: Tensor
    """Over what `Batch.count` counts, times the scale that was asked for."""
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
    """Other sums over the same, by name; their means are told after each evaluation: `accuracy`, say."""


@dataclass(frozen=True)
class Seen:
    """What a model makes of a batch before it is asked for a loss: where a student is compared with its teacher."""

    hidden: Tensor
    """The last block's vectors. [row, token, width]"""
    compared: Tensor
    """At which tokens the two are compared. [row, token], True or False"""
    score: Callable[[Tensor], Tensor]
    """Vectors [..., width] as scores over the vocabulary."""
    entries: int
    """How many scores."""


class LeftOut(CutawayError):
    """This record cannot be used; by the task's rule it is left out, counted under `reason`, and the others go on."""

    def __init__(self, message: str, reason: str = "too long", told: bool = False):
        super().__init__(message)
        self.reason = reason
        self.told = told
        """Whether the message itself is told at the end, and not only counted: it names a file that is damaged."""


class Task:
    """The base of all tasks: a frozen dataclass whose fields are what a recipe's `[task]` may set.

    A new one says `name`, `fields`, `examples`, `collate` and `loss`; the rest has defaults. It must be importable
    without torch (data is cut into tokens by processes of their own), so what needs torch is imported where it is used.
    """

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def fields(self) -> tuple[str, ...]:
        """What a record must have to be learned from; records are known by the first when some are held out."""
        raise NotImplementedError

    @property
    def specials(self) -> tuple[str, ...]:
        """The separators the tokenizer must have (see `Tokenizer.with_specials`)."""
        return ()

    @property
    def arrays(self) -> Mapping[str, str]:
        """The arrays of an example beside `ids`, and the kind of number each is stored as: `{"label": "i4"}`."""
        return {}

    @property
    def packed(self) -> bool:
        """Whether the examples, of the one field `text`, are joined in one long row and cut into windows."""
        return False

    @property
    def ahead(self) -> int:
        """How many ids at the end of an example or window are only targets, and not read: 1 where the next is told."""
        return 0

    @property
    def rows(self) -> int:
        """How many examples one record gives, side by side and in a fixed order."""
        return 1

    @property
    def together(self) -> int:
        """How many examples of a record must be in one batch."""
        return 1

    @property
    def limit(self) -> int | None:
        """The longest an example may be, in tokens; None means any length."""
        return None

    @property
    def outputs(self) -> int:
        """How many scores the classifier's head gives to each example; 0 means no head."""
        return 0

    @property
    def verb(self) -> str:
        """What `cutaway` does with such a model: "translate"; empty if there is no command for it."""
        return ""

    @property
    def reach(self) -> int:
        """How many tokens a new model of packed data should look back, where nobody says."""
        return 256

    @property
    def new_model(self) -> Mapping[str, Any]:
        """What a new model for it is: its `kind`, and fields of its shape."""
        return {"kind": "gpt2"}

    def learn_tokenizer(self, texts: Iterable[str], size: int, progress: Callable[[int], None] | None) -> Tokenizer:
        """A new vocabulary for such a model, with the task's separators."""
        from cutaway.text.tokenizer import Tokenizer

        return Tokenizer.train(texts, size, ("<|endoftext|>", *self.specials), progress)

    def own_tokenizer(self) -> Tokenizer | None:
        """The vocabulary of a task whose records are no texts; None where one is learned, or that of a model taken."""
        return None

    @property
    def two_texts(self) -> bool:
        """Whether an encoder-decoder can learn it: an example is a source, one token that divides, and a target."""
        return False

    def shape_settings(self, tokenizer: Tokenizer) -> dict[str, Any]:
        """What a new model's shape must know of the task, if it has such a field: the token that answers begin with."""
        return {}

    def known_by(self, record: Record) -> Any:
        """What a record is known by when some are held out: those that are equal in it stay on one side."""
        return record.get(self.fields[0])

    def varied(self, example: Arrays, number: int) -> Arrays:
        """An example as it is learned from this time: changed by chance that follows from `number`."""
        return example

    def measures(self, loss: float, means: Mapping[str, float]) -> Mapping[str, float]:
        """What is told of held-out data beside the mean loss, from the means of the loss's metrics."""
        return means

    def within(self, limit: int) -> Self:
        """The same task for a model that reads `limit` tokens."""
        if not is_dataclass(self) or "limit" not in [one.name for one in fields(self)]:
            return self
        return replace(self, limit=min(limit, self.limit or limit))

    def for_model(self, shape: Any) -> Self:
        """The same task for a model of this shape: an encoder reads other forms than a model that writes."""
        return self

    def learn_classes(self, records: Iterable[Record]) -> Self:
        """The same task, its classes (if it has any and does not know them) as these records have them."""
        return self

    def settings(self) -> dict[str, Any]:
        """What `task_from` makes the same task of again; plain values, ready for JSON."""
        given: dict[str, Any] = asdict(self) if is_dataclass(self) else {}
        return {"name": self.name} | {key: list(one) if isinstance(one, tuple) else one for key, one in given.items()}

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        """The record as sequences to learn from. Raises `LeftOut` for one to skip, CutawayError for a wrong one."""
        raise NotImplementedError

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        """Examples (whole records of them) as one batch. It may draw random numbers: torch is seeded for each step."""
        raise NotImplementedError

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        """One way through the model, up to the loss, for the tensors of a batch."""
        raise NotImplementedError

    def see(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Seen:
        """One way through the model, up to what a student and its teacher are compared by; not every task has that."""
        raise NotImplementedError

    def seen_loss(self, model: nn.Module, seen: Seen, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        """The same as `loss`, going on from what was seen."""
        raise NotImplementedError

    def check_teacher(self, shape: Any, name: str) -> None:
        """Refuse a model of this shape as a teacher."""

    def with_head(self, model: nn.Module) -> nn.Module:
        """What is trained: the model itself, or the model under a head (which has it as its `body`)."""
        return model

    def save(self, model: nn.Module, tokenizer: Tokenizer, folder: Path) -> None:
        """Write the trained model's folder."""
        from cutaway import checkpoint

        checkpoint.write_model(model, tokenizer, folder)  # type: ignore[arg-type]
        save_task(self, folder)

    def question(self, example: Arrays) -> tuple[list[int], list[int]] | None:
        """The ids before an answer that is written, and the answer's; None where nothing is written."""
        return None

    def answer(
        self, model: Any, records: Sequence[Record], beams: int = 4, progress: Callable[[int, int], None] | None = None
    ) -> list[Any]:
        """What a trained model makes of each record; `model` is the language model, or the classifier."""
        raise CutawayError(
            f"There is no score for the answers of a model trained for {self.name}. Its loss on held-out records is in "
            "the report.json of its training."
        )

    def score(self, answers: Sequence[Any], records: Sequence[Record], beams: int = 4) -> Score:
        """How good these answers are, by what the records say is right; those left out count as wrong."""
        raise NotImplementedError


def save_task(task: Task, folder: str | Path) -> None:
    """Write `task.json` into a model's folder."""
    path = Path(folder) / TASK
    try:
        write_text(path, json.dumps(task.settings(), indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CutawayError(f"{path} cannot be written: {error.strerror or error}.") from error


def padded(rows: Sequence[NDArray[Any]], fill: int) -> NDArray[np.int64]:
    """Rows of unequal length as one table, filled up on the right. [row, token]"""
    import numpy as np  # not before there is something to learn: a mistake on the command line needs none

    table = np.full((len(rows), max((len(row) for row in rows), default=0)), fill, np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def text(record: Record, field: str, task: Task) -> str:
    """A field's text without the white space around it; refused when it is missing, empty or no text."""
    if field not in record:
        has = ", ".join(map(repr, record)) or "nothing"
        raise CutawayError(
            f"A record for {task.name} needs {listed(task.fields)}, and this one has {has}: {field!r} is missing."
            f"{nearest(field, map(str, record))}"
        )
    return checked(record[field], field)


def checked(value: object, field: str) -> str:
    """A value as a text that is not empty."""
    if value is not None and not isinstance(value, str):
        raise CutawayError(f"The field {field!r} must be text, not {type(value).__name__} ({value!r:.40}).")
    if value is None or not value.strip():
        raise CutawayError(f"The field {field!r} is empty.")
    return value.strip()


def token(tokenizer: Tokenizer, special: str, task: Task) -> int:
    """The id of a separator."""
    try:
        return tokenizer.specials[special]
    except KeyError:
        raise CutawayError(
            f"The tokenizer has no {special}, which {task.name} needs: this model was not trained for it. "
            f"Add it with tokenizer.with_specials({list(task.specials)!r}) and train."
        ) from None


def require_limit(task: Task, least: int) -> None:
    """Refuse a limit that leaves no room for an example."""
    if task.limit is not None and task.limit < least:
        raise CutawayError(f"{task.name.capitalize()} needs at least {least} tokens, and the limit is {task.limit}.")


def require_separators(task: Task) -> None:
    """Refuse separators that are empty or that could not be told apart."""
    for special in task.specials:
        if not special.strip() or special == "<|endoftext|>":
            raise CutawayError(f"{special!r} cannot be a separator: choose a word of its own, like '<|translate|>'.")
    if len(set(task.specials)) < len(task.specials):
        raise CutawayError(f"The separators of {task.name} must differ, and they are {listed(task.specials)}.")


def listed(words: tuple[str, ...]) -> str:
    """`'a', 'b' and 'c'`."""
    quoted = [repr(word) for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
