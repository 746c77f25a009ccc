"""What the piano page asks: pieces in and out, going on with one, and who plays."""

from __future__ import annotations

import pytest

import cutaway
from cutaway.inspect.notes import notes
from cutaway.inspect.runs import run
from cutaway.music import Events
from cutaway.music.compose import compose
from cutaway.music.events import END
from cutaway.music.midi import midi_bytes, parse_midi
from cutaway.music.performance import Performance
from cutaway.tasks import Performances, save_task
from tests.music.conftest import make_pianist

CHORD = Performance.of([0, 0.5, 1], [2, 2, 2], [60, 64, 67], [82, 82, 82])


@pytest.fixture
def pianist(explorer):
    lm = make_pianist(1, 0.1)
    explorer.models.add(lm)
    return lm


def test_a_file_becomes_a_piece_and_a_piece_a_file(client):
    sent = client.post("/api/piano/read?name=chord.mid", content=midi_bytes(CHORD)).json()
    events = Events().encode(CHORD)
    assert sent["events"] == events and len(sent["times"]) == len(events)
    assert [note[:4] for note in sent["notes"]] == [[0, 2, 60, 83], [0.5, 2, 64, 83], [1, 2, 67, 83]]
    assert [events[note[4]] for note in sent["notes"]] == [60, 64, 67]
    assert [events[note[5]] - 128 for note in sent["notes"]] == [60, 64, 67]
    played = client.post("/api/piano/notes", json={"notes": [note[:4] for note in sent["notes"]]}).json()
    assert played == sent
    back = client.post("/api/piano/midi", json={"events": events})
    assert back.headers["content-type"] == "audio/midi"
    assert Events().encode(parse_midi(back.content)) == events


EMPTY = midi_bytes(CHORD.between(9, 9))


@pytest.mark.parametrize(
    ("data", "code"), [(b"Dear diary", "not_midi"), (b"MThd\0\0\0\6\0\1", "midi_damaged"), (EMPTY, "midi_empty")]
)
def test_what_cannot_be_read_is_named(client, data, code):
    answer = client.post("/api/piano/read?name=diary.mid", content=data)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == code and error["values"]["name"] == "diary.mid" and "diary.mid" in error["what"]


def test_it_goes_on_as_compose_does_and_the_attention_is_that_of_the_view(client, explorer, pianist):
    events = Events().encode(CHORD)[:6]
    asked = {"model": pianist.name, "events": events, "seconds": 2, "seed": 5, "temperature": 0.9}
    sent = client.post("/api/piano/compose", json=asked).json()
    [wanted] = compose(pianist, 2, 5, primer=events, temperature=0.9)
    assert sent["events"] == [*events, *wanted.ids] and sent["given"] == len(events)
    assert len(sent["notes"]) == len(wanted.performance)
    ids = [END, *sent["events"]][: pianist.config.context]
    trace = client.post("/api/traces", json={"model": pianist.name, "text": "", "more": ids}).json()["id"]
    told = client.get(f"/api/traces/{trace}/notes?layer=1&k=3").json()
    assert told == notes(run(pianist, ids), 1, 3).to_dict()
    error = client.post("/api/piano/compose", json={**asked, "model": "tiny"}).json()["error"]
    assert error["code"] == "no_pianist"


def test_what_is_composed_is_as_the_model_recommends_unless_somebody_says_otherwise(client, pianist, monkeypatch):
    monkeypatch.setattr(pianist, "recommended", {"temperature": 0.6, "top_p": 0.9})
    assert client.get("/api/piano", params={"model": pianist.name}).json()["temperature"] == 0.6
    asked = {"model": pianist.name, "events": [], "seconds": 2.0, "seed": 5}
    usual, same, other = (
        client.post("/api/piano/compose", json={**asked, **more}).json()["events"]
        for more in ({}, {"temperature": 0.6}, {"temperature": 1.3})
    )
    assert usual == same != other
    included = client.get("/api/piano").json()
    if included["model"] is not None:
        assert included["temperature"] == cutaway.load(included["model"]).recommended["temperature"]


def test_who_plays_is_the_model_shown_if_it_can(client, explorer, pianist, tmp_path):
    def who(model: str) -> str | None:
        return client.get("/api/piano", params={"model": model}).json()["model"]

    included = who("")
    assert who(pianist.name) == pianist.name and who("tiny") == included and who("nobody") == included
    pianist.save(tmp_path / "mine")
    save_task(Performances(), tmp_path / "mine")
    explorer.models.folders.append(str(tmp_path / "mine"))
    assert who(str(tmp_path / "mine")) == str(tmp_path / "mine")
    assert client.get("/api/piano").json()["groups"][-1] == {"kind": "end", "first": END, "end": END + 1}
