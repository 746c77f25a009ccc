"""recipes/dequantized_distilbert.py: 8-bit matrices of a made ONNX file become the numbers they stand for."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from cutaway.errors import CutawayError

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "dequantized_distilbert.py"


def test_tables_and_matrices_are_scale_times_what_is_stored_and_another_file_is_refused(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    from onnx import helper, numpy_helper

    spec = importlib.util.spec_from_file_location("dequantized_distilbert", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    sys.modules["dequantized_distilbert"] = script
    spec.loader.exec_module(script)
    dice = np.random.default_rng(0)
    ints = {
        "table": dice.integers(-128, 127, (5, 4)).astype(np.int8),
        "matrix": dice.integers(-128, 127, (4, 3)).astype(np.int8),
    }
    stored = [numpy_helper.from_array(np.ones(4, np.float32), "distilbert.embeddings.LayerNorm.weight")]
    nodes = []
    for name, scale, zero, user, operation in (
        ("table", 0.5, 0, "/distilbert/embeddings/word_embeddings/Gather", "Gather"),
        ("matrix", 0.25, 3, "/distilbert/transformer/layer.0/attention/q_lin/MatMul", "MatMul"),
        ("matrix", 1.0, 0, "/classifier/MatMul", "MatMul"),
    ):
        own = f"{name} of {user}"
        stored += [
            numpy_helper.from_array(ints[name], own),
            numpy_helper.from_array(np.float32(scale), f"{own} scale"),
            numpy_helper.from_array(np.int8(zero), f"{own} zero"),
        ]
        nodes.append(helper.make_node("DequantizeLinear", [own, f"{own} scale", f"{own} zero"], [f"{own} whole"]))
        nodes.append(helper.make_node(operation, [f"{own} whole", "ids"], [f"{own} out"], name=user))
    onnx.save(helper.make_model(helper.make_graph(nodes, "tagger", [], [], stored)), tmp_path / "tagger.onnx")
    found = script.read_tensors(tmp_path / "tagger.onnx")
    assert set(found) == {
        "embeddings.LayerNorm.weight", "embeddings.word_embeddings.weight",
        "transformer.layer.0.attention.q_lin.weight",
    }  # fmt: skip
    assert np.array_equal(found["embeddings.word_embeddings.weight"], ints["table"] * np.float32(0.5))
    wanted = ((ints["matrix"].astype(np.float32) - 3) * np.float32(0.25)).T
    assert np.array_equal(found["transformer.layer.0.attention.q_lin.weight"], wanted)
    with pytest.raises(CutawayError, match="has 3 of the encoder's 100 tensors"):
        script.write_distilbert(tmp_path, tmp_path / "out")
