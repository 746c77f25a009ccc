"""The page of fine-tuning jobs: the loss as it falls, what happened, and the states before and without it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")


@dataclass
class Teaches:
    address: str
    jobs: Any


@pytest.fixture
def served(tiny_lm, tmp_path, monkeypatch) -> Iterator[Teaches]:
    """A server that takes jobs and leaves them alone: the test tells what happens in them."""
    import uvicorn

    from cutaway.serve.server import create_server
    from cutaway.serve.settings import ServeSettings
    from cutaway.serve.start import bind
    from cutaway.serve.teaching.jobs import Jobs
    from cutaway.serve.teaching.runner import Runner

    monkeypatch.setattr(Runner, "start", lambda self: None)
    tiny_lm.save(tmp_path / "tiny")
    app = create_server(ServeSettings(models=(str(tmp_path / "tiny"),), state=str(tmp_path / "state"), log="off"))
    listener = bind()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Teaches(f"http://127.0.0.1:{listener.getsockname()[1]}/", Jobs(app.state.database))
    server.should_exit = True
    thread.join()


def steps(*numbers: int) -> list[dict[str, Any]]:
    return [{"step": n, "train_loss": 4.0 / n, "total_steps": 8} for n in numbers]


def test_the_loss_falls_while_one_looks_and_a_job_can_be_cancelled(show, served):
    page = show("#/jobs", wait=False)
    page.wait_for_selector("pre:has-text('fine_tuning.jobs.create')")  # nothing yet: how to begin
    job = served.jobs.create("tiny", "file-1", {}, "mine", 1).id
    page.wait_for_selector(f"[data-job={job}]")
    page.get_by_text("The first step is yet to come.").wait_for()
    served.jobs.become(job, "running", "queued")
    served.jobs.note(job, steps(1, 2, 3), [], 8)
    page.wait_for_selector("svg[data-points='3']")
    assert float(page.locator("[data-loss] data").get_attribute("value")) == pytest.approx(4 / 3)
    served.jobs.note(job, steps(4), [("warn", "The fox looked up")], 8)
    page.wait_for_selector("svg[data-points='4']")
    assert "step 4 of 8" in page.locator(f"[data-job={job}]").inner_text()
    assert "The fox looked up" in page.locator("aside").inner_text()
    page.get_by_role("button", name="Cancel the job").click()
    page.wait_for_selector("[data-status=cancelled]")
    assert served.jobs.get(job).status == "cancelled"
    page.get_by_role("button", name="Cancel the job").wait_for(state="hidden")


def test_the_page_is_whole_on_a_phone_in_the_dark_in_every_language(show, served, axe):
    failed = served.jobs.create("tiny", "file-1", {}, None, 1).id
    served.jobs.become(failed, "running", "queued")
    served.jobs.become(
        failed, "failed", "running", error={"code": "x", "message": "The records are none.", "param": None}
    )
    done = served.jobs.create("tiny", "file-1", {}, None, 1).id
    served.jobs.become(done, "running", "queued")
    served.jobs.note(done, steps(*range(1, 9)), [], 8)
    served.jobs.become(done, "succeeded", "running", result=f"ft:tiny::{done[-8:]}")
    for language, word in (("en", "done"), ("zh-Hans", "已完成"), ("ru", "готово")):
        page = show(f"#/jobs?lang={language}", 390, 800, language=language, dark=True, wait=False)
        page.wait_for_selector("svg[data-points='8']")
        assert page.locator(f"[data-job={done}] .status").inner_text() == word
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator(f"[data-job={failed}]").click()
        page.get_by_role("alert").get_by_text("The records are none.").wait_for()
        page.wait_for_selector(".picture[aria-busy=false]")
        page.wait_for_function("document.getAnimations().every((one) => one.playState !== 'running')")
        page.add_script_tag(content=axe)
        found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa']}).then((r) => r.violations)")
        assert not found, [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in found]
        page.context.close()
