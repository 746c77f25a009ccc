"""A run holds what the model makes of a text, whole or only in part, and refuses what cannot be looked at."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.inspect import runs as running
from cutaway.inspect.change import AblateHead, AblateNeuron, Patch
from cutaway.inspect.generation import generation
from cutaway.inspect.numbers import Token, rounded
from cutaway.inspect.runs import run, written
from cutaway.inspect.values import values
from cutaway.models.architecture import places


def test_a_run_gives_what_a_trace_gives(tiny_lm, seen):
    trace = tiny_lm.trace(seen.text)
    assert all(torch.equal(seen[name], trace[name]) for name in places(tiny_lm.config))
    torch.testing.assert_close(seen.logits(), tiny_lm.logits(seen.text), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("changes", [(), (AblateHead(1, 2), AblateHead(2, 0, position=3), AblateNeuron(1, 5, 3))])
def test_a_long_text_is_kept_in_part_and_gives_the_same_numbers(tiny_lm, seen, monkeypatch, changes):
    whole = run(tiny_lm, seen.ids, changes=changes)
    monkeypatch.setattr(running, "KEEP_WHOLE", 0)
    part = run(tiny_lm, seen.ids, changes=changes)
    assert part.nbytes < whole.nbytes / 2
    for name in places(tiny_lm.config):
        torch.testing.assert_close(part[name], whole[name], rtol=1e-5, atol=1e-5, msg=name)
    torch.testing.assert_close(part.logits([4, 2]), whole.logits([4, 2]))
    for layer, position in [(0, 0), (1, 3), (2, 7)]:
        torch.testing.assert_close(part.activation(layer, position), whole[f"blocks.{layer}.mlp.activation"][position])


def test_what_was_made_again_stays_at_hand_as_far_as_there_is_room(tiny_lm, seen, monkeypatch):
    monkeypatch.setattr(running, "KEEP_WHOLE", 0)
    part = run(tiny_lm, seen.ids)
    first = part["blocks.0.attention.weights"]
    part["blocks.1.attention.weights"]
    assert part["blocks.0.attention.weights"] is first
    monkeypatch.setattr(running, "MADE_AGAIN", 0)
    part["blocks.1.mlp.hidden"]
    assert list(part._latest) == ["blocks.1.mlp"]
    assert part["blocks.0.attention.weights"] is not first


def test_a_text_that_goes_on_takes_over_what_was_read(tiny_lm, seen, monkeypatch):
    """Only the new tokens go through the model, and the numbers are those of a text read from its first."""
    monkeypatch.setattr(running, "KEEP_WHOLE", 0)
    monkeypatch.setattr(running, "WORTHWHILE", 2)
    ids, read = list(seen.ids), []
    tiny_lm.model.blocks[0].register_forward_pre_hook(lambda block, given: read.append(given[0].shape[1]))
    try:
        before = run(tiny_lm, ids[:6])
        for changed in (ids, [*ids[:4], 7, 8, 9], ids[:5]):
            fresh = run(tiny_lm, changed)
            read.clear()
            found = run(tiny_lm, changed, after=before)
            assert read == [len(changed) - min(6, 4 if changed != ids else 6)]
            assert found.ids == fresh.ids and found.prompt == fresh.prompt
            for name in places(tiny_lm.config):
                torch.testing.assert_close(found[name], fresh[name], rtol=1e-4, atol=1e-5, msg=name)
        read.clear()
        run(tiny_lm, ids, changes=[AblateHead(0, 1)], after=before)  # another model, so to speak
        run(tiny_lm, ids, after=run(tiny_lm, ids[:6], changes=[AblateHead(0, 1)]))
        assert read == [len(ids), 6, len(ids)]
    finally:
        tiny_lm.model.blocks[0]._forward_pre_hooks.clear()


def test_patched_logits_stay_patched_when_they_are_not_kept(tiny_lm, monkeypatch):
    ids = tiny_lm.ids("Once upon a")
    other = (
        "there was a" if len(tiny_lm.ids("there was a")) == len(ids) else "".join(map(chr, range(97, 97 + len(ids))))
    )
    change = Patch("logits", other, position=1, source=0)
    whole = run(tiny_lm, ids, changes=[change])
    monkeypatch.setattr(running, "KEEP_WHOLE", 0)
    part = run(tiny_lm, ids, changes=[change])
    torch.testing.assert_close(part.logits([1]), whole.logits([1]))
    torch.testing.assert_close(whole.logits([1])[0], tiny_lm.logits(other)[0], rtol=1e-4, atol=1e-4)


def test_what_the_model_writes_is_the_continuation(tiny_lm):
    found = written(tiny_lm, "Once upon", max_tokens=5)
    result = tiny_lm.generate("Once upon", max_tokens=5, top_k=1)
    assert list(found.ids) == [*tiny_lm.ids("Once upon"), *result.ids]
    assert found.prompt == len(tiny_lm.ids("Once upon"))


def test_the_next_token_is_the_one_that_stands_there_and_at_the_end_the_likeliest(tiny_lm, seen):
    assert seen.next(0) == seen.ids[1]
    assert seen.next(-1) == tiny_lm.predict(seen.text, 1)[0].id


def test_the_json_of_a_run_is_json_and_has_every_token(seen):
    found = json.loads(json.dumps(seen.to_dict(), allow_nan=False))
    assert [token["id"] for token in found["tokens"]] == list(seen.ids)
    assert b"".join(bytes.fromhex(token["bytes"]) for token in found["tokens"]).decode() == seen.text
    assert found["shape"]["layers"] == 3 and "blocks.2.mlp.output" in found["names"]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda lm: run(lm, ""), "no text"),
        (lambda lm: run(lm, "x " * 60), "48"),
        (lambda lm: run(lm, "a b", "c " * 60), "Shorten"),
        (lambda lm: run(lm, [999]), "no token 999"),
        (lambda lm: run(lm, "abc")["blocks.7.residual"], "blocks.7"),
        (lambda lm: run(lm, "abc")["blocks.1.attention.weight"], "Did you mean"),
        (lambda lm: run(lm, "abc").layer(3), "from 0 to 2"),
        (lambda lm: run(lm, "abc").head(-5), "no head -5"),
        (lambda lm: values(run(lm, "abc"), "blocks.0.residual", head=1), "not divided into heads"),
        (lambda lm: values(run(lm, "abc"), "blocks.0.residual", position=77), "no token 77"),
        (lambda lm: written(lm, ""), "no text"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_with_the_remedy(tiny_lm, what, said):
    with pytest.raises(CutawayError, match=said):
        what(tiny_lm)


def test_values_are_slices_with_named_axes(seen):
    name = "blocks.1.attention.masked"
    found = values(seen, name, position=2, head=1)
    assert found.axes == ("key",)
    np.testing.assert_array_equal(found.values, seen[name][1, 2].numpy())
    told = found.to_dict()["values"]
    assert told[3:] == [None] * (len(seen) - 3) and None not in told[:3]
    vector = values(seen, "blocks.1.residual", position=-1)
    assert vector.to_dict()["norm"] == pytest.approx(float(seen["blocks.1.residual"][-1].norm()), rel=1e-5)
    assert values(seen, "logits", position=0).values.shape == (320,)
    assert values(seen, "blocks.0.mlp.hidden").to_dict()["shape"] == [len(seen), 192]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_are_rounded_to_six_digits(number):
    told = rounded(np.array([number], np.float32))[0]
    assert told == pytest.approx(number, rel=1e-5, abs=0)
    if 1e-4 < abs(number) < 1e9:
        assert told == float(f"{number:.6g}")


def test_what_is_not_finite_is_null():
    assert rounded(np.array([[1.5, np.nan], [np.inf, 0.0]])) == [[1.5, None], [None, 0.0]]
    assert rounded(float("nan")) is None and rounded(7) == 7 and rounded({"a": (0.1, None)}) == {"a": [0.1, None]}


def test_half_a_character_has_bytes_and_no_text():
    assert Token(3, b"\xe6\x97").to_dict() == {"id": 3, "text": None, "bytes": "e6 97"}


def test_a_run_gives_plain_tensors_whoever_asks_for_them(tiny_lm):
    with torch.inference_mode():
        inside = run(tiny_lm, "Once upon a time there was")
        steps = generation(tiny_lm, "Once upon", 3, keep="blocks.1.residual", top_k=1).steps
    for value in [*inside.trace.kept.values(), *run(tiny_lm, "Once upon a time there was").trace.kept.values()]:
        assert not value.is_inference() and not value.requires_grad
    probe = torch.nn.Linear(48, 1)
    probe(inside["blocks.1.residual"]).sum().backward()
    outside = generation(tiny_lm, "Once upon", 3, keep="blocks.1.residual", top_k=1).whole("blocks.1.residual")
    probe(outside).sum().backward()
    assert len(steps) == 3 and not outside.is_inference()


def test_positions_and_layers_out_of_range_are_refused_and_negative_ones_count_from_the_end(tiny_lm):
    seen = run(tiny_lm, "Once upon a time there was")
    assert torch.equal(seen.logits([-1]), seen.logits([len(seen) - 1]))
    assert torch.equal(seen.before(-1), seen.before(2)) and seen.block(-1) is seen.block(2)
    assert torch.equal(seen.activation(-1, -1), seen.activation(2, len(seen) - 1))
    for asked, wrong in (("logits", [[99]]), ("before", [3]), ("activation", [0, -99]), ("block", [-4])):
        with pytest.raises(CutawayError, match="There is no"):
            getattr(seen, asked)(*wrong)


def test_what_a_user_needs_comes_from_one_place(tiny_lm):
    from cutaway import inspect

    seen = inspect.run(tiny_lm, "A robot", changes=[inspect.AblateHead(1, 0)])
    assert torch.equal(seen["logits"], run(tiny_lm, "A robot", changes=[AblateHead(1, 0)])["logits"])
    assert not torch.equal(seen["logits"], inspect.run(tiny_lm, "A robot")["logits"])
    assert all(getattr(inspect, name) is not None for name in inspect.__all__)
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        inspect.rum  # noqa: B018
