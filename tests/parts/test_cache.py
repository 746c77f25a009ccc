"""The cache holds what each layer computed, lets rows leave and fork, and never more than it was made for."""

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.parts.cache import Cache


@torch.no_grad()
def filled(model, rows=3, length=6, padding=None):
    cache = Cache(model.config, rows, capacity=12, padding=padding)
    ids = torch.randint(0, 320, (rows, length), generator=torch.Generator().manual_seed(1))
    model(ids, cache)
    return cache, ids


@torch.no_grad()
@pytest.mark.parametrize("rows", [[2, 0], [1], [0, 0, 2, 1, 1], [2, 1, 0]])
def test_selected_rows_go_on_as_if_they_had_been_alone(tiny, rows):
    cache, ids = filled(tiny)
    cache.select(torch.tensor(rows))
    new = torch.tensor([[5]] * len(rows))
    whole = tiny(torch.cat([ids[rows], new], 1))[:, -1:]
    assert torch.allclose(tiny(new, cache), whole, atol=1e-5)


@torch.no_grad()
def test_columns_that_only_pad_leave_with_the_longest_row(tiny):
    cache, ids = filled(tiny, padding=torch.tensor([0, 2, 4]))
    cache.select(torch.tensor([1, 2]))
    assert cache.length == 4
    assert cache.padding.tolist() == [0, 2]
    logits = tiny(torch.tensor([[5], [5]]), cache)
    assert torch.allclose(logits[1], tiny(torch.tensor([[*ids[2, 4:].tolist(), 5]]))[0, -1:], atol=1e-5)
    cache.select(torch.tensor([0]))
    assert cache.padding is None


@torch.no_grad()
def test_trimmed_columns_are_forgotten(tiny):
    cache, ids = filled(tiny)
    cache.trim(4)
    assert torch.allclose(tiny(ids[:, 4:], cache), tiny(ids)[:, 4:], atol=1e-5)


def test_its_size_is_two_vectors_a_layer_and_token(tiny):
    cache, _ = filled(tiny)
    assert cache.nbytes == 2 * 3 * 3 * 6 * 48 * 4  # keys and values, layers, rows, columns, width, bytes


def test_more_than_it_holds_is_refused(tiny):
    cache, _ = filled(tiny)
    with pytest.raises(CutawayError, match="holds 12 tokens and was given 13"):
        tiny(torch.zeros(3, 7, dtype=torch.long), cache)


@torch.no_grad()
@pytest.mark.parametrize(("first", "second"), [(6, 3), (3, 6), (4, 4)])
def test_rows_that_join_and_rows_that_were_there_go_on_as_if_alone(tiny, first, second):
    cache, ids = filled(tiny, 2, first, torch.tensor([0, 2]))
    other, more = filled(tiny, 2, second)
    other.keys[:, :, :, second:] = cache.values[:, :, :, first:] = torch.nan  # what lies beyond is never read
    cache.join(other)
    assert (cache.batch, cache.length) == (4, max(first, second))
    logits = tiny(torch.tensor([[5]] * 4), cache)[:, -1]
    texts = [ids[0], ids[1, 2:], *more]
    for row, text in zip(logits, texts, strict=True):
        assert torch.allclose(row, tiny(torch.tensor([[*text.tolist(), 5]]))[0, -1], atol=1e-5)
