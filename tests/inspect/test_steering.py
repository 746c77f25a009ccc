"""Vectors and functions of one's own while a text is read and written; directions from sets of texts, in files."""

from __future__ import annotations

import json

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.runs import run, written
from cutaway.inspect.steering import Add, Apply, Direction, steering_vector

NAME, PROMPT = "blocks.1.residual", "Once upon a time there"
TOWARD, AWAY = ["a fox", "the little fox", "a red fox"], ["a box", "the little box", "a red box"]


@pytest.fixture(scope="module")
def vector():
    return 3 * torch.randn(48, generator=torch.Generator().manual_seed(3))


def greedy(lm, ids, count, change):
    """Token by token, each time the whole text anew, with this done to a value [token, width]."""
    ids, start = list(ids), len(ids)
    for _ in range(count):
        logits = lm.trace(ids, "logits", replace={NAME: lambda value: change(value, start)})["logits"]
        ids.append(int(logits[-1].argmax()))
    return ids[start:]


@pytest.mark.parametrize("during", ["all", "prompt", "written"])
def test_a_vector_is_added_where_it_was_asked_for(tiny_lm, vector, during):
    def literal(value, prompt):
        rows = {"all": slice(None), "prompt": slice(prompt), "written": slice(prompt, None)}[during]
        changed = value.clone()
        changed[rows] += 2 * vector
        return changed

    ids = tiny_lm.ids(PROMPT)
    change = Add(NAME, vector, 2.0, during=during)
    found = tiny_lm.generate(PROMPT, max_tokens=6, top_k=1, changes=[change])
    assert found.ids == greedy(tiny_lm, ids, len(found.ids), literal)
    seen = written(tiny_lm, PROMPT, 6, changes=[change])  # as one run: prompt and what was written
    expected = tiny_lm.trace(seen.ids, "logits", replace={NAME: lambda value: literal(value, len(ids))})["logits"]
    torch.testing.assert_close(seen.logits(), expected, atol=1e-4, rtol=1e-4)


def test_a_vector_at_one_token_and_a_function_at_all(tiny_lm, vector):
    ids = tiny_lm.ids(PROMPT)

    def literal(value, _):
        changed = value.clone()
        changed[2] += vector
        return changed / 2

    changes = [Add(NAME, vector, position=2), Apply(NAME, lambda value: value / 2)]
    found = tiny_lm.generate(PROMPT, max_tokens=5, top_k=1, changes=changes)
    assert found.ids == greedy(tiny_lm, ids, len(found.ids), literal)
    told = run(tiny_lm, ids, changes=changes).to_dict()
    assert json.loads(json.dumps(told["changes"]))[0]["kind"] == "add"


def test_a_direction_is_the_mean_difference_or_the_first_principal_component(tiny_lm, tmp_path):
    last = [torch.stack([tiny_lm.trace(text)[NAME][-1] for text in texts]) for texts in (TOWARD, AWAY)]
    mean = steering_vector(tiny_lm, TOWARD, AWAY, layer=1)
    torch.testing.assert_close(mean.vector, last[0].mean(0) - last[1].mean(0), atol=1e-5, rtol=1e-4)
    first = steering_vector(tiny_lm, TOWARD, AWAY, layer=-2, method="pca")
    differences = (last[0] - last[1]).double()
    largest = torch.linalg.eigh(differences.T @ differences)[1][:, -1]
    size = float(mean.vector.norm())
    assert float(first.vector.norm()) == pytest.approx(size, rel=1e-4) and first.vector @ mean.vector > 0
    assert abs(float(largest @ first.vector.double())) == pytest.approx(size, rel=1e-4)
    whole = steering_vector(tiny_lm, TOWARD, AWAY, layer=1, tokens="mean")
    assert not torch.allclose(whole.vector, mean.vector)

    mean.save(tmp_path / "fox.safetensors")
    again = Direction.load(tmp_path / "fox.safetensors")
    assert again.name == NAME and torch.equal(again.vector, mean.vector) and again.about == mean.about
    ways = [tiny_lm.generate(PROMPT, 5, top_k=1, changes=[one.change(3.0)]).ids for one in (mean, again)]
    assert ways[0] == ways[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Add("blocks.9.residual", torch.ones(48)), "Nothing in this model"),
        (Add("blocks.*.residual", torch.ones(48)), "names several"),
        (Add(NAME, torch.ones(5)), "5 numbers, and blocks.1.residual has 48"),
        (Add(NAME, torch.ones(2, 48)), "one axis"),
        (Add(NAME, torch.zeros(48)), "is zero"),
        (Add(NAME, torch.ones(48), position=99), "no token 99"),
        (Add(NAME, torch.ones(48), during="later"), "during 'all'"),
        (Add(NAME, torch.ones(48), during="written"), "would change nothing"),
        (Apply(NAME, lambda value: value[:1]), r"gave \[1, 48\]"),
        (Apply(NAME, lambda value: None), "gave None"),
    ],
)
def test_a_change_that_would_change_nothing_is_refused(tiny_lm, change, said):
    with pytest.raises(CutawayError, match=said):
        run(tiny_lm, PROMPT, changes=[change])


def test_a_direction_that_is_none_is_refused(tiny_lm, tmp_path):
    for given, said in (
        ((TOWARD, TOWARD, 1), "no direction between"),
        ((TOWARD, [], 1), "away from"),
        (("a fox", AWAY, 1), "list of texts"),
        ((TOWARD, AWAY, 7), "no layer 7"),
        ((TOWARD, AWAY[:2], 1, "pca"), "needs 2 pairs"),
        ((TOWARD, AWAY, 1, "best"), "'mean' or 'pca'"),
    ):
        with pytest.raises(CutawayError, match=said):
            steering_vector(tiny_lm, *given)
    (tmp_path / "other").write_bytes(b"x")
    for path in (tmp_path / "other", tmp_path / "none"):
        with pytest.raises(CutawayError, match=r"not a saved direction|no file"):
            Direction.load(path)
