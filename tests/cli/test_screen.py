from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from cutaway.cli import screen


@pytest.fixture
def terminal(monkeypatch):
    def make(columns: int = 40, **more) -> None:
        console = Console(width=columns, highlight=False, markup=False, **more)
        monkeypatch.setattr(screen, "out", lambda: console)

    return make


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (b" robot", "·robot"),
        (b"\n", "⏎"),
        (b"\t", "⇥"),
        (b"\x1b[2J", "␛[2J"),
        (b"\xe6\x97", "‹e6 97›"),
        (b" \xe6", "·‹e6›"),
        (b"\x97\x98", "‹97 98›"),
        (b"\xffa\xfe", "‹ff›a‹fe›"),
        ("日".encode(), "日"),
        ("\u202e".encode(), "‹U+202E›"),
        ("\u0301".encode(), "‹U+0301›"),
        (b"<|endoftext|>", "<|endoftext|>"),
    ],
)
def test_a_token_is_shown_with_its_spaces_line_ends_and_half_characters(token, shown):
    assert screen.visible(token) == shown


@given(st.binary(max_size=20))
def test_whatever_the_bytes_what_is_shown_moves_no_cursor(token):
    assert screen.visible(token).isprintable()


@given(st.text())
def test_text_for_a_terminal_keeps_everything_but_control_characters(text):
    shown = screen.harmless(text)
    assert not any((ord(character) < 32 and character not in "\n\t") or ord(character) == 127 for character in shown)
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0, ""),
        (1, "████████"),
        (0.5, "████"),
        (1 / 64, "▏"),
        (0.49, "███▉"),
        (2, "████████"),
        (-1, ""),
        (float("nan"), ""),
    ],
)
def test_a_bar_is_as_long_as_its_share(terminal, share, drawn):
    terminal()
    assert screen.bar(share, 8) == drawn


def test_chips_break_between_tokens_and_never_overflow(terminal):
    terminal(10)
    rows = str(screen.chips([b"robot", b" must", b" obey", b" orders"])).split("\n")
    assert rows == ["robot│", "·must│", "·obey│", "·orders"]
    assert all(cell_len(row) <= 10 for row in rows)


def test_chips_begin_a_new_line_after_a_line_end(terminal):
    terminal()
    assert str(screen.chips([b"a", b"\n", b"b"])) == "a│⏎│\nb"


def test_chips_are_told_apart_by_colour_or_by_a_sign(terminal):
    terminal(force_terminal=True, color_system="truecolor", no_color=False)
    coloured = screen.chips([b"a", b"b"])
    assert "│" not in str(coloured)
    assert len({span.style for span in coloured.spans if span.style}) == 2
    terminal(force_terminal=True, color_system="truecolor", no_color=True)
    assert str(screen.chips([b"a", b"b"])) == "a│b"


def test_long_texts_keep_their_last_lines_and_say_so(terminal):
    terminal(10)
    rows = str(screen.chips([b"abcdef"] * 9, lines=3)).split("\n")
    assert rows == ["… 7 lines above", "abcdef│", "abcdef"]


@pytest.mark.parametrize("columns", [30, 80, 120, 300])
@pytest.mark.parametrize("label", ["·the", "日本語" * 30, ""])
def test_bar_charts_stay_within_the_terminal(terminal, columns, label):
    terminal(columns)
    chart = str(screen.bars([screen.Row(label, 1.0), screen.Row("50,247 others", 0.00001, "dim")]))
    assert all(cell_len(row) <= max(columns, 36) for row in chart.split("\n"))
    assert "100.00%" in chart and "<0.01%" in chart


def test_json_is_one_line_of_valid_json_whatever_the_numbers(capsys):
    screen.show_json({"text": "日本", "bias": {"5": float("-inf")}, "list": (1.5, float("nan"))})
    out = capsys.readouterr().out
    assert "日本" in out and out.count("\n") == 1
    assert json.loads(out) == {"text": "日本", "bias": {"5": "-inf"}, "list": [1.5, "nan"]}
