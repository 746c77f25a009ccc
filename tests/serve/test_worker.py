from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

from cutaway.serve.worker import Outdated, Worker


def run(main: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: a browser that other tests have open keeps this one's event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, main).result()


class Asker:
    """A request whose page goes away when it is told to."""

    def __init__(self) -> None:
        self.left = False

    async def is_disconnected(self) -> bool:
        return self.left


def test_work_nobody_waits_for_stops_at_the_next_block(tiny_lm):
    """The forward pass of a long text ends as soon as a newer question has come."""
    worker, asker, seen, go_on = Worker(), Asker(), threading.Event(), threading.Event()
    blocks: list[int] = []

    def first(module: object, given: object) -> None:
        blocks.append(0)
        seen.set()
        assert go_on.wait(30)

    handles = [tiny_lm.model.blocks[0].register_forward_pre_hook(first)]
    handles += [block.register_forward_pre_hook(worker.check) for block in tiny_lm.model.blocks]
    handles += [
        block.register_forward_pre_hook(lambda *_, i=i: blocks.append(i))
        for i, block in enumerate(tiny_lm.model.blocks)
        if i
    ]

    async def ask() -> None:
        asked = asyncio.ensure_future(worker.run(asker, lambda: tiny_lm.logits("Once upon a time")))
        while not seen.is_set():
            await asyncio.sleep(0.01)
        asker.left = True
        with pytest.raises(Outdated):
            await asked
        go_on.set()
        assert await worker.run(Asker(), lambda: "next") == "next"

    try:
        run(ask())
        assert blocks == [0]
    finally:
        go_on.set()
        worker.close()
        for handle in handles:
            handle.remove()


def test_work_that_waits_in_line_for_nobody_is_never_begun():
    worker, asker, begun, hold = Worker(), Asker(), threading.Event(), threading.Event()
    done: list[str] = []

    async def ask() -> None:
        first = asyncio.ensure_future(worker.run(Asker(), lambda: (begun.set(), hold.wait(30))))
        second = asyncio.ensure_future(worker.run(asker, lambda: done.append("second")))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        asker.left = True
        with pytest.raises(Outdated):
            await second
        hold.set()
        await first
        await worker.run(Asker(), lambda: done.append("third"))

    run(ask())
    worker.close()
    assert done == ["third"]


def test_a_mistake_reaches_the_one_who_asked():
    worker = Worker()

    def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(worker.run(Asker(), work))
    worker.close()


def test_how_far_the_work_is_can_be_asked_meanwhile(tiny_lm):
    import torch

    from cutaway.models.gpt2.model import GPT

    worker, held, go_on = Worker(), threading.Event(), threading.Event()
    model = GPT(tiny_lm.config).eval()

    def hold(*_: object) -> None:
        held.set()
        assert go_on.wait(30)

    worker.watch(model)
    model.blocks[-1].mlp.register_forward_pre_hook(hold)

    def work() -> None:
        worker.expect(1, model)
        model(torch.tensor([[1, 2, 3]]))

    async def ask() -> None:
        assert worker.progress()["busy"] is False
        asked = asyncio.ensure_future(worker.run(Asker(), work))
        while not held.is_set():
            await asyncio.sleep(0.01)
        now = worker.progress()
        assert now["busy"] and now["share"] == 1.0 and now["seconds"] >= 0
        go_on.set()
        await asked
        assert worker.progress() == {"busy": False, "share": None, "seconds": 0.0}

    try:
        run(ask())
    finally:
        go_on.set()
        worker.close()


def test_the_way_back_through_the_blocks_counts_as_one_pass_and_can_be_left(tiny_lm):
    from cutaway.inspect.runs import run as carried
    from cutaway.inspect.saliency import saliency
    from cutaway.language_model import LanguageModel
    from cutaway.models.gpt2.model import GPT

    worker = Worker()
    lm = LanguageModel(GPT(tiny_lm.config).eval(), tiny_lm.tokenizer, "watched")
    worker.watch(lm.model)
    seen = carried(lm, "Once upon a time")
    worker.thread = threading.get_ident()  # as if this were its own
    worker.expect(1, lm.model)
    saliency(seen)
    assert worker.done == worker.steps
    worker.gone = threading.Event()
    worker.gone.set()
    with pytest.raises(Outdated):
        saliency(seen)
    worker.close()


def test_a_model_is_as_it_was_when_its_server_is_gone(tiny_lm):
    model, worker = copy.deepcopy(tiny_lm.model), Worker()
    worker.watch(model)
    assert any(one._forward_pre_hooks for one in model.modules())
    worker.close()
    assert not any(one._forward_pre_hooks for one in model.modules())


def test_work_under_way_is_stopped_before_the_model_is_left(tiny_lm):
    """The way out must still be there while the server closes."""
    model, worker, begun = copy.deepcopy(tiny_lm.model), Worker(), threading.Event()
    worker.watch(model)
    ids = torch.tensor([[1, 2, 3]])

    def work() -> None:
        begun.set()
        while True:
            model(ids)

    future = worker.pool.submit(worker._do, work, threading.Event())
    assert begun.wait(60)
    worker.close()
    with pytest.raises(Outdated):
        future.result(60)
    assert not any(one._forward_pre_hooks for one in model.modules())


def test_who_uses_the_model_in_a_thread_of_their_own_is_not_stopped(tiny_lm):
    model, worker, begun, go_on = copy.deepcopy(tiny_lm.model), Worker(), threading.Event(), threading.Event()
    worker.watch(model)

    def work() -> None:
        begun.set()
        assert go_on.wait(60)
        model(torch.tensor([[1, 2, 3]]))

    async def leave() -> None:
        asker = Asker()
        running = asyncio.create_task(worker.run(asker, work))
        await asyncio.to_thread(begun.wait, 60)
        asker.left = True
        with pytest.raises(Outdated):
            await running
        model(torch.tensor([[1, 2, 3]]))  # in this thread: nobody has asked for it to end
        assert worker.done == 0
        left = worker.pool.submit(lambda: None)
        go_on.set()
        left.result(60)

    run(leave())
    worker.close()
