"""Pulls that go wrong on the way: dropped connections, damaged files, a full disk, two at once."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cutaway.checkpoint import hub
from cutaway.checkpoint.hub import find_model, local, pull
from cutaway.errors import CutawayError

pytestmark = pytest.mark.usefixtures("machine")


def test_a_dropped_connection_is_resumed_by_asking_for_the_rest_only(there, machine):
    there.add("ada/tiny")
    there.faults["model.safetensors"] = ["drop after 100000", "drop after 50000"]
    folder = pull("ada/tiny")
    assert there.asked_for("model.safetensors") == [None, "bytes=100000-", "bytes=150000-"]
    assert (folder / "model.safetensors").read_bytes() == there.weights
    assert machine == [0.5, 0.5]  # each drop came after progress, so neither wait was longer than the first


def test_an_interrupted_pull_leaves_its_part_and_the_next_one_goes_on_from_there(there):
    commit = there.add("ada/tiny")
    incoming = there.home("ada/tiny") / f"{commit}.incoming"

    def interrupt(file: str, done: int, total: int) -> None:
        if file == "model.safetensors" and done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull("ada/tiny", progress=interrupt)
    kept = (incoming / "model.safetensors.partial").stat().st_size
    assert 0 < kept < len(there.weights)
    assert find_model("ada/tiny") is None
    assert local() == []
    there.asked.clear()
    seen: list[tuple[str, int, int]] = []
    folder = pull("ada/tiny", progress=lambda *step: seen.append(step))
    assert there.asked_for("model.safetensors") == [f"bytes={kept}-"]
    assert there.asked_for("config.json", "hub") == []  # it was here, and is checked, not fetched
    assert ("model.safetensors", kept, len(there.weights)) in seen
    assert there.contents(folder) == there.fetched
    assert not incoming.exists()


def test_a_server_that_never_gets_on_is_given_up_after_a_few_tries_and_the_part_is_kept(there, machine):
    commit = there.add("ada/tiny")
    there.faults["model.safetensors"] = ["drop after 1000"] + ["drop after 0"] * 9
    with pytest.raises(CutawayError, match=r"broke off model\.safetensors.*1\.0 kB of 307\.2 kB .*pull again"):
        pull("ada/tiny")
    assert len(machine) <= 4
    partial = there.home("ada/tiny") / f"{commit}.incoming" / "model.safetensors.partial"
    assert partial.read_bytes() == there.weights[:1000]


def test_a_server_that_falls_silent_counts_as_dropped(there, monkeypatch):
    there.add("ada/tiny")
    monkeypatch.setattr(hub, "TIMEOUT", 0.3)
    there.faults["model.safetensors"] = ["hang after 1000"]
    there.faults["listing"] = ["hang after 10"]
    assert (pull("ada/tiny") / "model.safetensors").read_bytes() == there.weights
    assert there.asked_for("model.safetensors") == [None, "bytes=1000-"]


def test_the_whole_file_in_answer_to_a_range_is_taken_from_the_start(there):
    there.add("ada/tiny")
    there.faults["model.safetensors"] = ["drop after 1000", "no ranges"]
    assert (pull("ada/tiny") / "model.safetensors").read_bytes() == there.weights
    assert there.asked_for("model.safetensors") == [None, "bytes=1000-"]


def test_a_range_the_server_does_not_have_starts_over(there):
    there.add("ada/tiny")
    there.faults["model.safetensors"] = ["drop after 1000", "status 416"]
    assert (pull("ada/tiny") / "model.safetensors").read_bytes() == there.weights
    assert there.asked_for("model.safetensors") == [None, "bytes=1000-", None]


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_wrong_checksum_is_fetched_once_more_from_the_start(there, file):
    there.add("ada/tiny")
    there.faults[file] = ["corrupt"]
    assert there.contents(pull("ada/tiny"))[file] == there.model[file]
    assert there.asked_for(file, "cdn" if there.large(file) else "hub") == [None, None]


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_checksum_that_stays_wrong_is_said_and_nothing_of_it_is_kept(there, file):
    commit = there.add("ada/tiny")
    there.faults[file] = ["corrupt"] * 9
    with pytest.raises(CutawayError, match=f"{file} of ada/tiny, downloaded twice .* wrong checksum and was deleted"):
        pull("ada/tiny")
    incoming = there.home("ada/tiny") / f"{commit}.incoming"
    assert not list(incoming.glob(f"{file}*"))
    assert find_model("ada/tiny") is None


@pytest.mark.parametrize("length", [1_000, 307_200, 307_201])  # shorter than the file, as long, longer
def test_a_part_that_holds_something_else_is_found_out_and_replaced(there, length):
    commit = there.add("ada/tiny")
    incoming = there.home("ada/tiny") / f"{commit}.incoming"
    incoming.mkdir(parents=True)
    (incoming / "model.safetensors.partial").write_bytes(b"x" * length)
    (incoming / "vocab.json.partial").write_bytes(b"of no file in this model")
    assert there.contents(pull("ada/tiny")) == there.fetched


def test_a_file_lost_from_the_store_is_fetched_again_and_the_others_are_not(there):
    there.add("ada/tiny")
    folder = pull("ada/tiny")
    (folder / "config.json").unlink()
    assert find_model("ada/tiny") is None
    there.asked.clear()
    assert pull("ada/tiny") == folder
    assert there.contents(folder) == there.fetched
    assert there.asked_for("model.safetensors") == []


def test_a_passing_server_error_is_tried_again(there):
    there.add("ada/tiny")
    there.faults["listing"] = ["status 503", "drop after 20"]
    there.faults["config.json"] = ["status 500", "status 429"]
    assert there.contents(pull("ada/tiny")).keys() == there.fetched.keys()


def test_a_lasting_server_error_is_said(there, machine):
    there.add("ada/tiny")
    there.faults["listing"] = ["status 500"] * 9
    with pytest.raises(CutawayError, match=r"answered 500 \(Internal Server Error\): it is busy or broken"):
        pull("ada/tiny")
    assert machine == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("fault", ["status 500", "drop after 0"])
def test_a_file_that_never_comes_is_given_up(there, machine, fault):
    there.add("ada/tiny")
    there.faults["config.json"] = [fault] * 99
    with pytest.raises(CutawayError, match=r"(answered 500|broke off).* 0 bytes of 22 bytes of config\.json"):
        pull("ada/tiny")
    assert machine == [0.5, 1.0, 2.0]


def test_two_processes_pulling_at_once_fetch_it_once_and_agree(there):
    there.add("ada/tiny")
    command = [sys.executable, "-c", "from cutaway.checkpoint.hub import pull; print(pull('ada/tiny'))"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = {process.communicate(timeout=60)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert answers == {str(find_model("ada/tiny"))}
    assert there.asked_for("model.safetensors") == [None]


def test_threads_pulling_at_once_fetch_it_once_and_agree(there):
    there.add("ada/tiny")
    folders: list[Path] = []
    ended: list[str] = []

    def watch(file: str, done: int, total: int) -> None:
        if done == total:
            ended.append(file)

    threads = [threading.Thread(target=lambda: folders.append(pull("ada/tiny", progress=watch))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(folders) == 4
    assert len(set(folders)) == 1
    assert there.contents(folders[0]) == there.fetched
    assert there.asked_for("model.safetensors") == [None]
    assert ended.count("tokenizer.json") == 2  # received, and checked: by one thread only


# --- the disk -------------------------------------------------------------------------------------------------------


def test_too_little_space_is_said_before_anything_is_fetched(there, monkeypatch):
    there.add("ada/tiny")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6 - 5, 5))
    with pytest.raises(
        CutawayError, match=r"ada/tiny needs 307\.2 kB and the disk .* has 5 bytes free: .*CUTAWAY_HOME"
    ):
        pull("ada/tiny")
    assert there.asked_for("model.safetensors", "hub") == there.asked_for("config.json", "hub") == []


def test_a_disk_that_fills_up_on_the_way_keeps_what_there_is(there, monkeypatch):
    commit = there.add("ada/tiny")
    partial = there.home("ada/tiny") / f"{commit}.incoming" / "model.safetensors.partial"
    real_open = Path.open

    class Full:
        """A file on a disk with room for 100,000 bytes."""

        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, chunk):
            room = 100_000 - self.file.tell()
            self.file.write(chunk[:room])
            if len(chunk) > room:
                raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        opens = lambda path, *args, **more: real_open(path, *args, **more)  # noqa: E731
        patch.setattr(Path, "open", lambda p, *a, **k: Full(opens(p, *a, **k)) if p == partial else opens(p, *a, **k))
        with pytest.raises(
            CutawayError, match=r"The disk that holds .* is full\. What was downloaded of ada/tiny is kept"
        ):
            pull("ada/tiny")
    assert partial.read_bytes() == there.weights[:100_000]
    assert (pull("ada/tiny") / "model.safetensors").read_bytes() == there.weights
    assert there.asked_for("model.safetensors") == [None, "bytes=100000-"]


def test_a_store_that_cannot_be_written_to_is_said_with_the_remedy(there, tmp_path):
    there.add("ada/tiny")
    (tmp_path / "store").write_text("a file where the folder should be")
    with pytest.raises(CutawayError, match=r"Cannot write to .*store.*Set CUTAWAY_HOME"):
        pull("ada/tiny")
