"""What the piano page asks for. A piece goes both ways as its events; for attention, some of it is carried through.

GET  /api/piano?model=         which model plays, and what its events are
POST /api/piano/read?name=     a MIDI file (the body is its bytes) as a piece
POST /api/piano/notes          {notes}    notes that were played as a piece
POST /api/piano/compose        {model, events, seconds, ...}    a piece that goes on from these events
POST /api/piano/midi           {events}   a piece as a MIDI file
GET  /api/traces/ID/notes      which earlier notes each note of a run attends to, in one layer
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from cutaway.checkpoint.locate import PIANIST, SHIPPED, locate
from cutaway.checkpoint.opened import open_checkpoint
from cutaway.errors import CutawayError
from cutaway.music.events import END, OFF, ON, SHIFT, SHIFTS, STEP, VELOCITIES, VELOCITY, Events
from cutaway.music.places import placed
from cutaway.music.rules import HIGHEST, LOWEST
from cutaway.serve.explorer import Explorer

LARGEST = 16 << 20
"""Bytes that a MIDI file may have."""
MOST = 500_000
"""Events that a piece may have."""
LONGEST = 120.0
"""Seconds that are composed at a time."""
GROUPS = (
    ("on", ON, OFF),
    ("off", OFF, SHIFT),
    ("wait", SHIFT, VELOCITY),
    ("velocity", VELOCITY, END),
    ("end", END, END + 1),
)
"""The kinds of events, and from where to where in the vocabulary they stand."""

Event = Annotated[int, Field(ge=0, lt=END)]
Note = tuple[
    Annotated[float, Field(ge=0, le=36_000)],
    Annotated[float, Field(ge=0, le=36_000)],
    Annotated[int, Field(ge=0, le=127)],
    Annotated[int, Field(ge=1, le=127)],
]
"""Start and end in seconds, pitch, velocity."""


class PlayedNotes(BaseModel):
    notes: list[Note] = Field(max_length=20_000)


class PieceEvents(BaseModel):
    events: list[Event] = Field(max_length=MOST)


class Composing(PieceEvents):
    """How the piece goes on: so many seconds, by this model; the same seed gives the same piece."""

    model: str = Field(max_length=1_000)
    seconds: float = Field(20.0, gt=0, le=LONGEST)
    seed: int = Field(0, ge=0, lt=1 << 32)
    temperature: float | None = Field(None, ge=0, le=4)
    """None: as the model recommends."""
    key: str = Field("", max_length=32)


def router(explorer: Explorer) -> APIRouter:
    api = APIRouter()
    events = Events()

    @api.get("/piano")
    def about(model: Annotated[str, Query(max_length=1_000)] = "") -> dict[str, Any]:
        """The model that plays: the one being shown if it can, or the one that is included; null without any."""
        named = model if plays(explorer, model) else PIANIST if PIANIST in SHIPPED else None
        groups = [{"kind": kind, "first": first, "end": end} for kind, first, end in GROUPS]
        return {"model": named, "temperature": temperature_of(explorer, named), "groups": groups, "step": STEP,
                "lowest": LOWEST, "highest": HIGHEST, "shifts": SHIFTS, "velocities": VELOCITIES}  # fmt: skip

    @api.post("/piano/read")
    async def read(request: Request, name: Annotated[str, Query(max_length=300)] = "the file") -> dict[str, Any]:
        from cutaway.music.midi import parse_midi

        data = bytearray()
        async for part in request.stream():
            data += part
            if len(data) > LARGEST:
                raise CutawayError(
                    f"{name} is larger than {LARGEST >> 20} MB: no performance is.", "midi_damaged", name=name
                )
        return piece(events.encode(parse_midi(bytes(data), name)))

    @api.post("/piano/notes")
    def played(body: PlayedNotes) -> dict[str, Any]:
        from cutaway.music.performance import Performance

        columns: list[Any] = list(zip(*body.notes, strict=True)) or [[], [], [], []]
        return piece(events.encode(Performance.of(*columns)))

    @api.post("/piano/compose")
    async def go_on(body: Composing, request: Request) -> dict[str, Any]:
        from cutaway.music.compose import compose

        def heard(done: float, total: float) -> None:
            explorer.worker.steps, explorer.worker.done = 1000, round(1000 * done / total)
            explorer.worker.check()

        def work() -> dict[str, Any]:
            lm = explorer.models.get(body.model)
            chosen: dict[str, Any] = {} if body.temperature is None else {"temperature": body.temperature}
            [found] = compose(
                lm, body.seconds, body.seed, primer=body.events, key=body.key or None, progress=heard, **chosen
            )
            return {**piece([*body.events, *found.ids]), "given": len(body.events), "seed": found.seed}

        return await explorer.worker.run(request, work)

    @api.post("/piano/midi")
    def midi(body: PieceEvents) -> Response:
        from cutaway.music.midi import midi_bytes

        return Response(midi_bytes(events.decode(body.events)), media_type="audio/midi")

    @api.get("/traces/{key}/notes")
    async def attention(
        key: str, request: Request, layer: int = 0, k: Annotated[int, Query(ge=1, le=32)] = 6
    ) -> dict[str, Any]:
        from cutaway.inspect.notes import notes

        def work() -> dict[str, Any]:
            run = explorer.run(key)
            found: dict[str, Any] = explorer.once((key, "notes", layer, k), lambda: notes(run, layer, k).to_dict())
            return found

        return await explorer.worker.run(request, work)

    return api


def results() -> dict[tuple[str, str], Callable[[], Any]]:
    """What is answered, for the OpenAPI document; looked up when it is asked for."""

    def attended() -> Any:
        from cutaway.inspect.notes import Notes

        return Notes

    return {("/api/traces/{key}/notes", "get"): attended}


def piece(ids: Sequence[int]) -> dict[str, Any]:
    """Events, when each of them happens, and the notes with the events they begin and end with."""
    if len(ids) > MOST:
        raise CutawayError(
            f"This performance has {len(ids):,} events, and at most {MOST:,} are shown. Cut it into pieces."
        )
    found = placed(ids)
    columns = (found.starts.round(2), found.ends.round(2), found.pitches, found.velocities, found.on, found.off)
    notes = [list(one) for one in zip(*(column.tolist() for column in columns), strict=True)]
    return {"events": list(ids), "times": found.times.tolist(), "notes": notes}


def temperature_of(explorer: Explorer, name: str | None) -> float:
    """What this model is to compose with, unless somebody says otherwise."""
    from cutaway.music.compose import USUAL

    awake = explorer.models.awake.get(name or "")
    recommended: dict[str, Any] = {}
    if awake is not None:
        recommended = awake.recommended
    elif name:
        recommended = open_checkpoint(locate(name)).read_recommended()
    found: dict[str, Any] = {**USUAL, **recommended}
    return float(found["temperature"])


def plays(explorer: Explorer, name: str) -> bool:
    """Whether this is a model of performances that is at hand here."""
    from cutaway.music.vocabulary import is_of_events
    from cutaway.tasks import Performances, load_task

    awake = explorer.models.awake.get(name)
    if awake is not None:
        return is_of_events(awake.tokenizer)
    if name not in explorer.models.folders:
        return False
    try:
        return isinstance(load_task(locate(Path(name))), Performances)
    except CutawayError:
        return False
