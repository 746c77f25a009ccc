"""`cutaway serve` as a new user meets it: it prints three lines of Python, and text comes of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")


def test_the_lines_that_it_prints_give_text_and_a_stream_is_finished_before_it_ends(folder, tmp_path):
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
            address = next(line for line in told if "http://" in line).partition("http://")[2].partition("/")[0]
            asked = {
                "prompt": "A",
                "max_tokens": 200,
                "n": 12,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
            with httpx.stream("POST", f"http://{address}/v1/completions", json=asked, timeout=120) as answer:
                lines = answer.iter_lines()
                assert next(lines).startswith("data: ")
                server.send_signal(signal.SIGINT)  # in the middle of a stream, which is finished all the same
                *_, last, done = [line for line in lines if line]
            assert done == "data: [DONE]" and json.loads(last.removeprefix("data: "))["usage"]["completion_tokens"] > 12
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
