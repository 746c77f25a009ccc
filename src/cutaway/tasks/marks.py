"""Tasks whose answer lies in the text itself, for encoders: a tag for each word, or where an answer begins and ends.

    tagging              [CLS] words [SEP]                  a class for each word, at its first piece
    question answering   [CLS] question [SEP] context [SEP] the first token of the answer, and the last

They are transformers' BertForTokenClassification and BertForQuestionAnswering; their folders are read and written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cutaway.errors import CutawayError, nearest
from cutaway.tasks.classes import framed
from cutaway.tasks.scores import Score, exact_and_f1, require
from cutaway.tasks.task import Arrays, Batch, Example, LeftOut, Loss, Record, Task, checked, padded, require_limit, text

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cutaway.language_model import LanguageModel
    from cutaway.tasks.marked import Found, Tagged
    from cutaway.text.tokenizer import Tokenizer

IGNORED = -100
LEAST_CONTEXT = 8
"""So many tokens of a context must fit beside the question."""
Progress = Callable[[int, int], None]


class Marks(Task):
    """What both share: a head on every token of an encoder."""

    verb: ClassVar[str] = "classify"
    head: ClassVar[str]
    """What stands on top of the stack (models/bert/shape.py)."""

    @property
    def head_labels(self) -> int:
        return 2

    def with_head(self, model: nn.Module) -> nn.Module:
        from cutaway.models.bert.heads import with_head

        return with_head(model, self.head, self.head_labels)

    def label_tables(self) -> dict[str, Any]:
        """The names of the classes, as `config.json` has them."""
        return {}

    def save(self, model: nn.Module, tokenizer: Tokenizer, folder: Path) -> None:
        from cutaway.tasks.encoder_head import write_encoder

        write_encoder(model, tokenizer, self, folder)


@dataclass(frozen=True)
class Tagging(Marks):
    """A tag for each word: names of people and places, parts of speech. Words at the end that do not fit are cut."""

    labels: tuple[str, ...] = ()
    """The tags, in order; `O`, `B-PER`, `I-PER` where names are marked."""
    limit: int | None = None
    """The longest an example may be, in tokens, with [CLS] and [SEP]; None takes the model's context."""

    name: ClassVar[str] = "tagging"
    fields: ClassVar[tuple[str, ...]] = ("words", "tags")
    arrays: ClassVar[Mapping[str, str]] = {"targets": "i4"}
    head: ClassVar[str] = "tags"

    def __post_init__(self) -> None:
        require_limit(self, least=3)
        if self.labels and (len(self.labels) < 2 or len(set(self.labels)) < len(self.labels)):
            raise CutawayError(f"Tagging needs two tags or more, all different, not {self.labels!r}.")

    @property
    def head_labels(self) -> int:
        if not self.labels:
            raise CutawayError("Tagging needs its tags, as in labels = ['O', 'B-PER', 'I-PER'].")
        return len(self.labels)

    def label_tables(self) -> dict[str, Any]:
        return {
            "id2label": {str(number): label for number, label in enumerate(self.labels)},
            "label2id": {label: number for number, label in enumerate(self.labels)},
        }

    def known_by(self, record: Record) -> Any:
        return " ".join(listed_words(record, "words"))

    def learn_classes(self, records: Iterable[Record]) -> Self:
        if self.labels:
            return self
        found = {tag for record in records if record.get("tags") for tag in listed_words(record, "tags")}
        if len(found) < 2:
            raise CutawayError(f"Tagging needs records with two tags or more, and these have {sorted(found)}.")
        return replace(self, labels=tuple(sorted(found, key=lambda tag: (tag != "O", tag[2:], tag))))

    def words_and_tags(self, record: Record) -> tuple[list[str], list[str]]:
        words, tags = listed_words(record, "words"), listed_words(record, "tags")
        if len(words) != len(tags):
            raise CutawayError(f"A record has {len(words)} words and {len(tags)} tags: one for each is needed.")
        return words, tags

    def form(self, words: Sequence[str], tokenizer: Tokenizer) -> tuple[list[int], list[int], int]:
        """The ids, at which of them each word that fits begins, and how many tokens do not fit."""
        pieces = tokenizer.encode_batch(list(words))
        inside: list[int] = []
        starts: list[int] = []
        room = None if self.limit is None else self.limit - 2
        unknown: Any = tokenizer
        for word in pieces:
            own = word or [unknown.special("unk")]  # a word of signs that WordPiece drops
            if room is not None and len(inside) + len(own) > room:
                break
            starts.append(len(inside) + 1)
            inside += own
        whole = sum(max(1, len(word)) for word in pieces)
        return framed(tokenizer, self, inside), starts, whole - len(inside)

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        words, tags = self.words_and_tags(record)
        for tag in tags:
            if tag not in self.labels:
                raise CutawayError(f"There is no tag {tag!r}.{nearest(tag, self.labels)}")
        ids, starts, cut = self.form(words, tokenizer)
        if not starts:
            raise LeftOut("The first word alone is too long.")
        targets = [IGNORED] * len(ids)
        for at, tag in zip(starts, tags, strict=False):
            targets[at] = self.labels.index(tag)
        return [Example(ids, {"targets": targets}, cut)]

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        import torch

        targets = torch.from_numpy(padded([one["targets"] for one in examples], IGNORED))
        tensors = rows_of(examples) | {"targets": targets}
        return Batch(tensors, int(tensors["mask"].sum()), count=int((targets != IGNORED).sum()))

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        import torch.nn.functional as F

        asked = batch["targets"] != IGNORED
        scores = model(batch["inputs"], mask=batch["mask"])[asked].float()  # [word, tag]
        wanted = batch["targets"][asked]
        total = F.cross_entropy(scores, wanted, reduction="sum")
        return Loss(total * scale, {"accuracy": (scores.detach().argmax(-1) == wanted).sum()})

    def answer(
        self, model: LanguageModel, records: Sequence[Record], beams: int = 4, progress: Progress | None = None
    ) -> list[Tagged]:
        from cutaway.tasks.marked import tag

        return tag(model, self, [listed_words(one, "words") for one in records], progress)

    def score(self, answers: Sequence[Tagged], records: Sequence[Record], beams: int = 4) -> Score:
        """F1 of entities: of those that begin and end at the same words and have the same kind."""
        require(answers, records)
        right = said = wanted = same = words = 0
        for one, record in zip(answers, records, strict=True):
            _, tags = self.words_and_tags(record)
            mine = [*one.tags, *["O"] * (len(tags) - len(one.tags))]
            a, b = set(entities(mine)), set(entities(tags))
            right, said, wanted = right + len(a & b), said + len(a), wanted + len(b)
            same, words = same + sum(x == y for x, y in zip(mine, tags, strict=True)), words + len(tags)
        precision, recall = 100 * right / max(1, said), 100 * right / max(1, wanted)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        parts = {"precision": precision, "recall": recall, "words right": 100 * same / max(1, words)}
        how = f"entities of {len(records):,} texts ({wanted:,} wanted, {said:,} found), as CoNLL counts them"
        return Score("F1", f1, len(records), how, parts)


@dataclass(frozen=True)
class Questions(Marks):
    """Where in a context a question is answered. A context that is too long is read in windows that overlap by half."""

    limit: int | None = None
    """The longest an example may be, in tokens, with its separators; None takes the model's context."""
    unanswerable: bool = False
    """Whether some questions have no answer (an empty text in the data); [CLS] stands for it."""

    name: ClassVar[str] = "question answering"
    fields: ClassVar[tuple[str, ...]] = ("question", "context", "answer")
    arrays: ClassVar[Mapping[str, str]] = {"span": "i4"}
    head: ClassVar[str] = "span"

    def __post_init__(self) -> None:
        require_limit(self, least=LEAST_CONTEXT + 4)

    def known_by(self, record: Record) -> Any:
        return record.get("context")

    def learn_classes(self, records: Iterable[Record]) -> Self:
        if self.unanswerable or not any("answer" in one and not any(right_answers(one)) for one in records):
            return self
        return replace(self, unanswerable=True)

    def windows(self, record: Record, tokenizer: Tokenizer) -> list[Window]:
        """The record as the model reads it: one sequence, or several that overlap."""
        question = tokenizer.encode(text(record, "question", self))
        if "context" not in record:
            text(record, "context", self)
        checked(record["context"], "context")
        if not hasattr(tokenizer, "encode_with_offsets"):
            raise CutawayError("Question answering needs a WordPiece vocabulary, and this is another.")
        ids, offsets = tokenizer.encode_with_offsets(record["context"])
        room = len(ids) if self.limit is None else self.limit - 3 - len(question)
        if room < min(LEAST_CONTEXT, len(ids)):
            raise LeftOut(f"The question is {len(question):,} tokens long: too little room is left for the context.")
        begins = range(0, max(1, len(ids) - room // 2), max(1, room // 2)) if len(ids) > room else [0]
        return [
            Window(framed(tokenizer, self, question, ids[at : at + room]), len(question) + 2, offsets[at : at + room])
            for at in begins
        ]

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        given, windows = right_answers(record), self.windows(record, tokenizer)
        if not any(given):
            return [Example(one.ids, {"span": [0, 0]}) for one in windows]
        start = record.get("start")
        at = record["context"].find(given[0]) if start is None else int(start)
        if at < 0 or record["context"][at : at + len(given[0])] != given[0]:
            raise CutawayError(f"The answer {given[0]!r:.60} does not stand in the context, letter by letter.")
        made = []
        for window in windows:
            inside = [n for n, (a, b) in enumerate(window.offsets) if a < at + len(given[0]) and b > at]
            whole = inside and window.offsets[inside[0]][0] <= at
            whole = whole and window.offsets[inside[-1]][1] >= at + len(given[0].rstrip())
            span = [window.first + inside[0], window.first + inside[-1]] if whole else [0, 0]
            made.append(Example(window.ids, {"span": span}))
        return made

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        import torch

        spans = torch.tensor([[int(place) for place in one["span"]] for one in examples])  # [row, 2]
        tensors = rows_of(examples) | {"spans": spans}
        return Batch(tensors, int(tensors["mask"].sum()), count=len(examples))

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        """The mean of both cross-entropies, over the tokens there are; added up over rows."""
        import torch.nn.functional as F

        scores = model(batch["inputs"], mask=batch["mask"]).float()  # [row, token, 2]
        scores = scores.masked_fill(~batch["mask"][..., None], float("-inf")).transpose(1, 2)  # [row, 2, token]
        total = F.cross_entropy(scores.flatten(0, 1), batch["spans"].flatten(), reduction="sum") / 2
        right = (scores.detach().argmax(-1) == batch["spans"]).all(-1).sum()
        return Loss(total * scale, {"accuracy": right})

    def answer(
        self, model: LanguageModel, records: Sequence[Record], beams: int = 4, progress: Progress | None = None
    ) -> list[Found | None]:
        from cutaway.tasks.marked import find_answers

        return find_answers(model, self, records, progress)

    def score(self, answers: Sequence[Found | None], records: Sequence[Record], beams: int = 4) -> Score:
        """Exact match and F1 over words, as SQuAD's own script counts them; the best of several answers counts."""
        return exact_and_f1([one.text if one else "" for one in answers], [right_answers(one) for one in records])


@dataclass(frozen=True)
class Window:
    """A question with so much of its context as fits."""

    ids: list[int]
    first: int
    """Which of them is the first of the context."""
    offsets: list[tuple[int, int]]
    """Where in the context each of its tokens begins and ends, in characters."""


def rows_of(examples: Sequence[Arrays]) -> dict[str, Tensor]:
    """The ids of some examples as a table, and which are no padding."""
    import torch

    rows = [one["ids"] for one in examples]
    return {
        "inputs": torch.from_numpy(padded(rows, 0)),  # [row, token]
        "mask": torch.from_numpy(padded([row * 0 + 1 for row in rows], 0)).bool(),
    }


def listed_words(record: Record, field: str) -> list[str]:
    """A list of words, or a text of them with spaces between."""
    given = record.get(field)
    if isinstance(given, str):
        given = given.split()
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, str) and one for one in given):
        raise CutawayError(
            f"The field {field!r} must be a list of words, or a text of words with spaces between, not {given!r:.40}."
        )
    return list(given)


def right_answers(record: Record) -> list[str]:
    """The answers that count as right, of a text or a list of them; an empty one where there is none."""
    given = record.get("answer")
    listed = given if isinstance(given, list | tuple) else [given or ""]
    if not all(isinstance(one, str) for one in listed):
        raise CutawayError(f"The field 'answer' must be a text or a list of texts, not {given!r:.40}.")
    return [one.strip() for one in listed] or [""]


ENTITY = re.compile(r"([BIES])-(.+)")


def entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """The entities that tags mark: kind, first word and last. `I-` after another kind begins one, as CoNLL has it."""
    found: list[tuple[str, int, int]] = []
    before = ""
    for at, tag in enumerate(tags):
        match = ENTITY.fullmatch(tag)
        kind = match[2] if match else ""
        if match and (match[1] in "BS" or kind != before):
            found.append((kind, at, at))
        elif match:
            found[-1] = (kind, found[-1][1], at)
        before = kind
    return found
