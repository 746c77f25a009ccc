"""While a long answer is computed: what is known already is shown, how far it is, and it can be given up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

TEXT = "Once upon a time"


@pytest.fixture
def held(builtin) -> Iterator[tuple[threading.Event, list[int]]]:
    """A model that stops before its fourth block until it is let go; and the blocks it has entered."""
    go_on, entered = threading.Event(), list[int]()

    def enter(number: int) -> None:
        entered.append(number)
        if number == 3:
            assert go_on.wait(120)

    handles = [
        block.register_forward_pre_hook(lambda *_, number=number: enter(number))
        for number, block in enumerate(builtin.model.blocks)
    ]
    yield go_on, entered
    go_on.set()
    for handle in handles:
        handle.remove()


@pytest.fixture
def own(server, builtin) -> Iterator[Any]:
    own = server(builtin)
    yield own
    own.stop()


@pytest.fixture
def page(browser) -> Iterator[Any]:
    context = browser.new_context(locale="en", reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def test_the_tokens_and_the_progress_are_there_before_the_answer(page, own, held, builtin):
    go_on, _ = held
    page.goto(f"{own.address}#/predict?text={quote(TEXT)}")
    page.wait_for_function("() => document.querySelectorAll('.textbox .chips button').length === 4")
    share = 3 / len(builtin.model.blocks)
    page.wait_for_function("(share) => document.querySelector('.working progress')?.value === share", arg=share)
    assert page.locator(".bars .row").count() == 0
    go_on.set()
    page.locator(".bars .row").first.wait_for()
    page.wait_for_selector(".working", state="detached")


def test_weights_do_not_wait_for_the_text(page, own, held):
    page.goto(f"{own.address}#/weights?text={quote(TEXT)}")
    page.locator("[data-count]").first.wait_for()
    page.locator("[data-bin]").first.wait_for()
    assert not held[0].is_set()


def test_an_answer_that_is_given_up_frees_the_model_and_can_be_asked_for_again(page, own, held):
    go_on, entered = held
    page.goto(f"{own.address}#/predict?text={quote(TEXT)}")
    page.locator(".working button").click()
    page.locator("[role=alert]", has_text="Cancelled").wait_for()
    assert own.explorer.worker.gone.wait(60)  # the server has seen that nobody waits
    go_on.set()
    own.explorer.worker.pool.submit(lambda: None).result(60)  # its one thread is free again ...
    assert entered == [0, 1, 2, 3]  # ... and went no further
    page.get_by_role("button", name="Try again").click()
    page.locator(".bars .row").first.wait_for()
    assert page.locator("[role=alert]").count() == 0
