"""BERT's pre-training: words are hidden and guessed from both sides, and a pair of passages is judged: does one follow?

    [CLS] first passage [SEP] second passage [SEP]

Of the tokens 15 % are to be guessed; of these 80 % become [MASK], 10 % any other token, and 10 % stay as they are.
For half of the pairs the second passage is one of another text. Both are drawn anew each time (`collate`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from cutaway.errors import CutawayError
from cutaway.tasks.task import Arrays, Batch, Example, LeftOut, Loss, Record, Seen, Task, padded, require_limit, text

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cutaway.text.tokenizer import Tokenizer

USUAL = 128
"""How many tokens a pair has at most, where nobody says."""
IGNORED = -100
SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
"""Where one sentence ends and the next begins, about."""


@dataclass(frozen=True)
class MaskedWords(Task):
    """Words behind [MASK], and whether the second passage follows the first."""

    limit: int | None = None
    """The longest an example may be, in tokens, with [CLS] and [SEP]; None: 128, or the model's context."""
    next_sentence: bool = True
    """Whether pairs are read, and judged; else one passage: `[CLS] passage [SEP]`."""
    percent: int = 15
    """How many of a hundred tokens are to be guessed."""

    name: ClassVar[str] = "masked words"
    fields: ClassVar[tuple[str, ...]] = ("text",)
    specials: ClassVar[tuple[str, ...]] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    arrays: ClassVar[Mapping[str, str]] = {"second": "u4", "marks": "i4"}
    verb: ClassVar[str] = "fill"

    def __post_init__(self) -> None:
        require_limit(self, least=8)
        if not 1 <= self.percent <= 99:
            raise CutawayError(f"percent must lie between 1 and 99, not {self.percent}.")

    @property
    def new_model(self) -> Mapping[str, Any]:
        return {"kind": "bert", "head": "pretraining" if self.next_sentence else "words"}

    def learn_tokenizer(self, texts: Iterable[str], size: int, progress: Callable[[int], None] | None) -> Tokenizer:
        from cutaway.text.wordpiece import WordPiece

        return WordPiece.train(texts, size, progress=progress)

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        """A document as pairs of passages, each pair as long as it may be; every token of it in one of them."""
        document = record.get("text")
        if isinstance(document, str) and not document.strip():
            raise LeftOut("The document is empty.", reason="empty")
        if not hasattr(tokenizer, "frame"):
            raise CutawayError("Masked words are learned with a WordPiece vocabulary, and this one is another.")
        sentences = tokenizer.encode_batch([one for one in SENTENCE.split(text(record, "text", self)) if one.strip()])
        pieces: Any = tokenizer
        marks = {"marks": [*(pieces.special(role) for role in ("cls", "sep", "mask")), len(tokenizer)]}
        made = []
        room = (self.limit or USUAL) - (3 if self.next_sentence else 2)
        for first, second in passages(sentences, room):
            if self.next_sentence:
                ids = tokenizer.frame(first, second)
                made.append(Example(ids, {"second": [len(first) + 2], **marks}))
            else:
                made.append(Example(tokenizer.frame([*first, *second]), {"second": [0], **marks}))
        if not made:
            raise LeftOut("The document is too short for a pair of passages.", reason="too short")
        return made

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        import torch

        rows, segments, follows = pairs(examples) if self.next_sentence else single(examples)
        start, end, mask, vocabulary = (int(one) for one in examples[0]["marks"])
        ids = torch.from_numpy(padded(rows, 0))
        attended = torch.from_numpy(padded([row * 0 + 1 for row in rows], 0)).bool()
        hidden = attended & (ids != start) & (ids != end) & (torch.rand(ids.shape) < self.percent / 100)
        if not bool(hidden.any()):  # there is always something to guess
            hidden[0, 1] = True
        lot = torch.rand(ids.shape)
        inputs = torch.where(hidden & (lot < 0.8), mask, ids)
        inputs = torch.where(hidden & (lot >= 0.9), torch.randint(vocabulary, ids.shape), inputs)
        tensors = {
            "inputs": inputs,
            "targets": torch.where(hidden, ids, IGNORED),
            "segments": torch.from_numpy(padded(segments, 0)),
            "mask": attended,
            "follows": torch.tensor(follows),
        }
        return Batch(tensors, tokens=int(attended.sum()), count=int(hidden.sum()))

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        """The mean over the hidden words, plus the mean over the pairs, times how many words are hidden."""
        return self.seen_loss(model, self.see(model, batch), batch, scale)

    def see(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Seen:
        reader: Any = model
        hidden = reader.read(batch["inputs"], batch["segments"], batch["mask"])  # [row, token, width]
        return Seen(hidden, batch["mask"], reader.score, reader.config.vocabulary)

    def seen_loss(self, model: nn.Module, seen: Seen, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        import torch.nn.functional as F

        reader: Any = model
        hidden = seen.hidden
        asked = batch["targets"] != IGNORED
        scores, wanted = reader.score(hidden[asked]).float(), batch["targets"][asked]
        total = F.cross_entropy(scores, wanted, reduction="sum")
        metrics = {"accuracy": (scores.detach().argmax(-1) == wanted).sum()}
        if self.next_sentence:
            judged = reader.next_sentence(reader.pool(hidden)).float()  # [row, 2]; 0 is "follows", as in BERT
            total = total + F.cross_entropy(judged, 1 - batch["follows"]) * len(wanted)
            right = (judged.detach().argmax(-1) == 1 - batch["follows"]).float().mean() * len(wanted)
            metrics["next_sentence"] = right
        return Loss(total * scale, metrics)

    def check_teacher(self, shape: Any, name: str) -> None:
        if not getattr(shape, "scores_words", False):
            raise CutawayError(
                f"The teacher {name} has no head that scores words, so it cannot teach masked words: give a BERT or "
                "DistilBERT for masked words (BertForMaskedLM)."
            )

    def with_head(self, model: nn.Module) -> nn.Module:
        from cutaway.models.bert.heads import with_head

        return with_head(model, "pretraining" if self.next_sentence else "words")


def passages(sentences: Iterable[Sequence[int]], room: int) -> Iterator[tuple[list[int], list[int]]]:
    """Sentences in twos of passages, of so many tokens at most together; a longer sentence is divided."""
    waiting: list[list[int]] = []
    for sentence in sentences:
        for at in range(0, len(sentence), room // 2):
            piece = list(sentence[at : at + room // 2])
            if sum(map(len, waiting)) + len(piece) > room:
                yield from halved(waiting)
                waiting = []
            waiting.append(piece)
    yield from halved(waiting)


def halved(pieces: list[list[int]]) -> Iterator[tuple[list[int], list[int]]]:
    """The pieces as two passages of about equal length; fewer than two are none."""
    if len(pieces) < 2:
        return
    half, done, at = sum(map(len, pieces)) / 2, len(pieces[0]), 1
    while at < len(pieces) - 1 and done + len(pieces[at]) / 2 < half:
        done, at = done + len(pieces[at]), at + 1
    yield [*chain(*pieces[:at])], [*chain(*pieces[at:])]


def single(examples: Sequence[Arrays]) -> tuple[list[Any], list[Any], list[int]]:
    """Rows as they are: all one segment."""
    rows = [example["ids"] for example in examples]
    return rows, [row * 0 for row in rows], [1] * len(rows)


def pairs(examples: Sequence[Arrays]) -> tuple[list[Any], list[Any], list[int]]:
    """The rows, their segments, and which of them follow: about half get the second passage of another row.

    A row that would become longer than any there is gets that passage's beginning, and its end.
    """
    import numpy as np
    import torch

    count, longest = len(examples), max(len(example["ids"]) for example in examples)
    rows, segments, follows = [], [], []
    for number, example in enumerate(examples):
        ids, at = example["ids"].astype(np.int64), int(example["second"][0])
        other = int(torch.randint(1, max(2, count), ()).item())
        if count > 1 and bool(torch.rand(()) < 0.5):
            strange = examples[(number + other) % count]
            rest = strange["ids"][int(strange["second"][0]) :].astype(np.int64)
            rest = np.concatenate([rest[: max(1, longest - at - 1)][: len(rest) - 1], rest[-1:]])
            ids = np.concatenate([ids[:at], rest])
            follows.append(0)
        else:
            follows.append(1)
        rows.append(ids)
        segments.append((np.arange(len(ids)) >= at).astype(np.int64))
    return rows, segments, follows
