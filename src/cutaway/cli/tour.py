"""`cutaway tour`: guided tours that anyone can write, as files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cutaway.atomic import write_text
from cutaway.cli import options, screen
from cutaway.errors import CutawayError
from cutaway.serve.tour import EXAMPLE, GAP, read_tour

File = Annotated[Path, options.argument("FILE", help="The tour: a TOML file.")]
ABOUT = "Guided tours of your own, for the explorer: begin one, and check it."


def new(file: File) -> None:
    """Begin a tour: write a small example to change, with a comment beside every field.

    Example: cutaway tour new lesson.toml
    """
    if file.exists():
        raise CutawayError(f"{file} is there already. Give another name, or remove it first.")
    write_text(file, EXAMPLE.read_text(encoding="utf-8"))
    screen.aside(f"{file} is an example to change. Show it: cutaway explore --tour {file}")


def check(
    file: File,
    model: options.Model = "",
    as_json: options.AsJson = False,
) -> None:
    """Check a tour, and show what each of its steps says on a model.

    Example: cutaway tour check lesson.toml
    """
    tour = read_tour(file)
    name = model or tour["model"] or "builtin"
    lm = options.load(name, None, None)
    said = [{"name": step["name"], "title": title(step), **heard(lm, step, f"{file}")} for step in tour["steps"]]
    if as_json:
        screen.show_json({"model": name, "steps": said})
        return
    for number, one in enumerate(said, 1):
        screen.show(f"{number}. {one['title']}", style="bold")
        if one["here"]:
            screen.show(f"   {one['here']}")
    screen.aside(f"{len(said)} steps, on the model {name}.")


VERBS: dict[str, Callable[..., None]] = {"new": new, "check": check}


def title(step: dict[str, Any]) -> str:
    return str(step["title"]["en"] if "title" in step else f"{step['use']}, of the built-in tour")


def heard(lm: Any, step: dict[str, Any], file: str) -> dict[str, Any]:
    """What a step finds on a model, and the sentence that it says there."""
    from cutaway.inspect.facts import facts
    from cutaway.inspect.pairs import pair_run
    from cutaway.inspect.runs import run
    from cutaway.models.architecture import start_of

    if "facts" not in step or "text" not in step.get("place", {}):
        return {"facts": {}, "here": ""}
    where = f"{file}, step {step['name']} ({title(step)})"
    text = step["place"]["text"]
    try:
        if own := step["place"].get("model"):  # the step brings its own
            lm = options.load(own, None, None)
        seen = run(lm, text) if start_of(lm.config) is None else pair_run(lm, lm.pair(text))
        found = facts(seen, step["facts"])
    except CutawayError as error:
        raise CutawayError(f"{where}, facts: {error}") from None
    values = {f"{name}.{key}": value for name, fact in found.items() for key, value in fact.items()}
    for said in (
        *step.get("here", ()),
        *([{"en": f"{{{step['ask']['answer']}}}"}] if step.get("ask", {}).get("answer") else ()),
    ):
        for gap in [*said.get("if", {}), *(one for one, _ in GAP.findall(said["en"]) if "." in one)]:
            if gap not in values:
                fact = gap.partition(".")[0]
                has = ", ".join(name for name in values if name.startswith(f"{fact}."))
                raise CutawayError(f"{where}: there is no {gap}. On this text there is {has}.")
    here = next((one for one in step.get("here", ()) if holds(one, values)), None)
    sentence = re.sub(GAP, lambda gap: written(values, gap), here["en"]) if here else ""
    return {"facts": {name: value.to_dict() for name, value in values.items()}, "here": sentence}


def holds(claim: dict[str, Any], values: dict[str, Any]) -> bool:
    return all(
        (low is None or values[name].value >= low) and (high is None or values[name].value <= high)
        for name, (low, high) in claim.get("if", {}).items()
    )


def written(values: dict[str, Any], gap: re.Match[str]) -> str:
    """A value as plain text; forms of a counted word are left to the page."""
    name = gap.group(1)
    if name not in values:
        return gap.group(0)  # a size of the model
    kind, value = values[name].kind, values[name].value
    if kind == "tokens":
        return " ".join(repr(one.text or one.hex) for one in value)
    return f"{value:.1%}" if kind == "percent" else f"{value:,.4g}" if kind == "number" else f"{value}"
