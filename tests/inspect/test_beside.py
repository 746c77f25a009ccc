"""Two sides: which token stands beside which, and every difference found here in another way."""

from __future__ import annotations

import copy

import pytest
import torch

from cutaway.inspect.attention import attention
from cutaway.inspect.beside import KINDS, Pair, align, beside
from cutaway.inspect.lens import lens
from cutaway.inspect.runs import run
from cutaway.inspect.saliency import saliency
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

ONE = "Tom had a red ball. He liked it"
TWO = "Tom had a very big blue ball. He liked it"


@pytest.fixture(scope="module")
def sides(tiny_lm):
    return run(tiny_lm, ONE), run(tiny_lm, TWO)


@pytest.fixture(scope="module")
def tuned(tiny_lm):
    """The same model, with one matrix changed a little."""
    model = copy.deepcopy(tiny_lm.model)
    with torch.no_grad():
        model.blocks[1].mlp.widen.weight.add_(0.05)
    return LanguageModel(model, tiny_lm.tokenizer, "tuned")


def pairs(left: str, right: str) -> list[tuple[int | None, int | None, bool]]:
    found = align([one.encode() for one in left], [one.encode() for one in right])
    return [(one.left, one.right, one.same) for one in found]


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        ("abc", "abc", [(0, 0, True), (1, 1, True), (2, 2, True)]),
        ("abc", "axc", [(0, 0, True), (1, 1, False), (2, 2, True)]),
        ("ac", "abbc", [(0, 0, True), (None, 1, False), (None, 2, False), (1, 3, True)]),
        ("axyzc", "auc", [(0, 0, True), (1, 1, False), (2, None, False), (3, None, False), (4, 2, True)]),
        ("", "a", [(None, 0, False)]),
    ],
)
def test_tokens_stand_beside_each_other_by_the_stated_rule(left, right, wanted):
    assert pairs(left, right) == wanted


def test_every_token_of_both_sides_stands_somewhere_once(sides):
    left, right = sides
    found = beside(left, right).pairs
    assert [one.left for one in found if one.left is not None] == list(range(len(left)))
    assert [one.right for one in found if one.right is not None] == list(range(len(right)))
    for one in found:
        both = one.left is not None and one.right is not None
        assert one.same == (both and left.tokens[one.left].bytes == right.tokens[one.right].bytes)
    found = beside(left, right, position=1)
    assert (found.position, found.other) == (1, next(one.right for one in found.pairs if one.left == 1))
    assert beside(left, right).other == len(right) - 1  # the last stays with the last


def test_next_tokens_have_both_probabilities(sides):
    left, right = sides
    chances = [one.logits([-1])[0].softmax(-1) for one in sides]
    found = beside(left, right, "next")
    for row in found.rows:
        token = row.tokens[0].id
        assert row.left == pytest.approx(float(chances[0][token])) and row.right == pytest.approx(
            float(chances[1][token])
        )
        assert row.change == pytest.approx(row.right - row.left)
    assert [abs(row.change) for row in found.rows] == sorted((abs(row.change) for row in found.rows), reverse=True)
    assert found.distance == pytest.approx(float((chances[0] - chances[1]).abs().sum() / 2), rel=1e-4)
    assert {row.tokens[0].id for row in beside(left, left, "next").rows} == set(chances[0].topk(10).indices.tolist())


def test_attention_is_compared_token_by_token(sides):
    left, right = sides
    found = beside(left, right, "attention", layer=1, head=2)
    rows = [attention(one, 1, 2, len(one) - 1).weights[0] for one in sides]
    for row in found.rows:
        at = next(one.right for one in found.pairs if one.left == row.position) if row.position is not None else None
        assert row.left is None or row.left == pytest.approx(float(rows[0][row.position]), rel=1e-4)
        if row.position is not None and row.right is not None:
            assert row.right == pytest.approx(float(rows[1][at]), rel=1e-4)
    total = sum(
        abs((float(rows[0][one.left]) if one.left is not None else 0) - (float(rows[1][one.right]) if one.right is not None else 0))
        for one in found.pairs
    )  # fmt: skip
    assert found.distance == pytest.approx(total / 2, rel=1e-4)
    assert beside(left, left, "attention", layer=1, head=2).distance == 0
    assert beside(left, right, "attention", layer=99).unlike


def test_layers_causes_neurons_and_the_stream_are_those_of_the_runs(sides):
    left, right = sides
    for at, row in enumerate(beside(left, right, "layers").rows):
        for side, seen in enumerate(sides):
            own = lens(seen, [-1], 1)
            assert row.tokens[side].id == own.top[at, 0, 0]
            assert (row.left, row.right)[side] == pytest.approx(float(own.top_probability[at, 0, 0]))
        assert row.same == (row.tokens[0].bytes == row.tokens[1].bytes)
    shares = [saliency(one, [len(one)]).share[0] for one in sides]
    for row in beside(left, right, "causes").rows:
        if row.position is not None:
            assert row.left == pytest.approx(float(shares[0][row.position]))
    a, b = (one["blocks.1.mlp.activation"][-1] for one in sides)
    found = beside(left, right, "neurons", layer=1).rows
    assert [row.neuron for row in found] == (b - a).abs().topk(len(found)).indices.tolist()
    assert all(row.change == pytest.approx(float(b[row.neuron] - a[row.neuron]), abs=1e-6) for row in found)
    for layer, row in enumerate(beside(left, right, "stream").rows[1:]):
        a, b = (one[f"blocks.{layer}.residual"][-1] for one in sides)
        assert (row.left, row.right) == pytest.approx((float(a.norm()), float(b.norm())))
        assert row.change == pytest.approx(float((a - b).norm() / a.norm()), rel=1e-4)


def test_two_models_differ_in_the_matrix_that_was_changed(tiny_lm, tuned):
    left, right = run(tiny_lm, ONE), run(tuned, ONE)
    found = beside(left, right, "weights").rows
    a = tiny_lm.model.blocks[1].mlp.widen.weight.detach()
    assert found[0].name.startswith("blocks.1.mlp") and found[0].change == pytest.approx(
        float(0.05 * a.numel() ** 0.5 / a.norm()), rel=1e-3
    )
    assert all(row.change == 0 for row in found[1:])
    stream = beside(left, right, "stream").rows
    assert stream[1].change == 0 < stream[2].change  # the first block is the same, the second is not
    assert all(one.same for one in beside(left, right).pairs)


def test_what_each_side_writes_is_its_likeliest(sides):
    left, right = sides
    rows = beside(left, right, "written").rows
    for side, seen in enumerate(sides):
        ids = seen.lm.generate(list(seen.ids), max_tokens=len(rows), top_k=1).ids
        assert [row.tokens[side].id for row in rows if row.tokens[side]] == list(ids)
    first = left.logits([-1])[0].softmax(-1)[rows[0].tokens[0].id]
    assert rows[0].left == pytest.approx(float(first), rel=1e-3)


def test_models_of_other_shapes_and_vocabularies_are_compared_as_far_as_they_can_be(tiny_lm):
    torch.manual_seed(1)
    other = LanguageModel(
        GPT(Config(vocabulary=320, context=64, width=8, layers=1, heads=1)).eval(), tiny_lm.tokenizer, "other"
    )
    left, right = run(tiny_lm, "Tom had"), run(other, "Tom had")
    for kind in KINDS:
        found = beside(left, right, kind, layer=1)
        assert found.unlike == (kind in ("attention", "neurons", "stream", "weights")), kind
        found.to_dict()
    assert Pair(0, 0, True) in beside(left, right).pairs
