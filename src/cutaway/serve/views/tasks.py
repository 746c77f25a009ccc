"""Tasks: a text translated, summarized or judged, and where the model looked in it."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from cutaway.checkpoint import hub
from cutaway.checkpoint.locate import SHIPPED, locate
from cutaway.errors import CutawayError
from cutaway.inspect.numbers import rounded
from cutaway.serve.explorer import Explorer, Forgotten

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel
    from cutaway.tasks.answer import TextClassifier

AWAKE = 3
REMEMBERED = 24
ANSWERED = ("translation", "summary", "classification")
"""The tasks with one text to answer."""


class Question(BaseModel):
    model: str = Field(max_length=1_000)
    text: str = Field(max_length=200_000)
    beams: int = Field(4, ge=1, le=8)


@dataclass(frozen=True)
class Answered:
    """An answer: the sequence the model read and wrote, which tokens are the source, and which made the answer."""

    ids: tuple[int, ...]
    source: range
    answer: range
    """The tokens written; empty for a judgement."""
    rows: range
    """The tokens that made the answer: each written token was chosen at the one before it."""
    said: dict[str, Any]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()
    awake: OrderedDict[str, LanguageModel | TextClassifier] = OrderedDict()
    answers: OrderedDict[str, tuple[Answered, dict[str, Any]]] = OrderedDict()

    def wake(name: str) -> LanguageModel | TextClassifier:
        if name not in {one["name"] for one in listing(explorer) if one["there"]}:
            raise CutawayError(f"There is no model {name} for a task on this machine. Choose one of the list.")
        if name not in awake:
            from cutaway.language_model import load
            from cutaway.tasks import load_task
            from cutaway.tasks.answer import load_classifier

            if load_task(locate(name)).outputs:
                classifier = load_classifier(name)
                explorer.worker.watch(classifier.model.gpt)
                awake[name] = classifier
            else:
                lm = load(name)
                explorer.worker.watch(lm.model)
                awake[name] = lm
        awake.move_to_end(name)
        while len(awake) > AWAKE:
            awake.popitem(last=False)
        return awake[name]

    @api.get("/tasks")
    def tasks() -> list[dict[str, Any]]:
        return listing(explorer)

    @api.post("/tasks/answers")
    async def answer(body: Question, request: Request) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            from cutaway.inspect.run import run

            key = hashlib.sha256(json.dumps([body.model, body.text, body.beams]).encode()).hexdigest()[:16]
            if key not in answers or key not in explorer.runs:
                model = wake(body.model)
                found, lm = respond(model, body)
                seen = run(lm, found.ids)
                explorer.remember(key, seen)
                about = seen.to_dict()
                shape = {name: about["shape"][name] for name in ("layers", "heads")}
                said = {"id": key, "model": body.model, "tokens": about["tokens"], "shape": shape, **as_json(found)}
                answers[key] = found, said
                while len(answers) > REMEMBERED:
                    answers.popitem(last=False)
            return answers[key][1]

        return await explorer.worker.run(request, work)

    @api.get("/tasks/answers/{key}/between")
    async def view(
        key: str,
        request: Request,
        layer: Annotated[int, Query(ge=0)] = 0,
        head: Annotated[int | None, Query(ge=0)] = None,
    ) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            from cutaway.inspect.between import between

            if key not in answers:
                raise Forgotten("This answer is no longer remembered. Ask for it again.")
            found = answers[key][0]
            return {"id": key, **between(explorer.run(key), found.rows, found.source, layer, head).to_dict()}

        return await explorer.worker.run(request, work)

    return api


def listing(explorer: Explorer) -> list[dict[str, Any]]:
    """The models for tasks: those that ship, there or not, and any other on this machine."""
    from cutaway.tasks import load_task

    kinds = {"translator": "translation", "summarizer": "summary", "classifier": "classification"}
    found: list[dict[str, Any]] = []
    others = [(name, Path(name)) for name in explorer.models.folders]
    others += [(model.name, model.folder) for model in hub.local()]
    for name, folder in [*((name, locate(name)) for name in SHIPPED if name in kinds), *others]:
        there = (folder / "config.json").is_file() and (folder / "task.json").is_file()
        try:
            task = load_task(folder).name if there else kinds.get(name, "")
        except CutawayError:
            continue
        if task in ANSWERED:
            found.append({"name": name, "task": task, "there": there})
    return found


def respond(model: Any, body: Question) -> tuple[Answered, LanguageModel]:
    """The answer of a model to a text, and the language model inside it."""
    from cutaway.language_model import LanguageModel
    from cutaway.tasks import load_task
    from cutaway.tasks.answer import TextClassifier, Writing, classify, question, written

    if not body.text.strip():
        raise CutawayError("There is no text to answer. Write one above.")
    if isinstance(model, TextClassifier):
        judged = next(classify(model, [body.text]))
        (form,) = model.task.forms({"text": body.text}, model.tokenizer)
        last = len(form.ids) - 1
        said = {"task": model.task.name, "label": judged.label, "cut": judged.cut, "text": "", "whole": True}
        said["probabilities"] = [[label, rounded(chance)] for label, chance in judged.probabilities.items()]
        lm = LanguageModel(model.model.gpt, model.tokenizer, body.model)
        return Answered(tuple(form.ids), range(1, last), range(0), range(last, last + 1), said), lm
    task: Any = load_task(locate(body.model))
    prompt, cut = question(model, task, body.text)
    [result] = written(model, task, [prompt], Writing(body.beams))
    first, end = len(prompt), len(prompt) + len(result.ids)
    said = {"task": task.name, "label": "", "probabilities": [], "cut": cut, "text": result.text.strip()}
    said["whole"] = result.reason == "end"
    ids = (*prompt, *result.ids)
    return Answered(ids, range(first - 1), range(first, end), range(first - 1, end - 1), said), model


def as_json(found: Answered) -> dict[str, Any]:
    return {**found.said, "source": [*found.source], "answer": [*found.answer], "rows": [*found.rows]}
