"""Static word vectors: the three forms there and back, what is wrong in a file, neighbours, and learning."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.words import WordVectors, learn_vectors, read_vectors, write_vectors
from cutaway.words.formats import FORMS
from cutaway.words.included import static_vectors
from cutaway.words.skipgram import SkipGram

TABLE = np.array([[1, 0, 0.1], [0.5, 2, -1e-7], [0.25, 1, 3], [0, 0, 0]], np.float32)
VECTORS = WordVectors(["the", "naïve", "日本語", "0.5"], TABLE)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_goes_there_and_back_to_the_bit(tmp_path, form):
    write_vectors(VECTORS, tmp_path / "vectors.txt", form)
    found = read_vectors(tmp_path / "vectors.txt")
    assert found.words == VECTORS.words
    assert np.array_equal(found.table, TABLE)
    assert read_vectors(tmp_path / "vectors.txt", limit=2).words == VECTORS.words[:2]


def test_the_forms_are_those_of_word2vec_and_glove(tmp_path):
    path = tmp_path / "v"
    write_vectors(WordVectors(["a", "b"], np.array([[1, 2], [3, 4.5]], np.float32)), path)
    assert path.read_text() == "2 2\na 1 2\nb 3 4.5\n"
    write_vectors(read_vectors(path), path, "glove")
    assert path.read_text() == "a 1 2\nb 3 4.5\n"
    write_vectors(read_vectors(path), path, "binary")
    assert path.read_bytes() == b"2 2\na " + struct.pack("<2f", 1, 2) + b"\nb " + struct.pack("<2f", 3, 4.5) + b"\n"
    path.write_bytes(b"2 2\na " + struct.pack("<2f", 1, 2) + b"b " + struct.pack("<2f", 3, 4.5))  # without line feeds
    assert read_vectors(path)["b"].tolist() == [3, 4.5]
    path.write_text(". . . 1 2\nb 3 4\n")  # a word with spaces, as GloVe's largest file has some: not the first line
    with pytest.raises(CutawayError, match="line 1"):
        read_vectors(path)
    path.write_text("b 3 4\n. . . 1 2\n")
    assert read_vectors(path).words == ("b", ". . .")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no word vectors"),
        (b"a 1 2\nb 3\n", "line 2"),
        (b"a 1 2\nb 3 x\n", "line 2"),
        (b"a 1 nan\n", "NaN or infinite"),
        (b"a 1 2\na 3 4\n", "there twice"),
        (b"3 2\na 1 2\nb 3 4\n", "announces 3 vectors and holds 2"),
        (b"2 2\na " + struct.pack("<2f", 1, 2) + b"\nb \x00", "ends after 1"),
        (b"2 0\n", "cannot be"),
        (b"9999999999 9999999999\n", "cannot be"),
        (b"\xff\xfe 1 2\n", "UTF-8"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_name(tmp_path, content, says):
    (tmp_path / "bad.txt").write_bytes(content)
    with pytest.raises(CutawayError, match=says) as caught:
        read_vectors(tmp_path / "bad.txt")
    assert "bad" in str(caught.value)


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(CutawayError, match="white space"):
        write_vectors(WordVectors(["a b"], np.ones((1, 2), np.float32)), tmp_path / "v", "binary")
    with pytest.raises(CutawayError, match="Unknown form"):
        write_vectors(VECTORS, tmp_path / "v", "xml")
    with pytest.raises(CutawayError, match="cannot be read"):
        read_vectors(tmp_path / "none")
    assert not list(tmp_path.iterdir())


def test_neighbours_are_those_of_the_largest_cosine():
    found = VECTORS.nearest("the", 2)
    cosines = {
        word: float(row @ TABLE[0] / np.linalg.norm(row) / np.linalg.norm(TABLE[0]))
        for word, row in zip(VECTORS.words[1:3], TABLE[1:3], strict=True)
    }
    assert [word for word, _ in found] == sorted(cosines, key=lambda word: -cosines[word])
    assert dict(found) == pytest.approx(cosines)
    assert VECTORS.cosine("the", "naïve") == pytest.approx(cosines["naïve"])
    with pytest.raises(CutawayError, match=r"no vector for 'The'\. 'the' is there"):
        VECTORS.nearest("The")


def test_words_that_stand_in_the_same_places_come_near_each_other_and_a_seed_decides():
    rng = np.random.default_rng(0)
    animals, colours = ("fox", "dog", "owl"), ("red", "blue", "green")
    texts = [
        f"the {rng.choice(animals)} runs and sleeps in the wood. the wall was painted {rng.choice(colours)} by hand."
        for _ in range(400)
    ]
    settings = SkipGram(width=12, window=3, words=50, least=3, epochs=12, often=0, rate=0.1)
    found = learn_vectors(texts, settings)
    for own, others in ((animals, colours), (colours, animals)):
        same = [found.cosine(own[0], one) for one in own[1:]]
        assert min(same) > max(found.cosine(own[0], one) for one in others)
    assert np.array_equal(found.table, learn_vectors(texts, settings).table)
    assert not np.array_equal(found.table, learn_vectors(texts, SkipGram(**{**vars(settings), "seed": 1})).table)


@pytest.mark.parametrize(("texts", "says"), [([], "too few"), (["a a a a a b b b b b"[:9]], "too few")])
def test_too_little_text_is_refused(texts, says):
    with pytest.raises(CutawayError, match=says):
        learn_vectors(texts, SkipGram())


def test_the_included_vectors_are_read():
    table = static_vectors()
    assert len(table) >= 1_000
    assert "stick" in table
