"""Every step of the walk shows the numbers of the run, and each of them can be explained."""

from __future__ import annotations

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.inspect.arithmetic import explain
from cutaway.inspect.runs import run
from cutaway.inspect.walk import Part, Step, walk
from cutaway.models.architecture import places
from cutaway.models.gpt2.shape import SIZES
from cutaway.models.steps import PROBABILITIES, SOFTMAX_OF_LOGITS, model_map

STEPS = [step.name for step in model_map(SIZES["gpt2"]).steps]


def part(step: Step, role: str) -> Part:
    return next(one for one in step.parts if one.role == role)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("position", [0, 5, -1])
def test_every_number_shown_is_the_one_that_explain_explains(seen, name, position):
    step = walk(seen, name, layer=1, head=2, position=position)
    at = seen.position(position)
    known = places(seen.lm.config) | {PROBABILITIES: SOFTMAX_OF_LOGITS}
    for one in step.parts:
        assert one.values.shape[0] == len(one.rows)
        axes = known[one.name].axes if one.name in known else ("token", "column")
        for i in {0, len(one.rows) - 1}:
            for j in {0, one.values.shape[1] - 1}:
                row, value = one.rows[i], float(one.values[i, j])
                if one.axis == "weight":
                    continue
                if one.axis == "layer":
                    middle = one.role == "middle"
                    name = f"blocks.{row}.residual.middle" if middle else f"blocks.{row - 1}.residual"
                    cell = explain(seen, "residual.0" if not middle and not row else name, at, j)
                elif one.axis == "head":
                    cell = explain(seen, one.name, at, j, head=row)
                elif one.axis == "id":
                    cell = explain(seen, one.name, at, row)
                elif axes[-1] == "key":
                    cell = explain(seen, one.name, at, row, head=2)
                else:
                    cell = explain(seen, one.name, row, j, head=2 if axes[0] == "head" else None)
                assert cell.value == value
                assert cell.total == pytest.approx(value, rel=2e-5, abs=2e-5)
    assert step.to_dict()["step"] == step.step


def test_the_row_read_from_the_embedding_is_the_tokens_own(seen):
    step = walk(seen, "embedding", position=4)
    matrix = part(step, "matrix")
    at = matrix.rows.index(seen.ids[4])
    assert np.array_equal(matrix.values[at], part(step, "out").values[0])
    assert [word.id for word in step.words] == list(matrix.rows)
    assert step.shape == (seen.lm.config.vocabulary, seen.lm.config.width)


def test_a_row_at_either_end_of_a_matrix_has_its_neighbours_on_one_side(seen):
    assert part(walk(seen, "position", position=0), "matrix").rows == (0, 1, 2, 3, 4, 5, 6)


def test_of_a_long_text_the_strongest_and_the_nearest_keys_are_shown(seen):
    position = len(seen) - 4
    step = walk(seen, "softmax", layer=0, head=1, position=position, limit=8)
    shown = part(step, "out").rows
    assert len(shown) == 8 and list(shown) == sorted(shown)
    assert position in shown and position - 1 in shown
    weights = seen["blocks.0.attention.weights"][1, position]
    assert int(weights.argmax()) in shown


def test_the_norms_picture_is_true_arithmetic(seen):
    """What is drawn gives what is drawn below it: standardized, times the gain, plus the bias."""
    for name in ("attention_norm", "mlp_norm", "final_norm"):
        step = walk(seen, name, layer=1, position=5)
        assert [one.role for one in step.parts] == ["in", "standard", "gain", "bias", "out"]
        stream, standard, gain, bias, out = (one.values[0].astype("f8") for one in step.parts)
        assert standard == pytest.approx((stream - stream.mean()) / stream.std(), rel=1e-2, abs=1e-4)
        assert standard * gain + bias == pytest.approx(out, rel=1e-5, abs=1e-5)
        assert np.linalg.norm(standard) == pytest.approx(len(standard) ** 0.5, rel=1e-2)


def test_the_mix_shows_no_token_that_comes_later(seen):
    assert part(walk(seen, "mix", position=3), "values").rows == (0, 1, 2, 3)


def test_the_choice_is_the_prediction(seen):
    step = walk(seen, "choice")
    best = seen.lm.predict(list(seen.ids), k=10)
    assert [word.id for word in step.words] == [one.id for one in best]
    assert part(step, "out").values[:, 0] == pytest.approx([one.probability for one in best], rel=1e-5)


def test_a_long_text_keeps_little_and_walks_as_well(tiny_lm, seen, monkeypatch):
    monkeypatch.setattr("cutaway.inspect.runs.KEEP_WHOLE", 0)
    long = run(tiny_lm, seen.text)
    for name in STEPS:
        for ours, theirs in zip(walk(long, name, 1, 1).parts, walk(seen, name, 1, 1).parts, strict=True):
            assert ours.values == pytest.approx(theirs.values, rel=1e-5, abs=1e-5)


def test_mistakes_are_said(seen):
    with pytest.raises(CutawayError, match="no step"):
        walk(seen, "softmx")
    with pytest.raises(CutawayError, match="no layer"):
        walk(seen, "made", layer=99)
