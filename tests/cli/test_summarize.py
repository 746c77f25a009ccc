from __future__ import annotations

import json

import pytest

import cutaway as package
from cutaway.tasks import Summary
from cutaway.tasks.answer import summarize

ARTICLES = ["A robot must obey the orders given it", "Once upon a time there was a little fox"]


@pytest.fixture(scope="module")
def folder(trained):
    return trained(Summary(room=8))


@pytest.fixture
def run(cutaway, folder):
    return lambda *args, **more: cutaway("summarize", "--model", folder, *args, **more)


@pytest.fixture(scope="module")
def wanted(folder):
    lm = package.load(folder)
    return lambda texts, **how: list(summarize(lm, Summary(room=8), texts, **how))


def test_articles_are_summarized_line_by_line(run, wanted, tmp_path):
    (tmp_path / "news").write_text("\n".join(ARTICLES) + "\n")
    answers = wanted(ARTICLES, max_tokens=5, beams=2)
    ran = run("--file", tmp_path / "news", "-n", 5, "--beams", 2, "--json")
    assert ran.code == 0
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["source"], one["text"]) for one in found] == [(one.source, one.text) for one in answers]


def test_an_argument_with_many_lines_is_one_article(run, wanted):
    found = run("\n".join(ARTICLES), "-n", 5, "--json").json
    assert found["text"] == wanted(["\n".join(ARTICLES)], max_tokens=5)[0].text


def test_an_article_that_is_too_long_loses_its_end_and_this_is_told(run, wanted):
    text = "fox " * 80
    [answer] = wanted([text], max_tokens=3)
    assert answer.cut > 0
    assert run(text, "-n", 3, "--json").json["cut"] == answer.cut
    assert "too long, and read without its end" in run(text, "-n", 3).err
    assert "1 of 2 too long" in run("-n", 3, stdin=f"short\n{text}\n".encode()).err
