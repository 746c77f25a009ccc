from __future__ import annotations

import pytest


def test_the_ten_likeliest_are_shown_with_bars_and_the_rest_is_summed(cutaway, folder):
    ran = cutaway("predict", "Once upon a", "--model", folder)
    assert ran.code == 0
    assert ran.out.count("%") == 11
    assert "310 others" in ran.out and "█" in ran.out
    assert [line.split()[0] for line in ran.out.splitlines() if "%" in line][:10] == [str(n) for n in range(1, 11)]


def test_json_probabilities_are_the_models_and_add_up_to_one(cutaway, folder, tiny_lm):
    found = cutaway("predict", "Once upon a", "--model", folder, "-k", 3, "--json").json
    wanted = tiny_lm.predict("Once upon a", k=3)
    assert [one["id"] for one in found["predictions"]] == [one.id for one in wanted]
    assert [one["probability"] for one in found["predictions"]] == pytest.approx([one.probability for one in wanted])
    assert sum(one["probability"] for one in found["predictions"]) + found["rest"]["probability"] == pytest.approx(1)
    assert found["rest"]["tokens"] == 317


def test_a_file_and_a_pipe_give_what_the_argument_gives(cutaway, folder, tmp_path):
    (tmp_path / "text").write_text("Once upon a\n")
    said = cutaway("predict", "Once upon a", "--model", folder, "--json").json
    assert cutaway("predict", "--file", tmp_path / "text", "--model", folder, "--json").json == said
    assert cutaway("predict", "--model", folder, "--json", stdin=b"Once upon a\r\n").json == said


def test_an_empty_text_is_the_beginning_of_one(cutaway, folder):
    ran = cutaway("predict", "", "--model", folder, "--json")
    assert ran.code == 0 and len(ran.json["predictions"]) == 10


def test_all_of_the_vocabulary_leaves_no_others(cutaway, folder):
    ran = cutaway("predict", "a", "--model", folder, "-k", 9999)
    assert ran.code == 0 and "0 others" not in ran.out
    found = cutaway("predict", "a", "--model", folder, "-k", 9999, "--json").json
    assert len(found["predictions"]) == 320 and found["rest"]["tokens"] == 0


@pytest.mark.parametrize("given", ["argument", "file", "pipe"])
def test_a_text_that_is_not_utf8_is_refused_with_the_place_of_the_byte(cutaway, folder, tmp_path, given):
    data = b"caf\xe9 au lait"
    (tmp_path / "text").write_bytes(data)
    ran = {
        "argument": lambda: cutaway("predict", "caf\udce9 au lait", "--model", folder),
        "file": lambda: cutaway("predict", "--file", tmp_path / "text", "--model", folder),
        "pipe": lambda: cutaway("predict", "--model", folder, stdin=data),
    }[given]()
    assert ran.code == 2
    assert "0xe9" in ran.err and "position 3" in ran.err and "UTF-8" in ran.err


@pytest.mark.parametrize("k", [0, -1])
def test_fewer_than_one_prediction_is_refused(cutaway, folder, k):
    ran = cutaway("predict", "a", "--model", folder, "-k", k)
    assert ran.code == 2 and "1 or more" in ran.err


def test_a_text_longer_than_the_context_is_refused(cutaway, folder):
    ran = cutaway("predict", "x " * 100, "--model", folder)
    assert ran.code == 2 and "48" in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/at/all", "no-such-model", "a/b/c"])
def test_an_unknown_model_is_refused_with_what_there_is(cutaway, model):
    ran = cutaway("predict", "x", "--model", model)
    assert ran.code == 2 and model in ran.err and "builtin" in ran.err


def test_a_file_instead_of_a_folder_is_refused(cutaway, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x")
    ran = cutaway("predict", "x", "--model", tmp_path / "model.safetensors")
    assert ran.code == 2 and "A model is a folder" in ran.err


def test_a_number_type_that_is_none_is_refused(cutaway, folder):
    ran = cutaway("predict", "x", "--model", folder, "--dtype", "int4")
    assert ran.code == 2 and "float16" in ran.err


@pytest.mark.parametrize("device", ["abacus", "xla", "cpu:x"])
def test_a_device_that_is_not_there_is_refused(cutaway, folder, device):
    ran = cutaway("predict", "x", "--model", folder, "--device", device)
    assert ran.code == 2 and device in ran.err and "Traceback" not in ran.err


def test_score_shows_how_likely_each_token_of_the_text_was(cutaway, folder, tiny_lm):
    wanted = tiny_lm.score("Once upon a", k=3)
    found = cutaway("predict", "Once upon a", "--score", "--model", folder, "--json").json["score"]
    assert [one["id"] for one in found["tokens"]] == tiny_lm.ids("Once upon a")
    assert [one["logprob"] for one in found["tokens"]] == pytest.approx(wanted.logprobs, abs=1e-5)
    assert found["perplexity"] == pytest.approx(wanted.perplexity, rel=1e-4)
    assert [one["id"] for one in found["tokens"][1]["alternatives"]] == [
        one.id for one in wanted.tokens[1].alternatives
    ]
    shown = cutaway("predict", "Once upon a", "--score", "--model", folder).out
    assert shown.count("%") == len(wanted.tokens) + 11 and "perplexity" in shown
    assert "score" not in cutaway("predict", "", "--score", "--model", folder, "--json").json


@pytest.fixture
def bare(folder, tmp_path):
    """The model without its tokenizer, and the tokenizer by itself."""
    for path in folder.iterdir():
        where = tmp_path / ("tokens" if path.name in TOKENIZER else "model")
        where.mkdir(exist_ok=True)
        (where / path.name).write_bytes(path.read_bytes())
    return tmp_path / "model", tmp_path / "tokens"


TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt")


@pytest.mark.parametrize(
    "line",
    [
        ["predict", "Once upon", "--json"],
        ["generate", "Once upon", "-n", 3, "--temperature", 0, "--seed", 1, "--json"],
        ["tokens", "Once upon", "--json"],
        ["inspect", "lens", "Once upon", "--json"],
        ["explore", "Once upon", "--json"],
        ["evaluate", "--on", "TEXT", "--json"],
        ["convert", "--to", "huggingface", "-o", "OUT"],
    ],
    ids=lambda line: line[0],
)
def test_a_model_without_a_tokenizer_takes_the_one_that_is_named(cutaway, folder, bare, tmp_path, line):
    (tmp_path / "text.txt").write_text("A robot must obey the orders given it by human beings. " * 3)
    line = [{"TEXT": tmp_path / "text.txt", "OUT": tmp_path / "out"}.get(part, part) for part in line]
    model, tokens = bare
    ran = cutaway(*line, "--model", model, "--tokenizer", tokens, stdin=b"")
    assert ran.code == 0, ran.err
    if line[0] == "convert":
        assert cutaway("predict", "Once", "--model", tmp_path / "out", "--json").code == 0
        return
    wanted = cutaway(*line, "--model", folder, stdin=b"")
    assert ran.out.replace(str(model), "") == wanted.out.replace(str(folder), "")
    without = cutaway(*line, "--model", model, stdin=b"")
    assert without.code == 2 and "--tokenizer gpt2" in without.err
