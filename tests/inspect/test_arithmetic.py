"""The terms of every number add up to the number the model made, for every kind of step and any shape of model."""

from __future__ import annotations

import math

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.arithmetic import MAKERS, PROBABILITIES, STANDARDIZED, explain
from cutaway.inspect.change import AblateHead
from cutaway.inspect.runs import Run, run
from cutaway.language_model import LanguageModel
from cutaway.models.architecture import places
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

TEXT = "A robot must obey the orders"


def small(tokenizer, **shape) -> Run:
    torch.manual_seed(5)
    usual = {"vocabulary": 320, "context": 48, "width": 24, "layers": 3, "heads": 3}
    model = GPT(Config(**{**usual, **shape}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)  # biases and gains that are not 0 and 1
    return run(LanguageModel(model.eval(), tokenizer, "small"), TEXT)


def head_of(known, name: str, head: int) -> int | None:
    return head if name in known and known[name].axes[0] == "head" else None


SHAPES = [
    {},
    {"heads": 4, "mlp_width": 30, "activation": "gelu", "tied": False},
    {"layers": 1, "heads": 1, "activation": "relu", "norm_epsilon": 1e-3},
    {"layers": 2, "activation": "silu", "scale_by_layer": True},
]


@pytest.mark.parametrize("shape", SHAPES, ids=["gpt2", "untied", "one", "scaled"])
def test_every_step_adds_up_to_what_the_model_made(tiny_lm, shape):
    seen = small(tiny_lm.tokenizer, **shape)
    config = seen.lm.config
    for name in [*places(config), PROBABILITIES]:
        for head in (0, config.heads - 1):
            for position in (0, 3, len(seen) - 1):
                for column in (0, 2, 5):
                    at = head_of(places(config), name, head)
                    cell = explain(seen, name, position, column, at)
                    if name == PROBABILITIES:
                        made = float(seen.logits([position])[0].softmax(-1)[column])
                    else:
                        found = seen[name] if at is None else seen[name][at]
                        made = float(found[position, column])
                    assert cell.value == made, name
                    assert cell.total == pytest.approx(made, rel=2e-5, abs=2e-5), name
                    assert not cell.replaced


def test_a_standardized_vector_is_explained_too(tiny_lm):
    seen = small(tiny_lm.tokenizer)
    for name in ("blocks.0.attention.norm", "blocks.2.mlp.norm", "final_norm"):
        whole, plain = explain(seen, name, 3, 4), explain(seen, f"{name}{STANDARDIZED}", 3, 4)
        assert plain.kind == "standard" and plain.value == pytest.approx(plain.total, rel=2e-5, abs=2e-5)
        assert plain.total * whole.parts["gain"] + whole.parts["bias"] == pytest.approx(whole.value, rel=1e-4, abs=1e-5)
    with pytest.raises(CutawayError, match="Nothing in this model"):
        explain(seen, f"residual.0{STANDARDIZED}", 0, 0)


def test_every_name_of_the_journey_can_be_explained(tiny_lm):
    shapes = (tiny_lm.config, tiny_lm.config.but(positions="relative"))
    assert {place.operation for shape in shapes for place in places(shape).values()} == set(MAKERS)


def test_terms_come_largest_first_and_the_rest_makes_up_the_sum(seen):
    for name, head in (("blocks.1.attention.queries", 2), ("blocks.0.mlp.output", None), ("logits", None)):
        cell = explain(seen, name, -1, 3, head, terms=5)
        sizes = [abs(term.product) for term in cell.terms]
        assert sizes == sorted(sizes, reverse=True) and len(sizes) == 5
        assert cell.count == (seen.lm.config.mlp_width if "mlp" in name else seen.lm.config.width)
        for term in cell.terms:
            assert term.left * term.right == pytest.approx(term.product, rel=1e-9)
        total = sum(term.product for term in cell.terms) + cell.rest + cell.parts.get("bias", 0.0)
        assert total == pytest.approx(cell.value, rel=1e-5, abs=1e-5)


def test_a_score_is_query_times_key_over_the_root_of_the_heads_width(seen):
    cell = explain(seen, "blocks.2.attention.scores", 6, 1, head=1, terms=1000)
    assert cell.kind == "score" and cell.rest == 0
    dot = sum(term.left * term.right for term in cell.terms)
    assert cell.value == pytest.approx(dot / math.sqrt(seen.lm.config.head_width), rel=1e-5)


def test_the_future_is_masked_and_gets_no_weight(seen):
    hidden = explain(seen, "blocks.0.attention.masked", 2, 5, head=0)
    assert hidden.parts["seen"] == 0 and hidden.to_dict()["value"] is None
    weight = explain(seen, "blocks.0.attention.weights", 2, 5, head=0)
    assert weight.value == weight.total == 0 and weight.to_dict()["parts"]["score"] is None
    mixed = explain(seen, "blocks.0.attention.heads", 2, 1, head=0)
    assert mixed.count == 3 and {term.index for term in mixed.terms} == {0, 1, 2}


def test_a_merged_number_says_which_head_it_came_from(seen):
    wide = seen.lm.config.head_width
    cell = explain(seen, "blocks.1.attention.merged", 4, 2 * wide + 3)
    assert (cell.parts["head"], cell.parts["column"]) == (2, 3)
    assert cell.value == float(seen["blocks.1.attention.heads"][2, 4, 3])


def test_a_long_text_is_explained_as_well(tiny_lm, monkeypatch):
    monkeypatch.setattr("cutaway.inspect.runs.KEEP_WHOLE", 0)
    seen = run(tiny_lm, TEXT)
    for name in ("blocks.1.attention.weights", "blocks.1.mlp.hidden", "logits"):
        cell = explain(seen, name, -1, 0, head_of(places(seen.lm.config), name, 1))
        assert cell.total == pytest.approx(cell.value, rel=2e-5, abs=2e-5)


def test_a_number_that_a_change_put_there_says_so(tiny_lm):
    changed = run(tiny_lm, TEXT, changes=[AblateHead(layer=1, head=0)])
    cell = explain(changed, "blocks.1.attention.heads", -1, 0, head=0)
    assert cell.value == 0 and cell.replaced
    assert not explain(changed, "blocks.1.attention.heads", -1, 0, head=1).replaced
    assert not explain(changed, "blocks.0.mlp.hidden", -1, 0).replaced


def test_mistakes_are_said(seen):
    with pytest.raises(CutawayError, match="say which head"):
        explain(seen, "blocks.0.attention.queries", 0, 0)
    with pytest.raises(CutawayError, match="leave the head out"):
        explain(seen, "blocks.0.mlp.norm", 0, 0, head=0)
    with pytest.raises(CutawayError, match="no column 9999"):
        explain(seen, "residual.0", 0, 9_999)
    with pytest.raises(CutawayError, match="Nothing in this model"):
        explain(seen, "blocks.99.residual", 0, 0)


def test_a_logit_is_named_by_its_token_and_other_columns_by_their_number(tiny_lm, seen):
    [a] = tiny_lm.ids(" a")
    assert explain(seen, "logits", -1, " a").to_dict() == explain(seen, "logits", len(seen) - 1, a).to_dict()
    assert explain(seen, "blocks.1.attention.scores", -1, -1, -1).head == 3
    with pytest.raises(CutawayError, match="numbers, not tokens"):
        explain(seen, "final_norm", 0, " a")
