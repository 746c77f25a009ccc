"""Labels on an encoder: a linear layer on the pooled vector of [CLS]; transformers' BertForSequenceClassification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from cutaway.checkpoint import huggingface, names
from cutaway.checkpoint.shape import CONFIG
from cutaway.errors import CutawayError
from cutaway.models.bert.heads import with_head
from cutaway.models.bert.model import Bert
from cutaway.tasks.task import save_task

if TYPE_CHECKING:
    from cutaway.tasks.classes import ClassTask
    from cutaway.tasks.marks import Marks
    from cutaway.text.tokenizer import Tokenizer


class EncoderClassifier(nn.Module):
    """An encoder with a head of scores for a text, or for a pair of them; asked as `Classifier` (head.py) is."""

    def __init__(self, body: nn.Module, outputs: int):
        super().__init__()
        self.bert = with_head(body, "classes", outputs)

    @property
    def body(self) -> Bert:
        """The model under the head (see models/architecture.py)."""
        return self.bert

    @property
    def score(self) -> nn.Linear:
        return self.bert.classifier

    def forward(self, ids: Tensor, last: Tensor) -> Tensor:
        """Ids [row, token], padded on the right, and where each row's own tokens end [row] -> scores [row, output]."""
        return self.bert(ids, mask=torch.arange(ids.shape[1], device=ids.device) <= last[:, None])


def write_encoder_classifier(
    classifier: EncoderClassifier,
    tokenizer: Tokenizer | None,
    task: ClassTask,
    folder: str | Path,
    dtype: torch.dtype | None = None,
) -> None:
    """Write a folder that `read_classifier` and transformers both read."""
    write_encoder(classifier.bert, tokenizer, task, folder, dtype)


def write_encoder(
    model: nn.Module,
    tokenizer: Tokenizer | None,
    task: ClassTask | Marks,
    folder: str | Path,
    dtype: torch.dtype | None = None,
) -> None:
    """Write an encoder under its head, with the names of the task's classes."""
    encoder = cast(Bert, model)
    kind = dtype or encoder.token_embedding.weight.dtype
    with huggingface.writing(Path(folder), list(names.stored_tensors(encoder)), kind) as new:  # type: ignore[arg-type]
        if tokenizer is not None:
            tokenizer.save(new)
        config = huggingface.describe(encoder.config, kind) | task.label_tables()  # type: ignore[arg-type]
        (new / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        save_task(task, new)


def read_encoder_classifier(model: Any, folder: Path) -> EncoderClassifier:
    """The classifier that a folder's model is."""
    if model.config.head != "classes":
        raise CutawayError(f"{folder} is a BERT without a head for classes: train one for classification from it.")
    return EncoderClassifier(model, model.config.labels).eval()
