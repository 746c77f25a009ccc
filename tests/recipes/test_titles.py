"""recipes/titles.py: abstracts and titles that can be learned from, and a test that is not among them."""

from __future__ import annotations

import importlib.util
import json
import lzma
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "titles.py"


@pytest.fixture
def made(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("titles", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def make(papers, name="papers.jsonl", *flags):
        opened = lzma.open if name.endswith(".xz") else open
        with opened(tmp_path / name, "wt", encoding="utf-8") as out:
            out.writelines(json.dumps(paper) + "\n" for paper in papers)
        monkeypatch.setattr(sys, "argv", ["titles.py", str(tmp_path / name), "-o", str(tmp_path / "out"), *flags])
        module.main()
        return {
            path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for path in (tmp_path / "out").iterdir()
        }, capsys.readouterr().out

    return make


def paper(n, title="How foxes see number {}", words=50):
    return {"title": title.format(n), "abstract": f"Paper {n} is about \u201cfoxes\u201d. " + "word " * words}


def test_pairs_are_cleaned_and_divided(made):
    found, said = made([paper(n) for n in range(20)], "papers.jsonl.xz", "--test", "5")
    assert (len(found["train"]), len(found["test"])) == (15, 5)
    assert '"foxes"' in found["train"][0]["article"]
    texts = {one["article"] for one in found["train"]}
    assert not texts & {one["article"] for one in found["test"]} and "15 pairs" in said


def test_what_cannot_be_learned_from_is_left_out_and_counted(made):
    papers = [
        paper(1),
        paper(1),
        paper(2, "Foxes"),
        paper(3, words=3),
        paper(4, "How foxes see \u72d0 {}"),
        {"title": "x y z"},
    ]
    found, said = made(papers, "papers.jsonl", "--test", "0")
    assert [one["summary"] for one in found["train"]] == ["How foxes see number 1"]
    for reason in ("1 other letters", "1 a title too short", "2 short", "1 the same as one before"):
        assert reason in said


def test_a_file_without_papers_is_refused(made):
    with pytest.raises(SystemExit, match="no papers"):
        made([])
