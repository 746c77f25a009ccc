from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from cutaway.errors import CutawayError
from cutaway.serve import start


def test_any_free_port_is_on_this_machine_only():
    with start.bind() as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1" and port > 0
        with pytest.raises(CutawayError, match="--port"):
            start.bind(port)


def test_a_port_that_cannot_be_is_refused():
    with pytest.raises(CutawayError, match="no port 99999"):
        start.bind(99_999)


def test_the_address_carries_the_model_and_the_text():
    with start.bind() as listener:
        port = listener.getsockname()[1]
        assert start.address(listener) == f"http://127.0.0.1:{port}/"
        assert start.address(listener, "gpt2", "A b&c") == f"http://127.0.0.1:{port}/#/predict?model=gpt2&text=A+b%26c"


def test_a_judge_of_texts_is_opened_on_its_page():
    with start.bind() as listener:
        assert start.address(listener, "/my/judge", "A b", "tasks").endswith("/#/tasks?with=%2Fmy%2Fjudge&text=A+b")
        assert start.address(listener, "/my/pianist", "", "piano").endswith("/#/piano?with=%2Fmy%2Fpianist")
        assert start.address(listener, "pianist", "", "piano").endswith("/#/piano?")


def test_threads_sleep_while_they_wait_unless_they_were_told_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    start.share_the_cores()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    start.share_the_cores()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def test_explore_serves_until_it_is_interrupted(tiny_lm, tmp_path):
    """The whole command: it prints its address, answers there, and Ctrl-C ends it without a complaint."""
    tiny_lm.save(tmp_path / "mine")
    process = subprocess.Popen(
        [sys.executable, "-m", "cutaway", "explore", "--no-browser", "--model", str(tmp_path / "mine")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "300"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("The explorer is at http://127.0.0.1:"), line + process.stderr.read()
        where = line.split()[-1].partition("#")[0]
        with urllib.request.urlopen(f"{where}api/models", timeout=30) as answer:
            assert str(tmp_path / "mine") in {one["name"] for one in json.load(answer)}
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None and process.stderr.read() == ""
    finally:
        process.kill()
