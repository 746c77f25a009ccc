"""The contest: one sentence, and every model on this machine that translates.

GET  /api/contest            which models they are, and how those of benchmarks/contest.py did, if that ships
POST /api/contest/entries    {model, text, beams}    what one of them makes of the sentence
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cutaway import checkpoint
from cutaway.checkpoint import hub
from cutaway.checkpoint.locate import SHIPPED, locate
from cutaway.errors import CutawayError
from cutaway.models.architecture import count_parameters
from cutaway.serve.explorer import Explorer

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel


class Sentence(BaseModel):
    model: str = Field(max_length=1_000)
    text: str = Field(max_length=10_000)
    beams: int = Field(4, ge=1, le=8)


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    @api.get("/contest")
    def about() -> dict[str, Any]:
        from cutaway.inspect import contest

        shipped = contest.RESULTS
        results = json.loads(shipped.read_text("utf-8")) if shipped.is_file() else None
        return {"models": translators(explorer), "results": results}

    @api.post("/contest/entries")
    async def enter(body: Sentence, request: Request) -> dict[str, Any]:
        """The translation of one model, word by word; asked again, it is the one at hand."""

        def work() -> dict[str, Any]:
            if body.model not in {one["name"] for one in translators(explorer)}:
                raise CutawayError(
                    f"There is no model {body.model} for a task on this machine. Choose one from the list.",
                    "no_task", name=body.model,
                )  # fmt: skip
            asked = ("contest", body.model, body.text, body.beams)
            found: dict[str, Any] = explorer.once(asked, lambda: write(explorer, body))
            return found

        return await explorer.worker.run(request, work)

    return api


def results() -> dict[tuple[str, str], Callable[[], Any]]:
    """What is answered, for the OpenAPI document; looked up when it is asked for."""

    def answer() -> Any:
        from cutaway.inspect.contest import Entry

        return Entry

    return {("/api/contest/entries", "post"): answer}


def translators(explorer: Explorer) -> list[dict[str, Any]]:
    """Every model at hand that translates: those that ship, the folders given, what was fetched; oldest kind first."""
    from cutaway.inspect.contest import KINDS, kind_of
    from cutaway.tasks import Translation, load_task

    folders = {name: locate(name) for name in SHIPPED}
    folders |= {name: Path(name) for name in explorer.models.folders if name not in SHIPPED}
    folders |= {model.name: model.folder for model in hub.local()}
    found = []
    for name, folder in folders.items():
        try:
            if not isinstance(load_task(folder), Translation):
                continue
        except (CutawayError, OSError):
            continue
        try:
            shape = checkpoint.read_config(folder)
            found.append({"name": name, "kind": kind_of(shape), "weights": count_parameters(shape)})
        except CutawayError:  # why it cannot be read is said when it is asked
            found.append({"name": name, "kind": "other", "weights": None})
    return sorted(found, key=lambda one: KINDS.index(str(one["kind"])))


def write(explorer: Explorer, body: Sentence) -> dict[str, Any]:
    """Have the model translate, and look at what it did."""
    from cutaway.inspect.contest import entry
    from cutaway.tasks import load_task
    from cutaway.tasks.answer import Writing, question, written

    if not body.text.strip():
        raise CutawayError("There is no text to answer. Write one above.", "no_text")
    task: Any = load_task(locate(body.model))
    fresh = body.model not in explorer.models.tasks
    lm: LanguageModel = explorer.models.for_task(body.model)  # type: ignore[assignment]
    prompt, _ = question(lm, task, body.text)
    if fresh:  # what happens only once is not its writing
        written(lm, task, [prompt], Writing(body.beams, max_tokens=1))
    begun = time.process_time()
    [result] = written(lm, task, [prompt], Writing(body.beams))
    seconds = time.process_time() - begun
    target = [*result.ids, *([lm.config.end] if result.reason == "end" else [])]
    return entry(lm, prompt, len(prompt) - 1 - bool(task.source_end), target, seconds).to_dict()
