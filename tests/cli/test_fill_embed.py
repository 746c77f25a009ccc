"""`cutaway fill` and `cutaway embed`: an encoder on the command line."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def bert(bert_lm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "bert"
    bert_lm.save(folder)
    return folder


def test_fill_shows_the_likeliest_words_of_every_gap(cutaway, bert, bert_lm):
    text = "The [MASK] sat on [MASK] mat."
    wanted = bert_lm.fill(text, 3)
    ran = cutaway("fill", text, "--model", bert, "-k", 3)
    assert ran.code == 0 and ran.out.count("%") == 6 and "[MASK]" in ran.out
    found = cutaway("fill", "--model", bert, "-k", 3, "--json", stdin=f"{text}\n".encode()).json
    assert [gap["position"] for gap in found["gaps"]] == [2, 5]
    for gap, own in zip(found["gaps"], wanted, strict=True):
        assert [one["text"] for one in gap["predictions"]] == [one.text for one in own.predictions]
        assert [one["probability"] for one in gap["predictions"]] == pytest.approx(
            [one.probability for one in own.predictions]
        )


def test_embed_gives_a_line_of_numbers_for_each_text(cutaway, bert, bert_lm, tmp_path):
    texts = ["the robot", "a little fox"]
    wanted = bert_lm.embed(texts).tolist()
    ran = cutaway("embed", *texts, "--model", bert)
    assert [[float(one) for one in line.split()] for line in ran.out.splitlines()] == [
        pytest.approx(one, abs=1e-5) for one in wanted
    ]
    (tmp_path / "texts").write_text("the robot\n\na little fox\n")
    lines = cutaway("embed", "--file", tmp_path / "texts", "--model", bert, "--json").out.splitlines()
    assert [json.loads(line)["text"] for line in lines] == texts
    assert json.loads(lines[1])["vector"] == pytest.approx(wanted[1], abs=1e-5)


def test_search_puts_the_text_itself_first(cutaway, bert, tmp_path):
    (tmp_path / "texts").write_text("a little fox\nthe robots must obey .\nthe mat sat\n")
    ran = cutaway("embed", "--search", "the robots must obey .", "--file", tmp_path / "texts", "--model", bert, "-k", 2)
    assert ran.out.splitlines()[0] == "1.0000  the robots must obey ."
    assert len(ran.out.splitlines()) == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("fill", "no gap"), "no [MASK] in the text"),
        (("fill", "a [MASK]", "--model", "tiny"), "is a GPT-2"),
        (("fill", "a [MASK]", "-k", "0"), "1"),
        (("embed", "the " * 50), "is 52 tokens long"),
        (("embed", "--search", "a", "-k", "0", "the"), "-k must be 1 or more"),
        (("embed",), "There is no text"),
        (("generate", "the robot"), "is a BERT"),
        (("predict", "the robot"), "is a BERT"),
        (("evaluate", "--on", "text"), "trained for masked words"),
    ],
)
def test_the_wrong_folder_and_what_does_not_fit_is_one_line(cutaway, bert, folder, args, says, tmp_path):
    (tmp_path / "text.txt").write_text("the robot must obey\n" * 20)
    args = [tmp_path / "text.txt" if one == "text" else folder if one == "tiny" else one for one in args]
    ran = cutaway(*args, *(() if "--model" in args else ("--model", bert)))
    assert ran.code == 2 and says in " ".join(ran.err.split()), ran.err


def test_unknown_characters_are_told_and_read_as_unk(cutaway, bert):
    ran = cutaway("fill", "☃ [MASK] ☃☃ the", "--model", bert)
    assert ran.code == 0 and "[UNK]" in ran.out
    assert "2 of 6 tokens are not in the vocabulary" in " ".join(ran.err.split())
    unfit = cutaway("fill", "a [MASK]", "--model", "builtin")
    assert unfit.code == 2 and "fill" in unfit.err
