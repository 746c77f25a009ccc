"""A guided tour that somebody wrote: a TOML file, checked, in the form that the page shows (docs/classroom.md).

The steps of the built-in tour (web/src/tour) have the same fields; `check_step` holds for both.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from cutaway.errors import CutawayError, nearest

EXAMPLE = Path(__file__).parents[1] / "data" / "tour" / "example.toml"
KNOWN = Path(__file__).parent / "static" / "tour.json"
"""What the pages know, written when they are built: languages, pages, what can be pointed at, the built-in steps."""
SIZES = ("layers", "heads", "width", "head_width", "mlp_width", "vocabulary", "context")
"""The numbers of a model's shape that any sentence may speak of: `{width}`."""
GAP = re.compile(r"\{(\w+(?:\.\w+)?)((?:\|[^|}]*)*)\}")
TOUR = ("title", "model", "text", "steps")
STEP = (
    "name", "use", "page", "place", "facts", "point", "title", "words", "here", "ask", "try", "own", "notes",
)  # fmt: skip
PLACE = ("model", "text", "position", "layer", "head", "from", "step", "settings", "beside")
LONGEST = 10_000
MOST = 200


@cache
def known() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class Where:
    """A part of a file: how a mistake in it is named."""

    file: str
    step: str = ""
    field: str = ""

    def at(self, field: str | int) -> Where:
        return Where(self.file, self.step, f"{self.field}.{field}".lstrip("."))

    def wrong(self, what: str) -> NoReturn:
        raise CutawayError(", ".join(filter(None, (self.file, self.step, self.field))) + f": {what}")

    def table(self, given: Any, names: Iterable[str] = (), what: str = "field") -> dict[str, Any]:
        """A table whose names are among these; without any, whatever they are."""
        if not isinstance(given, Mapping):
            self.wrong(f"this must be a table, like {{ name = value }}, not {shown(given)}.")
        names = tuple(names)
        for name in given:
            if names and name not in names:
                self.wrong(f"there is no {what} {name!r}.{nearest(str(name), names)} There are {', '.join(names)}.")
        return dict(given)

    def string(self, given: Any) -> str:
        if not isinstance(given, str) or not given.strip():
            self.wrong(f'this must be a text in quotes, like "…", not {shown(given)}.')
        if len(given) > LONGEST:
            self.wrong(f"this has {len(given):,} characters; at most {LONGEST:,} are shown.")
        return given

    def whole(self, given: Any) -> int:
        if isinstance(given, bool) or not isinstance(given, int) or given < 0:
            self.wrong(f"this must be a whole number, 0 or more, not {shown(given)}.")
        return given

    def one_of(self, given: Any, names: Iterable[str], what: str) -> str:
        names = tuple(names)
        if self.string(given) not in names:
            self.wrong(f"there is no {what} {given!r}.{nearest(given, names)} There are {', '.join(names)}.")
        return str(given)


def shown(given: Any) -> str:
    return f"{given!r:.60}" if given != "" else "nothing"


def read_tour(path: str | Path) -> dict[str, Any]:
    """A tour in a file, as the page shows it; a mistake says the file, the step and the field."""
    path = Path(path)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CutawayError(f"There is no file {path}. To begin one: cutaway tour new {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CutawayError(f"{path} cannot be read: {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise CutawayError(f"{path} is not TOML: {error}.") from None
    return check_tour(given, path.name)


def check_tour(given: Mapping[str, Any], file: str) -> dict[str, Any]:
    where = Where(file)
    tour = where.table(given, TOUR)
    if "title" not in tour:
        where.at("title").wrong('this is missing. Give the tour a title: title = "…"')
    steps = tour.get("steps")
    if not isinstance(steps, list) or not steps:
        where.at("steps").wrong("there are none. Each begins with a line [[steps]].")
    if len(steps) > MOST:
        where.at("steps").wrong(f"there are {len(steps)}; at most {MOST} are shown.")
    text = where.at("text").string(tour["text"]) if "text" in tour else None
    found: list[dict[str, Any]] = []
    for number, one in enumerate(steps, 1):
        step = check_step(one, file, number, text)
        if step["name"] in {other["name"] for other in found}:
            Where(file, label(one, number)).at("name").wrong(f"{step['name']!r} is the name of an earlier step.")
        found.append(step)
    return {
        "title": words(tour["title"], where.at("title")),
        "model": where.at("model").string(tour["model"]) if "model" in tour else None,
        "steps": found,
    }


def label(step: Any, number: int) -> str:
    """How a mistake names a step: its number, and what it is called."""
    called = next((step[one] for one in ("name", "title", "use") if isinstance(step, Mapping) and step.get(one)), "")
    called = next(iter(called.values()), "") if isinstance(called, Mapping) else called
    return f"step {number}" + (f" ({called:.40})" if isinstance(called, str) and called else "")


def check_step(given: Any, file: str, number: int, text: str | None = None) -> dict[str, Any]:
    """One step with every sentence in every language; `text` is the one that the tour has where a step has none."""
    where = Where(file, label(given, number))
    step = where.table(given, STEP)
    used = where.at("use").one_of(step["use"], known()["steps"], "step of the built-in tour") if "use" in step else None
    for name in () if used else ("page", "title", "words"):
        if name not in step:
            where.at(name).wrong("this is missing.")
    found: dict[str, Any] = {"name": check_name(step.get("name", str(number)), where.at("name"))}
    if used:
        found["use"] = used
    facts = check_facts(step["facts"], where.at("facts")) if "facts" in step else {}
    # What a built-in step asks for is known to the page, not here.
    asked = None if used and not facts else set(facts)
    if facts:
        found["facts"] = facts
    if "page" in step:
        found["page"] = where.at("page").one_of(step["page"], known()["pages"], "page")
    place = check_place(step.get("place", {}), where.at("place"), asked)
    if text is not None and "text" not in place and not used:
        place["text"] = text
    if place or not used:
        found["place"] = place
    if "point" in step or not used:
        page = found.get("page") or known()["steps"][used]["page"]
        points = [*known()["points"][""], *known()["points"].get(page, ())]
        found["point"] = where.at("point").one_of(step.get("point", "picture"), points, f"place on the page {page}")
    for name in ("title", "words", "try"):
        if name in step:
            found[name] = words(step[name], where.at(name))
            check_gaps(found[name], where.at(name), set())
    if "here" in step:
        found["here"] = check_claims(step["here"], where.at("here"), asked)
    if "ask" in step:
        found["ask"] = check_question(step["ask"], where.at("ask"), asked)
    if "notes" in step:
        found["notes"] = words(step["notes"], where.at("notes"))
    if "own" in step:
        found["own"] = check_own(step["own"], where.at("own"), asked)
    return found


def check_name(given: Any, where: Where) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"[\w-]{1,60}", given):
        where.wrong(f"a name stands in the address: letters, digits, - and _ only, not {shown(given)}.")
    return given


def words(given: Any, where: Where, more: Iterable[str] = ()) -> dict[str, str]:
    """A sentence in every language: a text is the same in all; of a table, the first stands in for what is missing."""
    languages = tuple(known()["languages"])
    if isinstance(given, str):
        return dict.fromkeys(languages, where.string(given))
    table = where.table(given, [*languages, *more], "language")
    said = {name: where.at(name).string(table[name]) for name in languages if name in table}
    if not said:
        where.wrong(f"there is no sentence. Give it in {', '.join(languages)}, or as one text for all.")
    return {name: said.get(name, next(iter(said.values()))) for name in languages}


def check_gaps(said: Mapping[str, str], where: Where, facts: set[str] | None) -> None:
    """What a sentence speaks of is a size of the model, or a value of a fact that the step asks for."""
    for sentence in said.values():
        for name, _ in GAP.findall(sentence):
            fact, dot, _ = name.partition(".")
            if not dot and name not in SIZES:
                where.wrong(f"{{{name}}} is none of the model's sizes.{nearest(name, SIZES)} {', '.join(SIZES)}.")
            if dot and facts is not None and fact not in facts:
                least = f"The step asks for {', '.join(sorted(facts))}." if facts else "Ask for it: facts = { … }"
                where.wrong(f"{{{name}}} speaks of a fact {fact!r} that is not asked for here. {least}")


def check_place(given: Any, where: Where, facts: set[str] | None) -> dict[str, Any]:
    place = where.table(given, PLACE)
    for name in ("layer", "head", "position"):
        if name in place:
            where.at(name).whole(place[name])
    for name in ("model", "text", "step"):
        if name in place:
            where.at(name).string(place[name])
    if "from" in place and facts is not None and where.at("from").string(place["from"]) not in facts:
        where.at("from").wrong(f"there is no fact {place['from']!r}; facts = {{ {place['from']} = {{ of = … }} }}")
    if "settings" in place:
        table = where.at("settings").table(place["settings"])
        plain = (str, int, float)
        for name, value in table.items():
            if not isinstance(value, plain) or isinstance(value, bool):
                where.at("settings").at(name).wrong(f"this must be a text or a number, not {shown(value)}.")
        place["settings"] = {name: f"{value}" for name, value in table.items()}
    if "beside" in place:
        beside = where.at("beside").table(place["beside"], ("text", "model"))
        if not beside:
            where.at("beside").wrong("name what stands on the other side: a text, a model, or both.")
        for name, value in beside.items():
            where.at("beside").at(name).string(value)
    return place


def check_facts(given: Any, where: Where) -> dict[str, dict[str, Any]]:
    from cutaway.inspect.facts import FACTS

    found = {}
    for name, one in where.table(given).items():
        here = where.at(name)
        question = here.table(one)
        if not re.fullmatch(r"\w+", name):
            here.wrong("a fact's name has letters, digits and _ only.")
        if "of" not in question:
            here.wrong(f"what kind of fact is it? of = {' | '.join(FACTS)}")
        kind = here.at("of").one_of(question["of"], FACTS, "kind of fact")
        takes = list(inspect.signature(FACTS[kind]).parameters.values())[1:]
        here.table(
            {key: value for key, value in question.items() if key != "of"}, [one.name for one in takes] or ["of"]
        )
        for one_taken in takes:
            if one_taken.default is one_taken.empty and one_taken.name not in question:
                here.wrong(f"a fact of the kind {kind} needs {one_taken.name} = …")
        found[name] = question
    return found


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """TOML reads `look.weight = …` as a table in a table."""
    return {
        (f"{name}.{inner}" if isinstance(value, Mapping) else name): (
            value[inner] if isinstance(value, Mapping) else value
        )
        for name, value in table.items()
        for inner in (value if isinstance(value, Mapping) else ("",))
    }


def check_bounds(given: Any, where: Where, facts: set[str] | None) -> dict[str, list[float | None]]:
    found: dict[str, list[float | None]] = {}
    for name, bounds in flat(where.table(given)).items():
        here = where.at(name)
        check_gaps({"": f"{{{name}}}"}, here, facts)
        pair = isinstance(bounds, list | tuple) and len(bounds) == 2
        if not pair or not all(one is None or isinstance(one, int | float) for one in bounds):
            here.wrong(
                f"this must be two numbers, the least and the most, like [0.5, 1] or [0.5, inf], not {shown(bounds)}."
            )
        found[name] = [None if one is None or math.isinf(one) else one for one in bounds]
    return found


def check_claims(given: Any, where: Where, facts: set[str] | None) -> list[dict[str, Any]]:
    """Sentences about this text; the first whose bounds hold is said."""
    found = []
    for number, one in enumerate(given if isinstance(given, list) else [given], 1):
        here = where.at(number) if isinstance(given, list) else where
        found.append(check_sentence(one, here, facts))
    return found


def check_sentence(given: Any, where: Where, facts: set[str] | None) -> dict[str, Any]:
    """A sentence, as a text or in languages, or `say = "…"`; and when it holds."""
    table = {} if isinstance(given, str) else where.table(given, [*known()["languages"], "say", "if"])
    bounds = check_bounds(table["if"], where.at("if"), facts) if "if" in table else None
    if isinstance(given, str) or "say" in table:
        said = words(given if isinstance(given, str) else table["say"], where.at("say") if table else where)
    else:
        said = words({name: value for name, value in table.items() if name != "if"}, where)
    check_gaps(said, where, facts)
    return {**said, **({"if": bounds} if bounds is not None else {})}


def check_question(given: Any, where: Where, facts: set[str] | None) -> dict[str, Any]:
    """What the reader guesses before the picture shows: one of several answers, or a value of a fact."""
    table = where.table(given, ("question", "options", "right", "answer"))
    if "question" not in table:
        where.at("question").wrong("this is missing: what is to be guessed?")
    found: dict[str, Any] = {"question": words(table["question"], where.at("question"))}
    check_gaps(found["question"], where.at("question"), facts)
    if ("options" in table) == ("answer" in table):
        where.wrong(
            'give either the answers to choose from, options = [ … ], or the value to guess, answer = "next.token".'
        )
    if "answer" in table:
        name = where.at("answer").string(table["answer"])
        if "." not in name:
            where.at("answer").wrong(f"this must be a value of a fact, like next.token, not {shown(name)}.")
        check_gaps({"": f"{{{name}}}"}, where.at("answer"), facts)
        return {**found, "answer": name}
    options = table["options"]
    if not isinstance(options, list) or not 2 <= len(options) <= 9:
        where.at("options").wrong("this must be a list of two to nine answers.")
    checked = [check_sentence(one, where.at("options").at(at), facts) for at, one in enumerate(options, 1)]
    if "right" in table:
        right = where.at("right").whole(table["right"])
        if not 1 <= right <= len(options):
            where.at("right").wrong(f"this must be the number of the right answer, 1 to {len(options)}, not {right}.")
        return {**found, "options": checked, "right": right}
    if not any("if" in one for one in checked):
        where.wrong("which answer is right? right = 1, or an if = { … } beside an answer, which a fact decides.")
    return {**found, "options": checked}


def check_own(given: Any, where: Where, facts: set[str] | None) -> dict[str, Any] | bool:
    """What the step says on a text of the reader's own; false: the step is about its own text only."""
    if isinstance(given, bool):
        return given
    table = where.table(given, ("words", "here", "try"))
    found: dict[str, Any] = {}
    for name in ("words", "try"):
        if name in table:
            found[name] = words(table[name], where.at(name))
            check_gaps(found[name], where.at(name), set())
    if "here" in table:
        found["here"] = check_claims(table["here"], where.at("here"), facts)
    return found


class TourFile:
    """A tour that is read again when its file has changed: whoever writes one sees it by loading the page anew."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._read: tuple[int, dict[str, Any]] | None = None

    def get(self) -> dict[str, Any]:
        stamp = self.path.stat().st_mtime_ns if self.path.exists() else -1
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, read_tour(self.path))
        return self._read[1]
