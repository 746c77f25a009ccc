"""Tasks: a text translated, summarized or judged, alone or with others, and where the model looked in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from cutaway.checkpoint import hub
from cutaway.checkpoint.locate import SHIPPED, locate
from cutaway.errors import CutawayError
from cutaway.inspect.numbers import rounded
from cutaway.serve.explorer import Explorer, Forgotten

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel
    from cutaway.tasks.answer import TextClassifier

BY_LIKELIHOOD = {"choice": {"others": 2}, "entailment": {"others": 1}}
"""Tasks that need no model of their own: the built-in language model says which text it finds likelier."""


class Question(BaseModel):
    """A text, with the others that some tasks are about; and how to answer, where the model writes."""

    model: str = Field(max_length=1_000)
    text: str = Field(max_length=200_000)
    others: list[Annotated[str, Field(max_length=200_000)]] = Field(default_factory=list, max_length=16)
    beams: int = Field(4, ge=1, le=8)
    back: bool = False
    form: int | None = Field(None, ge=0, le=15)
    """Which of the sequences the model read is looked into: the order of two texts, or the choice."""


@dataclass(frozen=True)
class Answered:
    """An answer: the sequence the model read and wrote, which tokens are the source, and which made the answer."""

    ids: tuple[int, ...]
    source: Sequence[int]
    answer: range
    """The tokens written; empty for a judgement."""
    rows: range
    """The tokens that made the answer: each written token was chosen at the one before it."""
    content: dict[str, Any]


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()

    def wake(name: str) -> LanguageModel | TextClassifier:
        name = "builtin" if name in BY_LIKELIHOOD else name
        if name != "builtin" and name not in {one["name"] for one in listing(explorer) if one["there"]}:
            raise CutawayError(
                f"There is no model {name} for a task on this machine. Choose one from the list.", "no_task", name=name
            )
        return explorer.models.for_task(name)

    @api.get("/tasks")
    def tasks() -> list[dict[str, Any]]:
        return listing(explorer)

    @api.post("/tasks/answers")
    async def answer(body: Question, request: Request) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            from cutaway.inspect.runs import run

            key = hashlib.sha256(body.model_dump_json().encode()).hexdigest()[:16]
            if key not in explorer.runs:
                explorer.answers.pop(("task", key), None)

            def make() -> tuple[Answered, dict[str, Any]]:
                found, lm = respond(wake(body.model), body)
                seen = run(lm, found.ids)
                explorer.remember(key, seen)
                about = seen.to_dict()
                shape = {name: about["shape"][name] for name in ("layers", "heads")}
                content = {"id": key, "model": body.model, "tokens": about["tokens"], "shape": shape, **as_json(found)}
                return found, content

            return cast("dict[str, Any]", explorer.once(("task", key), make)[1])

        return await explorer.worker.run(request, work)

    @api.get("/tasks/answers/{key}/between")
    async def view(
        key: str,
        request: Request,
        layer: int = 0,
        head: int | None = None,
    ) -> dict[str, Any]:
        def work() -> dict[str, Any]:
            from cutaway.inspect.between import between

            if ("task", key) not in explorer.answers:
                raise Forgotten("This answer is no longer remembered. Ask for it again.")
            found: Answered = explorer.answers["task", key][0]
            return {"id": key, **between(explorer.run(key), found.rows, found.source, layer, head).to_dict()}

        return await explorer.worker.run(request, work)

    return api


def listing(explorer: Explorer) -> list[dict[str, Any]]:
    """The models for tasks: those that ship, there or not, and any other on this machine."""
    from cutaway.tasks import Classification, Summary, Translation, load_task

    kinds = {"translator": Translation(), "summarizer": Summary(), "classifier": Classification()}
    found: list[dict[str, Any]] = []
    others = [(name, Path(name)) for name in explorer.models.folders]
    others += [(model.name, model.folder) for model in hub.local()]
    for name, folder in [*((name, locate(name)) for name in SHIPPED if name in kinds), *others]:
        there = (folder / "config.json").is_file()
        try:
            task: Any = load_task(folder) if there else kinds.get(name)
        except CutawayError:
            continue
        if isinstance(task, Translation | Summary) or (task is not None and task.outputs):
            found.append({"name": name, "task": task.name, "there": there, **asks(task)})
    for name, wants in BY_LIKELIHOOD.items():
        found.append({"name": name, "task": name, "there": True, "two_way": False, "by": "likelihood", **wants})
    return found


def asks(task: Any) -> dict[str, Any]:
    """What a task wants beside the text: how many other texts, and whether it can be turned round."""
    others = len(task.fields) - 2  # without the first text, and without the label or the answer
    others = task.classes if task.name == "choice" else others
    return {"others": others, "two_way": bool(getattr(task, "back", ""))}


def respond(model: Any, body: Question) -> tuple[Answered, LanguageModel]:
    """The answer of a model to a text, and the language model inside it."""
    from cutaway.language_model import LanguageModel
    from cutaway.tasks.answer import TextClassifier

    if not body.text.strip():
        raise CutawayError("There is no text to answer. Write one above.", "no_text")
    if body.model in BY_LIKELIHOOD:
        return weigh(model, body), model
    if isinstance(model, TextClassifier):
        return judge(model, body), LanguageModel(model.model.body, model.tokenizer, body.model)  # type: ignore[arg-type]
    return write(model, body), model


def judge(model: TextClassifier, body: Question) -> Answered:
    """The class of a text, or of several together."""
    from cutaway.tasks.answer import classify

    task, (first, *more) = model.task, model.task.fields[:-1]
    need_others(asks(task)["others"] - sum(bool(one.strip()) for one in body.others))
    rest: Any = {"choices": body.others} if more == ["choices"] else dict(zip(more, body.others, strict=False))
    record = {first: body.text, **rest}
    judged = next(classify(model, [record]))
    forms = task.forms(record, model.tokenizer)
    form = min(body.form if body.form is not None else judged.number if more == ["choices"] else 0, len(forms) - 1)
    ids, marks = forms[form].ids, set(model.tokenizer.specials.values())
    source = [at for at, one in enumerate(ids) if one not in marks]
    content = {"task": task.name, "label": judged.label, "cut": judged.cut, "text": "", "whole": True}
    content["probabilities"] = [[label, rounded(chance)] for label, chance in judged.probabilities.items()]
    content |= {"form": form, "forms": len(forms)}
    return Answered(tuple(ids), source, range(0), range(len(ids) - 1, len(ids)), content)


def weigh(lm: LanguageModel, body: Question) -> Answered:
    """The likeliest of several texts, by a language model that was never trained for the task."""
    from cutaway.tasks import likelihood

    others = [one for one in body.others if one.strip()]
    need_others(BY_LIKELIHOOD[body.model]["others"] - len(others))
    if body.model == "choice":
        found = likelihood.choice(lm, body.text, others)
    else:
        found = likelihood.entailment(lm, body.text, others[0])
    form = min(found.best if body.form is None else body.form, len(found.labels) - 1)
    prompt, answer = found.prompts[form], found.answers[form]
    chances = [[label, rounded(chance)] for label, chance in zip(found.labels, found.probabilities, strict=True)]
    content = {"task": body.model, "label": found.labels[found.best], "probabilities": chances, "cut": 0, "text": ""}
    content |= {"whole": True, "form": form, "forms": len(found.labels)}
    first, end = len(prompt), len(prompt) + len(answer)
    return Answered((*prompt, *answer), range(first), range(first, end), range(first - 1, end - 1), content)


def need_others(missing: int) -> None:
    if missing > 0:
        raise CutawayError(
            f"This task needs several texts, and {missing} of them must still be written.",
            "texts_missing",
            missing=missing,
        )


def write(lm: LanguageModel, body: Question) -> Answered:
    """A translation or a summary."""
    from cutaway.tasks import load_task
    from cutaway.tasks.answer import Writing, question, written

    task: Any = load_task(locate(body.model))
    task = task.turned() if body.back else task
    prompt, cut = question(lm, task, body.text)
    [result] = written(lm, task, [prompt], Writing(body.beams))
    first, end = len(prompt), len(prompt) + len(result.ids)
    content = {"task": task.name, "label": "", "probabilities": [], "cut": cut, "text": result.text.strip()}
    content |= {"whole": result.reason == "end", "form": 0, "forms": 1}
    ids = (*prompt, *result.ids)
    return Answered(ids, range(first - 1), range(first, end), range(first - 1, end - 1), content)


def as_json(found: Answered) -> dict[str, Any]:
    return {**found.content, "source": [*found.source], "answer": [*found.answer], "rows": [*found.rows]}
