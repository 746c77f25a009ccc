"""BERT and DistilBERT beside transformers, on random weights that transformers wrote: every class, whole folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import cutaway
from cutaway.checkpoint import huggingface
from cutaway.checkpoint.opened import open_checkpoint
from cutaway.models.architecture import architecture, count_parameters, places, tensors
from cutaway.models.bert.model import Bert
from cutaway.models.bert.shape import Config
from cutaway.text.wordpiece import WordPiece

transformers = pytest.importorskip("transformers")

SMALL = {"vocab_size": 99, "max_position_embeddings": 40}
BERT = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 70, **SMALL}
DISTIL = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 70, **SMALL}
HEADS = {
    "Model": "", "ForMaskedLM": "words", "ForPreTraining": "pretraining", "ForNextSentencePrediction": "next",
    "ForSequenceClassification": "classes", "ForQuestionAnswering": "span", "ForTokenClassification": "tags",
}  # fmt: skip
KINDS = [("Bert", end) for end in HEADS] + [
    ("DistilBert", end) for end in HEADS if end not in ("ForPreTraining", "ForNextSentencePrediction")
]


def theirs(kind: str, end: str, **more: object):
    torch.manual_seed(0)
    given = (BERT if kind == "Bert" else DISTIL) | {"num_labels": 2 if end == "ForQuestionAnswering" else 3} | more
    model = getattr(transformers, f"{kind}{end}")(getattr(transformers, f"{kind}Config")(**given)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)  # biases too, and norms that are not 1
    return model


def rows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids, segments and the mask of three texts of unequal length, filled up on the right."""
    torch.manual_seed(1)
    ids, lengths = torch.randint(1, 99, (3, 17)), torch.tensor([17, 9, 12])
    mask = torch.arange(17) < lengths[:, None]
    return ids * mask, (torch.arange(17) >= lengths[:, None] // 2).long() * mask, mask


def answer(model, end: str, **given: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found = model(**given)
    if end == "Model":
        return found.last_hidden_state
    if end == "ForQuestionAnswering":
        return torch.stack([found.start_logits, found.end_logits], -1)
    return found.prediction_logits if end == "ForPreTraining" else found.logits


@pytest.mark.parametrize(("kind", "end"), KINDS)
def test_every_class_of_transformers_is_read_and_gives_the_same_and_goes_back(kind: str, end: str, tmp_path: Path):
    model = theirs(kind, end)
    model.save_pretrained(tmp_path / "theirs")
    opened = open_checkpoint(tmp_path / "theirs")
    assert (opened.config.head, opened.config.dialect) == (HEADS[end], kind.lower())
    ours = opened.read_model()
    assert isinstance(ours, Bert)
    assert count_parameters(opened.config) == sum(one.numel() for one in model.parameters())

    ids, segments, mask = rows()
    both = {"token_type_ids": segments} if kind == "Bert" else {}
    for given in ({}, both):
        wanted = answer(model, end, input_ids=ids, attention_mask=mask.long(), **given)
        with torch.no_grad():
            found = ours(ids, segments=given.get("token_type_ids"), mask=mask)
        real = mask if found.ndim == 3 else torch.ones(3, dtype=torch.bool)
        assert (found - wanted)[real].abs().max() < 1e-4

    huggingface.write_model(ours, None, tmp_path / "ours", None, 10**9, {})
    again = type(model).from_pretrained(tmp_path / "ours").eval()
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["architectures"] == [f"{kind}{end}"]
    assert torch.equal(
        answer(again, end, input_ids=ids, attention_mask=mask.long(), **both),
        answer(model, end, input_ids=ids, attention_mask=mask.long(), **both),
    )


@pytest.mark.parametrize("end", ["ForMaskedLM", "Model", "ForSequenceClassification"])
def test_a_padded_batch_gives_what_each_text_gives_alone(end: str, tmp_path: Path):
    theirs("Bert", end).save_pretrained(tmp_path)
    model, (ids, segments, mask) = open_checkpoint(tmp_path).read_model(), rows()
    with torch.no_grad():
        together = model(ids, segments=segments, mask=mask)
        for row, length in enumerate(mask.sum(1).tolist()):
            alone = model(ids[row : row + 1, :length], segments=segments[row : row + 1, :length])[0]
            found = together[row, :length] if together.ndim == 3 else together[row]
            torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-5)


def test_next_sentence_and_pooler_are_those_of_transformers(tmp_path: Path):
    model = theirs("Bert", "ForPreTraining")
    model.save_pretrained(tmp_path)
    ours, (ids, segments, mask) = open_checkpoint(tmp_path).read_model(), rows()
    with torch.no_grad():
        wanted = model(ids, attention_mask=mask.long(), token_type_ids=segments).seq_relationship_logits
        pooled = ours.pool(ours.read(ids, segments, mask))
    assert (ours.next_sentence(pooled) - wanted).abs().max() < 1e-4


def test_a_file_that_holds_more_than_config_json_says_and_old_names_is_read_whole(tmp_path: Path):
    """As bert-base-uncased's: named BertForMaskedLM, with the pooler and the other head, gamma and beta."""
    from safetensors.torch import load_file, save_file

    model = theirs("Bert", "ForPreTraining")
    model.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): one
        for name, one in weights.items()
    }
    old["bert.embeddings.position_ids"] = torch.arange(40)[None]
    save_file(old, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    ours, (ids, segments, mask) = open_checkpoint(tmp_path).read_model(), rows()
    wanted = answer(model, "ForPreTraining", input_ids=ids, attention_mask=mask.long(), token_type_ids=segments)
    with torch.no_grad():
        assert (ours(ids, segments=segments, mask=mask) - wanted)[mask].abs().max() < 1e-4


def test_an_output_matrix_of_its_own_is_read(tmp_path: Path):
    model = theirs("Bert", "ForMaskedLM", tie_word_embeddings=False)
    model.cls.predictions.decoder.bias.data.copy_(model.cls.predictions.bias.data)
    model.save_pretrained(tmp_path)
    opened, (ids, _, _) = open_checkpoint(tmp_path), rows()
    assert not opened.config.tied
    with torch.no_grad():
        assert (opened.read_model()(ids) - model(ids).logits).abs().max() < 1e-4


@pytest.mark.parametrize("config", [
    Config(99, 40, 32, 2, 4, head=head, dialect=dialect, segments=2 if dialect == "bert" else 0, tied=tied)
    for head in ("", "words", "pretraining", "classes", "span", "tags")
    for dialect in ("bert", "distilbert")
    for tied in (True, False)
    if (head, dialect) != ("pretraining", "distilbert")
])  # fmt: skip
def test_the_table_and_the_map_are_those_of_the_model(config: Config):
    model, seen = architecture("bert").build(config), {"ids", "positions", "segments"}
    assert {one.name: one.ours for one in tensors(config)} == {n: tuple(p.shape) for n, p in model.named_parameters()}
    for place in places(config).values():
        assert set(place.inputs) <= seen, place.name
        assert not place.module or model.get_submodule(place.module)
        seen.add(place.name)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"t{number}" for number in range(94))]
    lm = cutaway.LanguageModel(model, WordPiece({one: at for at, one in enumerate(tokens)}, {}))
    trace = lm.trace("t1 t2 [SEP] t3")
    assert list(trace) == list(places(config))
    size = {"token": 6, "key": 6, "head": 4}
    for place in places(config).values():
        for axis, length in zip(place.axes, trace[place.name].shape, strict=True):
            assert length == size.get(axis, length), place.name
    if "logits" in places(config):
        torch.testing.assert_close(trace["logits"], model(torch.tensor([lm.ids("t1 t2 [SEP] t3")]))[0].detach())
