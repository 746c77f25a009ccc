"""Labels on a head: a linear layer on the vector of the last token; transformers' GPT2ForSequenceClassification."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cutaway import checkpoint
from cutaway.checkpoint import huggingface, names
from cutaway.checkpoint.files import Lazy
from cutaway.checkpoint.shape import CONFIG, read_huggingface
from cutaway.errors import CutawayError
from cutaway.models.architecture import architecture, encoder
from cutaway.models.gpt2.model import GPT
from cutaway.tasks import Arrays, Batch, ClassTask, Loss, Task, load_task, save_task
from cutaway.tasks.encoder_head import EncoderClassifier, read_encoder_classifier
from cutaway.tasks.task import padded

if TYPE_CHECKING:
    from cutaway.text.tokenizer import Tokenizer

SCORE = huggingface.SCORE


class Classifier(nn.Module):
    """A model with a head of scores in place of its output. It takes the model over: an untied output matrix goes."""

    def __init__(self, body: nn.Module, outputs: int):
        super().__init__()
        if not isinstance(body, GPT):
            kind = architecture(cast(Any, body).config.kind).title
            raise CutawayError(f"The head of scores for classes stands on a GPT-2, and this model is a {kind}.")
        gpt = body
        gpt.config, gpt.output = gpt.config.but(tied=True), None
        self.gpt = gpt
        weight = gpt.token_embedding.weight
        self.score = nn.Linear(gpt.config.width, outputs, bias=False, device=weight.device, dtype=weight.dtype)
        if not weight.is_meta:
            nn.init.normal_(self.score.weight, std=0.02)

    @property
    def body(self) -> GPT:
        """The model under the head (see models/architecture.py)."""
        return self.gpt

    def forward(self, ids: Tensor, last: Tensor) -> Tensor:
        """Ids [row, token], padded on the right, and where each row's own tokens end [row] -> scores [row, output]."""
        hidden = self.gpt.read(ids)  # [row, token, width]
        return self.score(hidden[torch.arange(len(ids), device=ids.device), last])


def by_record(scores: Tensor, task: ClassTask) -> Tensor:
    """The scores of the rows [row, output], brought together for each record: [record, class].

    Rows of one output are choices, side by side; rows of several are readings of the same record, and are added.
    """
    records = scores.unflatten(0, (-1, task.rows))  # [record, row of it, output]
    return records[..., 0] if task.outputs == 1 else records.sum(dim=1)


def labelled_rows(examples: Sequence[Arrays], task: ClassTask) -> Batch:
    """`inputs` [row, token], where each row's own tokens end (`last`), and the class of its record (`labels`)."""
    rows = [example["ids"] for example in examples]
    tensors = {
        "inputs": torch.from_numpy(padded(rows, 0)),
        "last": torch.tensor([len(row) - 1 for row in rows]),
        "labels": torch.tensor([int(example["label"][0]) for example in examples]),
    }
    return Batch(tensors, tokens=sum(map(len, rows)), count=len(rows) // task.rows)


def label_loss(scores: Tensor, labels: Tensor, task: ClassTask, scale: float = 1.0) -> Loss:
    """Cross-entropy, added up over records: scores [row, output], and the class of each row's record [row]."""
    found, wanted = by_record(scores, task), labels[:: task.rows]
    right = (found.detach().argmax(dim=1) == wanted).sum()
    return Loss(F.cross_entropy(found.float(), wanted) * (len(wanted) * scale), {"accuracy": right})


def write_classifier(
    classifier: Classifier,
    tokenizer: Tokenizer | None,
    task: ClassTask,
    folder: str | Path,
    dtype: torch.dtype | None = None,
) -> None:
    """Write a folder that `read_classifier` and transformers both read; one that is there is replaced whole or not."""
    kind = dtype or classifier.score.weight.dtype
    tensors = [*names.stored_tensors(classifier.gpt), (SCORE, classifier.score.weight.detach())]
    with huggingface.writing(Path(folder), tensors, kind) as new:
        if tokenizer is not None:
            tokenizer.save(new)
        config = json.dumps(describe(classifier, task, kind), indent=2, ensure_ascii=False)
        (new / CONFIG).write_text(config + "\n", encoding="utf-8")
        save_task(task, new)


def describe(classifier: Classifier, task: ClassTask, dtype: torch.dtype) -> dict[str, Any]:
    """`config.json` for a classifier."""
    config = classifier.gpt.config
    padding = getattr(task, "padding", None)
    return {
        **huggingface.describe(config, dtype),
        "architectures": ["GPT2ForSequenceClassification"],
        **task.label_tables(),
        # Never the last of a row, so that transformers finds each row's last token.
        "pad_token_id": config.end if padding is None else padding,
    }


def read_classifier(
    folder: Path, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> Classifier | EncoderClassifier:
    """The classifier in a folder, ready to run."""
    config = read_huggingface(folder)
    if encoder(architecture(config.kind)):
        return read_encoder_classifier(huggingface.read_model(folder, config, device, dtype), folder)
    config = config.but(tied=True)
    source = huggingface.find_weights(folder)
    tensors = huggingface.read_tensors(source)
    if SCORE not in tensors:
        raise CutawayError(f"{folder} is a language model, not a classifier: it has no {SCORE}.")
    body = Lazy({name: read for name, read in tensors.readers.items() if name not in (SCORE, "lm_head.weight")})
    weight = tensors[SCORE]
    if weight.ndim != 2 or weight.shape[1] != config.width:
        raise CutawayError(f"{source}: {SCORE} has the shape {list(weight.shape)}, and the width is {config.width}.")
    if not names.finite(weight):
        raise CutawayError(
            f"{source}: {SCORE} has NaN or infinite values: the file is damaged, or training went wrong."
        )
    classifier = Classifier(names.build(config, body, str(source), device, dtype), outputs=weight.shape[0])
    with torch.no_grad():
        classifier.score.weight.copy_(weight)
    return classifier.eval()


def read_base(folder: Path, task: Task, change: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """The model in a folder to go on from, `change`d; under its own head, if that is for this very task."""
    if not ((folder / CONFIG).is_file() and SCORE in huggingface.read_tensors(huggingface.find_weights(folder))):
        return task.with_head(change(checkpoint.read_model(folder)))
    classifier = cast(Classifier, read_classifier(folder))
    body, own = change(classifier.gpt), load_task(folder)
    own = own if task.limit is None else own.within(task.limit)
    if classifier.score.out_features != task.outputs or own.settings() != task.settings():
        return task.with_head(body)
    classifier.gpt = cast(GPT, body)
    return classifier
