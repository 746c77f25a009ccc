"""Heads by role: found where they were built, with how many queries say so and how sure they are."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.inspect.roles import roles


def test_the_heads_of_a_model_written_by_hand_are_found_and_no_others(induction_lm):
    found = roles(induction_lm, tokens=12, texts=4)
    assert found.queries == 48
    assert found.previous.mean[0, 0] > 0.99 and found.induction.mean[1, 1] > 0.99
    others = np.ones((2, 2), bool)
    others[0, 0] = False
    assert found.previous.mean[others].max() < 0.2
    others[0, 0], others[1, 1] = True, False
    assert found.induction.mean[others].max() < 0.2 and found.duplicate.mean.max() < 0.2
    # It does what an induction head is for: the second time, the next token is known.
    ids = [319, 5, 9, 2, 7, 5, 9, 2]
    assert induction_lm.logits(ids).argmax(-1).tolist()[-3:] == [9, 2, 7]


def test_the_numbers_are_means_over_the_second_half_of_every_text(tiny_lm):
    found = roles(tiny_lm, tokens=5, texts=3, seed=7)
    generator, each = np.random.default_rng(7), []
    for _ in range(3):
        drawn = generator.choice(320, 5, replace=False).tolist()
        weights = tiny_lm.trace([319, *drawn, *drawn])["blocks.1.attention.weights"][2].numpy()
        each.append([np.mean([weights[i, i - back] for i in range(6, 11)]) for back in (4, 1, 5)])
    for i, role in enumerate(("induction", "previous", "duplicate")):
        values = np.array(each)[:, i]
        assert getattr(found, role).mean[1, 2] == pytest.approx(values.mean(), rel=1e-4)
        assert getattr(found, role).margin[1, 2] == pytest.approx(1.96 * values.std(ddof=1) / 3**0.5, rel=1e-3)
    assert roles(tiny_lm, 5, 3, 7).to_dict() == json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert found.to_dict()["queries"] == 15


@pytest.mark.parametrize(("tokens", "texts", "said"), [(1, 8, "between 2 and 23"), (24, 8, "between"), (4, 1, "2 or")])
def test_what_cannot_be_measured_is_refused(tiny_lm, tokens, texts, said):
    with pytest.raises(CutawayError, match=said):
        roles(tiny_lm, tokens, texts)


def test_a_copying_head_is_one_that_says_again_what_it_attends_to(induction_lm, tiny_lm):
    found = roles(induction_lm, tokens=6, texts=2)
    assert found.copied == 128 and found.copying.mean[1, 1] == 1 and found.copying.margin[1, 1] == 0
    others = np.ones((2, 2), bool)
    others[1, 1] = False  # the others say nothing: no token is raised, and the first five are as good as any
    assert found.copying.mean[others].max() < 0.2

    words = [5, 9, 40, 41]
    from cutaway.inspect.roles import copying

    measured = copying(tiny_lm, words)
    for layer, head in ((0, 1), (2, 3)):
        block, said = tiny_lm.model.blocks[layer], []
        for word in words:
            value = tiny_lm.trace([319, word])[f"blocks.{layer}.attention.values"][head, 1]
            merged = torch.zeros(48)
            merged[head * 12 : (head + 1) * 12] = value
            added = merged @ block.attention.projection.weight.T
            logits = (added - added.mean()) * tiny_lm.model.final_norm.weight @ tiny_lm.model.output_matrix.T
            said.append(float(word in logits.topk(5).indices.tolist()))
        assert measured.mean[layer, head] == pytest.approx(np.mean(said))


def test_names_are_those_of_the_vocabulary(tiny_lm):
    from cutaway.inspect.roles import names_in

    found = roles(tiny_lm, tokens=4, texts=2)
    assert found.named == (len(names_in(tiny_lm)) if found.names is not None else 0)
