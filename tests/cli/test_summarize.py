from __future__ import annotations

import json
import re

import pytest

import cutaway as package
from cutaway.checkpoint.locate import locate
from cutaway.tasks import Classification, Language, Summary, Translation
from cutaway.tasks.answer import summarize

needs_model = pytest.mark.skipif(not locate("summarizer").is_dir(), reason="no summarizer ships yet")

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


ARTICLE = """
We present a small neural model that translates short sentences from English to French.
It learns from pairs of sentences alone, with attention over the words of the source sentence, and runs on a laptop.
On a held-out test set our translation model is better than a recurrent model without attention.
"""


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower())) - {"to", "the", "of", "in", "for", "a", "and", "it", "is", "by"}


@needs_model
def test_the_model_that_ships_writes_a_title_out_of_the_abstracts_words(cutaway):
    ran = cutaway("summarize", ARTICLE, "--json")
    assert ran.code == 0
    found = ran.json
    assert found["model"] == "summarizer" and "small" in found["note"]
    assert found["whole"] and found["cut"] == 0
    assert 3 <= len(found["text"].split()) <= 12
    assert "\n" not in found["text"]
    assert len(words(found["text"]) & words(ARTICLE)) >= 2


@needs_model
def test_builtin_means_the_model_that_ships_for_it_and_line_breaks_do_not_matter_to_it(cutaway):
    plain = cutaway("summarize", " ".join(ARTICLE.split())).out
    assert plain.strip()
    assert cutaway("summarize", ARTICLE, "--model", "builtin").out == plain
    assert cutaway("summarize", ARTICLE, "--model", "summarizer").out == plain


@needs_model
def test_a_file_of_articles_works_at_once(cutaway, tmp_path):
    line = " ".join(ARTICLE.split())
    (tmp_path / "articles.txt").write_text(f"{line}\n\n{line}\n")
    first, between, last = cutaway("summarize", "--file", tmp_path / "articles.txt", "--beams", 1).out.splitlines()
    assert first == last != ""
    assert between == ""


@needs_model
def test_the_model_that_ships_is_small_and_comes_with_its_card():
    folder = locate("summarizer")
    assert sum(path.stat().st_size for path in folder.glob("*.safetensors")) <= 8_000_000
    card = (folder / "README.md").read_text()
    assert "ACL Anthology" in card and "CC BY 4.0" in card and "Reuters" not in card
    assert (folder / "loss.svg").is_file() and "loss.svg" in card


@pytest.mark.parametrize("task", [Language(), Translation(), Classification(("no", "yes"))], ids=lambda one: one.name)
def test_a_model_for_another_task_is_refused_with_the_way_to_get_one(cutaway, trained, task):
    ran = cutaway("summarize", "text", "--model", trained(task))
    assert ran.code == 2
    assert f"was trained for {task.name}, not for summary" in ran.err
    assert "--task summary" in ran.err
