from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from cutaway.checkpoint import hub
from cutaway.cli import screen
from cutaway.errors import CutawayError


@pytest.fixture
def fetched(monkeypatch, tmp_path):
    """A hub that hands over two files; what it was asked for is kept."""
    asked = []

    def pull(name, revision=None, progress=None) -> Path:
        asked.append((name, revision))
        for file, size in (("config.json", 10), ("model.safetensors", 1000)):
            progress(file, 0, size)
            progress(file, size, size)
            (tmp_path / file).write_bytes(b"x" * size)
        return tmp_path

    monkeypatch.setattr(hub, "pull", pull)
    return asked


def test_the_folder_is_printed(cutaway, fetched, tmp_path):
    ran = cutaway("pull", "gpt2")
    assert (ran.code, ran.out, ran.err) == (0, f"{tmp_path}\n", "")
    assert fetched == [("gpt2", None)]


def test_a_revision_is_handed_on(cutaway, fetched):
    cutaway("pull", "org/name", "--revision", "v1")
    assert fetched == [("org/name", "v1")]


def test_a_terminal_sees_a_bar_for_each_file(cutaway, fetched, monkeypatch):
    console = Console(stderr=True, force_terminal=True, width=100)
    monkeypatch.setattr(screen, "err", lambda: console)
    ran = cutaway("pull", "gpt2")
    assert "model.safetensors" in ran.err and "config.json" in ran.err and "━" in ran.err


def test_json_names_the_folder_and_its_files(cutaway, fetched, tmp_path):
    assert cutaway("pull", "gpt2", "--json").json == {
        "name": "gpt2", "folder": str(tmp_path), "files": {"config.json": 10, "model.safetensors": 1000},
    }  # fmt: skip


def test_list_shows_what_is_on_this_machine(cutaway, monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "local", lambda: [hub.LocalModel("org/name", "a" * 40, tmp_path, 5_000_000)])
    ran = cutaway("pull", "--list")
    assert ran.code == 0 and "org/name" in ran.out and "5 MB" in ran.out and str(tmp_path) in ran.out
    assert cutaway("pull", "--list", "--json").json == [
        {"name": "org/name", "revision": "a" * 40, "folder": str(tmp_path), "bytes": 5_000_000}
    ]


def test_an_empty_list_says_how_to_fetch_one(cutaway, monkeypatch):
    monkeypatch.setattr(hub, "local", list)
    assert "cutaway pull gpt2" in cutaway("pull", "--list").out
    assert cutaway("pull", "--list", "--json").json == []


def test_no_name_is_refused(cutaway):
    ran = cutaway("pull")
    assert ran.code == 2 and "cutaway pull gpt2" in ran.err


def test_list_with_a_name_is_refused(cutaway):
    assert cutaway("pull", "gpt2", "--list").code == 2


def test_what_the_hub_refuses_is_one_line_and_code_2(cutaway, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise CutawayError("There is no network.")

    monkeypatch.setattr(hub, "pull", refuse)
    ran = cutaway("pull", "gpt2")
    assert (ran.code, ran.out, ran.err) == (2, "", "cutaway: There is no network.\n")


def test_offline_a_model_that_is_not_here_is_refused(cutaway, monkeypatch, tmp_path):
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("CUTAWAY_OFFLINE", "1")
    ran = cutaway("pull", "gpt2")
    assert ran.code == 2 and "not on this machine" in ran.err


def test_loading_a_model_that_is_not_here_fetches_it_with_the_bar(cutaway, fetched, monkeypatch):
    monkeypatch.setattr(hub, "find_model", lambda *_: None)
    ran = cutaway("tokens", "x", "--model", "org/name")
    assert fetched == [("org/name", None)]
    assert ran.code == 2  # the two files of this hub hold no vocabulary
