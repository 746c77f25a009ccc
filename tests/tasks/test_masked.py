"""Masked words and next sentence: what is hidden, how often, what counts, and that the one loop learns it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import cutaway
from cutaway import train
from cutaway.errors import CutawayError
from cutaway.tasks import LeftOut, MaskedWords, task_from
from cutaway.tasks.masked import IGNORED, passages

CLS, SEP, MASK = 2, 3, 4
TEXT = "The robot must obey. A little fox sat on the mat. The robot obeyed! A cat sat on a mat. The fox sat."


def arrays(task, tokenizer, text=TEXT):
    return [
        {"ids": np.array(one.ids), **{name: np.array(value) for name, value in one.arrays.items()}}
        for one in task.examples({"text": text}, tokenizer)
    ]


def test_a_document_becomes_pairs_that_hold_every_token_once(bert_lm):
    tokenizer, task = bert_lm.tokenizer, MaskedWords(limit=16)
    examples = task.examples({"text": TEXT}, tokenizer)
    assert len(examples) > 1
    seen = []
    for one in examples:
        assert len(one.ids) <= 16 and one.ids[0] == CLS and one.ids[-1] == SEP
        second = one.arrays["second"][0]
        assert one.ids[second - 1] == SEP and one.ids.count(SEP) == 2 and 2 < second < len(one.ids) - 1
        seen += [token for token in one.ids if token not in (CLS, SEP)]
    assert seen == tokenizer.encode(TEXT)[: len(seen)] and len(seen) > 20
    single = MaskedWords(limit=16, next_sentence=False).examples({"text": TEXT}, tokenizer)
    assert all(one.ids.count(SEP) == 1 for one in single)


def test_a_long_sentence_is_divided_and_what_makes_no_pair_is_left_out(bert_lm):
    found = list(passages([list(range(50))], 20))
    assert [token for pair in found for part in pair for token in part] == list(range(40))
    with pytest.raises(LeftOut, match="empty"):
        MaskedWords().examples({"text": " "}, bert_lm.tokenizer)
    with pytest.raises(LeftOut, match="too short"):
        MaskedWords().examples({"text": "the robot"}, bert_lm.tokenizer)
    with pytest.raises(CutawayError, match="WordPiece"):
        MaskedWords().examples({"text": TEXT}, cutaway.Tokenizer.load("gpt2"))


def test_fifteen_percent_are_asked_for_and_of_these_80_10_10(bert_lm):
    task, tokenizer = MaskedWords(limit=32), bert_lm.tokenizer
    rows = arrays(task, tokenizer) * 400
    torch.manual_seed(0)
    batch = task.collate(rows)
    inputs, targets, mask = (batch.tensors[name] for name in ("inputs", "targets", "mask"))
    asked = targets != IGNORED
    ordinary = mask & (inputs != CLS) & (inputs != SEP) | asked
    assert not (asked & ~mask).any() and batch.count == int(asked.sum()) and batch.tokens == int(mask.sum())
    assert not (targets[asked] == CLS).any() and not (targets[asked] == SEP).any()
    share = float(asked.sum() / ordinary.sum())
    assert 0.14 < share < 0.16
    masked = float((inputs[asked] == MASK).float().mean())
    same = float((inputs[asked] == targets[asked]).float().mean())
    assert 0.78 < masked < 0.83 and 0.08 < same < 0.15  # any other token may be the same by chance
    torch.manual_seed(1)
    again = task.collate(rows).tensors["inputs"]
    assert again.shape != inputs.shape or not torch.equal(again, inputs)  # drawn anew each time
    torch.manual_seed(0)
    assert torch.equal(task.collate(rows).tensors["inputs"], inputs)  # and by the seed alone


def test_half_of_the_second_passages_are_those_of_others(bert_lm):
    task, tokenizer = MaskedWords(limit=32, percent=1), bert_lm.tokenizer
    first, other = "The robot must obey. The robot obeyed.", "A little fox sat. A cat sat on a mat."
    rows = [arrays(task, tokenizer, text)[0] for text in (first, other)] * 200
    torch.manual_seed(0)
    batch = task.collate(rows).tensors
    whole = torch.where(batch["targets"] == IGNORED, batch["inputs"], batch["targets"])
    assert 0.4 < float(batch["follows"].float().mean()) < 0.6
    for row, example in enumerate(rows):
        second = int(example["second"][0])
        tokens = whole[row][batch["mask"][row]]
        assert batch["segments"][row][batch["mask"][row]].tolist() == [0] * second + [1] * (len(tokens) - second)
        assert tokens[-1] == SEP and (tokens == SEP).sum() == 2
        if batch["follows"][row]:
            assert tokens.tolist() == example["ids"].tolist()
        assert tokens[:second].tolist() == example["ids"][:second].tolist()


def test_the_loss_is_the_mean_over_words_plus_that_over_pairs(bert_lm):
    task, model = MaskedWords(limit=32), bert_lm.model
    torch.manual_seed(0)
    batch = task.collate(arrays(task, bert_lm.tokenizer) * 3)
    with torch.no_grad():
        found = task.loss(model, batch.tensors)
        logits = model(batch.tensors["inputs"], segments=batch.tensors["segments"], mask=batch.tensors["mask"])
        words = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.tensors["targets"].flatten())
        hidden = model.read(batch.tensors["inputs"], batch.tensors["segments"], batch.tensors["mask"])
        judged = model.next_sentence(model.pool(hidden))
        pairs = torch.nn.functional.cross_entropy(judged, 1 - batch.tensors["follows"])
    assert float(found.sum) / batch.count == pytest.approx(float(words + pairs), rel=1e-5)


def test_the_one_loop_trains_a_new_bert_and_goes_on_with_it(tmp_path):
    records = [
        {"text": f"The {who} sat on the {what}. It was a {how} day. Then the {who} went home to sleep."}
        for who in ("fox", "dog", "owl") for what in ("mat", "log") for how in ("sunny", "rainy")
    ] * 2  # fmt: skip
    more = {"records": records, "held_out": 4, "cache": str(tmp_path / "cache"), "learning_rate": 1e-2}
    new = {"layers": 1, "width": 32, "heads": 2, "vocabulary": 320}
    report = train.run(tmp_path / "bert", task="masked words", steps=40, batch=16, **new, **more)
    lm = cutaway.load(tmp_path / "bert")
    assert lm.config.head == "pretraining" and lm.config.end_token == lm.tokenizer.end
    assert report.held_loss < 4 and report.metrics.keys() == {"accuracy", "next_sentence"}
    assert lm.fill("The fox sat on [MASK] mat.", 1)[0].predictions[0].text == "the"
    from cutaway.tasks import load_task

    assert isinstance(load_task(tmp_path / "bert"), MaskedWords)
    assert task_from({"name": "masked words", "percent": 20}).percent == 20
    onward = train.run(tmp_path / "more", task="masked words", from_=tmp_path / "bert", steps=2, batch=8, **more)
    assert onward.held_loss < report.held_loss + 0.5
    with pytest.raises(CutawayError, match=r"model\.positions cannot be set"):
        train.run(tmp_path / "no", task="masked words", steps=2, positions="relative", **new, **more)
