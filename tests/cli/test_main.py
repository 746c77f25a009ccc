from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cutaway import __version__, cli
from cutaway.cli import options
from cutaway.errors import CutawayError

VERBS = (
    "explore", "generate", "predict", "tokens", "parameters", "train", "evaluate", "translate", "summarize", "classify",
    "pull", "convert",
)  # fmt: skip


def python(code: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload,no-any-return]


def test_help_and_the_verbs_that_need_no_weights_never_import_torch_or_numpy(tmp_path: Path) -> None:
    lines = [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)]
    lines += [
        ["tokens", "Hello"],
        ["parameters"],
        ["parameters", "--model", "gpt2-xl"],
        ["pull", "--list"],
        ["translate", "x", "--model", "classifier"],  # refused: it was trained for something else
        ["train", "-o", "x"],
        ["nonsense"],
    ]
    ran = python(
        f"""
import sys
from cutaway.cli import run
for line in {lines!r}:
    run(line)
    assert not {{"torch", "numpy"}} & set(sys.modules), line
""",
        env=os.environ | {"CUTAWAY_HOME": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stderr


def test_help_lists_the_verbs_that_work(cutaway):
    ran = cutaway("--help")
    assert ran.code == 0
    assert [verb for verb in (*VERBS, "serve", "bench", "inspect") if f" {verb} " not in ran.out] == []


def test_no_arguments_show_the_help(cutaway):
    assert cutaway().out.strip() == cutaway("--help").out.strip()
    assert cutaway().code == 0


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_each_verb_has_an_example_that_names_it(cutaway, verb):
    ran = cutaway(verb, "--help")
    assert ran.code == 0
    assert f"Example: cutaway {verb}" in ran.out
    assert "--json" in ran.out


def test_version_is_printed(cutaway):
    assert cutaway("--version").out == f"cutaway {__version__}\n"


def test_python_m_cutaway_is_the_command():
    ran = subprocess.run([sys.executable, "-m", "cutaway", "--version"], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, f"cutaway {__version__}\n")


def test_a_verb_that_is_not_there_suggests_the_nearest(cutaway):
    ran = cutaway("genrate", "x")
    assert ran.code == 2
    assert ran.out == ""
    assert "'generate'" in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["predict", "--modl", "x"], "--model"),
        (["generate", "--top-k", "many"], "--top-k"),
        (["convert"], "--output"),
        (["parameters", "one", "two"], "one"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_code_2(cutaway, line, said):
    ran = cutaway(*line)
    assert ran.code == 2
    assert ran.err.startswith("cutaway: ") and said in ran.err and "--help" in ran.err


def test_a_users_mistake_is_told_in_json_on_standard_error_when_json_is_asked_for(cutaway):
    import json

    for line in (["predict", "--json", "--model", "./nowhere"], ["predict", "--json", "--nonsense"]):
        ran = cutaway(*line)
        assert (ran.code, ran.out) == (2, "")
        assert set(json.loads(ran.err)) == {"error"}


def test_a_bug_shows_its_traceback_and_is_called_a_bug(cutaway, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("wires crossed")

    monkeypatch.setattr(options, "read_bytes", broken)
    ran = cutaway("tokens", "x")
    assert ran.code == 1
    assert "bug in Cutaway" in ran.err and "wires crossed" in ran.err and "Traceback" in ran.err


def test_a_full_disk_that_nobody_foresaw_is_a_message_and_not_a_traceback(cutaway, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "model.gguf")

    monkeypatch.setattr(options, "read_bytes", full)
    ran = cutaway("tokens", "x")
    assert (ran.code, ran.err) == (2, "cutaway: model.gguf: No space left on device\n")


def test_ctrl_c_leaves_with_130_and_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "cutaway", "tokens"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdin and process.stderr
        process.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: it has begun to read, and waits for the rest
        process.stdin.flush()
        for _ in range(20):  # Python loses a signal that comes just before it blocks
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=3)
                break
    finally:
        process.kill()
    err = process.stderr.read()
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_a_reader_that_goes_away_is_no_error_message():
    process = subprocess.Popen(
        [sys.executable, "-m", "cutaway", "tokens"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(b"many words " * 20_000)
    process.stdin.close()
    assert process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=60)
    assert err == b""


def test_an_ascii_terminal_gets_marks_instead_of_a_crash():
    ran = subprocess.run(
        [sys.executable, "-m", "cutaway", "tokens", "naïve 日本", "--model", "gpt2"],
        capture_output=True, timeout=60, env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert b"na?ve" in ran.stdout.replace(b"|", b"") and b"e6" in ran.stdout


def test_cutaway_errors_leave_with_code_2(cutaway, monkeypatch):
    def refuse(*_: object) -> None:
        raise CutawayError("The text is too blue.")

    monkeypatch.setattr(options, "read_bytes", refuse)
    ran = cutaway("tokens", "x")
    assert (ran.code, ran.out, ran.err) == (2, "", "cutaway: The text is too blue.\n")


def test_main_leaves_with_the_code_of_run(monkeypatch):
    monkeypatch.setattr("sys.argv", ["cutaway", "nonsense"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
