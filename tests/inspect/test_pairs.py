"""Views of models that read one text and write another, held against the model itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import cutaway
from cutaway.cli import run
from cutaway.errors import CutawayError
from cutaway.inspect.pairs import pair_run
from cutaway.inspect.view import find
from cutaway.models.architecture import architecture

SHAPES: dict[str, dict[str, Any]] = {
    "pre": {"kind": "transformer", "layers": 2, "heads": 4, "norm": "pre"},
    "post": {"kind": "transformer", "layers": 2, "heads": 4, "norm": "post", "positions": "halves"},
    "attention": {"kind": "seq2seq", "attention": "additive", "bidirectional": True, "layers": 2},
    "plain": {"kind": "seq2seq", "attention": "none", "cell": "lstm"},
}
SOURCE, TARGET = "The fox runs.", "Le renard court."


def make(name: str, spread: float = 2.0) -> cutaway.LanguageModel:
    """A model of this shape with random weights, large enough that its words differ from place to place."""
    given = dict(SHAPES[name])
    kind = architecture(given.pop("kind"))
    tokenizer = cutaway.load().tokenizer.with_specials(["<|translate|>"])
    torch.manual_seed(3)
    start = tokenizer.specials["<|translate|>"]
    shape = kind.Shape(len(tokenizer), width=32, context=40, start_token=start, end_token=tokenizer.end, **given)
    model = kind.build(shape).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread)
    return cutaway.LanguageModel(model, tokenizer, name)


@pytest.fixture(scope="module")
def lms() -> dict[str, cutaway.LanguageModel]:
    return {name: make(name) for name in SHAPES}


def view(lm: cutaway.LanguageModel, name: str, target: str = TARGET, **given: Any) -> Any:
    return find(name).compute(pair_run(lm, lm.pair(SOURCE, target)), given)


@pytest.mark.parametrize("name", SHAPES)
def test_a_translation_goes_on_from_what_is_given_and_says_how_likely_each_token_was(lms, name):
    lm = lms[name]
    found = view(lm, "translation", "Le", max_tokens=6)
    given = lm.tokenizer.encode("Le")
    result = lm.generate(lm.pair(SOURCE, "Le"), max_tokens=6, top_k=1)
    ids = [*given, *result.ids, *([lm.config.end] if result.reason == "end" else [])]
    assert [one.id for one in found.target] == ids and found.given == len(given)
    assert [one.id for one in found.source] == lm.tokenizer.encode(SOURCE)
    scored = lm.score([*lm.pair(SOURCE), *ids])
    for step, token in zip(found.steps, scored.tokens, strict=True):
        assert np.log(step.probability) == pytest.approx(token.logprob, abs=1e-4)
    for step, token in list(zip(found.steps, found.target, strict=True))[found.given :]:
        assert step.top[0].id == token.id and step.probabilities[0] == pytest.approx(step.probability)
    beams = view(lm, "translation", "", beams=3, max_tokens=6)
    assert [one.id for one in beams.target][:6] == lm.generate(SOURCE, beams=3, max_tokens=6).ids[:6]


def test_a_translation_that_has_ended_is_not_continued(lms):
    lm = lms["pre"]
    seen = pair_run(lm, [*lm.pair(SOURCE, TARGET), lm.config.end])
    found = find("translation").compute(seen, {})
    assert found.ended and found.given == len(found.target) and found.text == TARGET


@pytest.mark.parametrize("name", ["pre", "post"])
def test_the_three_attentions_are_the_traces(lms, name):
    lm = lms[name]
    trace = lm.trace(lm.pair(SOURCE, TARGET))
    source, decoder = len(lm.tokenizer.encode(SOURCE)), 1 + len(lm.tokenizer.encode(TARGET))
    sizes = {"cross": (decoder, source), "encoder": (source, source), "decoder": (decoder, decoder)}
    places = {"cross": "decoder.blocks.1.cross", "encoder": "encoder.blocks.1.attention"}
    for of, (queries, keys) in sizes.items():
        found = view(lm, "attentions", of=of, layer=1)
        wanted = trace[f"{places.get(of, 'decoder.blocks.1.attention')}.weights"]
        np.testing.assert_allclose(found.weights, wanted.numpy(), atol=1e-6)
        assert found.weights.shape == (4, queries, keys) and found.layers == 2
        assert (len(found.queries), len(found.keys)) == (queries, keys)
    assert np.triu(view(lm, "attentions", of="decoder").weights[0], 1).max() == 0
    with pytest.raises(CutawayError, match="Known: cross, encoder, decoder"):
        view(lm, "attentions", of="self")
    with pytest.raises(CutawayError, match="There is no layer 2"):
        view(lm, "attentions", layer=2)


def test_a_recurrent_models_attention_is_its_alignment(lms):
    lm = lms["attention"]
    found = view(lm, "attentions")
    wanted = lm.trace(lm.pair(SOURCE, TARGET))["decoder.attention.weights"]
    np.testing.assert_allclose(found.weights[0], wanted.numpy(), atol=1e-6)
    with pytest.raises(CutawayError, match="its only attention"):
        view(lm, "attentions", of="encoder")
    with pytest.raises(CutawayError, match="does not fit plain"):
        view(lms["plain"], "attentions")


@pytest.mark.parametrize("name", ["attention", "plain"])
def test_the_network_unrolled_is_what_it_made_word_by_word(lms, name):
    lm = lms[name]
    trace = lm.trace(lm.pair(SOURCE, TARGET))
    found = view(lm, "unrolled")
    for one in found.states:
        np.testing.assert_allclose(one.values, trace[one.name].numpy(), atol=1e-6)
    assert len(found.last) == lm.config.layers and len(found.states) == 2 * lm.config.layers
    np.testing.assert_allclose(found.last[0], trace["encoder.blocks.0.last"].numpy(), atol=1e-6)
    assert (found.context is None) == (name == "plain")
    shorter = view(lm, "unrolled", "Le")  # what was made of the words before does not depend on those to come
    rows = len(shorter.states[-1].values)
    np.testing.assert_allclose(shorter.states[-1].values, found.states[-1].values[:rows], atol=1e-5)


@pytest.mark.parametrize("name", ["pre", "post"])
def test_the_stacks_hold_the_stream_after_every_part(lms, name):
    lm = lms[name]
    trace = lm.trace(lm.pair(SOURCE, TARGET))
    found = view(lm, "stacks", word=1, row=2)
    for one in found.levels:
        row = trace[one.name][1 if one.stack == "encoder" else 2]
        np.testing.assert_allclose(one.values, row.numpy(), atol=1e-6)
        assert one.norm == pytest.approx(float(row.norm()), rel=1e-5)
    parts = [(one.stack, one.layer, one.part) for one in found.levels]
    ends = [("encoder", None, "end")] if name == "pre" else []
    assert parts[: 5 + len(ends)] == [
        ("encoder", None, "entry"), ("encoder", 0, "attention"), ("encoder", 0, "mlp"), ("encoder", 1, "attention"),
        ("encoder", 1, "mlp"), *ends,
    ]  # fmt: skip
    assert [one for one in parts if one[0] == "decoder"][1:4] == [
        ("decoder", 0, p) for p in ("attention", "cross", "mlp")
    ]
    with pytest.raises(CutawayError, match="There is no token"):
        view(lm, "stacks", word=50)


@pytest.mark.parametrize("name", SHAPES)
def test_before_training_is_a_model_of_the_same_shape_with_random_weights(lms, name):
    lm = lms[name]
    found = view(lm, "learned", "", reference=TARGET, k=4, seed=3)
    torch.manual_seed(3)
    fresh = cutaway.LanguageModel(architecture(lm.config.kind).build(lm.config).eval(), lm.tokenizer, "fresh")
    ids = [*lm.pair(SOURCE, TARGET), lm.config.end]
    for model, loss, which in ((fresh, found.loss_before, "before"), (lm, found.loss_after, "after")):
        scored = model.score(ids)
        assert loss == pytest.approx(-scored.logprob / len(scored.tokens), abs=1e-4)
        for place, token in zip(found.places, scored.tokens, strict=True):
            assert place.token.id == token.id and np.log(getattr(place, which)) == pytest.approx(
                token.logprob, abs=1e-3
            )
    for place in found.places:
        at = [one.id for one in place.words].index(place.token.id)
        assert len(place.words) == 4 and place.trained[at] == pytest.approx(place.after)
        assert place.untrained[at] == pytest.approx(place.before)
    state = torch.random.get_rng_state()
    view(lm, "learned", "", reference=TARGET)
    assert torch.equal(state, torch.random.get_rng_state())  # nobody else's random numbers are touched
    with pytest.raises(CutawayError, match="There is no reference"):
        view(lm, "learned", "", reference="")
    with pytest.raises(CutawayError, match="has room for 40"):
        view(lm, "learned", "", reference=TARGET * 20)


def test_sinusoids_are_those_the_model_adds_and_both_layouts_hold_the_same(lms):
    for name in ("pre", "post"):
        lm = lms[name]
        trace = lm.trace(lm.pair(SOURCE, TARGET))
        added = trace["encoder.position_embedding"].numpy()
        found = view(lm, "sinusoids", positions=len(added))
        assert found.layout == found.own == lm.config.positions
        np.testing.assert_allclose(found.values, added, atol=1e-6)
    turns = view(lms["pre"], "sinusoids", layout="interleaved").values
    halves = view(lms["pre"], "sinusoids", layout="halves").values
    np.testing.assert_array_equal(np.concatenate([turns[:, ::2], turns[:, 1::2]], axis=1), halves)
    with pytest.raises(CutawayError, match="There is no layout"):
        view(lms["pre"], "sinusoids", layout="thirds")
    with pytest.raises(CutawayError, match="does not fit plain"):
        view(lms["plain"], "sinusoids")


def test_views_of_two_texts_refuse_a_model_of_one_and_the_other_way_round(lms, tmp_path, capsys):
    with pytest.raises(CutawayError, match="shows models of two texts, and builtin reads one"):
        find("translation").check(cutaway.load())
    with pytest.raises(CutawayError, match="shows models of one text, and pre reads two"):
        find("predict").check(lms["pre"])
    with pytest.raises(CutawayError, match="reads one text, not two"):
        pair_run(cutaway.load(), [1, 2])
    with pytest.raises(CutawayError, match="no start token"):
        pair_run(lms["pre"], [1, 2])
    with pytest.raises(CutawayError, match="has room for 39"):
        pair_run(lms["plain"], lms["plain"].pair(SOURCE, TARGET * 20))
    lms["pre"].save(tmp_path / "pre")
    told = ["--model", str(tmp_path / "pre")]
    assert run(["inspect", "attentions", SOURCE, "--target", TARGET, "--of", "encoder", "--json", *told]) == 0
    assert len(json.loads(capsys.readouterr().out)["weights"]) == 4
    assert run(["inspect", "translation", SOURCE, *told]) == 0 and '"steps"' in capsys.readouterr().out
    assert run(["inspect", "lens", SOURCE, *told]) == 2
    assert "shows models of one text" in capsys.readouterr().err
    assert run(["inspect", "translation", SOURCE]) == 2
    assert "shows models of two texts" in capsys.readouterr().err
