"""ELMo's pre-training: what an example is, what counts in the loss, and that it learns and is resumed to the bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import cutaway
from cutaway import train
from cutaway.errors import CutawayError
from cutaway.models.elmo.model import Elmo
from cutaway.models.elmo.shape import Shape
from cutaway.tasks import BothWays, LeftOut
from cutaway.text.spelled_words import SpelledWords

WORDS = SpelledWords.learn(["the fox sleeps. the dog runs away."], 9)
SMALL = {"cell_width": 12, "filters": [[1, 4], [3, 8]], "highways": 1}
RECORDS = [
    {"text": f"The {who} sleeps in the sun. It is a {how} day."}
    for who in ("fox", "dog", "owl", "bear")
    for how in ("good", "warm", "long")
]
SETTINGS = {
    "task": "both directions", "model": {"kind": "elmo", "width": 8, "layers": 2, "vocabulary": 300, "shape": SMALL},
    "steps": 12, "batch": 4, "held_out": 2, "learning_rate": 0.02, "dropout": 0.1, "threads": 1, "checkpoint_every": 4,
}  # fmt: skip


def arrays(examples):
    return [{"ids": np.array(one.ids), "words": np.array(one.arrays["words"])} for one in examples]


def test_an_example_is_whole_sentences_with_their_words():
    task = BothWays(limit=40)
    found = task.examples({"text": "The fox sleeps.\nThe dog runs. Why?"}, WORDS)
    assert [WORDS.decode(one.ids) for one in found] == ["Thefoxsleeps.", "Thedogruns.Why?"]
    assert [WORDS.listed[one] for one in found[1].arrays["words"]] == [
        "<S>", "the", "dog", "runs", ".", "<UNK>", "<UNK>", "</S>",
    ]  # fmt: skip
    assert all(len(one.ids) <= 40 for one in found)


def test_what_does_not_fit_is_divided_between_words():
    [*parts] = BothWays(limit=16).examples({"text": "aaaa bbbb cccccccccccccccccccccccc dd"}, WORDS)
    assert [len(one.ids) for one in parts] == [14, 16, 6]
    with pytest.raises(LeftOut, match="empty"):
        BothWays().examples({"text": "  \n"}, WORDS)


def test_the_loss_is_the_mean_of_both_directions_and_no_padding_counts():
    torch.manual_seed(0)
    model = Elmo(Shape(words=len(WORDS.listed), width=6, cell_width=9, filters=((1, 4),), dropout=0.0)).eval()
    task = BothWays()
    examples = [one for text in ("The fox runs away.", "dog") for one in task.examples({"text": text}, WORDS)]
    batch = task.collate(arrays(examples))
    expected = 0.0
    with torch.no_grad():
        for example in examples:
            before, after, _ = model.both(torch.tensor([example.ids]))
            words = example.arrays["words"]
            for at in range(1, len(words)):
                expected -= float(model.output(before[0, at - 1]).log_softmax(0)[words[at]]) / 2
                expected -= float(model.output(after[0, at]).log_softmax(0)[words[at - 1]]) / 2
        found = task.loss(model, batch.tensors)
    assert batch.count == sum(len(one.arrays["words"]) - 1 for one in examples)
    assert float(found.sum) == pytest.approx(expected, rel=1e-5)
    assert float(found.metrics["forwards"] + found.metrics["backwards"]) == pytest.approx(2 * expected, rel=1e-5)


def test_it_learns_and_is_resumed_to_the_bit(tmp_path):
    settings = SETTINGS | {"cache": str(tmp_path / "cache")}
    whole = train.run(tmp_path / "whole", records=RECORDS, **settings)
    asked = iter([False] * 6 + [True])
    stopped = train.run(tmp_path / "parts", records=RECORDS, stop=lambda: next(asked), **settings)
    assert (stopped.reason, stopped.step) == ("stopped", 7)
    assert train.run(tmp_path / "parts", resume=True).reason == "done"
    for name in ("model.safetensors", "task.json", "config.json", "words.txt"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    lm = cutaway.load(tmp_path / "whole")
    assert isinstance(lm.model, Elmo)
    assert lm.config.words == len(lm.tokenizer.listed)
    assert whole.held_loss < math.log(lm.config.words)


def test_another_model_or_vocabulary_is_refused():
    with pytest.raises(CutawayError, match="spelled by characters"):
        BothWays().examples({"text": "The fox."}, cutaway.Tokenizer.load("gpt2"))
    with pytest.raises(CutawayError, match="learned by an ELMo"):
        BothWays().loss(torch.nn.Linear(1, 1), {})
