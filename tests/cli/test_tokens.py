from __future__ import annotations

import pytest


def test_a_text_is_shown_cut_with_ids_and_bytes(cutaway):
    ran = cutaway("tokens", "A robot must obey", "--model", "gpt2")
    assert (ran.code, ran.err) == (0, "")
    assert "A│·robot│·must│·obey\n" in ran.out
    assert "       1     9379  ·robot" in ran.out and "20 72 6f 62 6f 74" in ran.out
    assert ran.out.endswith("4 tokens, 17 characters, 17 bytes\n")


def test_json_has_every_token_with_its_place_id_text_and_bytes(cutaway):
    found = cutaway("tokens", "é 日", "--model", "gpt2", "--json").json
    assert found["text"] == "é 日"
    assert found["count"] == {"tokens": 4, "characters": 3, "bytes": 6}
    assert found["tokens"][0] == {"position": 0, "id": 2634, "text": "é", "bytes": "c3 a9"}
    assert found["tokens"][1] == {"position": 1, "id": 10545, "text": None, "bytes": "20 e6"}
    assert b"".join(bytes.fromhex(token["bytes"]) for token in found["tokens"]) == "é 日".encode()


def test_bytes_that_are_not_utf8_are_read_as_bytes(cutaway, tmp_path):
    (tmp_path / "bytes").write_bytes(b"ab\xff\xfe\n")
    for ran in (
        cutaway("tokens", "--json", "--file", tmp_path / "bytes"),
        cutaway("tokens", "--json", stdin=b"ab\xff\xfe\n"),
    ):
        assert ran.json["text"] is None
        assert b"".join(bytes.fromhex(token["bytes"]) for token in ran.json["tokens"]) == b"ab\xff\xfe\n"
        assert ran.json["count"]["bytes"] == 5
    assert "‹ff›│‹fe›│⏎" in cutaway("tokens", "--file", tmp_path / "bytes").out


def test_an_argument_that_is_not_utf8_is_read_as_bytes(cutaway):
    found = cutaway("tokens", "caf\udce9", "--json").json  # how Python hands over the byte e9
    assert found["tokens"][-1]["bytes"] == "e9"


def test_a_pipe_keeps_its_last_line_end(cutaway):
    assert cutaway("tokens", "--json", stdin=b"hi\n").json["text"] == "hi\n"


def test_the_name_of_the_end_token_is_text_unless_special_is_asked_for(cutaway):
    assert len(cutaway("tokens", "<|endoftext|>", "--model", "gpt2", "--json").json["tokens"]) > 1
    assert [
        token["id"]
        for token in cutaway("tokens", "<|endoftext|>", "--model", "gpt2", "--special", "--json").json["tokens"]
    ] == [50256]


@pytest.mark.parametrize("line", [["tokens", ""], ["tokens"]])
def test_an_empty_text_has_no_tokens(cutaway, line):
    ran = cutaway(*line)
    assert (ran.code, ran.out) == (0, "0 tokens, 0 characters, 0 bytes\n")


def test_another_vocabulary_cuts_otherwise(cutaway, folder):
    ours = cutaway("tokens", "Once upon a time", "--model", folder, "--json").json
    assert ours["tokens"] != cutaway("tokens", "Once upon a time", "--json").json["tokens"]
    assert all(token["id"] < 320 for token in ours["tokens"])


def test_a_text_and_a_file_at_once_are_refused(cutaway, tmp_path):
    ran = cutaway("tokens", "text", "--file", tmp_path / "x")
    assert ran.code == 2 and "not both" in ran.err


def test_a_file_that_is_not_there_is_named(cutaway, tmp_path):
    ran = cutaway("tokens", "--file", tmp_path / "missing.txt")
    assert ran.code == 2 and "missing.txt" in ran.err and "No such file" in ran.err


def test_an_unknown_model_is_refused_and_the_one_that_ships_named(cutaway):
    ran = cutaway("tokens", "x", "--model", "gtp2")
    assert ran.code == 2 and "gtp2" in ran.err and "builtin" in ran.err


def test_a_vocabulary_is_learned_from_files_and_written_as_a_folder(cutaway, tmp_path):
    (tmp_path / "a.txt").write_text("the cat sat on the mat. " * 50)
    (tmp_path / "b.txt").write_text("the dog sat on the log. " * 50)
    out = tmp_path / "mine"
    ran = cutaway(
        "tokens", "--train", tmp_path / "a.txt", "--train", tmp_path / "b.txt", "--size", 270, "-o", out, "--json"
    )
    assert ran.json["tokens"] <= 270
    cut = cutaway("tokens", "the cat", "--model", out, "--json").json["tokens"]
    assert cut[0]["text"] == "the"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--train", "a.txt"], "both --train FILE and --output FOLDER"),
        (["-o", "mine"], "both --train FILE and --output FOLDER"),
        (["text", "--train", "a.txt", "-o", "mine"], "leave out the text"),
        (["--train", "missing.txt", "-o", "mine"], "missing.txt"),
        (["--train", "a.txt", "-o", "full"], "full already exists"),
    ],
)
def test_a_vocabulary_that_cannot_be_learned_is_refused(cutaway, tmp_path, monkeypatch, line, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("the cat sat on the mat. " * 50)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    ran = cutaway("tokens", *line)
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "mine").exists()


def test_gpt2s_id_stands_beside_ours_where_the_vocabulary_is_a_part_of_gpt2s(cutaway, tmp_path):
    from cutaway.text.tokenizer import Tokenizer
    from cutaway.text.vocabulary import END, Vocabulary

    gpt2 = Tokenizer.load("gpt2")
    tokens = {name: token for name, token in gpt2.vocabulary.items() if token < 256 + 1000}
    part = Tokenizer(Vocabulary(tokens, gpt2.merges[:1000], {END: len(tokens)}, END))
    part.save(tmp_path / "part")
    found = cutaway("tokens", "the end<|endoftext|>", "--special", "--model", tmp_path / "part", "--json").json[
        "tokens"
    ]
    assert [(one["id"], one["gpt2"]) for one in found] == [(1169, 1169), (886, 886), (1256, 50256)]
    shown = cutaway("tokens", "the end", "--model", tmp_path / "part").out
    assert "GPT-2" in shown and "     1169     1169  the" in shown
    assert "gpt2" not in cutaway("tokens", "the end", "--model", "gpt2", "--json").json["tokens"][0]
