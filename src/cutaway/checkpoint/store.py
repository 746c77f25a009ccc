"""Which models are on this machine: those that `hub.pull` fetched, and those in Hugging Face's own cache.

Ours lie in `$CUTAWAY_HOME/models/org--name/<commit>/`, or in the user's cache folder, under `cutaway/models`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutaway.errors import CutawayError
from cutaway.home import cutaway_home, user_cache

SOURCE = "cutaway-source.json"
"""The file in a folder of ours that says where the others came from, and their checksums."""

KINDS = ("gpt2", "cutaway-gpt2", "marian", "transformer", "seq2seq")
"""The `model_type`s of what we can read."""

COMMIT = re.compile(r"[0-9a-f]{40}")

_NAME = re.compile(r"(\w([\w.-]{0,94}\w)?/)?\w([\w.-]{0,94}\w)?", re.ASCII)
_REVISION = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)
_WEIGHTS = (("model", "safetensors"), ("pytorch_model", "bin"))  # of two kinds, the first is the one we take


@dataclass(frozen=True)
class Pin:
    """What a short name stands for: a model on the hub, one commit of it, and the sha256 of that commit's weights."""

    name: str
    revision: str
    weights: str | None = None


@dataclass(frozen=True)
class LocalModel:
    """A model on this machine, ready to load from its folder."""

    name: str
    revision: str
    folder: Path
    bytes: int


PINNED: dict[str, Pin] = {
    "gpt2": Pin(
        "openai-community/gpt2",
        "607a30d783dfa663caf39e06633721c8d4cfcd7e",
        "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
    ),
    "gpt2-medium": Pin("openai-community/gpt2-medium", "6dcaa7a952f72f9298047fd5137cd6e4f05f41da"),
    "gpt2-large": Pin(
        "openai-community/gpt2-large",
        "32b71b12589c2f8d625668d2335a01cac3249519",
        "5f47f3e12f91cd33b662ce7e433b6150ad5512b5884a2cee961b50e9c3bbebce",
    ),
    "gpt2-xl": Pin(
        "openai-community/gpt2-xl",
        "15ea56dee5df4983c59b2538573817e1667135e2",
        "0f8b28eb05a8075f48b61b6f35332978c74fc7763fa9fb4051a1c30511736a6a",
    ),
}
"""The four models OpenAI published, each at one commit, so that `gpt2` means the same bytes today and next year."""


def find_model(name: str, revision: str | None = None) -> Path | None:
    """The folder of a model that is already on this machine, ours before Hugging Face's; None if it is not here.

    Without a revision: the pinned commit, else what `main` was when last fetched, else the newest there is.
    """
    name, pin = known(name, revision)
    homes = [home for home in _homes() if home.name == name or (pin and PINNED.get(home.name) == pin)]
    wanted = [revision] if revision else [pin.revision, "main"] if pin else ["main"]
    for each in wanted:
        commits = [each] if COMMIT.fullmatch(each) else [home.commit_of(each) for home in homes]
        for folder in (home.folders / commit for commit in commits if commit for home in homes):
            if whole(folder):
                return folder
    return None if revision else next((folder for home in homes for folder in home.models()), None)


def local() -> list[LocalModel]:
    """Every GPT-2 on this machine: those we pulled, then those in Hugging Face's cache."""
    models: dict[tuple[str, str], LocalModel] = {}
    for home in _homes():
        for folder in home.models():
            if not (folder / SOURCE).is_file() and _json(folder / "config.json").get("model_type") not in KINDS:
                continue  # Hugging Face's cache holds models of every kind
            size = sum(path.stat().st_size for path in inside(folder) if path.is_file())
            models.setdefault((home.name, folder.name), LocalModel(home.name, folder.name, folder, size))
    return list(models.values())


def known(name: str, revision: str | None) -> tuple[str, Pin | None]:
    """The name as the hub has it, and its pin if it has one; what cannot be a name or a revision is refused."""
    if not _NAME.fullmatch(name) or "--" in name or ".." in name:
        raise CutawayError(f"{name!r} is not the name of a model on the hub: names look like gpt2 or org/name.")
    if revision is not None and not _REVISION.fullmatch(revision):
        raise CutawayError(f"{revision!r} is not a revision: give a branch, a tag or a commit of 40 hex digits.")
    pin = PINNED.get(name) or next((pin for pin in PINNED.values() if pin.name == name), None)
    return (pin.name if pin else name), pin


def home_of(name: str) -> Path:
    """The folder of our store that holds every commit of this model."""
    return _store() / name.replace("/", "--")


def whole(folder: Path) -> bool:
    """Whether nothing is missing: no file that we fetched; in a folder that is not ours, none that a model needs."""
    try:
        there = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    except OSError:
        return False
    if SOURCE in there:
        files = _json(folder / SOURCE).get("files")
        if not isinstance(files, dict) or not files:
            return False
        return all(isinstance(file, dict) and there.get(name) == file.get("bytes") for name, file in files.items())
    tokenizers = ({"tokenizer.json"}, {"vocab.json", "merges.txt"}, {"vocab.json", "source.spm", "target.spm"})
    tokenizer = any(files <= there.keys() for files in tokenizers)
    return "config.json" in there and tokenizer and bool(weights_among(set(there)))


def weights_among(names: set[str]) -> list[str]:
    """Those of these files that hold the weights; none if there are none, or if a shard is missing."""
    for stem, ending in _WEIGHTS:
        if f"{stem}.{ending}" in names:
            return [f"{stem}.{ending}"]
        if f"{stem}.{ending}.index.json" in names:
            shards = sorted(name for name in names if re.fullmatch(rf"{stem}-\d{{5}}-of-\d{{5}}\.{ending}", name))
            count = int(shards[0].removesuffix(f".{ending}").rpartition("-")[2]) if shards else 0
            if count and shards == [f"{stem}-{i:05}-of-{count:05}.{ending}" for i in range(1, count + 1)]:
                return [f"{stem}.{ending}.index.json", *shards]
    return []


def inside(folder: Path) -> list[Path]:
    """What lies in a folder, in order; nothing if there is no such folder."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _store() -> Path:
    return cutaway_home() / "models"


def _huggingface() -> Path:
    hub = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    home = os.environ.get("HF_HOME")
    return Path(hub or (Path(home) / "hub" if home else user_cache() / "huggingface" / "hub")).expanduser().absolute()


@dataclass(frozen=True)
class _Home:
    """Where the commits of one model lie, each in a folder of its name, and what branches and tags stood for."""

    name: str
    folders: Path
    refs: Path

    def commit_of(self, revision: str) -> str | None:
        """The commit a branch or tag stood for when it was last fetched."""
        with contextlib.suppress(OSError, ValueError):
            commit = (self.refs / revision).read_text(encoding="ascii").strip()
            return commit if COMMIT.fullmatch(commit) else None
        return None

    def models(self) -> list[Path]:
        """The folders that can be loaded, the newest first."""
        ready = [folder for folder in inside(self.folders) if COMMIT.fullmatch(folder.name) and whole(folder)]
        return sorted(ready, key=lambda folder: folder.stat().st_mtime, reverse=True)


def _homes() -> Iterator[_Home]:
    for path in inside(_store()):
        yield _Home(path.name.replace("--", "/"), path, path / "refs")
    for path in inside(_huggingface()):
        if path.name.startswith("models--"):
            yield _Home(path.name.removeprefix("models--").replace("--", "/"), path / "snapshots", path / "refs")


def _json(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        content = json.loads(path.read_bytes())
        return content if isinstance(content, dict) else {}
    return {}
