"""Texts join and leave at every step, each with its own settings, and each becomes what it becomes alone."""

import ast
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cutaway import decoding
from cutaway.decoding.beams import search
from cutaway.decoding.generate import TextStream, generate
from cutaway.decoding.sampling import choose
from cutaway.decoding.scheduler import Scheduler
from cutaway.decoding.sequence import Sequence
from cutaway.decoding.settings import Settings
from cutaway.errors import CutawayError
from cutaway.runtime.native import library
from cutaway.runtime.native.engine import Engine
from cutaway.runtime.native.pack import pack
from cutaway.runtime.torch_batch import TorchRuntime

KINDS = ["torch"] if library.load() is None else ["torch", "float32", "int8"]


@pytest.fixture(scope="module", params=KINDS)
def runtime(request, tiny_lm):
    return TorchRuntime(tiny_lm.model) if request.param == "torch" else Engine(pack(tiny_lm.model, request.param))


def lean(ids, logits):
    logits[len(ids) % 7 :: 7] += 1.5
    return logits


SETTINGS = [
    Settings(top_k=1),
    Settings(temperature=0.7, top_k=None, top_p=0.9),
    Settings(top_k=20, repetition_penalty=1.3, stop=("e", "th")),
    Settings(top_k=None, min_p=0.05, logit_bias={319: 3.0}),
    Settings(overflow="slide", frequency_penalty=0.5, presence_penalty=0.2, logit_bias={319: -50.0}),
    Settings(logits_processors=lean, temperature=1.4),
]


def some_text(rng: random.Random, tokenizer) -> Sequence:
    """A request: few tokens or many, sometimes a prompt that others have too, or one that fills the context."""
    length = rng.choice([0, 1, 2, 5, 12, 30, 47, 48])
    prompt = [5, 9, 7, 11] * 3 if rng.random() < 0.3 else [rng.randrange(319) for _ in range(length)]
    settings = replace(rng.choice(SETTINGS), max_tokens=rng.choice([None, 0, 1, 4, 15, 40]))
    if settings.overflow == "slide":
        settings = replace(settings, max_tokens=rng.choice([10, 70]))
    return Sequence(prompt, settings, tokenizer, seed=rng.randrange(3), sample=rng.randrange(3))


def alone(runtime, text: Sequence) -> Sequence:
    again, scheduler = Sequence(text.prompt, text.settings, text.codec, text.seed, text.sample), Scheduler(runtime)
    scheduler.add(again)
    while scheduler.busy:
        scheduler.step()
    return again


@pytest.mark.parametrize("seed", range(8))
def test_what_a_text_becomes_does_not_depend_on_who_joins_and_leaves(runtime, tiny_lm, seed):
    rng = random.Random(seed)
    scheduler, texts, cancelled = Scheduler(runtime, most=rng.choice([1, 2, 3, 6])), [], set()
    for _ in range(400):
        if len(texts) < 14 and rng.random() < 0.4:
            texts.append(some_text(rng, tiny_lm.tokenizer))
            scheduler.add(texts[-1])
        open_ones = [text for text in texts if not text.reason]
        if open_ones and rng.random() < 0.04:
            cancelled.add(gone := rng.choice(open_ones))
            scheduler.cancel(gone)
            assert gone.reason == "interrupted"
        before = {text: len(text.logprobs) for text in texts}
        changed = scheduler.step()
        assert all(text in changed for text in texts if len(text.logprobs) > before[text])
        assert len(scheduler.running) <= scheduler.most
        if not scheduler.busy and len(texts) == 14:
            break
    assert not scheduler.busy and len(texts) == 14
    assert len({text.reason for text in texts}) > 1
    for text in texts:
        expected = alone(runtime, text)
        if text in cancelled:
            assert text.ids == expected.ids[: len(text.ids)]
            continue
        assert (text.ids, text.filter.text, text.reason) == (expected.ids, expected.filter.text, expected.reason)
        assert (text.explanation, text.dropped) == (expected.explanation, expected.dropped)
        if isinstance(runtime, Engine):
            assert text.logprobs == expected.logprobs  # to the last bit
        else:
            assert text.logprobs == pytest.approx(expected.logprobs, abs=1e-4)


def test_a_cancelled_text_gives_back_its_row_and_its_memory(runtime, tiny_lm):
    scheduler = Scheduler(runtime)
    first, second = (Sequence([5, 6], Settings(), tiny_lm.tokenizer, seed) for seed in (1, 2))
    scheduler.add(first)
    scheduler.add(second)
    scheduler.step()
    scheduler.cancel(first)
    assert scheduler.running == [second]
    scheduler.cancel(second)
    assert not scheduler.busy and scheduler.step() == []
    held = scheduler.batch.rows if isinstance(runtime, Engine) else scheduler.batch.cache.keys.numel()
    assert not held


def test_what_goes_wrong_in_one_text_ends_that_text_only(runtime, tiny_lm):
    def broken(ids, logits):
        if len(ids) == 4:
            raise ZeroDivisionError("my own mistake")
        return logits

    bad = Sequence([5, 6], Settings(logits_processors=broken, top_k=1, logit_bias={319: -50}), tiny_lm.tokenizer, 1)
    good = Sequence([5, 6], Settings(top_k=1, max_tokens=6), tiny_lm.tokenizer, 1)
    scheduler = Scheduler(runtime)
    scheduler.add(bad)
    scheduler.add(good)
    while scheduler.busy:
        scheduler.step()
    assert (bad.reason, len(bad.ids), bad.explanation) == ("error", 2, "my own mistake")
    assert isinstance(bad.error, ZeroDivisionError)
    assert good.ids == alone(runtime, good).ids
    with pytest.raises(ZeroDivisionError, match="my own mistake"):
        generate(runtime, tiny_lm.tokenizer, [[5, 6]], bad.settings)
    with pytest.raises(ZeroDivisionError, match="my own mistake"):
        list(TextStream(runtime, tiny_lm.tokenizer, [5, 6], bad.settings))


class Broken(TorchRuntime):
    """Reads the prompt, and is interrupted at the second step."""

    def read(self, ids, cache):
        if cache.length:
            raise KeyboardInterrupt
        return super().read(ids, cache)


def test_a_reading_that_is_broken_off_is_never_gone_on_with(tiny_lm):
    stream = TextStream(Broken(tiny_lm.model), tiny_lm.tokenizer, [5, 6], Settings(top_k=1, logit_bias={319: -50}))
    tokens = stream.tokens()
    first = next(tokens)
    with pytest.raises(KeyboardInterrupt):
        next(tokens)
    assert list(stream.tokens()) == [] and not stream.scheduler.busy
    assert (stream.result.ids, stream.result.reason) == ([first.id], "interrupted")


def test_a_prompt_that_does_not_fit_is_refused_when_it_is_added(runtime, tiny_lm):
    scheduler = Scheduler(runtime)
    with pytest.raises(CutawayError, match="60 tokens long and this model's context is 48"):
        scheduler.add(Sequence([1] * 60, Settings(), tiny_lm.tokenizer, 1))
    assert not scheduler.busy


def test_an_observer_sees_how_every_token_was_chosen(runtime, tiny_lm):
    seen = []
    settings = Settings(seed=3, max_tokens=12, temperature=0.8, repetition_penalty=1.2, samples=2)
    results = generate(runtime, tiny_lm.tokenizer, [[5, 6], [7]], settings, seen.append)
    assert results == generate(runtime, tiny_lm.tokenizer, [[5, 6], [7]], settings)
    for result in results:
        own = [one for one in seen if one.sequence.ids is result.ids]
        ended = [tiny_lm.config.end] * (result.reason == "end")
        assert [one.token for one in own] == result.ids + ended
        for one, logprob in zip(own, result.logprobs, strict=False):
            assert choose(one.adjusted, settings, one.uniform) == one.token
            total = np.log(np.exp(one.logits.astype(np.float64)).sum())
            assert logprob == pytest.approx(one.logits[one.token] - total, abs=1e-5)


class CountingBatch:
    def __init__(self):
        self.texts = []

    def scores(self, texts):
        return np.eye(10, dtype=np.float32)[[(text[-1] + 1) % 10 for text in texts]] * 50

    def add(self, windows):
        self.texts += (new := [list(window) for window in windows])
        return self.scores(new)

    def step(self, tokens):
        self.texts = [[*text, token] for text, token in zip(self.texts, tokens, strict=True)]
        return self.scores(self.texts)

    def keep(self, rows):
        self.texts = [self.texts[row] for row in rows]


class Counting:
    """A model without weights: after a token comes the next higher one. All that decoding asks of a model is here."""

    class config:
        context, end = 40, 9

    def open(self):
        return CountingBatch()


class Digits:
    """A tokenizer of ten tokens."""

    def __len__(self):
        return 10

    class stream:
        def add(self, token):
            return str(token)

        def finish(self):
            return ""

    def decode(self, ids):
        return "".join(map(str, ids))


def test_whatever_answers_the_protocol_can_be_decoded_streamed_and_searched():
    found = generate(Counting(), Digits(), [[3], [], [7]], Settings(seed=1))
    assert [one.text for one in found] == ["45678", "012345678", "8"]
    assert "".join(TextStream(Counting(), Digits(), [3], Settings(stop=("7",)))) == "456"
    assert [one.text for one in search(Counting(), Digits(), [[3], [7]], Settings(beams=2))] == ["45678", "8"]


def test_decoding_knows_nothing_of_what_runs_a_model():
    for path in Path(decoding.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            rooms = {name.split(".")[1] for name in names if name.startswith("cutaway.")}
            assert not rooms & {"runtime", "models", "checkpoint", "inspect", "language_model"}, path.name
            assert not any(name.startswith("torch") for name in names), path.name
