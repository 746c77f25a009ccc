"""What a task is: the way from a record to tokens, and which of those tokens are the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from cutaway.errors import CutawayError, nearest

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

Record = Mapping[str, Any]
"""One row of data, `{"source": ..., "target": ...}` or `{"text": ..., "label": ...}`, as the task's `fields` say."""


@dataclass(frozen=True)
class Example:
    """One sequence to learn from."""

    ids: list[int]
    """The whole sequence, separators and end token included."""
    answer: int
    """The index (1 or more) of the first id that counts in the loss; all from there on do, none before."""
    label: int | None = None
    """Classification only: the class of the record this example comes from."""
    cut: int = 0
    """How many tokens of the record were cut away, by the task's rule, to fit the limit."""
    counted: list[bool] | None = None
    """Which ids count in the loss, where these are not simply all from `answer` on: a conversation has many answers."""


class LeftOut(CutawayError):
    """This record cannot be used; by the task's rule it is left out, counted under `reason`, and the others go on."""

    def __init__(self, message: str, reason: str = "too long"):
        super().__init__(message)
        self.reason = reason


class Task(Protocol):
    """A frozen dataclass whose fields are what a recipe's `[task]` may set; see `cutaway.tasks.task_from`."""

    @property
    def name(self) -> str: ...

    @property
    def fields(self) -> tuple[str, ...]:
        """What a record must have to be learned from."""

    @property
    def specials(self) -> tuple[str, ...]:
        """The separators the tokenizer must have (see `Tokenizer.with_specials`)."""

    @property
    def outputs(self) -> int:
        """How many scores the classifier's head gives to each example; 0 means no head: the answer is written."""

    @property
    def rows(self) -> int:
        """How many examples one record gives, side by side and in a fixed order."""

    @property
    def limit(self) -> int | None:
        """The longest an example may be, in tokens; None means any length."""

    def within(self, limit: int) -> Self:
        """The same task for a model that looks at `limit` tokens."""

    def learn_classes(self, records: Iterable[Record]) -> Self:
        """The same task, its classes (if it has any and does not know them) as these records have them."""

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        """The record as sequences to learn from. Raises `LeftOut` for one to skip, CutawayError for a wrong one."""

    def settings(self) -> dict[str, Any]:
        """What `task_from` makes the same task of again; plain values, ready for JSON."""


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
