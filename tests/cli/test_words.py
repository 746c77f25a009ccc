"""`cutaway words`: neighbours, learning, the forms."""

from __future__ import annotations

import json

from cutaway.cli import run
from cutaway.words import read_vectors
from cutaway.words.included import static_vectors


def test_neighbours_of_the_included_vectors(capsys):
    assert run(["words", "stick", "-k", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["word"], one["cosine"]) for one in found["nearest"]] == static_vectors().nearest("stick", 3)


def test_vectors_are_learned_written_and_read_again(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("the red fox runs. the red dog runs.\n" * 20)
    for form in ("binary", "glove"):
        given = ["--learn", str(text), "--width", "6", "-o", str(tmp_path / form), "--form", form]
        assert run(["words", *given]) == 0
    assert (read_vectors(tmp_path / "binary").table == read_vectors(tmp_path / "glove").table).all()
    capsys.readouterr()
    assert run(["words", "fox", "--vectors", str(tmp_path / "binary")]) == 0
    assert capsys.readouterr().out.startswith("fox: ")


def test_what_is_wrong_is_said(tmp_path, capsys):
    (tmp_path / "bad.txt").write_text("a 1 2\nb 3\n")
    for given, says in (
        ([], "Name a word"),
        (["stick", "--vectors", str(tmp_path / "bad.txt")], "line 2"),
        (["notaword"], "no vector"),
        (["stick", "-k", "0"], "1 or more"),
        (["stick", "--vectors", "a", "--learn", "b"], "not both"),
        (["--learn", str(tmp_path / "none"), "-o", "x"], "cannot be read"),
        (["stick", "-o", str(tmp_path / "none" / "x")], "cannot be written"),
    ):
        assert run(["words", *given]) == 2
        assert says in capsys.readouterr().err
