"""recipes/six_layers.py: what each choice takes of the layers, and that a linear layer on it names things."""

from __future__ import annotations

import importlib.util
import lzma
import sys
from pathlib import Path

import pytest
import torch

from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.bert.model import Bert
from cutaway.tasks import Tagging

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "six_layers.py"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("six_layers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["six_layers"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["six_layers"]


@pytest.fixture(scope="module")
def folder(bert_lm, tmp_path_factory):
    """With as many layers as four choices want."""
    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("models") / "bert"
    LanguageModel(Bert(bert_lm.config.but(layers=4, head="")), bert_lm.tokenizer, "four").save(made)
    return made


def test_the_choices_are_the_articles(recipe):
    layers = [torch.full((1, 2), float(number)) for number in range(6)]  # the embedding, and five layers
    found = {name: choose(layers)[0].tolist() for name, choose in recipe.CHOICES.items()}
    assert list(found.values()) == [[0, 0], [5, 5], [15, 15], [4, 4], [14, 14], [2, 2, 3, 3, 4, 4, 5, 5]]


def test_a_words_vectors_are_those_of_its_first_piece(recipe, bert_lm):
    task = Tagging(("O", "B-X"))
    layers, counts = recipe.read_layers(bert_lm, task, [{"words": ["robots", "obey"]}, {"words": ["cat"]}])
    trace = bert_lm.trace("robots obey")  # [CLS] robot ##s obey [SEP]
    assert counts == [2, 1] and len(layers) == bert_lm.config.layers + 1
    assert torch.allclose(layers[0][:2], trace["residual.0"][[1, 3]], atol=1e-6)
    assert torch.allclose(layers[-1][:2], trace["blocks.1.residual"][[1, 3]], atol=1e-6)


def test_names_are_found_by_a_linear_layer_and_what_was_held_back_was_not_learned_from(recipe, folder, tmp_path):
    sentences = (
        "the O\nfox I-A\nsat O",
        "a O\nlittle I-A\nfox I-A\nsat O",
        "robots O\nobey O",
        "the O\ncat I-B\nsat O",
    )
    path = tmp_path / "names.conll.xz"
    path.write_bytes(lzma.compress("\n\n".join(sentences * 10).encode()))
    said: list[str] = []
    found = recipe.six_layers(folder, path, splits=2, epochs=25, show=said.append)
    assert list(found) == list(recipe.CHOICES) and all(len(one) == 2 for one in found.values())
    assert min(found["last four side by side"]) > 90 and len(said) == 7
    assert said[0].startswith("40 sentences, 120 words, tags: O, I-A, I-B")
    again = recipe.six_layers(folder, path, splits=2, epochs=25, show=said.append)
    assert again == found, "the same divisions and seeds"


def test_wrong_folders_and_files_are_named(recipe, bert_lm, tiny_lm, tmp_path):
    tiny_lm.save(tmp_path / "gpt2")
    bert_lm.save(tmp_path / "two")
    (tmp_path / "x").write_text("word\n")
    with pytest.raises(CutawayError, match="no encoder"):
        recipe.six_layers(tmp_path / "gpt2", tmp_path / "x")
    with pytest.raises(CutawayError, match="has 2 layers"):
        recipe.six_layers(tmp_path / "two", tmp_path / "x")
    with pytest.raises(CutawayError, match="a word and its tag"):
        recipe.read_conll(tmp_path / "x", 0)
