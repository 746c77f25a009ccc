"""Batches: every token once an epoch, the same on one process or several, and resumed to the bit."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway.errors import CutawayError
from cutaway.tasks import Arrays, Classification, Language, Translation
from cutaway.tasks.token_loss import IGNORED, next_tokens
from cutaway.text.tokenizer import Tokenizer
from cutaway.train.data.batches import Batches, once
from cutaway.train.data.order import key, shuffled
from cutaway.train.data.shards import Split, Stored, prepare


def plain(size: int) -> Split:
    """A text whose every token is another one."""
    ids = Stored(np.arange(size, dtype=np.uint32), np.array([0, size], np.uint64))
    return Split("text", {"ids": ids}, size, packed=True)


def examples(lengths: list[int], rows: int = 1, labelled: bool = False) -> Split:
    """Examples whose ids are 1000 x their number + the place; the answer begins in the middle."""
    tokens = np.concatenate([1000 * i + np.arange(length) for i, length in enumerate(lengths)])
    ids = Stored(tokens.astype(np.uint32), np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64))
    each = np.arange(len(lengths) + 1, dtype=np.uint64)
    labels = Stored(np.arange(len(lengths), dtype=np.int32) // rows, each)
    answers = Stored(np.array([max(1, length // 2) for length in lengths], np.uint32), each)
    other = {"label": labels} if labelled else {"answer": answers}
    return Split("examples", {"ids": ids, **other}, 0, rows, ahead=0 if labelled else 1)


def same(one: list[Arrays], two: list[Arrays]) -> bool:
    return len(one) == len(two) and all(
        a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
        for a, b in zip(one, two, strict=True)
    )


def firsts(batch: list[Arrays]) -> list[int]:
    """Which examples are in a batch."""
    return [int(example["ids"][0]) // 1000 for example in batch]


lengths = st.lists(st.integers(2, 20), min_size=1, max_size=80)
splits = st.one_of(
    st.integers(40, 900).map(plain),
    lengths.map(examples),
    lengths.map(lambda some: examples(some, labelled=True)),
    lengths.map(lambda some: examples(some + some, rows=2, labelled=True)),
)


# the order


@given(count=st.integers(1, 3000), seed=st.integers(0, 2**70))
@settings(max_examples=100, deadline=None)
def test_a_shuffling_has_every_thing_once_and_can_be_entered_anywhere(count, seed):
    whole = shuffled(np.arange(count), count, seed)
    assert sorted(whole) == list(range(count))
    middle = np.arange(count // 3, count // 2)
    assert np.array_equal(shuffled(middle, count, seed), whole[middle])


def test_a_shuffling_of_more_things_than_memory_holds_takes_none():
    places = np.array([0, 1, 10**12, 10**15 - 1])
    found = shuffled(places, 10**15, 1)
    assert len(set(found.tolist())) == 4
    assert (found < 10**15).all()


def test_every_order_of_a_few_things_comes_up_about_equally_often():
    seen = Counter(tuple(shuffled(np.arange(4), 4, seed)) for seed in range(4800))
    assert len(seen) == 24
    assert 130 < min(seen.values()) < max(seen.values()) < 280  # 200 expected, give or take 14


def test_neighbours_do_not_stay_neighbours():
    found = shuffled(np.arange(10_000), 10_000, 5)
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.05
    assert abs(np.corrcoef(found, np.arange(10_000))[0, 1]) < 0.05


def test_the_order_is_the_same_on_every_machine_and_in_every_version():
    assert shuffled(np.arange(10), 10, key(0, 0, 0)).tolist() == [1, 7, 4, 2, 8, 9, 0, 6, 3, 5]
    assert key(1, 2, 3) == 2869315087210772132


# plain text


@given(size=st.integers(20, 900), length=st.integers(3, 19), batch=st.integers(2, 9), seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_an_epoch_of_text_has_every_window_once_and_targets_are_the_next_tokens(size, length, batch, seed):
    batches = Batches(plain(size), batch, length, seed)
    count = size // length
    rows = [row["ids"] for _ in range(-(-count // batch)) for row in next(batches)][:count]
    assert len(np.unique([ids[:-1] for ids in rows])) == count * length
    assert all(np.array_equal((ids[:-1] + 1) % size, ids[1:]) for ids in rows)


def test_each_epoch_cuts_the_text_at_other_places_in_another_order():
    batches = Batches(plain(1000), 10, 10, seed=3)
    epochs = [[[int(row["ids"][0]) for row in next(batches)] for _ in range(10)] for _ in range(4)]
    assert len({starts[0][0] % 10 for starts in epochs}) > 1
    assert len({str(epoch) for epoch in epochs}) == 4
    assert batches.epoch == 4
    assert batches.per_epoch == 10


def test_another_seed_gives_another_order():
    assert not same(next(Batches(plain(1000), 8, 10, 0)), next(Batches(plain(1000), 8, 10, 1)))


def test_in_one_pass_over_text_every_target_counts_once_in_order():
    found = [next_tokens(examples) for examples in once(plain(103), 4, 10)]
    targets = np.concatenate([batch.tensors["targets"].numpy().reshape(-1) for batch in found])
    assert targets[targets != IGNORED].tolist() == list(range(1, 103))
    assert sum(batch.count for batch in found) == sum(batch.tokens for batch in found) == 102
    assert [len(batch.tensors["inputs"]) for batch in found] == [4, 4, 3]


def test_a_text_shorter_than_a_window_can_still_be_measured():
    (examples,) = once(plain(5), 4, 10)
    batch = next_tokens(examples)
    assert batch.tensors["inputs"].tolist() == [[0, 1, 2, 3]]
    assert batch.tensors["targets"].tolist() == [[1, 2, 3, 4]]
    assert batch.count == 4


def test_text_of_which_every_token_is_read_and_asked_for_is_cut_without_overlap():
    split = replace(plain(23), ahead=0)
    found = [row["ids"].tolist() for batch in once(split, 2, 10) for row in batch]
    assert found == [[*range(10)], [*range(10, 20)], [20, 21, 22]]
    assert {len(row["ids"]) for row in next(Batches(split, 2, 10))} == {10}


# examples


def test_a_row_is_one_example_and_only_its_answer_counts():
    batch = next_tokens(next(once(examples([6, 3]), 2, 10)))
    assert batch.tensors["inputs"].tolist() == [[0, 1, 2, 3, 4], [1000, 1001, 0, 0, 0]]
    assert batch.tensors["targets"].tolist() == [[-100, -100, 3, 4, 5], [1001, 1002, -100, -100, -100]]
    assert (batch.tokens, batch.count) == (7, 5)


def test_of_several_answers_in_a_row_only_what_is_marked_counts():
    marked = {"ids": np.array([5, 6, 7, 8, 9]), "counted": np.array([0, 1, 0, 0, 1], np.uint8)}
    batch = next_tokens([marked])
    assert batch.tensors["targets"].tolist() == [[6, -100, -100, 9]]
    assert batch.count == 2


def test_with_classes_the_last_token_is_read_and_its_place_told():
    task = Classification(("a", "b"))
    batch = task.collate(next(once(examples([6, 3], labelled=True), 2, 10)))
    assert batch.tensors["inputs"].tolist() == [[0, 1, 2, 3, 4, 5], [1000, 1001, 1002, 0, 0, 0]]
    assert batch.tensors["last"].tolist() == [5, 2]
    assert batch.tensors["labels"].tolist() == [0, 1]
    assert (batch.tokens, batch.count) == (9, 2)


@given(lengths=lengths, batch=st.integers(1, 9), seed=st.integers(0, 99), rows=st.sampled_from([1, 3]))
@settings(max_examples=80, deadline=None)
def test_an_epoch_has_every_example_once_and_records_whole(lengths, batch, seed, rows):
    split = examples([length for length in lengths for _ in range(rows)], rows=rows, labelled=True)
    batches = Batches(split, batch, 20, seed)
    seen: Counter[int] = Counter()
    taken = 0
    while taken % len(lengths) or not taken or taken % (batches.pool_size * batch):
        made = next(batches)
        taken += batch
        numbers = firsts(made)
        assert numbers == [first + k for first in numbers[::rows] for k in range(rows)]
        seen.update(numbers)
        assert [int(one["label"][0]) for one in made] == [number // rows for number in numbers]
    assert set(seen.values()) == {taken // len(lengths)}
    assert len(seen) == len(lengths) * rows


def test_rows_of_like_length_stand_together():
    dice = np.random.default_rng(0)
    split = examples(dice.integers(5, 100, 4000).tolist())
    batches = Batches(split, 32, 100)
    made = [next_tokens(next(batches)) for _ in range(60)]
    padded = sum(batch.tensors["inputs"].numel() for batch in made)
    assert sum(batch.tokens for batch in made) / padded > 0.9
    widths = [batch.tensors["inputs"].shape[1] for batch in made]
    assert widths != sorted(widths)


def test_fewer_examples_than_a_batch_holds_come_again():
    batch = next(Batches(examples([4, 5, 6]), 7, 10))
    assert set(Counter(firsts(batch)).values()) == {2, 3}


def test_in_one_pass_over_examples_each_comes_once_in_order():
    found = list(once(examples([4] * 10), 4, 10))
    assert [firsts(batch) for batch in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


# resumed


@given(split=splits, batch=st.integers(1, 8), seed=st.integers(0, 2**40), before=st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_resumed_batches_go_on_to_the_bit(split, batch, seed, before):
    whole = Batches(split, batch, 20, seed)
    for _ in range(before):
        next(whole)
    resumed = Batches(split, batch, 20, seed)
    resumed.restore(json.loads(json.dumps(whole.state())))
    assert resumed.state() == whole.state()
    for _ in range(5):
        assert same(next(resumed), next(whole))


def test_a_state_taken_on_two_processes_goes_on_with_one():
    two = [Batches(plain(500), 4, 10, 7, rank, 2) for rank in (0, 1)]
    one = Batches(plain(500), 4, 10, 7)
    for _ in range(30):
        next(one), next(two[0]), next(two[1])
    assert two[0].state() == two[1].state() == one.state()


def test_other_data_or_another_way_to_cut_it_is_refused():
    state = Batches(plain(500), 4, 10, 7).state()
    other = replace(plain(500), fingerprint="other")
    for batches, message in [
        (Batches(other, 4, 10, 7), "The data is not what this training started with"),
        (Batches(plain(500), 8, 10, 7), "The batch of the batches was 4"),
        (Batches(plain(500), 4, 20, 7), "The length of the batches was 10"),
        (Batches(plain(500), 4, 10, 8), "The seed of the batches was 7"),
    ]:
        with pytest.raises(CutawayError, match=message):
            batches.restore(state)


def test_one_changed_byte_of_data_is_noticed_on_resuming(tmp_path):
    tokenizer = Tokenizer.train(["the little fox"] * 4, size=300)
    path, cache = tmp_path / "a.txt", tmp_path / "cache"
    path.write_text("the little fox " * 50)
    data = prepare([path], tokenizer, Language(), cache, held_out=0, workers=1)
    state = Batches(data.train, 2, 8).state()
    path.touch()
    Batches(prepare([path], tokenizer, Language(), cache, held_out=0, workers=1).train, 2, 8).restore(state)
    path.write_text("the little fux " + "the little fox " * 49)
    changed = prepare([path], tokenizer, Language(), cache, held_out=0, workers=1)
    with pytest.raises(CutawayError, match="data is not what"):
        Batches(changed.train, 2, 8).restore(state)


# several processes


@given(split=splits, world=st.integers(1, 5), each=st.integers(1, 4), seed=st.integers(0, 99), skip=st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_the_rows_of_all_processes_are_those_of_one_in_the_same_order(split, world, each, seed, skip):
    alone = Batches(split, world * each, 20, seed)
    together = [Batches(split, world * each, 20, seed, rank, world) for rank in range(world)]
    for batches in (alone, *together):
        batches.position = skip
    for _ in range(4):
        whole, parts = next(alone), [next(batches) for batches in together]
        assert same([example for part in parts for example in part], whole)


@given(split=splits, world=st.integers(1, 5), batch=st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_a_pass_is_shared_between_processes_without_loss(split, world, batch):
    alone = list(once(split, batch, 20))
    together = [list(once(split, batch, 20, rank, world)) for rank in range(world)]
    assert {len(part) for part in together} == {len(alone)}
    for number, whole in enumerate(alone):
        assert same([example for part in together for example in part[number]], whole)


# mistakes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Batches(plain(10), 2, 16), "The text has only 10 tokens, and one row of a batch takes 17: give more"),
        (lambda: Batches(plain(0), 2, 16), "The text has only 0 tokens"),
        (lambda: next(once(plain(1), 2, 16)), "The text has only 1 tokens"),
        (lambda: Batches(examples([4, 30, 5]), 2, 16), "The longest example has 30 tokens"),
        (lambda: Batches(plain(100), 5, 16, world=2), "A batch of 5 cannot be divided equally between 2"),
        (lambda: Batches(plain(100), 0, 16), "at least 1 row"),
        (lambda: Batches(plain(100), 4, 16, rank=2, world=2), "no process 2 of 2"),
    ],
)
def test_what_cannot_be_is_explained(make, message):
    with pytest.raises(CutawayError, match=message):
        make()


def test_a_side_without_examples_is_explained(tmp_path):
    task = Translation()
    tokenizer = Tokenizer.train(["the little fox"] * 4, size=300).with_specials(task.specials)
    (tmp_path / "a.tsv").write_text("fox\trenard\n")
    data = prepare([tmp_path / "a.tsv"], tokenizer, task, tmp_path / "cache", held_out=0, workers=1)
    assert len(next(Batches(data.train, 2, 16))) == 2
    with pytest.raises(CutawayError, match="There are no examples"):
        Batches(data.held, 2, 16)
