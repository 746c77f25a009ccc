"""What is on this machine: our store, and Hugging Face's own cache, which is only read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from cutaway.checkpoint.hub import PINNED, LocalModel, find_model, local, pull

pytestmark = pytest.mark.usefixtures("machine")


def cached(root: Path, name: str, files: dict[str, bytes], commit: str = "a" * 40, branch: str = "main") -> Path:
    """A model in Hugging Face's own cache, with links to blobs as they have it."""
    model = root / f"models--{name.replace('/', '--')}"
    folder = model / "snapshots" / commit
    folder.mkdir(parents=True)
    (model / "blobs").mkdir(exist_ok=True)
    for file, content in files.items():
        blob = model / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        (folder / file).symlink_to(Path("../../blobs") / blob.name)
    (model / "refs").mkdir(exist_ok=True)
    (model / "refs" / branch).write_text(commit)
    return folder


HF_FILES = {"config.json": b'{"model_type": "gpt2"}', "tokenizer.json": b"{}", "model.safetensors": b"weights"}


@pytest.mark.parametrize(
    ("variable", "below"),
    [
        ("HF_HUB_CACHE", ""),
        ("HF_HOME", "hub"),
        ("XDG_CACHE_HOME", "huggingface/hub"),
        ("HOME", ".cache/huggingface/hub"),
    ],
)
def test_a_model_in_hugging_faces_cache_is_found_and_left_alone(monkeypatch, tmp_path, variable, below):
    monkeypatch.setenv(variable, str(tmp_path / "theirs"))
    folder = cached(tmp_path / "theirs" / below, "ada/tiny", HF_FILES)
    before = sorted((tmp_path / "theirs").rglob("*"))
    assert (
        find_model("ada/tiny")
        == find_model("ada/tiny", "main")
        == find_model("ada/tiny", "a" * 40)
        == pull("ada/tiny")
        == folder
    )
    assert find_model("ada/tiny", "b" * 40) is find_model("ada/tiny", "v1") is None
    assert sorted((tmp_path / "theirs").rglob("*")) == before


@pytest.mark.parametrize("name", ["gpt2", "openai-community/gpt2"])
def test_a_pinned_model_is_found_under_either_of_its_names_in_their_cache(monkeypatch, tmp_path, name):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "theirs"))
    old = cached(tmp_path / "theirs", name, HF_FILES)
    assert find_model("gpt2") == find_model("openai-community/gpt2") == old  # not the pinned commit, but all there is
    assert find_model("gpt2", PINNED["gpt2"].revision) is None
    exact = cached(tmp_path / "theirs", name, HF_FILES, PINNED["gpt2"].revision, "pinned")
    assert find_model("gpt2") == pull("gpt2") == exact


@pytest.mark.parametrize("missing", HF_FILES)
def test_a_model_of_which_their_cache_lacks_a_part_is_not_found(monkeypatch, tmp_path, missing):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "theirs"))
    cached(tmp_path / "theirs", "ada/tiny", {name: HF_FILES[name] for name in HF_FILES if name != missing})
    assert find_model("ada/tiny") is None
    assert local() == []


def test_our_store_comes_before_their_cache(there, monkeypatch, tmp_path):
    commit = there.add("ada/tiny")
    folder = pull("ada/tiny")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "theirs"))
    cached(tmp_path / "theirs", "ada/tiny", HF_FILES, commit)
    assert find_model("ada/tiny") == folder
    assert [model.folder for model in local()] == [folder]


def test_local_lists_what_is_here_with_its_size_and_nothing_that_is_no_gpt2(there, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "theirs"))
    cached(tmp_path / "theirs", "ada/bert", HF_FILES | {"config.json": b'{"model_type": "bert"}'})
    theirs = cached(tmp_path / "theirs", "ada/theirs", HF_FILES)
    commit = there.add("ada/tiny")
    folder = pull("ada/tiny")
    on_disk = sum(path.stat().st_size for path in folder.iterdir())
    assert local() == [
        LocalModel("ada/tiny", commit, folder, on_disk),
        LocalModel("ada/theirs", "a" * 40, theirs, sum(map(len, HF_FILES.values()))),
    ]


@pytest.mark.parametrize("source", [b"", b"[]", b"{}", b'{"files": {"config.json": 3}}', b'{"files": [1]}', b"\xff"])
def test_a_folder_whose_source_file_is_damaged_does_not_count(there, source):
    there.add("ada/tiny")
    folder = pull("ada/tiny")
    (folder / "cutaway-source.json").write_bytes(source)
    assert find_model("ada/tiny") is None
    assert pull("ada/tiny") == folder
    assert there.asked_for("model.safetensors") == [None]  # checked again, not fetched again


@pytest.mark.parametrize("content", ["", "main", "../../../etc", "g" * 40, "\x80"])
def test_a_damaged_reference_is_no_commit(monkeypatch, tmp_path, content):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "theirs"))
    folder = cached(tmp_path / "theirs", "ada/tiny", HF_FILES)
    (folder.parents[1] / "refs" / "main").write_text(content, encoding="latin-1")
    assert find_model("ada/tiny", "main") is None
    assert find_model("ada/tiny") == folder  # the newest there is


def test_without_a_main_the_newest_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "theirs"))
    for age, commit in ((2, "a" * 40), (1, "b" * 40), (3, "c" * 40)):
        os.utime(cached(tmp_path / "theirs", "ada/tiny", HF_FILES, commit, f"v{age}"), (1e9 - age, 1e9 - age))
    assert find_model("ada/tiny").name == "b" * 40


def test_the_store_is_in_the_users_cache_unless_told_otherwise(there, monkeypatch, tmp_path):
    monkeypatch.delenv("CUTAWAY_HOME")
    commit = there.add("ada/tiny")
    assert pull("ada/tiny") == tmp_path / "home/.cache/cutaway/models/ada--tiny" / commit
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert pull("ada/tiny") == tmp_path / "xdg/cutaway/models/ada--tiny" / commit
