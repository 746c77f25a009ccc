"""Tasks whose answer is written: plain text, a translation, a summary. One sequence each, the answer at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cutaway.errors import CutawayError
from cutaway.tasks.scores import Score, bleu, rouge
from cutaway.tasks.task import (
    Arrays,
    Batch,
    Example,
    LeftOut,
    Loss,
    Record,
    Seen,
    Task,
    require_limit,
    require_separators,
    text,
    token,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cutaway.language_model import LanguageModel
    from cutaway.tasks.answer import Answer
    from cutaway.text.tokenizer import Tokenizer

Progress = Callable[[int, int], None]
"""Told how many records are done, and of how many."""


class Written(Task):
    """What the tasks with a written answer share: every token of it is predicted from those before it."""

    ahead: ClassVar[int] = 1
    arrays: ClassVar[Mapping[str, str]] = {"answer": "u4"}
    verb: ClassVar[str] = "generate"

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        from cutaway.tasks.token_loss import next_tokens

        return next_tokens(examples)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        from cutaway.tasks.token_loss import token_loss

        smoothing = self.smoothing if model.training else 0.0  # held-out data is measured by the plain loss
        return Loss(token_loss(model, batch["inputs"], batch["targets"], scale, smoothing))

    def see(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Seen:
        from cutaway.tasks.token_loss import IGNORED

        reader: Any = model
        matrix = reader.output_matrix
        hidden = reader.read(batch["inputs"])  # [row, token, width]
        return Seen(hidden, batch["targets"] != IGNORED, lambda vectors: vectors @ matrix.T, len(matrix))

    def seen_loss(self, model: nn.Module, seen: Seen, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        from cutaway.tasks.token_loss import token_loss

        smoothing = self.smoothing if model.training else 0.0
        return Loss(token_loss(model, batch["inputs"], batch["targets"], scale, smoothing, seen.hidden))

    def check_teacher(self, shape: Any, name: str) -> None:
        from cutaway.models.architecture import architecture

        made = architecture(shape.kind)
        if shape.kind != "gpt2":
            raise CutawayError(f"The teacher {name} is a {made.title}: a student learns {self.name} from a GPT-2.")

    @property
    def smoothing(self) -> float:
        """Label smoothing: the share of each target's weight that all tokens divide between them."""
        return 0.0

    def question(self, example: Arrays) -> tuple[list[int], list[int]] | None:
        ids, answer = example["ids"].tolist(), int(example["answer"][0])
        return ids[:answer], ids[answer:]


class Pair(Written):
    """What translations and summaries share: a text in, and one out that a record has the right answer to."""

    @property
    def two_texts(self) -> bool:
        return len(self.specials) == 1

    def shape_settings(self, tokenizer: Tokenizer) -> dict[str, Any]:
        return {"start_token": token(tokenizer, self.specials[0], self)}

    def answer(
        self, model: LanguageModel, records: Sequence[Record], beams: int = 4, progress: Progress | None = None
    ) -> list[Answer]:
        from cutaway.tasks.answer import answer_records

        return answer_records(model, self, records, beams, progress)

    def score(self, answers: Sequence[Answer], records: Sequence[Record], beams: int = 4) -> Score:
        measured = self.measure([one.text for one in answers], [text(one, self.fields[1], self) for one in records])
        search = "greedy" if beams == 1 else f"{beams} beams"
        too_long, cut = sum(not one.source for one in answers), sum(one.cut > 0 for one in answers)
        unended = sum(not one.whole for one in answers)
        notes = f"{too_long:,} too long and counted as empty, {cut:,} read without their end"
        return replace(measured, how=f"{measured.how}; {search}; {notes}, {unended:,} answers cut off")

    def measure(self, answers: list[str], references: list[str]) -> Score:
        raise NotImplementedError

    def prompt_and_cut(self, record: Record, tokenizer: Tokenizer) -> tuple[list[int], int]:
        """The prompt that a record's text makes, and how many tokens of the text were cut off for it."""
        raise NotImplementedError

    def prompt(self, record: Record, tokenizer: Tokenizer) -> list[int]:
        """What stands before the answer; refused if no room is left for one."""
        return self.prompt_and_cut(record, tokenizer)[0]


@dataclass(frozen=True)
class Language(Written):
    """Text and nothing else: `<|endoftext|> text`, every token of it to be predicted. Documents may have any length."""

    name: ClassVar[str] = "language"
    fields: ClassVar[tuple[str, ...]] = ("text",)
    arrays: ClassVar[Mapping[str, str]] = {}
    packed: ClassVar[bool] = True

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        document = record.get("text")
        if isinstance(document, str) and not document.strip():
            raise LeftOut("The document is empty.", reason="empty")
        text(record, "text", self)  # refuses what is no text; but white space around one belongs to it
        return [Example([tokenizer.end, *tokenizer.encode(record["text"])])]

    def prompt(self, record: Record, tokenizer: Tokenizer) -> list[int]:
        return tokenizer.encode(str(record["text"]))

    def question(self, example: Arrays) -> tuple[list[int], list[int]] | None:
        return None

    def answer(
        self, model: LanguageModel, records: Sequence[Record], beams: int = 4, progress: Progress | None = None
    ) -> list[Answer]:
        raise CutawayError("A model trained for language answers no records: measure its perplexity.")


@dataclass(frozen=True)
class Translation(Pair):
    """`source <|translate|> target <|endoftext|>`; the target and the end token count in the loss.

    A pair longer than the limit is left out and counted. With `back` each pair is learned in both directions, the way
    back under a separator of its own: one model, two translators.
    """

    separator: str = "<|translate|>"
    """Stands between source and target."""
    back: str = ""
    """If given, stands between target and source: the pair read the other way round is learned as well."""
    limit: int | None = None
    """The longest a pair may be, in tokens, with its separators; None takes the model's context."""
    source_end: str = ""
    """If given, a special token that ends the source, before the separator: Marian's `</s>`."""
    smoothing: float = 0.0
    """Label smoothing in training: the share of each target's weight that all tokens divide between them."""

    name: ClassVar[str] = "translation"
    verb: ClassVar[str] = "translate"
    fields: ClassVar[tuple[str, ...]] = ("source", "target")

    def __post_init__(self) -> None:
        require_separators(self)
        require_limit(self, least=4)
        if not 0 <= self.smoothing < 1:
            raise CutawayError(f"Label smoothing must be at least 0 and below 1, not {self.smoothing}.")

    @property
    def specials(self) -> tuple[str, ...]:
        return (self.separator, self.back) if self.back else (self.separator,)

    @property
    def rows(self) -> int:
        return len(self.specials)

    def turned(self) -> Self:
        """The same model seen as a translator in the other direction."""
        if not self.back:
            raise CutawayError(f"This model translates in one direction only: its one separator is {self.separator}.")
        return replace(self, separator=self.back, back=self.separator)

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        source = self.source(record, tokenizer)
        target = tokenizer.target.encode(text(record, "target", self))
        length = len(source) + len(target) + 2
        if self.limit is not None and length > self.limit:
            raise LeftOut(f"The pair is {length:,} tokens long, and at most {self.limit:,} fit.")
        ways = [(source, target), (target, source)]
        marks = [token(tokenizer, special, self) for special in self.specials]
        return [join(one, mark, other, tokenizer.end) for mark, (one, other) in zip(marks, ways, strict=False)]

    def prompt_and_cut(self, record: Record, tokenizer: Tokenizer) -> tuple[list[int], int]:
        """The source and its separator, nothing cut; refused if no room is left for a translation."""
        ids = [*self.source(record, tokenizer), token(tokenizer, self.separator, self)]
        if self.limit is not None and len(ids) >= self.limit:
            raise LeftOut(
                f"A text of {len(ids) - 1:,} tokens is too long to be translated: "
                f"with its translation it must fit into {self.limit:,}. Split it into sentences."
            )
        return ids, 0

    def source(self, record: Record, tokenizer: Tokenizer) -> list[int]:
        ids = tokenizer.encode(text(record, "source", self))
        return [*ids, token(tokenizer, self.source_end, self)] if self.source_end else ids

    def measure(self, answers: list[str], references: list[str]) -> Score:
        return bleu(answers, references)


@dataclass(frozen=True)
class Summary(Pair):
    """`article <|summarize|> summary <|endoftext|>`; the summary and the end token count in the loss.

    Of an article that is too long the end is cut off, so that `room` tokens are left for the summary (or as many as
    it has, if it has more); what was cut is counted.
    """

    separator: str = "<|summarize|>"
    """Stands between article and summary."""
    room: int = 64
    """How many tokens are kept free for the summary, so that articles are cut alike in training and in use."""
    limit: int | None = None
    """The longest article and summary may be together, in tokens, with separators; None takes the model's context."""
    one_line: bool = False
    """Whether breaks and runs of spaces in an article become single spaces, as in data with an article on each line."""

    name: ClassVar[str] = "summary"
    verb: ClassVar[str] = "summarize"
    fields: ClassVar[tuple[str, ...]] = ("article", "summary")

    def __post_init__(self) -> None:
        require_separators(self)
        if self.room < 1:
            raise CutawayError(f"The room for a summary must be 1 token or more, not {self.room}.")
        if self.limit is not None and self.limit < self.room + 3:
            raise CutawayError(
                f"The limit of {self.limit:,} tokens leaves no room for an article besides a summary of {self.room:,}: "
                "make the context longer, or the task's room smaller."
            )

    @property
    def specials(self) -> tuple[str, ...]:
        return (self.separator,)

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        article, summary = self.article(record, tokenizer), tokenizer.encode(text(record, "summary", self))
        keep = self.longest_article(len(summary))
        if keep is not None and keep < 1:
            raise LeftOut(
                f"The summary is {len(summary):,} tokens long, and {self.limit:,} must hold the article, too."
            )
        mark = token(tokenizer, self.separator, self)
        return [join(article[:keep], mark, summary, tokenizer.end, cut=excess(article, keep))]

    def prompt_and_cut(self, record: Record, tokenizer: Tokenizer) -> tuple[list[int], int]:
        """The article, cut as in training, and its separator; and how many tokens of the article were cut off."""
        article, keep = self.article(record, tokenizer), self.longest_article(0)
        return [*article[:keep], token(tokenizer, self.separator, self)], excess(article, keep)

    def measure(self, answers: list[str], references: list[str]) -> Score:
        return rouge(answers, references)

    def article(self, record: Record, tokenizer: Tokenizer) -> list[int]:
        whole = text(record, "article", self)
        return tokenizer.encode(" ".join(whole.split()) if self.one_line else whole)

    def longest_article(self, summary: int) -> int | None:
        return None if self.limit is None else self.limit - 2 - max(summary, self.room)


def join(source: list[int], separator: int, target: list[int], end: int, cut: int = 0) -> Example:
    """Source, separator, target, end; the loss begins with the target."""
    return Example([*source, separator, *target, end], {"answer": [len(source) + 1]}, cut)


def excess(ids: list[int], keep: int | None) -> int:
    """How many tokens go when `keep` stay."""
    return 0 if keep is None else max(0, len(ids) - keep)
