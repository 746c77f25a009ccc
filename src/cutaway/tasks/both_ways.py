"""ELMo's pre-training: two language models at once, one predicts the next word, the other the word before.

    <S> the words of some sentences </S>

The loss of a word is the mean of both: how surprising it is after those before it, and before those after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cutaway.errors import CutawayError
from cutaway.tasks.masked import SENTENCE
from cutaway.tasks.task import Arrays, Batch, Example, LeftOut, Loss, Record, Task, padded, require_limit, text

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cutaway.text.tokenizer import Tokenizer

USUAL = 256
"""How many characters, with the marks of their words, an example has at most, where nobody says."""
IGNORED = -100


@dataclass(frozen=True)
class BothWays(Task):
    """The next word and the word before, by two language models."""

    limit: int | None = None
    """The longest an example may be, in characters, with the marks of its words; None: 256, or the model's context."""

    name: ClassVar[str] = "both directions"
    fields: ClassVar[tuple[str, ...]] = ("text",)
    arrays: ClassVar[Mapping[str, str]] = {"words": "i4"}
    verb: ClassVar[str] = "embed"

    def __post_init__(self) -> None:
        require_limit(self, least=16)

    @property
    def new_model(self) -> Mapping[str, Any]:
        return {"kind": "elmo"}

    def learn_tokenizer(self, texts: Iterable[str], size: int, progress: Callable[[int], None] | None) -> Tokenizer:
        from cutaway.text.spelled_words import SpelledWords

        return SpelledWords.learn(texts, size, progress)

    def shape_settings(self, tokenizer: Tokenizer) -> dict[str, Any]:
        return {"words": len(spelled(tokenizer).listed)}

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        """A document as texts of whole sentences, as many as fit; a sentence that is too long is divided."""
        document = record.get("text")
        if isinstance(document, str) and not document.strip():
            raise LeftOut("The document is empty.", reason="empty")
        pieces = spelled(tokenizer)
        made = []
        for part in parts(SENTENCE.split(text(record, "text", self)), pieces, (self.limit or USUAL) - 2):
            ids = pieces.frame(part)
            made.append(Example(ids, {"words": pieces.words_of(ids)}))
        if not made:
            raise LeftOut("The document has no words.", reason="empty")
        return made

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        import torch

        words = [example["words"] for example in examples]
        tensors = {
            "inputs": torch.from_numpy(padded([example["ids"] for example in examples], 0)),  # [row, character]
            "words": torch.from_numpy(padded(words, IGNORED)),  # [row, word]
        }
        return Batch(tensors, tokens=sum(map(len, words)), count=sum(len(one) - 1 for one in words))

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        """Half of both sums: over all words but the first what comes next, over all but the last what came before."""
        import torch.nn.functional as F

        reader: Any = model
        if not hasattr(reader, "both"):
            raise CutawayError(
                "Both directions are learned by an ELMo, and this model is another: leave model.from out."
            )
        before, after, _ = reader.both(batch["inputs"])  # [row, word, width] each
        words = batch["words"]

        def one_way(vectors: Tensor, wanted: Tensor) -> Tensor:
            asked = wanted != IGNORED
            return F.cross_entropy(reader.output(vectors[asked]).float(), wanted[asked], reduction="sum")

        there = words[:, 1:] != IGNORED  # where a word has another after it
        forwards = one_way(before[:, :-1], words[:, 1:])
        backwards = one_way(after[:, 1:], words[:, :-1].where(there, IGNORED))
        metrics = {"forwards": forwards.detach(), "backwards": backwards.detach()}
        return Loss((forwards + backwards) / 2 * scale, metrics)


def spelled(tokenizer: Tokenizer) -> Any:
    """The tokenizer, if it spells words."""
    if not hasattr(tokenizer, "words_of"):
        raise CutawayError(
            "Both directions are learned from words spelled by characters, and this vocabulary is another."
        )
    return tokenizer


def parts(sentences: Iterable[str], tokenizer: Any, room: int) -> Iterator[list[int]]:
    """The words of some sentences, at most so many characters together, without the white space between them."""
    waiting: list[int] = []
    for sentence in sentences:
        ids = tokenizer.encode(sentence)
        words = [ids[a:b] for a, b in tokenizer.spans(ids)]
        if waiting and len(waiting) + sum(map(len, words)) > room:
            yield waiting
            waiting = []
        for word in words:
            if waiting and len(waiting) + len(word) > room:
                yield waiting
                waiting = []
            waiting = [*waiting, *(word if len(word) <= room else [*word[: room - 1], word[-1]])]
    if waiting:
        yield waiting
