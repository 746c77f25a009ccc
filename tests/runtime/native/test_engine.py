"""The engine against the model it was packed from."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.library import KINDS, need
from cutaway.runtime.native.pack import pack, unpack

if library.load() is None:
    pytest.skip("the native engine is not built here: no C++ compiler", allow_module_level=True)

NAMES = [
    name for name in ("plain", "avx2", "avx512bw", "avx512", "avx512bf16") if need().cutaway_kernels(name.encode())
]
FURTHEST = {"float32": 2e-5, "bfloat16": 2e-5, "int8": 0.1, "int4": 0.1}
"""From the model of the same, rounded weights, in shares of the scores' spread."""


def furthest(engine: Engine) -> float:
    """Only AVX-512's own products of bfloat16 round the activations, too."""
    rounded = (engine.kernels, engine.weights) == ("avx512bf16", "bfloat16")
    return 0.05 if rounded else FURTHEST[engine.weights]


def ids_of(count: int, vocabulary: int = 203, seed: int = 0) -> list[int]:
    return np.random.default_rng(seed).integers(0, vocabulary, count).tolist()


@torch.inference_mode()
def logits(model, ids):
    return model(torch.tensor([ids]))[0].numpy()


def apart(a, b):
    return np.abs(a - b).max() / np.std(b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 17, 63, 64, 65, 80])
def test_scores_are_those_of_the_model_with_the_same_weights(make, name, kind, length):
    packed = pack(make(), kind)
    engine, ids = Engine(packed, 2, name), ids_of(length)
    assert apart(engine.read([engine.text()], [ids], length), logits(unpack(packed), ids)) < furthest(engine)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heads", [12, 16, 20, 25])
def test_the_four_sizes_numbers_of_heads(make, kind, heads):
    packed = pack(make(heads=heads, width=4 * heads), kind)
    engine, ids = Engine(packed), ids_of(70)
    assert apart(engine.read([engine.text()], [ids], 70), logits(unpack(packed), ids)) < furthest(engine)


@pytest.mark.parametrize(
    "shape",
    [
        {"width": 3, "heads": 1}, {"width": 35, "heads": 5, "mlp_width": 19}, {"width": 130, "heads": 2},
        {"tied": False}, {"scale_by_layer": True}, {"norm_epsilon": 0.01}, {"vocabulary": 16}, {"vocabulary": 17},
        {"context": 1}, {"context": 200}, {"activation": "gelu"}, {"activation": "relu"}, {"activation": "silu"},
    ],
    ids=str,
)  # fmt: skip
def test_odd_shapes(make, shape):
    model = make(**shape)
    engine, ids = Engine(pack(model, "float32")), ids_of(model.config.context, model.config.vocabulary)
    assert apart(engine.read([engine.text()], [ids], len(ids)), logits(model, ids)) < 3e-5


@pytest.mark.parametrize("kind", KINDS)
def test_many_inputs_are_met_in_several_strips(make, kind):
    packed = pack(make(mlp_width=2_500), kind)
    engine, ids = Engine(packed), ids_of(40)
    together = engine.read([engine.text()], [ids], 40)
    assert apart(together, logits(unpack(packed), ids)) < furthest(engine)
    text = engine.text()
    alone = np.concatenate([engine.read([text], [[token]]) for token in ids])  # one row a strip: nothing is unpacked
    assert np.array_equal(together, alone)


def test_a_long_text_in_blocks_of_large_pages(make):
    model = make(layers=64, width=64, context=200)  # a block of its memory is 2 MiB
    engine, ids = Engine(pack(model, "float32")), ids_of(200)
    text = engine.text()
    whole = engine.read([text], [ids], 200)
    assert apart(whole, logits(model, ids)) < 1e-4
    other = text.fork()
    other.trim(100)
    assert np.array_equal(engine.read([other], [ids[100:]], 100), whole[100:])
    text.trim(150)  # what the other one does with a block they shared is no business of this one
    assert np.array_equal(engine.read([text], [ids[150:]], 50), whole[150:])


def test_float32_packs_and_unpacks_to_the_last_bit(make):
    model = make(tied=False)
    back = unpack(pack(model, "float32"))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), back.parameters(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_unequal_length_join_and_leave_without_changing_one_another(make, kind):
    engine = Engine(pack(make(), kind), 2)
    ids = [ids_of(40, seed=seed) for seed in range(5)]
    alone = [engine.read([engine.text()], [one], 40) for one in ids]
    texts = [engine.text() for _ in ids]
    read = [0] * 5
    plan = [{0: 3}, {0: 1, 1: 7}, {0: 1, 1: 1, 2: 20, 3: 1}, {1: 1, 2: 1, 3: 1}, {4: 33, 2: 1}, {0: 5, 4: 1, 3: 9}]
    for step in plan:
        scores = engine.read(
            [texts[row] for row in step], [ids[row][read[row] : read[row] + n] for row, n in step.items()]
        )
        for at, (row, n) in enumerate(step.items()):
            read[row] += n
            assert (scores[at] == alone[row][read[row] - 1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_threads_changes_nothing(make, kind):
    packed, ids = pack(make(), kind), ids_of(70)
    found = []
    for threads in (1, 2, 3):
        engine = Engine(packed, threads)
        text = engine.text()
        found.append(np.concatenate([engine.read([text], [ids[:50]], 50), engine.read([text], [ids[50:]], 20)]))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_how_far_ahead_weights_are_fetched_changes_nothing(make, kind):
    packed, ids = pack(make(), kind), ids_of(70)
    expected = Engine(packed, 1)
    scores = expected.read([expected.text()], [ids], 70)
    for ahead in (0, 64, 1_024, 8_192, 1 << 20):
        engine = Engine(packed, 2)
        engine.library.cutaway_fetch_ahead(engine.handle, ahead)
        text = engine.text()
        assert (np.concatenate([engine.read([text], [[token]]) for token in ids]) == scores).all()
        assert engine.library.cutaway_fetches_ahead(engine.handle) == ahead


def test_the_first_tokens_find_out_how_far_ahead_and_are_the_same_meanwhile(make):
    engine, ids = Engine(pack(make(), "int8"), 2), ids_of(80)
    scores = engine.read([engine.text()], [ids], 80)
    assert engine.library.cutaway_fetches_ahead(engine.handle) == 0  # a prompt says nothing of single tokens
    text = engine.text()
    assert (np.concatenate([engine.read([text], [[token]]) for token in ids]) == scores).all()
    assert engine.library.cutaway_fetches_ahead(engine.handle) >= 1_024


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_a_fork_goes_its_own_way(make, kind):
    engine = Engine(pack(make(), kind))
    for length in (5, 64, 70):
        start, left, right = ids_of(length), ids_of(6, seed=1), ids_of(6, seed=2)
        text = engine.text()
        engine.read([text], [start])
        other = text.fork()
        scores = engine.read([text, other], [left, right])
        for row, end in enumerate((left, right)):
            assert (scores[row] == engine.read([engine.text()], [start + end])[0]).all()


def test_a_trimmed_text_reads_on_as_if_the_rest_had_never_been(make):
    engine = Engine(pack(make(), "int8"))
    for keep in (0, 1, 63, 64, 65):
        text, ids = engine.text(), ids_of(72)
        engine.read([text], [ids])
        other = text.fork()
        text.trim(keep)
        assert len(text) == keep
        again = engine.read([text], [ids[keep : keep + 3]])
        assert (again == engine.read([engine.text()], [ids[: keep + 3]])).all()
        assert (engine.read([other], [[5]]) == engine.read([engine.text()], [[*ids, 5]])).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", ["long", "forked", "trimmed"])
def test_a_text_in_blocks_that_others_have_left_is_as_in_a_new_engine(make, name, kind, left):
    packed, ids = pack(make(width=36, context=200), kind), ids_of(150, seed=3)  # heads of nine: an odd number
    used = Engine(packed, 2, name)
    before = used.text()
    used.read([before], [ids_of(199)])
    if left != "long":
        other = before.fork()
        other.trim(101)
        used.read([other], [ids_of(40, seed=1)])
        if left == "trimmed":
            before.trim(3)
            used.read([before], [ids_of(140, seed=2)])
        del other
    del before
    for lengths in ([1], [64, 1], [5, 2, 1, 57], [150], [33, 117]):
        text, afresh = used.text(), Engine(packed, 2, name).text()
        at = 0
        for count in lengths:
            piece = ids[at : at + count]
            expected = afresh.engine.read([afresh], [piece], count)
            assert np.array_equal(used.read([text], [piece], count), expected)
            at += count
        text.trim(at - 1)
        assert np.array_equal(used.read([text], [ids[at - 1 : at]]), expected[-1:])


def test_a_text_that_never_ends_is_refused_before_it_is_read(make):
    engine = Engine(pack(make(), "int8"))
    text = engine.text()
    engine.read([text], [ids_of(79)])
    with pytest.raises(CutawayError, match="81 tokens do not fit"):
        engine.read([text], [[1, 2]])
    assert len(text) == 79
    engine.read([text], [[1]])


@pytest.mark.parametrize("token", [-1, 203, 2**40])
def test_a_token_that_is_not_there_is_refused(make, token):
    engine = Engine(pack(make(), "int8"))
    with pytest.raises(CutawayError, match="There is no token"):
        engine.read([engine.text()], [[3, token]])


def test_two_callers_at_once_get_what_each_would_alone(make):
    engine = Engine(pack(make(), "int8"), 2)
    ids = [ids_of(60, seed=seed) for seed in range(4)]
    alone = [engine.read([engine.text()], [one], 60) for one in ids]
    wrong = []

    def work(number: int) -> None:
        for _ in range(5):
            text = engine.text()
            got = np.concatenate([engine.read([text], [[token]]) for token in ids[number]])
            if not (got == alone[number]).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nothing_asked_nothing_scored(make):
    engine = Engine(pack(make(), "float32"))
    text = engine.text()
    assert engine.read([text], [[1, 2, 3]], 0).shape == (0, 203)
    assert len(text) == 3
    assert engine.read([], []).shape == (0, 203)
