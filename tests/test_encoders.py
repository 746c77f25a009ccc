"""What one does with an encoder: vectors of texts, gaps filled in, and what it cannot do said plainly."""

from __future__ import annotations

import copy
import json
import math

import pytest
import torch

import cutaway
from cutaway import inspect
from cutaway.checkpoint.sentence import read_sentence
from cutaway.errors import CutawayError
from cutaway.inspect.arithmetic import explain
from cutaway.inspect.machine import expected, looks
from cutaway.inspect.walk import walk
from cutaway.models.architecture import places
from cutaway.models.steps import model_map
from cutaway.parts.sentence import Sentence
from cutaway.runtime import encoding

TEXTS = ["The robot must obey.", "a fox", "", "little fox sat on the mat ! the robot obeyed , the fox sat", "a cat"]
PAIR = "the robot obeyed . [SEP] a fox sat"


def alone(lm, text: str) -> torch.Tensor:
    with torch.no_grad():
        return lm.model.read(torch.tensor([lm.ids(text)]))[0]


def test_a_text_is_read_between_cls_and_sep_and_a_pair_in_two_segments(bert_lm):
    assert [bert_lm.tokenizer.spelling(one) for one in bert_lm.ids("Robots [MASK]")] == [
        "[CLS]", "robot", "##s", "[MASK]", "[SEP]",
    ]  # fmt: skip
    ids = torch.tensor([bert_lm.ids(PAIR)])
    assert bert_lm.model.segments_of(ids)[0].tolist() == [0] * 7 + [1] * 4
    given = bert_lm.model.read(ids, segments=bert_lm.model.segments_of(ids))
    assert torch.equal(bert_lm.model.read(ids), given)
    assert not torch.allclose(bert_lm.model.read(ids, segments=torch.zeros_like(ids)), given)


@pytest.mark.parametrize("sentence", [Sentence(), Sentence("first", True), Sentence("max"), Sentence("mean", True)])
def test_vectors_of_many_are_those_of_each_alone(bert_lm, sentence, monkeypatch):
    lm = copy.copy(bert_lm)
    lm.sentence = sentence
    monkeypatch.setattr(encoding, "WASTE", 0.9)  # so that texts of unequal length go together, padded
    found = lm.embed(TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        own = alone(lm, text)
        wanted = own[0] if sentence.pooling == "first" else own.amax(0) if sentence.pooling == "max" else own.mean(0)
        wanted = wanted / wanted.norm() if sentence.normalized else wanted
        torch.testing.assert_close(vector, wanted, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(lm.embed(TEXTS[0]), found[0], atol=1e-5, rtol=1e-4)


def test_packed_matrices_give_the_same_and_follow_the_weights(bert_lm, monkeypatch):
    lm = copy.deepcopy(bert_lm)
    wanted = lm.embed(TEXTS)
    monkeypatch.setattr("cutaway.language_model.WORTH_PACKING", 0)
    torch.testing.assert_close(lm.embed(TEXTS), wanted, atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        lm.model.blocks[0].mlp.widen.weight.mul_(2)
    changed = lm.embed(TEXTS)
    assert not torch.allclose(changed, wanted, atol=1e-3)
    monkeypatch.undo()
    torch.testing.assert_close(lm.embed(TEXTS), changed, atol=1e-5, rtol=1e-4)


def test_no_token_is_read_twice_and_little_padding(monkeypatch):
    rows = [[1] * length for length in (3, 9, 3, 200, 4, 9, 3, 5_000, 1)]
    found = list(encoding.batches(rows))
    assert sorted(number for batch in found for number in batch) == list(range(len(rows)))
    for batch in found:
        room = max(len(rows[number]) for number in batch) * len(batch)
        assert room - sum(len(rows[number]) for number in batch) <= encoding.WASTE * room


def test_gaps_are_filled_by_what_the_model_scores_there(bert_lm):
    text = "the [MASK] sat on [MASK] mat"
    ids = bert_lm.ids(text)
    with torch.no_grad():
        chances = bert_lm.model(torch.tensor([ids]))[0].softmax(-1)
    gaps = bert_lm.fill(text, k=3)
    assert [gap.position for gap in gaps] == [at for at, one in enumerate(ids) if one == 4] == [2, 5]
    for gap in gaps:
        assert [one.id for one in gap.predictions] == chances[gap.position].topk(3).indices.tolist()
        for one in gap.predictions:
            assert math.isclose(one.probability, float(chances[gap.position, one.id]), rel_tol=1e-4)
            assert one.text == bert_lm.tokenizer.spelling(one.id)


def test_what_an_encoder_cannot_do_and_what_does_not_fit_is_said(bert_lm, tiny_lm):
    for ask in (bert_lm.generate, bert_lm.stream, bert_lm.predict, bert_lm.score):
        with pytest.raises(CutawayError, match=r"bert is a BERT: it reads a text in both directions.*lm\.fill"):
            ask("the robot")
    with pytest.raises(CutawayError, match=r"tiny is a GPT-2.*knows no \[MASK\].*cutaway predict"):
        tiny_lm.fill("a [MASK]")
    with pytest.raises(CutawayError, match=r"no \[MASK\] in the text"):
        bert_lm.fill("the robot")
    with pytest.raises(CutawayError, match="the list is empty"):
        bert_lm.embed([])
    with pytest.raises(CutawayError, match=r"Text 2 is 42 tokens long with \[CLS\] and \[SEP\], and bert reads 32"):
        bert_lm.embed(["the", "the " * 40])
    with pytest.raises(CutawayError, match="is 42 tokens long"):
        bert_lm.fill("[MASK]" + " the" * 39)
    torch.testing.assert_close(bert_lm.embed("the " * 40, cut=True), bert_lm.embed("the " * 30))


def test_a_folder_without_the_head_says_that_it_scores_no_words(bert_lm, tmp_path):
    from cutaway.models.bert.heads import with_head

    plain = cutaway.LanguageModel(with_head(bert_lm.model, ""), bert_lm.tokenizer, "plain")
    torch.testing.assert_close(plain.embed("the robot"), bert_lm.embed("the robot"))
    assert "logits" not in places(plain.config)
    for ask in (plain.logits, plain.fill):
        with pytest.raises(CutawayError, match=r"has no (head that scores words|scores over the vocabulary)"):
            ask("the [MASK]")


def test_a_folder_of_sentence_transformers_goes_there_and_back(bert_lm, tmp_path):
    lm = copy.copy(bert_lm)
    lm.sentence = Sentence("first", normalized=True, limit=20)
    lm.save(tmp_path / "out")
    assert not (tmp_path / "out" / "generation_config.json").exists()
    back = cutaway.load(tmp_path / "out")
    assert back.sentence == lm.sentence and back.config == lm.config
    torch.testing.assert_close(back.embed(TEXTS), lm.embed(TEXTS))
    with pytest.raises(CutawayError, match="reads 20"):
        back.embed("the " * 25)
    modules = json.loads((tmp_path / "out" / "modules.json").read_text())
    assert [one["type"].rpartition(".")[2] for one in modules] == ["Transformer", "Pooling", "Normalize"]
    modules[1]["type"] = "sentence_transformers.models.Dense"
    (tmp_path / "out" / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CutawayError, match="a stage Dense"):
        read_sentence(tmp_path / "out")


def test_the_walk_takes_every_step_of_it_and_every_number_can_be_explained(bert_lm):
    run = inspect.run(bert_lm, PAIR)
    steps = model_map(bert_lm.config).steps
    assert [step.name for step in steps] == [
        "whole", "token", "embedding", "position", "entry_both", "segment", "entry_segment", "entry_norm",
        "made_apart", "split", "scores", "softmax_both", "mix", "merge", "projection", "attention_residual",
        "attention_norm_after", "widen", "activation", "narrow", "mlp_sum", "mlp_norm_after", "transform",
        "transform_activation", "transform_norm", "word_scores", "gap",
    ]  # fmt: skip
    assert {step.group for step in steps if step.block} == {"attention", "mlp"}
    for step in steps:
        walk(run, step.name, layer=1, head=2, position=3)
    for place in places(bert_lm.config).values():
        cell = explain(run, place.name, 8, 1, head=1 if place.axes[0] == "head" else None)
        assert cell.kind != "given" and cell.total == pytest.approx(cell.value, abs=1e-4), place.name
    assert explain(run, "segment_embedding", 8, 1).parts["row"] == 1  # the second sentence
    weights = run["blocks.0.attention.weights"]
    assert (weights[:, 0, 1:] > 0).all()  # the first token attends to those after it
    assert looks(run, ["blocks.0.attention.weights"]).shape == (11, 8)  # four places and their weights
    assert len(expected(run)[0]) == 11
