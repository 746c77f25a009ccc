from __future__ import annotations

import threading
import time

import pytest

from cutaway.inspect.parameters import parameters
from cutaway.models.gpt2.shape import SIZES
from cutaway.serve.models import AWAKE, Models


def until_settled(models: Models, name: str) -> str:
    limit = time.monotonic() + 60
    while models.progress(name).phase in ("fetching", "reading") and time.monotonic() < limit:
        time.sleep(0.01)
    return models.progress(name).phase


@pytest.fixture
def folder(tiny_lm, tmp_path):
    tiny_lm.save(tmp_path / "mine")
    return str(tmp_path / "mine")


def test_the_menu_lists_what_is_here_and_what_the_hub_offers(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    listed = {one["name"]: one for one in Models([folder]).listing()}
    assert listed["builtin"]["where"] == "here" and listed[folder]["layers"] == 3
    for name, config in SIZES.items():
        assert listed[name]["where"] == "hub"
        assert listed[name]["parameters"] == parameters(config).total


def test_a_folder_wakes_and_answers(folder):
    models = Models()
    assert models.progress(folder).phase == "asleep"
    models.wake(folder)
    assert until_settled(models, folder) == "awake"
    assert models.get(folder).config.layers == 3


def test_a_model_that_is_not_there_fails_with_words_and_can_be_asked_for_again(tmp_path):
    models = Models()
    missing = str(tmp_path / "no-such-folder")
    models.wake(missing)
    assert until_settled(models, missing) == "failed"
    assert "no folder" in str(models.progress(missing).error)
    models.wake(missing)
    assert until_settled(models, missing) == "failed"


def test_a_broken_checkpoint_fails_with_words(folder, client):
    from pathlib import Path

    (Path(folder) / "model.safetensors").write_bytes(b"no weights at all")
    client.post("/api/models", json={"name": folder})
    limit = time.monotonic() + 60
    while (now := client.get("/api/models/waking", params={"name": folder}).json())["phase"] != "failed":
        assert now["phase"] in ("fetching", "reading") and time.monotonic() < limit
        time.sleep(0.01)
    assert now["error"]["code"] == "mistake" and "model.safetensors" in now["error"]["what"]


def test_only_a_few_stay_in_memory(tiny_lm, tiny):
    from cutaway.language_model import LanguageModel

    models = Models()
    for i in range(AWAKE + 2):
        models.add(LanguageModel(tiny, tiny_lm.tokenizer, f"model {i}"))
    assert list(models.awake) == [f"model {i}" for i in range(2, AWAKE + 2)]


def test_what_is_being_read_is_read_to_its_end_before_the_server_ends(monkeypatch, tiny_lm):
    """A process that ends inside torch is aborted, with a complaint."""
    reading, go_on = threading.Event(), threading.Event()

    def load(name, *rest, **more):
        reading.set()
        go_on.wait(60)
        return tiny_lm

    monkeypatch.setattr("cutaway.loading.load", load)
    models = Models()
    models.wake("builtin")
    reading.wait(60)
    closing = threading.Thread(target=models.close)
    closing.start()
    assert closing.is_alive()
    go_on.set()
    closing.join(60)
    assert not closing.is_alive() and models.waking["builtin"].phase == "awake"


def test_a_download_does_not_keep_the_server_from_ending(monkeypatch):
    fetching, never = threading.Event(), threading.Event()

    def locate(name, report):
        report("model.safetensors", 1, 100)
        fetching.set()
        never.wait(60)
        raise AssertionError

    monkeypatch.setattr("cutaway.serve.models.locate", locate)
    models = Models()
    models.wake("gpt2")
    fetching.wait(60)
    models.close()
    assert models.progress("gpt2").phase == "fetching"
    never.set()


def test_a_model_that_others_put_to_sleep_is_woken_again(tiny_lm):
    import time

    from cutaway.serve.explorer import Explorer

    explorer = Explorer()
    models = explorer.models

    def up() -> None:
        ends = time.monotonic() + 120
        while (now := models.wake("rnn")).phase != "awake" and time.monotonic() < ends:
            assert now.phase != "failed"
            time.sleep(0.05)

    up()
    for name in ("one", "other"):
        models.add(type(tiny_lm)(tiny_lm.model, tiny_lm.tokenizer, name))
    assert "rnn" not in models.awake
    up()
    assert "rnn" in models.awake
    explorer.close()
