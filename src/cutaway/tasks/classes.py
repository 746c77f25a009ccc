"""Tasks whose answer is a class, in GPT-1's input forms; a linear layer reads the vector of the last token.

    classification   <|start|> text <|extract|>; in a model of others, only the text
    entailment       <|start|> premise <|delimiter|> hypothesis <|extract|>
    similarity       the same with first and second, and once more the other way round; the two score rows are added
    choice           <|start|> context <|delimiter|> choice <|extract|> for each choice; softmax over the choices

An encoder (BERT) reads `[CLS] text [SEP]` and `[CLS] first [SEP] second [SEP]` instead, and the layer reads the pooled
vector of [CLS] (encoder_head.py).

A text that is too long is cut by the rule its task states, and what was cut is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import architecture, body, encoder
from cutaway.tasks.scores import Score, accuracy
from cutaway.tasks.task import (
    Arrays,
    Batch,
    Example,
    LeftOut,
    Loss,
    Record,
    Task,
    checked,
    listed,
    require_limit,
    text,
    token,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cutaway.tasks.answer import Judgement, TextClassifier
    from cutaway.tasks.encoder_head import EncoderClassifier
    from cutaway.tasks.head import Classifier
    from cutaway.text.tokenizer import Tokenizer

START, DELIMITER, EXTRACT = "<|start|>", "<|delimiter|>", "<|extract|>"
LONG = "(too long)"
"""What stands for the class of a record that does not fit."""


class ClassTask(Task):
    """What the tasks share that are answered by a `Classifier` (see head.py)."""

    arrays: ClassVar[Mapping[str, str]] = {"label": "i4"}
    label: ClassVar[str] = "label"
    """The field of a record that holds its class."""
    verb: ClassVar[str] = "classify"
    encoder: bool = False

    @property
    def specials(self) -> tuple[str, ...]:
        """An encoder's vocabulary has its own: [CLS] and [SEP]."""
        return () if self.encoder else (START, DELIMITER, EXTRACT)

    @property
    def together(self) -> int:
        return self.rows

    @property
    def classes(self) -> int:
        """How many answers there are to choose from."""
        raise NotImplementedError

    def class_of(self, record: Record) -> int:
        """The number of the class that a record's label names."""
        raise NotImplementedError

    def class_name(self, number: int) -> str:
        """What a class is called."""
        raise NotImplementedError

    def forms(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        """The record as the model reads it, `rows` sequences, whether its class is known or not."""
        raise NotImplementedError

    def for_model(self, shape: Any) -> Self:
        return replace(self, encoder=encoder(architecture(shape.kind)))  # type: ignore[type-var]

    def label_tables(self) -> dict[str, Any]:
        """The names of the classes, as `config.json` has them."""
        labels = ["score"] if self.outputs == 1 else [self.class_name(number) for number in range(self.classes)]
        return {
            "id2label": {str(number): label for number, label in enumerate(labels)},
            "label2id": {label: number for number, label in enumerate(labels)},
        }

    def settings(self) -> dict[str, Any]:
        return {key: value for key, value in super().settings().items() if key != "encoder" or value}

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        label = {"label": [self.class_of(record)]}
        return [replace(form, arrays=label) for form in self.forms(record, tokenizer)]

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        from cutaway.tasks.head import labelled_rows

        return labelled_rows(examples, self)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        from cutaway.tasks.head import label_loss

        return label_loss(model(batch["inputs"], batch["last"]), batch["labels"], self, scale)

    def with_head(self, model: nn.Module) -> nn.Module:
        from cutaway.tasks.encoder_head import EncoderClassifier
        from cutaway.tasks.head import Classifier

        return (EncoderClassifier if encoder(model) else Classifier)(model, self.outputs)

    def save(self, model: nn.Module, tokenizer: Tokenizer, folder: Path) -> None:
        from cutaway.tasks.encoder_head import write_encoder_classifier
        from cutaway.tasks.head import write_classifier

        if encoder(body(model)):
            write_encoder_classifier(cast("EncoderClassifier", model), tokenizer, self, folder)
        else:
            write_classifier(cast("Classifier", model), tokenizer, self, folder)

    def answer(
        self,
        model: TextClassifier,
        records: Sequence[Record],
        beams: int = 4,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Judgement | None]:
        from cutaway.tasks.answer import judge_records

        return judge_records(model, records, progress)

    def score(self, answers: Sequence[Judgement | None], records: Sequence[Record], beams: int = 4) -> Score:
        read = [(one.label, record) for one, record in zip(answers, records, strict=True) if one is not None]
        too_long = len(answers) - len(read)
        said = [*(label for label, _ in read), *[""] * too_long]
        measured = accuracy(said, [*(self.class_name(self.class_of(one)) for _, one in read), *[LONG] * too_long])
        return replace(measured, how=f"{measured.how}; {too_long:,} too long and counted as wrong")


@dataclass(frozen=True)
class Labelled(ClassTask):
    """What the tasks with named classes share."""

    labels: tuple[str, ...] = ()
    """The names of the classes, in order; a record's label is one of these, or its number in this list, from 0."""
    limit: int | None = None
    """The longest an example may be, in tokens, with its separators; None takes the model's context."""
    encoder: bool = False
    """Whether it is for an encoder: `[CLS] text [SEP]`. The model to go on from decides."""

    def __post_init__(self) -> None:
        require_limit(self, least=len(self.specials) + len(self.fields) - 1)
        if self.labels and (len(self.labels) < 2 or len(set(self.labels)) < len(self.labels)):
            raise CutawayError(
                f"{self.name.capitalize()} needs two labels or more, all different, not {self.labels!r}."
            )

    @property
    def outputs(self) -> int:
        return len(self.known_labels())

    @property
    def classes(self) -> int:
        return len(self.known_labels())

    def class_name(self, number: int) -> str:
        return self.known_labels()[number]

    def learn_classes(self, records: Iterable[Record]) -> Self:
        if self.labels:
            return self
        found = {label_text(record[self.label]) for record in records if record.get(self.label) is not None}
        if len(found) < 2:
            raise CutawayError(
                f"{self.name.capitalize()} needs records of two classes or more, "
                f"and these have {f'only {found.pop()!r}' if found else f'no {self.label!r}'}."
            )
        numbers = all(label.isdecimal() for label in found)
        return replace(self, labels=tuple(sorted(found, key=int if numbers else None)))

    def class_of(self, record: Record) -> int:
        """The number of the class that the record's label names."""
        labels = self.known_labels()
        if record.get(self.label) is None:
            text(record, self.label, self)
        given = label_text(record[self.label])
        if given in labels:
            return labels.index(given)
        if given.isdecimal() and int(given) < len(labels):
            return int(given)
        raise CutawayError(f"There is no label {given!r}: the labels are {listed(labels)}.{nearest(given, labels)}")

    def known_labels(self) -> tuple[str, ...]:
        if not self.labels:
            raise CutawayError(f"{self.name.capitalize()} needs its labels, as in labels = ['negative', 'positive'].")
        return self.labels


@dataclass(frozen=True)
class Classification(Labelled):
    """`<|start|> text <|extract|>` -> a label. Of a text that is too long the end is cut off."""

    separators: bool = True
    """Whether the two separators stand around the text. Without them it is taken as it is, as transformers does."""
    padding: int | None = None
    """Without separators: a token that rows were filled up with. The last token that is another one is read."""

    name: ClassVar[str] = "classification"
    fields: ClassVar[tuple[str, ...]] = ("text", "label")

    @property
    def specials(self) -> tuple[str, ...]:
        return (START, EXTRACT) if self.separators and not self.encoder else ()

    def forms(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        given = text(record, "text", self)
        if self.encoder:
            ids = tokenizer.encode(given)
            keep = len(ids) if self.limit is None else min(len(ids), self.limit - 2)
            return [Example(framed(tokenizer, self, ids[:keep]), cut=len(ids) - keep)]
        around = [[token(tokenizer, special, self)] for special in self.specials] or [[], []]
        ids = tokenizer.encode(given if self.separators else record["text"])
        keep = len(ids) if self.limit is None else min(len(ids), self.limit - len(self.specials))
        form = [*around[0], *ids[:keep], *around[1]]
        while not self.separators and len(form) > 1 and form[-1] == self.padding:
            form.pop()  # what comes after the token that is read cannot change it
        return [Example(form, cut=len(ids) - keep)]

    def settings(self) -> dict[str, Any]:
        usual = {"separators": True, "padding": None}
        return {key: value for key, value in super().settings().items() if usual.get(key, ...) != value}


@dataclass(frozen=True)
class Entailment(Labelled):
    """`<|start|> premise <|delimiter|> hypothesis <|extract|>` -> a label. The longer one loses its end if need be."""

    name: ClassVar[str] = "entailment"
    fields: ClassVar[tuple[str, ...]] = ("premise", "hypothesis", "label")

    def forms(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        return [pair(*cut_to_fit(*both(record, self, tokenizer), self.limit), tokenizer, self)]


@dataclass(frozen=True)
class Similarity(Labelled):
    """Two texts in both orders, their scores added -> a label. The longer text loses its end until both fit."""

    name: ClassVar[str] = "similarity"
    fields: ClassVar[tuple[str, ...]] = ("first", "second", "label")
    rows: ClassVar[int] = 2

    def forms(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        first, second, cut = cut_to_fit(*both(record, self, tokenizer), self.limit)
        return [pair(first, second, cut, tokenizer, self), pair(second, first, cut, tokenizer, self)]


@dataclass(frozen=True)
class Choice(ClassTask):
    """A context and several ways it may go on -> the number of the right one, from 0. Of a context that is too long the
    beginning is cut off; a record with a choice that is too long by itself is left out."""

    choices: int = 0
    """How many choices every record has; 0: as many as the first record of the data."""
    limit: int | None = None
    """The longest an example may be, in tokens, with its separators; None takes the model's context."""
    encoder: bool = False
    """Whether it is for an encoder: `[CLS] context [SEP] choice [SEP]`. The model to go on from decides."""

    name: ClassVar[str] = "choice"
    fields: ClassVar[tuple[str, ...]] = ("context", "choices", "label")
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_limit(self, least=5)
        if self.choices == 1 or self.choices < 0:
            raise CutawayError(f"A choice is between two or more, not {self.choices}.")

    @property
    def rows(self) -> int:
        if not self.choices:
            raise CutawayError("Choice needs to know how many choices there are, as in choices = 4.")
        return self.choices

    @property
    def classes(self) -> int:
        return self.rows

    def class_name(self, number: int) -> str:
        return str(number)

    def learn_classes(self, records: Iterable[Record]) -> Self:
        first: Record = {} if self.choices else next(iter(records), {})
        return self if self.choices else replace(self, choices=len(self.endings(first)))

    def class_of(self, record: Record) -> int:
        if record.get(self.label) is None:
            text(record, self.label, self)
        given = label_text(record[self.label])
        if given.isdecimal() and int(given) < self.rows:
            return int(given)
        raise CutawayError(f"The label must be the number of the right choice, 0 to {self.rows - 1}, not {given!r}.")

    def forms(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        context, endings = tokenizer.encode(text(record, "context", self)), self.endings(record)
        if len(endings) != self.rows:
            raise CutawayError(f"This record has {len(endings)} choices, and all must have {self.rows}.")
        return [self.form(context, tokenizer.encode(ending), tokenizer) for ending in endings]

    def form(self, context: list[int], ending: list[int], tokenizer: Tokenizer) -> Example:
        keep = len(context) if self.limit is None else min(len(context), self.limit - 3 - len(ending))
        if keep < 1:
            raise LeftOut(f"A choice is {len(ending):,} tokens long, and at most {self.limit:,} fit with its context.")
        return pair(context[len(context) - keep :], ending, len(context) - keep, tokenizer, self)

    def endings(self, record: Record) -> list[str]:
        """The texts to choose from."""
        given = record.get("choices")
        if given is None:
            text(record, "choices", self)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise CutawayError(f"The field 'choices' must be a list of texts, not {type(given).__name__}.")
        endings = [checked(one, f"choices[{number}]") for number, one in enumerate(given)]
        if len(endings) < 2:
            raise CutawayError(f"The field 'choices' must have two texts or more, not {len(endings)}.")
        return endings


def label_text(value: object) -> str:
    """A label as a word, however a file had it: 1, 1.0, true or "positive"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int):
        raise CutawayError(f"A label must be a word or a whole number, not {value!r:.40}.")
    return str(value).strip()


def both(record: Record, task: Labelled, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    first, second = (tokenizer.encode(text(record, field, task)) for field in task.fields[:2])
    return first, second


def cut_to_fit(first: list[int], second: list[int], limit: int | None) -> tuple[list[int], list[int], int]:
    """The two texts without the tokens that do not fit beside three separators, and how many those are."""
    excess = 0 if limit is None else max(0, len(first) + len(second) + 3 - limit)
    more = max(0, min(excess, abs(len(first) - len(second))))  # first the longer one comes down to the other,
    each = [more + (excess - more + 1) // 2, (excess - more) // 2]  # then both give equally
    off = each if len(first) >= len(second) else each[::-1]
    return first[: len(first) - off[0]], second[: len(second) - off[1]], excess


def framed(tokenizer: Any, task: Task, *texts: list[int]) -> list[int]:
    """What an encoder reads: `[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]`."""
    if not hasattr(tokenizer, "frame"):
        raise CutawayError(f"{task.name.capitalize()} on an encoder needs a WordPiece vocabulary, and this is another.")
    ids: list[int] = tokenizer.frame(*texts)
    return ids


def pair(first: list[int], second: list[int], cut: int, tokenizer: Tokenizer, task: ClassTask) -> Example:
    if task.encoder:
        return Example(framed(tokenizer, task, first, second), cut=cut)
    start, delimiter, extract = (token(tokenizer, special, task) for special in (START, DELIMITER, EXTRACT))
    return Example([start, *first, delimiter, *second, extract], cut=cut)
