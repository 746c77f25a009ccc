from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time

import pytest

from cutaway.cli.explore import CLINGS, COMMANDS, HELP, Explorer, State


@pytest.fixture
def explorer(tiny_lm):
    return Explorer(tiny_lm, seed=1)


@pytest.fixture
def explore(cutaway, folder):
    return lambda *args, **more: cutaway("explore", "--terminal", "--model", folder, *args, **more)


def test_enter_takes_the_likeliest(explorer, tiny_lm):
    explorer.take("Once upon")
    best = tiny_lm.predict("Once upon", k=1)[0]
    explorer.take("")
    assert explorer.now.ids[-1] == best.id


def test_a_number_picks_that_one_of_the_list(explorer, tiny_lm):
    explorer.take("Once upon")
    third = tiny_lm.predict("Once upon", k=3)[2]
    assert explorer.candidates()[2].id == third.id
    explorer.take(" 3 ")
    assert explorer.now.ids[-1] == third.id


def test_words_are_added_after_a_space_and_signs_without_one(explorer):
    for line in ("Once", "upon a", "time ", ",", "there"):
        explorer.take(line)
    assert explorer.text == "Once upon a time, there"


@pytest.mark.parametrize("sign", CLINGS)
def test_signs_cling_unless_they_begin_a_command(explorer, sign):
    explorer.take("Once")
    explorer.take(sign + "x")
    assert explorer.text == ("Once" if sign == ":" else f"Once{sign}x")


def test_plus_adds_exactly_what_follows_it(explorer):
    for line in ("Once", "+s", "+ 3", "+:q", "++", "+"):
        explorer.take(line)
    assert explorer.text == "Onces 3:q+"
    assert not explorer.done


def test_undo_takes_back_one_step_at_a_time(explorer):
    for line in ("Once", "upon", "2", ":t 0.5", ":k 3", ":g 4", ":new"):
        explorer.take(line)
    assert explorer.text == ""
    explorer.take(":u")
    assert len(explorer.now.ids) > 4
    explorer.take(":undo")
    assert (explorer.now.top_k, explorer.now.temperature) == (3, 0.5)
    explorer.take(":u")
    explorer.take(":u")
    assert (explorer.now.top_k, explorer.now.temperature) == (40, 1.0)
    explorer.take(":u")
    assert explorer.text == "Once upon"
    explorer.take(":u")
    explorer.take(":u")
    assert explorer.now == State()
    explorer.take(":u")
    assert "nothing to undo" in explorer.message


def test_the_list_follows_temperature_and_top_k(explorer):
    explorer.take("Once upon")
    before = explorer.candidates()
    explorer.take(":t 0.3")
    assert explorer.candidates()[0].probability > before[0].probability
    assert [one.id for one in explorer.candidates()] == [one.id for one in before]
    explorer.take(":k 4")
    assert len(explorer.candidates()) == 4
    assert sum(one.probability for one in explorer.candidates()) == pytest.approx(1)
    explorer.take(":k 0")
    assert explorer.now.top_k is None and len(explorer.candidates()) == 10


def test_a_temperature_of_0_leaves_the_likeliest(explorer, tiny_lm):
    explorer.take("Once upon")
    likeliest = explorer.candidates()[0].id
    explorer.take(":t 0")
    assert [(one.id, one.probability) for one in explorer.candidates()] == [(likeliest, 1.0)]
    explorer.take(":s")
    assert explorer.now.ids[-1] == likeliest
    explorer.take(":g 5")
    assert list(explorer.now.ids) == [
        *tiny_lm.ids("Once upon"), *tiny_lm.generate("Once upon", max_tokens=6, temperature=0).ids
    ]  # fmt: skip


def test_sampling_draws_from_what_is_shown_and_follows_the_seed(tiny_lm):
    def drawn(seed: int) -> list[int]:
        explorer = Explorer(tiny_lm, seed, State((5, 6), 1.0, 4))
        allowed = {one.id for one in explorer.candidates()}
        picked = []
        for _ in range(12):
            explorer.take(":s")
            picked.append(explorer.now.ids[-1])
            explorer.take(":u")
        assert set(picked) <= allowed
        return picked

    assert drawn(1) == drawn(1)
    assert len(set(drawn(1))) > 1
    assert drawn(1) != drawn(2)


def test_go_on_writes_so_many_tokens(explorer):
    explorer.take("Once")
    before = len(explorer.now.ids)
    explorer.now = State(explorer.now.ids, 1.0, 1)  # greedy: this model does not come upon its end token
    explorer.take(":g 7")
    assert len(explorer.now.ids) == before + 7


def test_ctrl_c_stops_the_writing_and_keeps_what_there_is(explorer):
    def enough(piece: str) -> None:
        raise KeyboardInterrupt

    explorer.take("Once")
    before = len(explorer.now.ids)
    explorer.show_piece = lambda piece: enough(piece) if piece.strip("\n") else None
    explorer.take(":g 30")
    assert before < len(explorer.now.ids) < before + 30
    assert "not written to its end" in explorer.message


def test_a_full_text_is_said_and_loses_nothing(explorer, tiny_lm):
    explorer.now = State((5,) * tiny_lm.config.context)
    for line in ("", "1", "words", ":s", ":g 3"):
        explorer.take(line)
        assert "full" in explorer.message, line
        assert explorer.now.ids == (5,) * tiny_lm.config.context
    explorer.take(":new")
    assert explorer.now.ids == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("11", "+ 11"), ("0", "+ 0"), (":t -1", "or above"), (":t nan", "or above"), (":t", "or above"),
        (":k x", "whole number"), (":g 1.5", "whole number"), (":smaple", "'sample'"), (":", ":?"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_and_changes_nothing(explorer, line, said):
    explorer.take("Once")
    before = explorer.now
    explorer.take(line)
    assert said in explorer.message
    assert explorer.now == before
    explorer.take(":u")
    assert explorer.now.ids == ()


def test_every_command_is_in_the_help(explorer):
    explorer.take(":?")
    assert all(f":{short}" in explorer.message for short in COMMANDS if short not in ("n", "h"))
    assert len(HELP) < 80 and all(len(line) < 80 for line in explorer.message.splitlines())


def test_lines_can_be_piped_in(explore):
    ran = explore("Once", "--seed", 1, stdin=b"upon\n\n:k 3\n2\n:q\nnever read\n")
    assert ran.code == 0, ran.err
    assert "> upon\n" in ran.out and "top-k 3" in ran.out and "never" not in ran.out
    assert ran.out.count(HELP) == 5


def test_the_end_of_the_input_ends_it(explore):
    assert explore(stdin=b"").code == 0
    assert explore(stdin=b"Once\n").code == 0


def test_json_is_a_line_for_each_step(explore, tiny_lm):
    ran = explore("Once", "--json", stdin=b"upon\n\n:x\n:q\n")
    steps = [json.loads(line) for line in ran.out.splitlines()]
    assert [step["text"] for step in steps[:2]] == ["Once", "Once upon"]
    assert steps[2]["ids"][-1] == steps[1]["predictions"][0]["id"]
    assert ":x" in steps[3]["message"]
    assert len(steps) == 4


def test_a_seed_without_terminal_is_refused(cutaway, folder):
    ran = cutaway("explore", "--model", folder, "--seed", 1)
    assert ran.code == 2 and "--terminal" in ran.err


def test_without_fastapi_it_says_what_to_install_and_what_works_without(cutaway, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    ran = cutaway("explore", "--model", folder)
    assert ran.code == 2 and "cutaway[serve]" in ran.err and "--terminal" in ran.err


@pytest.mark.parametrize(
    ("line", "said"),
    [(["--temperature", -1], "temperature"), (["--top-k", -1], "top-k"), (["x " * 99], "full"), (["\udce9"], "UTF-8")],
)
def test_a_beginning_that_cannot_be_is_refused(explore, line, said):
    ran = explore(*line, stdin=b"")
    assert (ran.code, ran.out) == (2, "") and said in ran.err


def test_a_line_that_is_not_utf8_is_refused(explore):
    ran = explore(stdin=b"caf\xe9\n")
    assert ran.code == 2 and "0xe9" in ran.err


def test_a_person_at_a_terminal_sees_the_list_and_keeps_the_text(folder):
    """On a real (pseudo) terminal: the screen is given back at the end, with the text on it."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cutaway", "explore", "--terminal", "Once upon", "--model", str(folder)],
        stdin=other, stdout=other, stderr=other,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "30"},
    )  # fmt: skip
    os.close(other)
    seen = ""

    def until(wanted: str) -> None:
        nonlocal seen
        limit = time.monotonic() + 100
        while wanted not in seen and time.monotonic() < limit:
            try:
                seen += os.read(main, 65536).decode(errors="replace")
            except OSError:  # the other end is gone
                break
        assert wanted in seen, seen[-2000:]

    try:
        until(":q quit")
        assert "\x1b[?1049h" in seen
        os.write(main, b"a time\n")
        until("time")
        os.write(main, b":q\n")
        until("\x1b[?1049l")
        until("Once upon a time\r\n")
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        os.close(main)
