"""A look at what the model writes while it learns."""

from __future__ import annotations

from typing import Any

import torch

from cutaway.decoding.generate import generate
from cutaway.decoding.settings import Settings
from cutaway.models.architecture import context_of
from cutaway.runtime.torch_batch import torch_runtime
from cutaway.tasks import Task
from cutaway.text.tokenizer import Tokenizer
from cutaway.train.data.shards import Dataset, Split
from cutaway.train.events import Sampled

MOST = 120
"""Tokens in a sample."""

FEW = 100
"""Of fewer documents the end token is hardly learned, and what a model writes after it is left to chance."""


def opening(split: Split, tokenizer: Tokenizer) -> str:
    """How the text begins: the first words of its first line."""
    text = tokenizer.decode([token for token in split.tokens[:64].tolist() if token != tokenizer.end])
    return " ".join(next((line for line in text.splitlines() if line.strip()), "").split()[:3])


@torch.no_grad()
def sample(
    model: Any, tokenizer: Tokenizer, task: Task, dataset: Dataset, step: int, number: int, prompt: str, seed: int
) -> Sampled | None:
    """What the model makes of the prompt; or, where answers are learned, of the number-th held-out record.

    None where the task writes nothing.
    """
    if not task.ahead:
        return None
    context = context_of(model.config)
    split = dataset.held if len(dataset.held) else dataset.train
    reference = None
    if task.packed:
        few = len(dataset.train) < FEW and task.own_tokenizer() is None  # what is no text has no first words
        prompt = prompt or (opening(dataset.train, tokenizer) if few else "")
        given = tokenizer.encode(prompt)[: context - 1]
        settings = Settings(max_tokens=min(MOST, context - max(1, len(given))), seed=seed)
    else:
        question = task.question(split.example(number % len(split)))
        if question is None:
            return None
        given, after = question
        reference = tokenizer.decode(after[: after.index(tokenizer.end)]).strip()  # of many answers, the first
        settings = Settings(max_tokens=min(MOST, context - len(given)), top_k=1)
        prompt = tokenizer.decode(given)
    training = model.training
    model.eval()
    with torch.compiler.set_stance("force_eager"):  # one token at a time is not what the blocks were compiled for
        [result] = generate(torch_runtime(model), tokenizer, [given], settings)
    model.train(training)
    return Sampled(step, prompt, result.text, reference)
