"""Piano performances: MIDI files as rows of events, in many keys and tempos, each event to be predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cutaway.errors import CutawayError
from cutaway.tasks.task import Arrays, Batch, Example, LeftOut, Loss, Record, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cutaway.text.tokenizer import Tokenizer

PIECES = ("file", "folder")


@dataclass(frozen=True)
class Performances(Task):
    """`<|endoftext|> events`, every one of them to be predicted (see cutaway.music.events). A file is a performance.

    While it is learned from, each window is heard in another key and at another tempo.
    """

    transpose: int = 3
    """The most semitones that a window is moved up or down."""
    tempo: int = 5
    """The most that a window is slowed down or sped up, in percent."""
    piece: str = "file"
    """What is held out as one: a file, or a folder whose files are performances of one piece."""

    name: ClassVar[str] = "performance"
    verb: ClassVar[str] = "compose"
    fields: ClassVar[tuple[str, ...]] = ("midi",)
    packed: ClassVar[bool] = True
    ahead: ClassVar[int] = 1
    reach: ClassVar[int] = 1_024

    def __post_init__(self) -> None:
        if not 0 <= self.transpose <= 12:
            raise CutawayError(f"A window is transposed by 0 to 12 semitones, not by {self.transpose}.")
        if not 0 <= self.tempo <= 50:
            raise CutawayError(f"A window's tempo is changed by 0 to 50 percent, not by {self.tempo}.")
        if self.piece not in PIECES:
            raise CutawayError(f"A piece is a {' or a '.join(PIECES)}, not {self.piece!r}.")

    def own_tokenizer(self) -> Tokenizer:
        from cutaway.music.vocabulary import event_tokenizer

        return event_tokenizer()

    def known_by(self, record: Record) -> Any:
        return record["midi"] if self.piece == "file" else record["place"]

    def examples(self, record: Record, tokenizer: Tokenizer) -> list[Example]:
        from cutaway.music.events import encode
        from cutaway.music.midi import parse_midi

        data = record.get("midi")
        if not isinstance(data, bytes):
            raise CutawayError("A record for performance is the bytes of a MIDI file, under the name 'midi'.")
        try:
            played = parse_midi(data, str(record.get("name", "a MIDI file")))
        except CutawayError as error:
            raise LeftOut(str(error), "unusable", told=True) from None
        return [Example([tokenizer.end, *encode(played).tolist()])]

    def varied(self, example: Arrays, number: int) -> Arrays:
        import numpy as np

        from cutaway.music.augment import varied

        if not (self.transpose or self.tempo):
            return example
        ids = example["ids"].astype(np.int64)
        return {"ids": varied(ids, self.transpose, self.tempo / 100, np.random.default_rng(number))}

    def collate(self, examples: Sequence[Arrays]) -> Batch:
        from cutaway.tasks.token_loss import next_tokens

        return next_tokens(examples)

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor], scale: float = 1.0) -> Loss:
        from cutaway.music.events import OFF, ON
        from cutaway.tasks.token_loss import token_loss

        targets = batch["targets"]
        notes = ((targets >= ON) & (targets < OFF)).sum()
        return Loss(token_loss(model, batch["inputs"], targets, scale), {"notes": notes})

    def measures(self, loss: float, means: Mapping[str, float]) -> Mapping[str, float]:
        """The loss of all that it takes to play a note: what can be compared between encodings."""
        notes = means.get("notes", 0.0)
        return {"loss_per_note": loss / notes} if notes else {}
