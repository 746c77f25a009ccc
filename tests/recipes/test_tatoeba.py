"""recipes/tatoeba.py: pairs both ways round for training, and a test that shares no sentence with them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "tatoeba.py"
PAIRS = [
    *((f"I saw {n} foxes.", f"J’ai vu {n}\u202frenards.") for n in range(40)),
    *((f"I saw {n} foxes.", f"J'ai aperçu {n} renards.") for n in range(40)),
    *((f"You saw {n} foxes.", f"J'ai vu {n} renards.") for n in range(40)),  # a French sentence with two meanings
    ("Go.", "Va !"),
    ("Go.", "Va\u202f!"),
]


@pytest.fixture(scope="module")
def tatoeba():
    spec = importlib.util.spec_from_file_location("tatoeba", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def made(tatoeba, tmp_path, monkeypatch, capsys):
    """Runs the script; what it wrote by name, as pairs."""

    def make(text, *flags, more=None):
        (tmp_path / "fra.txt").write_text(text, encoding="utf-8")
        out = tmp_path / "out"
        sources = [str(tmp_path / "fra.txt"), *([str(more)] if more else [])]
        monkeypatch.setattr(sys, "argv", ["tatoeba.py", *sources, "-o", str(out), *flags])
        tatoeba.main()
        assert not list(out.glob("*.part"))
        found = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in out.glob("*.tsv")}
        return {name: [tuple(line.split("\t")) for line in lines] for name, lines in found.items()}

    return make


def lines(pairs):
    return "".join(f"{english}\t{french}\n" for english, french in pairs)


PHRASES = Path(__file__).resolve().parents[2] / "recipes" / "phrases.tsv"


def test_every_pair_is_learned_once_each_way_round(tatoeba, made):
    written = made(lines(PAIRS), "--test", "0")
    train = written["train"]
    phrases = [pair for pair in written["train.en-fr"] if pair in tatoeba.read(PHRASES)]
    there = written["train.en-fr"][: -len(phrases)]
    pairs = train[: 2 * len(there)]
    assert pairs[::2] == there and pairs[1::2] == [(french, english) for english, french in there]
    sentences = [pair for pair in there if pair[0].endswith(".")]
    assert len(sentences) == len(PAIRS) - 1  # the last two are the same but for their spaces
    assert ("I saw 3 foxes.", "J'ai vu 3 renards.") in sentences


def test_words_that_are_tried_first_come_often_and_some_pairs_as_people_type_them(tatoeba, made):
    train = made(lines(PAIRS), "--test", "0")["train"]
    assert train.count(("merci", "thank you")) == train.count(("thank you", "merci")) == tatoeba.PHRASES
    assert train.count(("thanks", "merci")) == tatoeba.PHRASES and ("merci", "thanks") not in train
    small = [pair for pair in train if pair[0].startswith("i saw") and not pair[1].endswith(".")]
    assert 0 < len(small) < len(PAIRS) / 2


def test_other_files_give_pairs_for_training_that_the_test_has_not(tatoeba, made, tmp_path):
    import lzma

    long = " ".join(["awfully"] * 15)
    with lzma.open(tmp_path / "more.tsv.xz", "wt", encoding="utf-8") as out:
        out.write(lines([("I saw 7 foxes.", "J'ai rencontré 7 renards."), ("The sun is hot.", "Le soleil est chaud."),
                         (f"It is {long} hot.", "Il fait chaud.")]))  # fmt: skip
    found = made(lines(PAIRS), "--test", "40", more=tmp_path / "more.tsv.xz")
    assert ("The sun is hot.", "Le soleil est chaud.") in found["train"]
    assert not any("awfully" in pair[0] for pair in found["train"])
    held = {english for english, _ in found["test.en-fr"]}
    assert "I saw 7 foxes." not in held or not any(pair[0] == "I saw 7 foxes." for pair in found["train"])


def test_training_and_test_share_no_sentence_in_either_language(made):
    found = made(lines(PAIRS), "--test", "5")
    test = found["test.en-fr"]
    assert len({english for english, _ in test}) == 5
    assert found["test.fr-en"] == [(french, english) for english, french in test]
    assert not {text for pair in found["train"] for text in pair} & {text for pair in test for text in pair}
    assert {english for english, _ in test} <= {english for english, _ in PAIRS}


def test_the_split_does_not_depend_on_the_order_of_the_file(made):
    one = made(lines(PAIRS), "--test", "5")["test.en-fr"]
    assert sorted(made(lines(PAIRS[::-1]), "--test", "5")["test.en-fr"]) == sorted(one)


def test_a_last_line_that_breaks_off_is_left_out(made):
    text = lines(PAIRS[:5]) + "They did it again.\tIls l'ont "
    assert not any("again" in pair[0] for pair in made(text, "--test", "0")["train"])


def test_a_file_that_is_not_there_is_refused_with_the_place_to_get_it(tatoeba, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["tatoeba.py", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match="manythings"):
        tatoeba.main()
