"""A plain command line read by hand means what it means to Typer; any other is left to it."""

from __future__ import annotations

import functools

import pytest

from cutaway import cli
from cutaway.cli import app, by_hand


@pytest.mark.parametrize(
    "line",
    [
        ["generate"],
        ["generate", "Once upon a time"],
        ["generate", "Once", "--max-tokens", "5", "--greedy", "-m", "x.cutaway", "--json"],
        ["generate", "--top-k=7", "-t", "0.8", "--top-p", "0.9", "Once", "--stop", "a", "--stop", "b", "-s", "3"],
        ["generate", "--file", "some/where.txt", "--batch", "--logit-bias", "13=-inf", "--overflow=slide"],
        ["generate", "", "--presence-penalty", "-0.5", "--samples", "2"],
        ["generate", "two\nlines", "--max-tokens", "5", "--max-tokens", "6"],
        ["predict", "Once", "-k", "3", "--special"],
        ["tokens", "Hello", "--json"],
        ["parameters", "--model", "gpt2-xl"],
        ["convert", "builtin", "--to", "gguf-f16", "-o", "out.gguf"],
        ["bench", "--quick", "--weights", "int8", "--weights", "int4"],
        ["translate", "Hello"],
    ],
    ids=" ".join,
)
def test_a_plain_line_means_what_it_means_to_typer(line, monkeypatch):
    verb, *args = line
    function, seen = cli.find(verb), []

    @functools.wraps(function)
    def recorded(**values: object) -> None:
        seen.append(values)

    monkeypatch.setattr(cli, "find", lambda verb: recorded)
    app.run(line, [verb])
    values = by_hand.read(function, args)
    assert values is not None
    assert {name: value or None for name, value in values.items()} == {
        name: value or None for name, value in seen[0].items()
    }


@pytest.mark.parametrize(
    "line",
    [
        ["generate", "--help"],
        ["generate", "-h"],
        ["generate", "one", "two"],
        ["generate", "--no-such-option"],
        ["generate", "--top-k", "many"],
        ["generate", "--top-k", "1e3"],
        ["generate", "--top-k"],
        ["generate", "-k5"],
        ["generate", "--greedy=yes"],
        ["generate", "--", "-x"],
        ["generate", "--stop", "-"],
        ["convert", "builtin"],
    ],
    ids=" ".join,
)
def test_what_is_not_plain_is_left_to_typer(line):
    verb, *args = line
    assert by_hand.read(cli.find(verb), args) is None
