"""A trace knows every step by name, keeps what it is asked for, and can put something else in its place."""

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.trace import Trace, added, in_turn, names, put, where, zeroed

IDS = torch.tensor([[3, 1, 4, 1, 5, 9]])


@torch.no_grad()
def traced(model, *arguments, **named) -> Trace:
    trace = Trace(*arguments, **named)
    model(IDS, trace=trace)
    return trace


def test_a_trace_keeps_every_name_in_the_order_of_the_journey(tiny):
    assert list(traced(tiny)) == names(tiny.config)


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
    order = names(tiny.config)
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
        Trace("blocks.1.attention.weight").check(tiny.config)
    with pytest.raises(CutawayError, match=r"blocks\.9"):
        Trace(replace={"blocks.9.residual": torch.zeros(1)}).check(tiny.config)
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
