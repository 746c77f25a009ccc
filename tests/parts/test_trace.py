"""A trace knows every step by name, keeps what it is asked for, and can put something else in its place."""

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import places
from cutaway.models.gpt2.model import GPT
from cutaway.parts.trace import Trace, added, in_turn, put, where, within, zeroed

BATCH = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8], [0, 1, 2, 3, 4, 5]])
IDS = torch.tensor([[3, 1, 4, 1, 5, 9]])


@torch.no_grad()
def traced(model, *arguments, **named) -> Trace:
    trace = Trace(*arguments, **named)
    model(IDS, trace=trace)
    return trace


def test_a_trace_keeps_every_name_in_the_order_of_the_journey(tiny):
    assert list(traced(tiny)) == list(places(tiny.config))


def test_every_value_follows_from_the_ones_before_it(tiny):
    t = traced(tiny)
    close = torch.testing.assert_close
    close(t["residual.0"], t["token_embedding"] + t["position_embedding"])
    before = t["residual.0"]
    for i, block in enumerate(tiny.blocks):
        at, mlp = f"blocks.{i}.attention", f"blocks.{i}.mlp"
        close(t[f"{at}.norm"], block.attention_norm(before))
        made = block.attention.queries_keys_values(t[f"{at}.norm"])  # one matrix makes all three
        for part, name in zip(made.chunk(3, -1), ("queries", "keys", "values"), strict=True):
            close(t[f"{at}.{name}"], part.view(1, 6, 4, 12).transpose(1, 2))
        close(t[f"{at}.scores"], t[f"{at}.queries"] @ t[f"{at}.keys"].mT / 12**0.5)
        future = torch.ones(6, 6).triu(1).bool()
        close(t[f"{at}.masked"][..., ~future], t[f"{at}.scores"][..., ~future])
        assert (t[f"{at}.masked"][..., future] < -1e30).all()
        close(t[f"{at}.weights"], t[f"{at}.masked"].softmax(-1))
        close(t[f"{at}.weights"].sum(-1), torch.ones(1, 4, 6))
        close(t[f"{at}.heads"], t[f"{at}.weights"] @ t[f"{at}.values"])
        close(t[f"{at}.merged"], t[f"{at}.heads"].transpose(1, 2).reshape(1, 6, 48))
        close(t[f"{at}.output"], block.attention.projection(t[f"{at}.merged"]))
        close(t[f"blocks.{i}.residual.middle"], before + t[f"{at}.output"])
        close(t[f"{mlp}.norm"], block.mlp_norm(t[f"blocks.{i}.residual.middle"]))
        close(t[f"{mlp}.hidden"], block.mlp.widen(t[f"{mlp}.norm"]))
        close(t[f"{mlp}.activation"], torch.nn.functional.gelu(t[f"{mlp}.hidden"], approximate="tanh"))
        close(t[f"{mlp}.output"], block.mlp.projection(t[f"{mlp}.activation"]))
        close(t[f"blocks.{i}.residual"], t[f"blocks.{i}.residual.middle"] + t[f"{mlp}.output"])
        before = t[f"blocks.{i}.residual"]
    close(t["final_norm"], tiny.final_norm(before))
    close(t["logits"], t["final_norm"] @ tiny.token_embedding.weight.T)


def test_keep_chooses_by_pattern(tiny):
    t = traced(tiny, ["blocks.*.attention.weights", "logits"])
    assert list(t) == [f"blocks.{i}.attention.weights" for i in range(3)] + ["logits"]
    assert t.nbytes == sum(t[name].nbytes for name in t)


def test_a_replaced_value_changes_what_comes_after_it_and_nothing_before(tiny):
    plain = traced(tiny)
    t = traced(
        tiny, replace={"blocks.1.attention.heads": lambda heads: heads * torch.tensor([1.0, 0, 1, 1])[:, None, None]}
    )
    assert t["blocks.1.attention.heads"][:, 1].abs().max() == 0
    order = list(places(tiny.config))
    at = order.index("blocks.1.attention.heads")
    assert all(torch.equal(plain[name], t[name]) for name in order[:at])
    assert not torch.allclose(plain["logits"], t["logits"])


def test_a_tensor_takes_the_place_of_a_value(tiny):
    other = traced(tiny)["blocks.1.residual"] * 0
    t = traced(tiny, replace={"blocks.1.residual": other})
    assert t["blocks.1.residual"].abs().max() == 0


def test_a_value_patched_with_itself_changes_nothing(tiny):
    plain = traced(tiny)
    again = traced(tiny, replace={"blocks.1.mlp.output": plain["blocks.1.mlp.output"]})
    assert torch.equal(plain["logits"], again["logits"])


def test_a_wrong_name_is_answered_with_the_nearest_right_one(tiny):
    with pytest.raises(CutawayError, match=r"Did you mean 'blocks.1.attention.weights'"):
        Trace("blocks.1.attention.weight").check(places(tiny.config))
    with pytest.raises(CutawayError, match=r"blocks\.9"):
        Trace(replace={"blocks.9.residual": torch.zeros(1)}).check(places(tiny.config))
    with pytest.raises(CutawayError, match="kept nothing called 'logit'"):
        traced(tiny, "logits")["logit"]


def test_a_replacement_of_another_shape_is_refused(tiny):
    with pytest.raises(CutawayError, match="has the shape"):
        traced(tiny, replace={"final_norm": lambda x: x[:, :2]})


def test_a_row_of_a_trace_has_no_batch_dimension(tiny):
    t = traced(tiny)
    assert t.row(0)["blocks.0.attention.weights"].shape == (4, 6, 6)
    assert torch.equal(t.row(0)["position_embedding"], t["position_embedding"][0])


def test_a_place_is_zeroed_filled_or_added_to_and_the_rest_stays(tiny):
    plain, vector = traced(tiny), torch.arange(12.0)
    name = "blocks.1.attention.heads"
    for replacement, wanted in [
        (zeroed(where(head=2, position=3)), torch.zeros(12)),
        (put(vector, where(head=2, position=3)), vector),
        (added(vector, where(head=2, position=3)), plain[name][0, 2, 3] + vector),
        (in_turn([zeroed(where(head=2)), added(vector, where(head=2, position=3))]), vector),
    ]:
        value = traced(tiny, name, {name: replacement})[name]
        assert torch.equal(value[0, 2, 3], wanted)
        assert torch.equal(value[0, [0, 1, 3]], plain[name][0, [0, 1, 3]])
    assert torch.equal(plain[name], traced(tiny)[name])


def test_a_column_of_every_token_is_zeroed(tiny):
    name = "blocks.0.mlp.activation"
    value = traced(tiny, name, {name: zeroed(where(column=7))})[name]
    assert value[..., 7].abs().max() == 0 and value[..., 8].abs().min() > 0


def test_every_row_of_a_batch_can_be_taken_out(tiny):
    trace = Trace()
    with torch.no_grad():
        tiny(BATCH, trace=trace)
    for index in (0, 1, 2, -1):
        alone = Trace()
        with torch.no_grad():
            tiny(BATCH[[index]], trace=alone)
        row = trace.row(index)
        for name in places(tiny.config):
            torch.testing.assert_close(row[name], alone.row(0)[name], rtol=1e-5, atol=1e-5)
    with pytest.raises(CutawayError, match="There is no text 3: there are 3, numbered from 0 to 2"):
        trace.row(3)


def test_a_function_is_given_the_value_of_one_text_in_the_shape_that_is_documented(tiny):
    shapes = dict[str, list[tuple[int, ...]]]()

    def seen(name):
        return lambda value: shapes.setdefault(name, []).append(tuple(value.shape)) or value

    every = places(tiny.config)
    with torch.no_grad():
        tiny(BATCH, trace=Trace((), {name: seen(name) for name in every}))
    documented = {name: tuple(value.shape) for name, value in traced(tiny).row(0).kept.items()}
    assert shapes == {name: [documented[name]] * len(BATCH) for name in every}


def test_a_function_changes_every_text_of_a_batch(tiny):
    name = "blocks.1.attention.heads"
    trace = Trace(name, {name: zeroed(where(head=2))})
    with torch.no_grad():
        tiny(BATCH, trace=trace)
    assert trace[name][:, 2].abs().max() == 0 and trace[name][:, [0, 1, 3]].abs().amax((2, 3)).min() > 0


@pytest.mark.parametrize(
    ("negative", "positive"),
    [({"position": -1}, {"position": 5}), ({"head": -1}, {"head": 3}), ({"column": -12}, {"column": 0})],
)
def test_negative_numbers_count_from_the_end(tiny, negative, positive):
    name = "blocks.1.attention.heads"
    first, second = (traced(tiny, name, {name: zeroed(where(**at))})[name] for at in (negative, positive))
    assert torch.equal(first, second) and not torch.equal(first, traced(tiny, name)[name])


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ({"position": 99}, "no token 99: there are 6, numbered from 0 to 5"),
        ({"position": -7}, "no token -7"),
        ({"head": 4}, "no head 4: there are 4"),
        ({"column": 12}, "no column 12"),
        ({"position": 1.5}, "A token is named by a whole number, not 1.5"),
    ],
)
@pytest.mark.parametrize("make", [zeroed, lambda at: put(torch.ones(()), at), lambda at: added(torch.ones(12), at)])
def test_a_place_that_does_not_exist_is_refused(tiny, at, said, make):
    with pytest.raises(CutawayError, match=said):
        traced(tiny, (), {"blocks.1.attention.heads": make(where(**at))})


def test_a_head_of_what_has_no_heads_is_refused(tiny):
    with pytest.raises(CutawayError, match="not divided into heads"):
        traced(tiny, (), {"blocks.1.residual": zeroed(where(head=0))})


def test_new_numbers_that_do_not_fit_are_refused(tiny):
    with pytest.raises(CutawayError, match=r"shape of those they replace: \[1, 48\]"):
        traced(tiny, (), {"blocks.1.residual": added(torch.ones(47), where(position=1))})
    with pytest.raises(CutawayError, match=r"blocks.1.residual has the shape \[6, 47\], not \[6, 48\]"):
        traced(tiny, (), {"blocks.1.residual": torch.ones(6, 47)})
    with pytest.raises(CutawayError, match="must be a tensor, and is None"):
        traced(tiny, (), {"blocks.1.residual": lambda value: None})


def test_numbers_are_whole_and_numpys_are_as_good(tiny):
    assert within("layer", np.int64(-1), 3) == 2
    with pytest.raises(CutawayError, match="A layer is named by a whole number, not 'two'"):
        within("layer", "two", 3)


def places_run(tiny_lm, monkeypatch, **asked) -> list[str]:
    """The places that a trace's forward pass came by."""
    passed = list[str]()
    original = Trace.__call__

    def watched(self, name, value):
        passed.append(name)
        return original(self, name, value)

    monkeypatch.setattr(Trace, "__call__", watched)
    tiny_lm.trace("Once upon a time", **asked)
    return passed


@pytest.mark.parametrize("last", ["token_embedding", "blocks.0.residual", "blocks.1.attention.weights", "final_norm"])
def test_the_model_runs_as_far_as_something_is_wanted_and_no_further(tiny_lm, monkeypatch, last):
    order = list(places(tiny_lm.config))
    wanted = order[: order.index(last) + 1]
    assert places_run(tiny_lm, monkeypatch, keep=["residual.0", last] if last != order[0] else last) == wanted
    replace = {"blocks.2.residual": lambda value: value}  # a function that only looks must see it, too
    passed = places_run(tiny_lm, monkeypatch, keep="residual.0", replace=replace)
    assert passed[-1] == "blocks.2.residual" and "logits" not in passed


def test_what_is_kept_is_the_same_however_little_is_asked_for(tiny_lm):
    whole = tiny_lm.trace("Once upon a time")
    for name in whole:
        assert torch.equal(tiny_lm.trace("Once upon a time", name)[name], whole[name])
    assert len(tiny_lm.trace("Once", keep=())) == 0


def test_a_probe_can_be_trained_on_a_trace(tiny_lm):
    for within_inference in (False, True):
        with torch.inference_mode(within_inference):
            trace = tiny_lm.trace("Once upon a time there was")
        assert not any(value.is_inference() or value.requires_grad for value in trace.kept.values())
        probe = torch.nn.Linear(48, 2)
        probe(trace["blocks.1.residual"]).square().sum().backward()
        assert probe.weight.grad is not None and probe.weight.grad.abs().max() > 0
    assert not tiny_lm.logits("Once").is_inference() and not tiny_lm.logits("Once").requires_grad


@pytest.mark.parametrize("frozen", [False, True])
def test_gradients_go_through_a_trace_on_request(tiny, tiny_lm, frozen):
    model = GPT(tiny.config).eval()
    model.load_state_dict(tiny.state_dict())
    lm = LanguageModel(model.requires_grad_(not frozen), tiny_lm.tokenizer)
    name, heads = "blocks.1.residual", "blocks.2.attention.heads"
    trace = lm.trace("Once upon a time", keep=[name, heads, "logits"], gradient=True)
    plain = lm.trace("Once upon a time", keep=[name, "logits"])
    assert torch.equal(trace["logits"], plain["logits"])
    by_stream, by_heads = torch.autograd.grad(trace["logits"][-1, 7], [trace[name], trace[heads]])
    assert by_stream.shape == plain[name].shape and by_heads.shape == (4, len(plain[name]), 12)
    # Moving the stream by a little moves the logit by gradient x step.
    step = by_stream / by_stream.norm() * 1e-2
    moved = lm.trace("Once upon a time", "logits", {name: plain[name] + step})["logits"][-1, 7]
    back = lm.trace("Once upon a time", "logits", {name: plain[name] - step})["logits"][-1, 7]
    assert float(moved - back) / 2 == pytest.approx(float((by_stream * step).sum()), rel=1e-2)


def test_the_trace_of_one_text_is_its_only_row(tiny_lm):
    text, batch = "A robot must", Trace()
    with torch.no_grad():
        tiny_lm.model(BATCH, trace=batch)
    for alone in (tiny_lm.trace(text), tiny_lm.traces([text, "Once upon"])[0], batch.row(1)):
        for index in (0, -1):
            assert alone.row(index)["blocks.0.residual"].shape == alone["blocks.0.residual"].shape
        for index in (1, -2):
            with pytest.raises(CutawayError, match=f"There is no text {index}: there are 1, numbered from 0 to 0"):
                alone.row(index)


def test_a_gradient_can_be_asked_for_inside_inference_mode(tiny_lm):
    with torch.inference_mode():
        trace = tiny_lm.trace("A robot must", keep=["residual.0", "logits"], gradient=True)
    [by] = torch.autograd.grad(trace["logits"][-1, 7], trace["residual.0"])
    assert by.abs().max() > 0
