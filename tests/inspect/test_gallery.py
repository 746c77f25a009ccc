"""The article's examples, on any model: what each shows is what the run holds."""

from __future__ import annotations

import pytest
import torch

import cutaway
from cutaway.inspect import gallery
from cutaway.inspect.runs import run


def test_rows_of_the_four_words_are_shares_and_the_mask_closes_the_future(tiny_lm):
    found = gallery.four_words(tiny_lm, layer=1, head=1)
    assert found.words == ("robot", "must", "obey", "orders")
    assert sum(found.tokens) == len(run(tiny_lm, gallery.ORDERS))
    for table in (found.unmasked, found.masked):
        assert table.sum(1) == pytest.approx([1.0] * 4, abs=1e-5)
    assert found.masked[0, 0] == pytest.approx(1.0)
    assert all(found.masked[row, column] == 0 for row in range(4) for column in range(row + 1, 4))
    assert all(found.unmasked[row, column] > 0 for row in range(4) for column in range(4))


def test_where_a_word_is_several_tokens_its_last_looks_and_all_are_looked_at(tiny_lm):
    seen = run(tiny_lm, gallery.ORDERS)
    groups = gallery.by_words(seen)
    weights = seen["blocks.0.attention.weights"][0]
    found = gallery.four_words(tiny_lm).masked
    for row, looking in enumerate(groups):
        for column, looked in enumerate(groups):
            assert found[row, column] == pytest.approx(float(weights[looking[-1], looked].sum()), abs=1e-6)


def test_the_mixture_is_the_weighted_sum_of_the_values_in_the_head_that_looks_most_at_the_word(tiny_lm):
    found = gallery.mixture(tiny_lm)
    assert found.tokens[-1].bytes.decode().endswith("t")  # it, or its end
    summed = (torch.tensor(found.weights)[:, None] * torch.tensor(found.values)).sum(0)
    assert found.mixed == pytest.approx(summed.numpy(), rel=1e-4, abs=1e-5)
    seen = run(tiny_lm, gallery.SECOND_LAW)
    most = max(
        float(seen[f"blocks.{layer}.attention.weights"][:, found.position, found.toward].max())
        for layer in range(tiny_lm.config.layers)
    )
    assert found.weights[found.toward] == pytest.approx(most)


@pytest.mark.parametrize(
    ("ids", "begins", "period"),
    [
        ([1, 2, 3, 4, 5, 6], None, None),
        ([9, 8, 1, 2, 1, 2, 1, 2], 2, 2),
        ([7, 7, 7, 7], 0, 1),
        ([1, 2, 3, 1, 2, 3, 1, 2], None, None),  # not three times
        ([5, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3], 1, 3),  # a round may begin in the middle of it
    ],
)
def test_a_loop_is_what_is_written_three_times_in_a_row_up_to_the_end(ids, begins, period):
    assert gallery.stuck(ids) == (begins, period)


def test_the_likeliest_each_time_is_greedy_and_drawing_is_repeated_by_its_seed(tiny_lm):
    found, again = (gallery.loop(tiny_lm, count=20) for _ in range(2))
    assert found == again
    prompt = [one.id for one in found.prompt]
    assert [one.id for one in found.greedy.tokens] == tiny_lm.generate(prompt, 20, temperature=0).ids


def test_what_was_written_before_counts_as_repeated():
    assert gallery.repeated([], [1, 2, 3, 4, 5, 6]) == 0
    assert gallery.repeated([1, 2, 3, 4], [1, 2, 3, 4]) == 1 / 4  # its last token ends the phrase of the prompt
    assert gallery.repeated([], [7] * 20) > 0.7


def test_four_words_are_four_examples_whose_mean_loss_is_told(tiny_lm):
    found = gallery.batch(tiny_lm)
    assert [one.words for one in found.examples] == [
        ("robot",), ("robot", "must"), ("robot", "must", "obey"), ("robot", "must", "obey", "orders"),
    ]  # fmt: skip
    assert [one.wanted for one in found.examples] == ["must", "obey", "orders", None]
    seen = run(tiny_lm, gallery.ORDERS)
    end = float(seen.logits([-1])[0].softmax(-1)[tiny_lm.config.end])
    assert found.examples[-1].probability == pytest.approx(end, rel=1e-4)
    assert found.loss == pytest.approx(sum(one.loss for one in found.examples) / 4)


def test_the_included_model_gets_stuck_and_is_freed():
    found = gallery.loop(cutaway.load())
    assert found.greedy.period and found.drawn.period is None
    assert found.greedy.repeated > found.drawn.repeated
