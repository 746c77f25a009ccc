"""What only Python can answer, asked of the explorer's own app beforehand and kept as files, each under a hash of its
question: web/src/engine/answers.ts forms the same question and looks it up.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlencode

from cutaway.checkpoint.locate import SHIPPED
from cutaway.errors import CutawayError
from cutaway.models.gpt2.shape import SIZES
from cutaway.serve.app import create_app
from cutaway.serve.explorer import Explorer
from cutaway.serve.views.tasks import BY_LIKELIHOOD

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

PARTS = 6
"""So many factors or groups Neurons begins with."""
MUCH = 4_000_000
"""Activations above which it looks at one layer only."""
ROLES = ("tokens", 16), ("texts", 4)
"""How Weights asks what kind of head each is."""
TASKS = {
    "translation": "translator", "summary": "summarizer", "classification": "classifier", "choice": "choice",
    "entailment": "entailment",
}  # fmt: skip
"""Who answers the examples of each task."""

Query = Sequence[tuple[str, Any]]


def hashed(text: str) -> str:
    """FNV-1a in 64 bits: web/src/engine/engine.ts has the same."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"{found:016x}"


def canonical(method: str, path: str, query: Query = (), body: Any = None, ids: Sequence[int] | None = None) -> str:
    """A question in one form: a run by its tokens, the query in order, JSON with its keys in order."""
    if ids is not None:
        room, _, *rest = path.split("/")
        path = "/".join([room, " ".join(map(str, ids)), *rest])
    asked = "&".join(f"{name}={value}" for name, value in sorted(query, key=lambda pair: pair[0]))
    return f"{method} {path}?{asked}" + (f" {ordered(body)}" if method == "POST" else "")


def ordered(value: Any) -> str:
    """JSON as the page writes it: a whole number has no decimal point."""
    if isinstance(value, Mapping):
        pairs = sorted(value.items())
        return "{" + ",".join(f"{ordered(name)}:{ordered(one)}" for name, one in pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(ordered, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


class Recorder:
    """Asks the explorer's app in this process, and writes its answers into a folder."""

    def __init__(self, lm: LanguageModel, name: str, folder: Path):
        self.lm, self.name, self.folder = lm, name, folder
        self.explorer = Explorer()
        self.explorer.models.awake.keep(name, lm)
        self.app = create_app(self.explorer)
        self.known: set[str] = set()
        self.loop = asyncio.new_event_loop()  # in a thread of its own: in a notebook this one has a loop already
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        self.explorer.close()

    def ask(self, method: str, path: str, query: Query = (), body: Any = None) -> Any:
        """What the app answers; None where it refuses."""
        question = asked(self.app, method, f"/api/{path}", urlencode(query), body)
        return asyncio.run_coroutine_threadsafe(question, self.loop).result()

    def keep(self, question: str, answer: Any) -> None:
        key = hashed(question)
        (self.folder / f"{key}.json").write_text(json.dumps(answer, ensure_ascii=False, separators=(",", ":")), "utf-8")
        self.known.add(key)

    def record(self, method: str, path: str, query: Query = (), body: Any = None) -> Any:
        """Ask, and keep the answer; a question that is refused is refused on the page as well."""
        answer = self.ask(method, path, query, body)
        if answer is not None:
            self.keep(canonical(method, path, query, body), answer)
        return answer

    def trace(self, text: str, more: Iterable[int] = ()) -> tuple[str, list[int]] | None:
        """A text carried through: the id of its run, and its tokens."""
        found = self.ask("POST", "traces", body={"model": self.name, "text": text, "more": list(more)})
        return None if found is None else (found["id"], [token["id"] for token in found["tokens"]])

    def view(self, run: tuple[str, list[int]], view: str, query: Query) -> None:
        key, ids = run
        path = f"traces/{key}/{view}"
        if (answer := self.ask("GET", path, query)) is not None:
            self.keep(canonical("GET", path, query, ids=ids), answer)


async def asked(app: Any, method: str, path: str, query: str, body: Any) -> Any:
    """One request to an ASGI app, without a server."""
    content = b"" if body is None else json.dumps(body).encode()
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "query_string": query.encode(), "headers": headers, "scheme": "http",
        "root_path": "", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    read, status, parts = False, 0, list[bytes]()
    never = asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal read
        if read:
            await never.wait()  # whoever asked stays
        read = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.append(message.get("body", b""))

    await app(scope, receive, send)
    if status >= 500:
        raise CutawayError(f"{path} could not be recorded: {b''.join(parts).decode(errors='replace'):.300}")
    return json.loads(b"".join(parts)) if status == 200 else None


def record(recorder: Recorder, built: Mapping[str, Any], text: str, addresses: Sequence[str]) -> None:
    """Everything that the pages of a site ask and the engine in it cannot answer; of these moments as well."""
    about_the_model(recorder)
    for step in built["tour"]:
        if step["facts"] and "model" not in step["place"]:  # another one is not in the site
            body = {"model": recorder.name, "text": step["place"].get("text", ""), "facts": step["facts"], "own": False}
            recorder.record("POST", "facts", body=body)
    texts = {text or built["beginning"]: ()} | {
        step["place"].get("text", ""): () for step in built["tour"] if step["page"] == "neurons"
    }
    for one, more in texts.items():
        together(recorder, one, more)
    tasks(recorder, built)
    for address in addresses:
        about_a_moment(recorder, address)


def about_the_model(recorder: Recorder) -> None:
    name = recorder.name
    [entry] = [one for one in recorder.ask("GET", "models") if one["name"] == name]
    recorder.keep(canonical("GET", "models"), [entry])  # no other on this machine is anybody's business
    recorder.record("GET", "models/map", [("name", name)])
    recorder.record("GET", "weights", [("model", name)])
    recorder.record("GET", "weights/sizes")
    recorder.record("GET", "weights/waves", [("model", name)])
    if (run := recorder.trace("A")) and (found := recorder.ask("GET", f"traces/{run[0]}/roles", ROLES)) is not None:
        recorder.keep(canonical("GET", "roles", ROLES), found)  # the same for every text
    for size in SIZES:
        recorder.record("GET", "weights", [("size", size)])


def together(
    recorder: Recorder, text: str, more: Iterable[int] = (), settings: Mapping[str, str] | None = None
) -> None:
    """The neurons that fire together on a text, in the two ways that Neurons shows."""
    run = recorder.trace(text, more)
    if run is None or len(run[1]) < 2:
        return
    shape, given = recorder.lm.config, settings or {}
    heavy = len(run[1]) * shape.layers * shape.mlp_width > MUCH
    first = min(number(given, "from", 0), shape.layers - 1)
    last = min(max(first, number(given, "to", first if heavy else shape.layers - 1)), shape.layers - 1)
    count = max(2, min(number(given, "parts", PARTS), max(2, min(20, len(run[1])))))
    query = [("count", count), *(("layer", layer) for layer in range(first, last + 1))]
    for view in ("factors", "groups"):
        recorder.view(run, view, query)


def number(given: Mapping[str, str], name: str, usual: int) -> int:
    return int(given[name]) if given.get(name, "").isdecimal() else usual


def tasks(recorder: Recorder, built: Mapping[str, Any]) -> None:
    """The tasks that come with Cutaway, the tour's texts and the examples, each with all its attention."""
    ours = {*SHIPPED, *BY_LIKELIHOOD}
    listed = [one for one in recorder.ask("GET", "tasks") if one["name"] in ours]
    recorder.keep(canonical("GET", "tasks"), listed)
    wanted = {one["name"]: one["others"] for one in listed if one["there"]}
    for step in built["tour"]:
        if step["page"] == "tasks":
            place = step["place"]
            answered(recorder, place.get("settings", {}).get("with", "translator"), place["text"], [], wanted)
    for task, examples in built["examples"].items():
        for example in examples:
            first, *others = example.split("\n")
            answered(recorder, TASKS.get(task, ""), first, others, wanted)


def answered(
    recorder: Recorder, model: str, text: str, others: list[str], wanted: Mapping[str, int], beams: int = 4,
    back: bool = False,
) -> None:  # fmt: skip
    if model not in wanted:
        return
    body = {
        "model": model, "text": text, "others": others[: wanted[model]], "beams": beams, "back": back, "form": None
    }  # fmt: skip
    found = recorder.record("POST", "tasks/answers", body=body)
    if found is None:
        return
    for layer in range(found["shape"]["layers"]):
        for head in (None, *range(found["shape"]["heads"])):
            query = [("layer", layer)] + ([] if head is None else [("head", head)])
            recorder.record("GET", f"tasks/answers/{found['id']}/between", query)


def about_a_moment(recorder: Recorder, address: str) -> None:
    """What a moment's page asks and the engine cannot answer."""
    page, _, rest = address.removeprefix("#/").partition("?")
    given = {name: values[-1] for name, values in parse_qs(rest, keep_blank_values=True).items()}
    text, ids = given.get("text", ""), unquote(given.get("more", ""))
    more = [int(one) for one in ids.split(".") if one.isdecimal()]
    if page == "tasks":
        listed = {one["name"]: one["others"] for one in recorder.ask("GET", "tasks") if one["there"]}
        others, back = given.get("others", "").split("\n"), given.get("way") == "back"
        answered(recorder, given.get("with", "translator"), text, others, listed, number(given, "beams", 4), back)
    elif text:
        together(recorder, text, more, given if page == "neurons" else None)
