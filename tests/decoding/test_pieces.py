"""A server's schedule: prompts in pieces, turns, prefixes read before. None of it changes what a text becomes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cutaway.decoding.scheduler import Scheduler
from cutaway.decoding.sequence import Sequence
from cutaway.decoding.settings import Settings
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import pack
from cutaway.runtime.torch_batch import TorchRuntime

KINDS = ["torch"] if library.load() is None else ["torch", "native"]


@pytest.fixture(params=KINDS)
def runtime(request, tiny_lm):
    return Engine(pack(tiny_lm.model, "float32")) if request.param == "native" else TorchRuntime(tiny_lm.model)


def texts_of(lm, count: int, seed: int = 0) -> list[Sequence]:
    chance = random.Random(seed)
    start = lm.ids("Once upon a time there was a little fox who wanted")
    found = []
    for number in range(count):
        prompt = start[: chance.randrange(1, len(start))] + [chance.randrange(300) for _ in range(chance.randrange(9))]
        settings = Settings(max_tokens=chance.randrange(1, 20), temperature=chance.choice([0.0, 1.0]), top_k=None)
        found.append(Sequence(prompt, settings, lm.tokenizer, seed=number, sample=number % 3))
    return found


def alone(runtime, text: Sequence) -> list[int]:
    again = Sequence(text.prompt, text.settings, text.codec, text.seed, text.sample)
    scheduler = Scheduler(runtime)
    scheduler.add(again)
    while scheduler.busy:
        scheduler.step()
    return again.ids


def test_texts_that_join_and_leave_in_pieces_and_turns_become_what_each_becomes_alone(runtime, tiny_lm):
    texts, chance = texts_of(tiny_lm, 30), random.Random(1)
    scheduler = Scheduler(runtime, most=4, piece=5, turn=3)
    if isinstance(runtime, Engine):
        from cutaway.runtime.native.prefixes import Prefixes

        scheduler.batch.prefixes = Prefixes(1 << 20)
    left, cancelled = list(texts), set()
    while scheduler.busy or left:
        for _ in range(chance.randrange(3)):
            if left:
                scheduler.add(left.pop(), group=chance.randrange(3))
        scheduler.step()
        if chance.random() < 0.1 and scheduler.running:
            gone = chance.choice(scheduler.running)
            scheduler.cancel(gone)
            cancelled.add(gone)
    assert len(texts) - len(cancelled) > 15
    assert [text.ids for text in texts if text not in cancelled] == [
        alone(runtime, text) for text in texts if text not in cancelled
    ]
    for text in cancelled:  # what they had written until then is what they would have begun with
        assert text.ids == alone(runtime, text)[: len(text.ids)]
    assert not (scheduler.aside or scheduler.reading or scheduler.groups or scheduler.since)


def test_those_who_write_go_on_while_a_long_prompt_is_read(runtime, tiny_lm):
    writing = Sequence([1, 2], Settings(max_tokens=30, logit_bias={tiny_lm.tokenizer.end: -99.0}), tiny_lm.tokenizer, 0)
    long = Sequence(list(range(40)), Settings(max_tokens=1), tiny_lm.tokenizer, 0)
    scheduler = Scheduler(runtime, piece=8)
    scheduler.add(writing)
    scheduler.step()
    scheduler.add(long)
    lengths = []
    while not long.ids:
        before = len(writing.ids)
        scheduler.step()
        lengths.append(len(writing.ids) - before)
    assert lengths == [1] * 5  # forty tokens, eight at a step


def test_a_short_prompt_is_not_behind_a_long_one(runtime, tiny_lm):
    long = Sequence(list(range(40)), Settings(max_tokens=1), tiny_lm.tokenizer, 0)
    short = Sequence([5, 6, 7], Settings(max_tokens=1), tiny_lm.tokenizer, 0)
    scheduler = Scheduler(runtime, piece=8)
    scheduler.add(long)
    scheduler.add(short)
    scheduler.step()
    assert short.newest and not long.newest


def test_one_who_waits_gets_a_turn_before_a_long_text_has_ended(runtime, tiny_lm):
    bias = {tiny_lm.tokenizer.end: -99.0}
    long = Sequence([1, 2], Settings(max_tokens=40, logit_bias=bias), tiny_lm.tokenizer, 0)
    scheduler = Scheduler(runtime, most=1, piece=8, turn=4)
    scheduler.add(long)
    scheduler.step()
    short = Sequence([3], Settings(max_tokens=2, logit_bias=bias), tiny_lm.tokenizer, 0)
    scheduler.add(short)
    while not short.reason:
        scheduler.step()
    assert 4 <= len(long.ids) < 10
    while scheduler.busy:
        scheduler.step()
    assert long.ids == alone(runtime, long)


def test_a_request_of_many_texts_does_not_keep_another_out(runtime, tiny_lm):
    many = [Sequence([n], Settings(max_tokens=1), tiny_lm.tokenizer, 0) for n in range(20)]
    one = Sequence([30], Settings(max_tokens=1), tiny_lm.tokenizer, 0)
    scheduler = Scheduler(runtime, most=2, piece=8)
    for text in many:
        scheduler.add(text, group="many")
    scheduler.add(one, group="one")
    scheduler.step()
    scheduler.step()
    assert one.reason == "length" or one.newest


def test_every_token_of_a_prompt_can_be_scored_on_the_way(runtime, tiny_lm):
    ids = tiny_lm.ids("A robot must obey the orders given it")
    text = Sequence(ids, Settings(max_tokens=1), tiny_lm.tokenizer, 0, score_prompt=True)
    rows: dict[int, np.ndarray] = {}
    scheduler = Scheduler(
        runtime, piece=4, prompts=lambda one, start, scores: rows.update(enumerate(scores.copy(), start))
    )
    scheduler.add(text)
    while scheduler.busy:
        scheduler.step()
    found = np.stack([rows[at] for at in range(len(ids))])
    np.testing.assert_allclose(found, tiny_lm.logits(ids).numpy(), atol=1e-4)


@pytest.mark.skipif("native" not in KINDS, reason="the kernels were not compiled")
def test_a_prefix_read_before_is_not_read_again_and_memory_is_bounded(tiny_lm):
    from cutaway.runtime.native.prefixes import Prefixes

    engine = Engine(pack(tiny_lm.model, "float32"))
    one_text = engine.text()
    engine.read([one_text], [[1]])
    scheduler = Scheduler(engine, piece=64)
    scheduler.batch.prefixes = kept = Prefixes(3 * one_text.nbytes)
    start = list(range(30))
    for last in range(8):
        text = Sequence([*start, 100 + last], Settings(max_tokens=3), tiny_lm.tokenizer, 0)
        scheduler.add(text)
        while scheduler.busy:
            scheduler.step()
        assert text.ids == alone(engine, text)
        assert kept.held == sum(one.nbytes for one in kept.texts.values()) <= kept.memory
    assert kept.found == 7 * 30
