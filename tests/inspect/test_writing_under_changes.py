"""`lm.generate(..., changes=[...])` writes every token under the changes, as reading the whole text under them says."""

from __future__ import annotations

import pytest

import cutaway
from cutaway.errors import CutawayError
from cutaway.inspect.change import AblateHead, AblateNeuron, Patch, Steer, Toward
from cutaway.inspect.generation import generation
from cutaway.inspect.runs import run
from cutaway.runtime.native import library

PROMPTS = ["Once upon a time", "A robot", "the other side of the hill"]
CHANGES = [
    [AblateHead(0, 1), AblateHead(1, 0), AblateHead(2, 3)],
    [AblateHead(1, 2, position=0)],
    [AblateNeuron(1, 7), Toward(1, "x", strength=2.0)],
    [Steer(0, "robot", "fox", 3.0)],
    [Patch("blocks.1.residual", "human beings", position=1, source=0)],
]


def greedy_by_hand(lm, prompt, changes, count):
    """The whole text read anew for every token, with the changes."""
    ids, new = lm.ids(prompt), []
    for _ in range(count):
        token = int(run(lm, ids, new, changes).logits([-1])[0].argmax())
        if token == lm.config.end:
            break
        new.append(token)
    return new


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: changes[0].kind)
def test_every_token_is_written_under_the_changes(tiny_lm, changes):
    together = tiny_lm.generate(PROMPTS, max_tokens=10, temperature=0, changes=changes)
    for prompt, one in zip(PROMPTS, together, strict=True):
        assert one.ids == greedy_by_hand(tiny_lm, prompt, changes, 10)
        assert tiny_lm.generate(prompt, max_tokens=10, temperature=0, changes=changes).ids == one.ids
        assert "".join(tiny_lm.stream(prompt, max_tokens=10, temperature=0, changes=changes)) == one.text
        assert generation(tiny_lm, prompt, 10, keep=(), changes=changes, temperature=0).result.ids == one.ids
    plain = tiny_lm.generate(PROMPTS, max_tokens=10, temperature=0)
    assert [one.ids for one in plain] != [one.ids for one in together]


def test_samples_and_beams_are_written_under_them_too(tiny_lm):
    changes = CHANGES[0]
    single = tiny_lm.generate("Once", max_tokens=8, seed=3, changes=changes)
    first, second = tiny_lm.generate("Once", max_tokens=8, seed=3, samples=2, changes=changes)
    assert first.ids == single.ids != second.ids
    best = tiny_lm.generate("Once", max_tokens=6, beams=3, changes=changes)
    after = run(tiny_lm, "Once", best.ids, changes)
    rows = after.logits(range(after.prompt - 1, len(after) - 1)).log_softmax(-1)
    assert best.logprobs == pytest.approx(
        [float(row[token]) for row, token in zip(rows, best.ids, strict=True)], abs=1e-4
    )
    assert best.ids != tiny_lm.generate("Once", max_tokens=6, beams=3).ids


def test_no_changes_are_no_changes(tiny_lm):
    assert tiny_lm.generate("Once", max_tokens=8, seed=3, changes=[]) == tiny_lm.generate("Once", max_tokens=8, seed=3)


def test_what_cannot_be_changed_is_refused(tiny_lm):
    with pytest.raises(CutawayError, match="There is no layer 9"):
        tiny_lm.generate("Once", changes=[AblateHead(9, 0)])
    with pytest.raises(CutawayError, match="A change must be one of AblateHead"):
        tiny_lm.generate("Once", changes=["AblateHead"])
    with pytest.raises(CutawayError, match="a window that slides"):
        tiny_lm.generate("Once", changes=CHANGES[0], overflow="slide")


@pytest.mark.skipif(library.load() is None, reason="the native engine is not built here: no C++ compiler")
def test_packed_weights_are_refused(tiny_lm, tmp_path):
    tiny_lm.save(tmp_path / "model")
    packed = cutaway.load(tmp_path / "model", weights="int8")
    for write in (packed.generate, packed.stream, packed.astream):
        with pytest.raises(CutawayError, match=r"made by torch, and .* packed to int8"):
            write("Once", changes=CHANGES[0])
