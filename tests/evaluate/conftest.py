"""A small model with its twin in transformers, and the plainest way to ask it for log-probabilities."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="session")
def there(tiny, twin):
    """transformers' GPT-2 with the weights of the tiny model."""
    return twin(tiny)


@pytest.fixture(scope="session")
def plain(there):
    """A function: ids, start -> the log-probability of each of ids[start:], and whether it is the likeliest."""

    @torch.no_grad()
    def ask(ids: list[int], start: int) -> tuple[list[float], list[bool]]:
        logits = there(torch.tensor([ids[:-1]])).logits[0].double()
        logprobs, right = [], []
        for at in range(start, len(ids)):
            logprobs.append(torch.log_softmax(logits[at - 1], dim=-1)[ids[at]].item())
            right.append(int(logits[at - 1].argmax()) == ids[at])
        return logprobs, right

    return ask
