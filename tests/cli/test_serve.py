"""`cutaway serve` as a new user meets it: it prints three lines of Python, and text comes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")


def test_the_lines_that_it_prints_give_text(folder, tmp_path):
    pytest.importorskip("openai", reason="the openai package is not installed")
    command = [sys.executable, "-u", "-m", "cutaway", "serve", str(folder), "--port", "0", "--state", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "50"}) as server:
        try:
            assert server.stdout is not None
            told = []
            while "Ctrl-C" not in (line := server.stdout.readline()):
                assert line, "the server ended"
                told.append(line)
            program = "".join(line.removeprefix("  ") for line in told if line.startswith("  "))
            assert len(program.strip().splitlines()) == 3
            ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout.strip()
            server.send_signal(signal.SIGINT)
            assert server.wait(60) in (0, 130, -signal.SIGINT)
        finally:
            server.kill()


def test_mistakes_are_told_before_anything_starts(cutaway, tmp_path):
    ran = cutaway("serve", tmp_path / "nothing")
    assert ran.code == 2 and "nothing" in ran.err
    ran = cutaway("serve", "--port", "70000")
    assert ran.code == 2 and "65535" in ran.err
    ran = cutaway("serve", "--memory", "0")
    assert ran.code == 2 and "memory" in ran.err
