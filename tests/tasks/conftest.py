"""A small tokenizer with every task's separators, and made-up records for every task."""

from __future__ import annotations

import pytest

from cutaway.text.tokenizer import Tokenizer

TEXTS = [
    "the fox runs over the hill and the little dog sleeps in the sun",
    "le renard court et le petit chien dort",
] * 3
SPECIALS = (
    "<|translate|>", "<|back|>", "<|summarize|>", "<|start|>", "<|delimiter|>", "<|extract|>",
    "<|system|>", "<|user|>", "<|assistant|>",
)  # fmt: skip


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, size=290).with_specials(SPECIALS)


@pytest.fixture(scope="session")
def mark(tokenizer):
    """The id of a separator by its short name: mark("translate")."""
    return lambda name: tokenizer.specials[f"<|{name}|>"]


RECORDS = {
    "language": {"text": "the fox runs"},
    "completion": {"prompt": "the fox", "completion": " runs over the hill"},
    "chat": {"messages": [{"role": "user", "content": "the fox"}, {"role": "assistant", "content": "runs"}]},
    "translation": {"source": "the fox runs", "target": "le renard court"},
    "summary": {"article": "the fox runs over the hill and the dog sleeps", "summary": "fox runs"},
    "classification": {"text": "the little dog sleeps", "label": "calm"},
    "entailment": {"premise": "the fox runs over the hill", "hypothesis": "the fox runs", "label": "calm"},
    "similarity": {"first": "the fox runs", "second": "the fox sleeps in the sun", "label": "wild"},
    "choice": {"context": "the fox runs", "choices": ["over the hill", "in the sun", "and sleeps"], "label": 1},
}
SETTINGS = {
    **{name: {"labels": ["calm", "wild"]} for name in ("classification", "entailment", "similarity")},
    "choice": {"choices": 3},
}


@pytest.fixture(params=RECORDS)
def example_task(request):
    """Every task in turn, with a record for it."""
    from cutaway.tasks import task_from

    return task_from({"name": request.param, **SETTINGS.get(request.param, {})}), RECORDS[request.param]
