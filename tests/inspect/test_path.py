"""The path of a token, and the parts of a logit: they add up to it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateHead, Steer
from cutaway.inspect.path import attribution, path
from cutaway.inspect.runs import run
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config


def total(parts) -> float:
    arrays = (parts.heads, parts.attention_bias, parts.mlp, parts.mlp_bias)
    return parts.embedding + parts.place + parts.norm_bias + float(sum(part.sum(dtype=np.float64) for part in arrays))


def test_the_path_has_every_step_with_its_length_and_its_turn(seen):
    found = path(seen, 3)
    assert [step.name for step in found.steps][:4] == [
        "token_embedding", "residual.0", "blocks.0.residual.middle", "blocks.0.residual",
    ]  # fmt: skip
    assert [step.name for step in found.steps][-2:] == ["blocks.2.residual", "final_norm"]
    for number, step in enumerate(found.steps):
        vector = seen[step.name][3]
        assert step.norm == pytest.approx(float(vector.norm()), rel=1e-5)
        np.testing.assert_array_equal(found.vectors[number], vector.numpy())
        last = seen["blocks.2.residual"][3]
        assert step.to_last == pytest.approx(float(vector @ last / vector.norm() / last.norm()), abs=1e-5)
    assert found.steps[0].to_before is None
    json.dumps(found.to_dict(), allow_nan=False)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 19), token=st.integers(0, 319), against=st.none() | st.integers(0, 319))
def test_the_parts_add_up_to_the_logit(tiny_lm, seen, position, token, against):
    parts = attribution(seen, position, token, against)
    logits = seen["logits"][position]
    wanted = float(logits[token] - (logits[against] if against is not None else 0))
    assert parts.logit == pytest.approx(wanted, abs=1e-5)
    assert total(parts) == pytest.approx(wanted, abs=2e-4)
    assert abs(parts.rest) < 2e-4


@torch.inference_mode()
def test_a_heads_part_is_what_taking_it_out_takes_away_while_the_norm_stands_still(tiny_lm, seen):
    parts = attribution(seen, 4)
    last = seen["blocks.2.residual"][4]
    found = seen["blocks.2.attention.heads"][1, 4]
    added = tiny_lm.model.blocks[2].attention.projection.weight[:, 12:24] @ found
    spread = (last.var(unbiased=False) + 1e-5).sqrt()
    norm = tiny_lm.model.final_norm
    moved = norm.weight * (added - added.mean()) / spread
    assert parts.heads[2, 1] == pytest.approx(
        float(moved @ tiny_lm.model.token_embedding.weight[parts.token.id]), abs=1e-4
    )


def test_an_ablated_head_adds_nothing(tiny_lm, seen):
    parts = attribution(run(tiny_lm, seen.ids, changes=[AblateHead(1, 2)]))
    assert parts.heads[1, 2] == 0 and abs(parts.rest) < 2e-4


def test_what_steering_brings_in_is_the_rest(tiny_lm, seen):
    parts = attribution(run(tiny_lm, seen.ids, changes=[Steer(2, "fox")]))
    assert abs(parts.rest) > 0.01
    assert total(parts) + parts.rest == pytest.approx(parts.logit, abs=1e-5)


def test_a_model_with_an_output_of_its_own_is_explained_by_that(tiny_lm):
    torch.manual_seed(1)
    lm = LanguageModel(GPT(Config(320, 48, width=24, layers=2, heads=2, tied=False)), tiny_lm.tokenizer)
    parts = attribution(run(lm, "Once upon a"))
    assert parts.logit == pytest.approx(float(lm.logits("Once upon a")[-1].max()), abs=1e-5)
    assert total(parts) == pytest.approx(parts.logit, abs=1e-5)


def test_the_token_explained_is_the_one_that_comes_next(seen):
    assert attribution(seen, 2).token.id == seen.ids[3]
    assert attribution(seen).token.id == int(seen["logits"][-1].argmax())
    told = json.loads(json.dumps(attribution(seen, 2, against=5).to_dict(), allow_nan=False))
    assert told["against"]["id"] == 5 and len(told["heads"]) == 3 and len(told["heads"][0]) == 4


def test_a_token_that_is_not_there_is_refused(seen):
    with pytest.raises(CutawayError, match="no token 320"):
        attribution(seen, token=320)
    with pytest.raises(CutawayError, match="no token 99"):
        path(seen, 99)


def test_tokens_are_named_by_their_text_or_their_id(tiny_lm, seen):
    [upon, a] = tiny_lm.ids("upon a")
    assert attribution(seen, 3, upon, a).to_dict() == attribution(seen, 3, "upon", " a").to_dict()
    with pytest.raises(CutawayError, match="is not one token"):
        attribution(seen, token="wondrous")
