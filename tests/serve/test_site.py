"""`cutaway explore --export`: what is written, what is refused, and that it is all of it or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cutaway import cli
from cutaway.errors import CutawayError
from cutaway.serve import recording, site


@pytest.fixture
def quick(monkeypatch):
    """Nothing is recorded but what is known of the model."""
    monkeypatch.setattr(site, "record", lambda recorder, *rest: recording.about_the_model(recorder))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_site_holds_the_model_and_says_how_large_it_is(tiny_lm, tmp_path, quick):
    written = site.export_site(tiny_lm, tmp_path / "site", text="A robot")
    assert names(tmp_path) == {"site"}
    folder = tmp_path / "site"
    assert names(folder) == {"index.html", "assets", "site", site.MARK}
    assert written.bytes == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    about = json.loads((folder / "site" / "model.json").read_text())
    weights = np.fromfile(folder / "site" / "weights.bin", "<f2")
    assert about["bytes"] == written.weights == weights.nbytes
    parameters = dict(tiny_lm.model.named_parameters())
    assert len(about["tensors"]) == len(parameters)
    for told in about["tensors"]:
        here = parameters[told["name"]].detach().numpy()
        assert told["shape"] == list(here.shape)
        assert np.array_equal(weights[told["start"] : told["start"] + here.size], here.astype("<f2").ravel())
    kept = {path.stem for path in (folder / "site" / "recorded").iterdir()}
    assert kept == set(about["recorded"]) and recording.hashed("GET models/map?name=tiny") in kept
    page = (folder / "index.html").read_text()
    told = json.loads(page.split('id="cutaway-site">')[1].split("</script>")[0])
    assert told["model"] == "tiny" and told["text"] == "A robot" and told["bytes"] == weights.nbytes
    assert 'src="./assets/' in page and "Content-Security-Policy" in page  # any sub-path, and nothing from elsewhere


def test_only_a_site_is_written_over(tiny_lm, tmp_path, quick):
    folder = tmp_path / "site"
    folder.mkdir()
    site.export_site(tiny_lm, folder)
    (folder / "stale.txt").write_text("from before")
    site.export_site(tiny_lm, folder)  # a site, written again
    assert "stale.txt" not in names(folder)
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.txt").write_text("mine")
    for given in (other, other / "chapter.txt"):
        with pytest.raises(CutawayError, match="other things"):
            site.export_site(tiny_lm, given)
    assert (other / "chapter.txt").read_text() == "mine"


def test_what_goes_wrong_on_the_way_leaves_what_was_there(tiny_lm, tmp_path, quick, monkeypatch):
    folder = tmp_path / "site"
    site.export_site(tiny_lm, folder, text="before")
    before = (folder / "index.html").read_text()

    def full(*what: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(site, "page", full)
    for given in (folder, tmp_path / "new"):
        with pytest.raises(CutawayError, match="No space left"):
            site.export_site(tiny_lm, given, text="after")
    assert names(tmp_path) == {"site"} and (folder / "index.html").read_text() == before


def test_a_model_that_a_page_cannot_run_is_refused(tiny_lm, encoder_lm, tmp_path, monkeypatch):
    with pytest.raises(CutawayError, match="runs GPT-2 only"):
        site.export_site(encoder_lm, tmp_path / "site")
    monkeypatch.setattr(site, "LARGEST", 1_000)
    with pytest.raises(CutawayError, match=r"parameters; a page can load 1,000"):
        site.export_site(tiny_lm, tmp_path / "site")
    monkeypatch.undo()
    monkeypatch.setitem(tiny_lm.tokenizer._vocabulary.words, "robot", 5)
    with pytest.raises(CutawayError, match="rules of its own"):
        site.export_site(tiny_lm, tmp_path / "site")
    assert names(tmp_path) == set()


def test_moments_are_links_or_files_of_links(tmp_path):
    listed = tmp_path / "moments.txt"
    listed.write_text("Who is it? http://127.0.0.1:8000/#/attention?text=Tom&layer=2\n\n#/walk?text=A+fox\n")
    found = site.read_moments([str(listed), "http://localhost/#/predict?text=x"])
    assert [(one.title, one.address) for one in found] == [
        ("Who is it?", "#/attention?text=Tom&layer=2"),
        ("", "#/walk?text=A+fox"),
        ("", "#/predict?text=x"),
    ]
    with pytest.raises(CutawayError, match="line 1 is not a moment"):
        listed.write_text("not a link")
        site.read_moments([str(listed)])
    with pytest.raises(CutawayError, match="neither a link"):
        site.read_moments(["nothing.txt"])


def test_a_question_has_one_form_whoever_asks():
    """As web/src/engine/answers.ts writes it."""
    body = {"text": "é", "model": "m", "facts": {"b": {"hot": 2.0}, "a": {"cold": 0.3, "none": None}}}
    assert recording.canonical("POST", "facts", body=body) == (
        'POST facts? {"facts":{"a":{"cold":0.3,"none":null},"b":{"hot":2}},"model":"m","text":"é"}'
    )
    query = [("layer", 1), ("count", 6), ("layer", 0)]
    asked = recording.canonical("GET", "traces/abc/factors", query, ids=[7, 8])
    assert asked == "GET traces/7 8/factors?count=6&layer=1&layer=0"
    assert recording.hashed("") == "cbf29ce484222325" and recording.hashed("a") == "af63dc4c8601ec8c"  # FNV's own


def test_what_only_python_answers_is_recorded_for_the_moments_given(tiny_lm, tmp_path):
    recorder = recording.Recorder(tiny_lm, "tiny", tmp_path)
    try:
        recording.about_a_moment(recorder, "#/neurons?text=A+robot+must+obey&parts=3&from=1&to=1")
        ids = tiny_lm.ids("A robot must obey")
        asked = recording.canonical("GET", "traces/x/factors", [("count", 3), ("layer", 1)], ids=ids)
        found = json.loads((tmp_path / f"{recording.hashed(asked)}.json").read_text())
        assert len(found["factors"]) == 3 and len(recorder.known) == 2
    finally:
        recorder.close()


def test_the_command_writes_a_site_and_says_what_it_wrote(tiny_lm, tmp_path, quick, capsys):
    tiny_lm.save(tmp_path / "mine")
    line = ["explore", "A robot", "--export", str(tmp_path / "site"), "--model", str(tmp_path / "mine")]
    assert cli.run([*line, "--moment", "A fox #/walk?text=A+fox"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the explorer with mine" in said and "MB" in said and "http.server" in said
    page = (tmp_path / "site" / "index.html").read_text()
    assert str(tmp_path) not in page and '"title": "A fox"' in page  # nobody learns where it was written
    assert cli.run([*line, "--terminal"]) == 2
    assert cli.run(["explore", "--moment", "#/walk"]) == 2
    assert "--export" in capsys.readouterr().err
