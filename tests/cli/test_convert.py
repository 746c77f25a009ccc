from __future__ import annotations

import os

import pytest


def test_a_folder_for_transformers_gives_the_same_predictions(cutaway, folder, tmp_path):
    out = tmp_path / "out"
    ran = cutaway("convert", folder, "--to", "huggingface", "-o", out)
    assert (ran.code, ran.out) == (0, f"{out}\n")
    assert (
        cutaway("predict", "Once", "--model", out, "--json").json["predictions"]
        == (cutaway("predict", "Once", "--model", folder, "--json").json["predictions"])
    )


def test_a_translator_stays_a_translator(cutaway, tmp_path):
    cutaway("convert", "translator", "--to", "huggingface", "-o", str(tmp_path / "mine"))
    said = [cutaway("translate", "I am happy.", "--model", model).out for model in ("builtin", str(tmp_path / "mine"))]
    assert said[0] == said[1]


def test_a_folder_may_be_stored_in_half_the_bytes(cutaway, folder, tmp_path):
    from safetensors import safe_open

    assert cutaway("convert", folder, "--to", "huggingface", "-o", tmp_path / "out", "--dtype", "float16").code == 0
    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as stored:
        assert {str(stored.get_tensor(name).dtype) for name in stored.keys()} == {"torch.float16"}  # noqa: SIM118


@pytest.mark.parametrize("kind", ["f32", "f16", "q8_0", "q4_0"])
def test_gguf_is_written_in_each_kind(cutaway, folder, tmp_path, kind):
    out = tmp_path / "tiny.gguf"
    found = cutaway("convert", folder, "--to", f"gguf-{kind}", "-o", out, "--json").json
    assert out.read_bytes()[:4] == b"GGUF"
    assert found == {"model": str(folder), "to": f"gguf-{kind}", "output": str(out), "bytes": out.stat().st_size}


def test_onnx_is_written(cutaway, folder, tmp_path):
    onnx = pytest.importorskip("onnx")
    assert cutaway("convert", folder, "--to", "onnx", "-o", tmp_path / "tiny.onnx").code == 0
    onnx.checker.check_model(onnx.load(tmp_path / "tiny.onnx"))


def test_what_is_there_is_written_over_only_by_force(cutaway, folder, tmp_path):
    out = tmp_path / "precious.gguf"
    out.write_text("precious")
    ran = cutaway("convert", folder, "--to", "gguf-f16", "-o", out)
    assert ran.code == 2 and "--force" in ran.err
    assert out.read_text() == "precious"
    assert cutaway("convert", folder, "--to", "gguf-f16", "-o", out, "--force").code == 0
    assert out.read_bytes()[:4] == b"GGUF"


def test_a_folder_with_something_in_it_is_written_over_only_by_force(cutaway, folder, tmp_path):
    (tmp_path / "precious.txt").write_text("precious")
    ran = cutaway("convert", folder, "--to", "huggingface", "-o", tmp_path)
    assert ran.code == 2 and "--force" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]
    assert cutaway("convert", folder, "--to", "huggingface", "-o", tmp_path, "--force").code == 0
    assert (tmp_path / "precious.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--to", "gguf"], "gguf-f16"),
        (["--to", "onxx"], "'onnx'"),
        (["--to", "onnx", "--dtype", "float16"], "--dtype"),
        (["--to", "huggingface", "--dtype", "int4"], "float16"),
    ],
)
def test_a_kind_that_is_none_is_refused_before_the_model_is_read(cutaway, tmp_path, line, said):
    ran = cutaway("convert", "/no/such/model", "-o", tmp_path / "out", *line)
    assert ran.code == 2 and said in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_a_folder_belongs_and_the_other_way_round_are_refused(cutaway, folder, tmp_path):
    (tmp_path / "file").write_text("x")
    for line in (["huggingface", "-o", tmp_path / "file"], ["onnx", "-o", tmp_path]):
        ran = cutaway("convert", folder, "--to", *line, "--force")
        assert ran.code == 2 and "is a f" in ran.err


def test_a_place_that_cannot_be_written_is_refused_and_left_as_it_was(cutaway, folder, tmp_path):
    (tmp_path / "file").write_text("x")
    for kind in ("huggingface", "gguf-f16", "onnx"):
        ran = cutaway("convert", folder, "--to", kind, "-o", tmp_path / "file" / "out")
        assert ran.code == 2 and "Traceback" not in ran.err, ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_of_someone_else_is_refused(cutaway, folder, tmp_path):
    tmp_path.chmod(0o500)
    ran = cutaway("convert", folder, "--to", "gguf-f16", "-o", tmp_path / "out.gguf")
    assert ran.code == 2 and "ermission" in ran.err


def test_an_unknown_model_leaves_nothing_behind(cutaway, tmp_path):
    ran = cutaway("convert", "/no/such/model", "--to", "onnx", "-o", tmp_path / "out.onnx")
    assert ran.code == 2 and "/no/such/model" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_the_model_may_be_named_with_the_option_as_everywhere_else(cutaway, folder, tmp_path):
    ran = cutaway("convert", "--model", folder, "--to", "huggingface", "-o", tmp_path / "out", "--json")
    assert ran.json["model"] == str(folder)
    ran = cutaway("convert", "gpt2", "--model", folder, "--to", "huggingface", "-o", tmp_path / "out2")
    assert ran.code == 2
    assert "Two models were named" in ran.err


@pytest.mark.parametrize("kind", ["int8", "int4", "bfloat16", "float32"])
def test_a_packed_model_says_what_it_cost_and_writes(cutaway, folder, tmp_path, kind):
    library = pytest.importorskip("cutaway.runtime.native.library")
    if library.load() is None:
        pytest.skip("the native engine is not built here")
    out = tmp_path / "tiny.cutaway"
    found = cutaway("convert", folder, "--to", f"cutaway-{kind}", "-o", out, "--json").json
    assert found["bytes"] == out.stat().st_size
    assert abs(found["cost"]["loss_added"]) < {"int8": 0.05, "int4": 0.8, "bfloat16": 0.01, "float32": 1e-4}[kind]
    assert cutaway("generate", "Once", "--model", out, "-n", "3", "--greedy").code == 0
    assert cutaway("tokens", "Once upon", "--model", out).code == 0


def test_a_packed_model_is_named_as_one(cutaway, folder, tmp_path):
    ran = cutaway("convert", folder, "--to", "cutaway-int8", "-o", tmp_path / "tiny.bin")
    assert ran.code == 2
    assert "ends in .cutaway" in ran.err


@pytest.mark.parametrize(
    ("kind", "made", "draft"),
    [("cutaway-float32", "again.cutaway", "again.draft.npy"), ("huggingface", "again", "again/draft.npy")],
)
def test_a_models_draft_goes_along(cutaway, folder, tmp_path, kind, made, draft):
    from cutaway.runtime.native import library

    if kind != "huggingface" and library.load() is None:
        pytest.skip("the native engine is not built here")
    text = tmp_path / "mine.txt"
    text.write_text("the fox was there. " * 20)
    cutaway("convert", folder, "--to", "huggingface", "-o", tmp_path / "mine")
    cutaway("convert", folder, "--to", "draft", "--text", text, "-o", tmp_path / "mine" / "draft.npy")
    assert cutaway("convert", tmp_path / "mine", "--to", kind, "-o", tmp_path / made).code == 0
    assert (tmp_path / draft).read_bytes() == (tmp_path / "mine" / "draft.npy").read_bytes()


def test_a_draft_is_made_of_ones_own_text_and_used_from_the_models_folder(cutaway, folder, tmp_path):
    text, out = tmp_path / "mine.txt", tmp_path / "draft.npy"
    text.write_text("the fox was there. " * 20)
    assert cutaway("convert", folder, "--to", "draft", "--text", text, "-o", out).out == f"{out}\n"
    mine = tmp_path / "mine"
    cutaway("convert", folder, "--to", "huggingface", "-o", mine)
    before = cutaway("generate", "the fox", "--model", mine, "--seed", "1", "--max-tokens", "20").out
    out.rename(mine / "draft.npy")
    assert cutaway("generate", "the fox", "--model", mine, "--seed", "1", "--max-tokens", "20").out == before
    ran = cutaway("convert", folder, "--to", "draft", "-o", out)
    assert ran.code == 2 and "--text" in ran.err
    ran = cutaway("convert", folder, "--to", "draft", "--text", text, "-o", tmp_path / "draft.txt")
    assert ran.code == 2 and ".npy" in ran.err
