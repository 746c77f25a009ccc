"""An async stream gives what the plain one gives, leaves the event loop free, and lets go of the model at once."""

import asyncio
import threading

import pytest

from cutaway.errors import CutawayError


def gather(stream):
    async def all_of_it():
        return [piece async for piece in stream]

    return asyncio.run(all_of_it())


def test_it_gives_the_pieces_and_the_tokens_of_the_plain_stream(tiny_lm):
    plain = tiny_lm.stream("Once upon", max_tokens=12, seed=3)
    pieces = list(plain)
    stream = tiny_lm.astream("Once upon", max_tokens=12, seed=3)
    assert gather(stream) == pieces
    assert stream.result == plain.result
    tokens = gather(tiny_lm.astream("Once upon", max_tokens=12, seed=3).tokens())
    assert tokens == list(tiny_lm.stream("Once upon", max_tokens=12, seed=3).tokens())


class Held:
    """A processor that waits, as a slow model would, until it is let go on."""

    def __init__(self):
        self.begun, self.go_on, self.calls = threading.Event(), threading.Event(), 0

    def __call__(self, ids, logits):
        self.calls += 1
        if self.calls == 3:
            self.begun.set()
            assert self.go_on.wait(60)
        return logits


def test_the_event_loop_goes_on_and_cancelling_frees_the_model(tiny_lm):
    held = Held()
    stream = tiny_lm.astream("Once", max_tokens=30, seed=1, logits_processors=held)

    async def read():
        async for _ in stream.tokens():
            pass

    async def main():
        task = asyncio.create_task(read())
        while not held.begun.is_set():  # the loop is free while the model writes
            await asyncio.sleep(0)
        task.cancel()
        held.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert held.calls == 3
    assert stream.result.reason == "interrupted" and len(stream.result.ids) == 3
    assert not stream.stream.scheduler.busy  # closed: its cache is gone


def test_leaving_the_loop_stops_the_writing(tiny_lm):
    held = Held()
    held.go_on.set()
    stream = tiny_lm.astream("Once", max_tokens=30, seed=1, logits_processors=held)

    async def main():
        tokens = stream.tokens()
        async for _ in tokens:
            break
        await tokens.aclose()

    asyncio.run(main())
    assert held.calls == 1 and not stream.stream.scheduler.busy


def test_what_goes_wrong_in_the_thread_is_raised_in_the_task(tiny_lm):
    def broken(ids, logits):
        return None

    with pytest.raises(CutawayError, match="logits processor broken"):
        gather(tiny_lm.astream("Once", max_tokens=3, logits_processors=broken))


def test_what_cannot_be_streamed_is_refused_before_it_begins(tiny_lm):
    with pytest.raises(CutawayError, match="Only one text can be streamed"):
        tiny_lm.astream("Once", beams=2)
