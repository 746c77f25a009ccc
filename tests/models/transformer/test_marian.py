"""Marian and OPUS-MT folders: transformers' ids, numbers and beams, and a folder that it reads again."""

from __future__ import annotations

import builtins
import json
import pickle
import shutil

import pytest
import torch

import cutaway
from cutaway.checkpoint.store import whole
from cutaway.cli import run
from cutaway.errors import CutawayError
from cutaway.tasks import Translation, load_task
from cutaway.tasks.answer import translate
from cutaway.text.tokenizer import Tokenizer

from .conftest import ENGLISH, FRENCH

FORBIDDEN = float("-inf")


@pytest.fixture(scope="module")
def lm(marian):
    return cutaway.load(marian[0])


def test_sources_and_targets_have_the_ids_of_marian_tokenizer_whatever_is_in_them(marian, lm):
    _, _, theirs = marian
    for text in (*ENGLISH, "Zürich 漢字 >> x", ">>fra<< The dog", ">>no<<such language", "", "  spaces ", "\ud83d"):
        assert lm.tokenizer.encode(text) == theirs(text.encode("utf-8", "replace").decode())["input_ids"][:-1], text
    for text in FRENCH:
        ids = lm.tokenizer.target.encode(text)
        assert ids == theirs(text_target=text)["input_ids"][:-1]
        assert lm.tokenizer.decode(ids) == theirs.decode(ids) == text
        stream = lm.tokenizer.stream()
        assert "".join(map(stream.add, ids)) + stream.finish() == text
    assert pickle.loads(pickle.dumps(lm.tokenizer)).encode(ENGLISH[0]) == lm.tokenizer.encode(ENGLISH[0])


def test_logits_and_gradients_are_those_of_transformers(marian, lm):
    _, theirs, tokenizer = marian
    asked = tokenizer(ENGLISH[:3], return_tensors="pt", padding=True)
    target = torch.tensor([[lm.config.start, 5, 6, 7], [lm.config.start, 9, 3, 2], [lm.config.start, 4, 4, 8]])
    expected = theirs(**asked, decoder_input_ids=target).logits
    assert expected.std() > 0.5
    texts = [[*lm.ids(source)[:-1], *row] for source, row in zip(ENGLISH, target.tolist(), strict=False)]
    for row, text in enumerate(texts):
        assert (lm.model(torch.tensor([text]))[0, -4:] - expected[row]).abs().max() < 1e-4
    expected[0].square().sum().backward()
    lm.model(torch.tensor(texts[:1]))[0, -4:].square().sum().backward()
    mine = lm.model.decoder.blocks[2].cross.keys.weight.grad
    there = theirs.model.decoder.layers[2].encoder_attn.k_proj.weight.grad
    assert there.abs().max() > 1e-3
    torch.testing.assert_close(mine, there, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("beams", [1, 4])
def test_what_is_written_and_its_scores_are_those_of_transformers(marian, lm, beams):
    _, theirs, tokenizer = marian
    asked, pad = tokenizer(ENGLISH[:3], return_tensors="pt", padding=True), lm.config.start
    theirs.generation_config.forced_eos_token_id = None
    best = min(beams, 3)
    found = theirs.generate(
        **asked, num_beams=beams, num_return_sequences=best, max_new_tokens=12, do_sample=False, length_penalty=0.7,
        bad_words_ids=[[pad]], return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    search = {"top_k": 1} if beams == 1 else {"beams": beams, "best": best, "length_penalty": 0.7}
    ours = lm.generate(ENGLISH[:3], max_tokens=12, logit_bias={pad: FORBIDDEN}, **search)
    expected = [[token for token in row.tolist() if token not in (pad, lm.config.end)] for row in found.sequences]
    assert [one.ids for one in ours] == expected
    if beams > 1:
        scores = torch.tensor([one.score for one in ours])
        torch.testing.assert_close(scores, found.sequences_scores, atol=1e-4, rtol=0)
        assert {one.reason for one in ours} == {"end", "length"}  # else this compares less than it says


def test_a_repetition_penalty_is_for_the_target_alone_as_in_transformers(marian, lm):
    _, theirs, tokenizer = marian
    asked, pad = tokenizer(ENGLISH[:1], return_tensors="pt"), lm.config.start
    found = theirs.generate(**asked, max_new_tokens=8, do_sample=False, repetition_penalty=1.7, bad_words_ids=[[pad]])
    ours = lm.generate(ENGLISH[0], max_tokens=8, top_k=1, repetition_penalty=1.7, logit_bias={pad: FORBIDDEN})
    assert [token for token in found[0].tolist() if token not in (pad, lm.config.end)] == ours.ids


def test_a_folder_written_here_is_read_by_transformers_and_says_the_same(marian, lm, tmp_path):
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    _, theirs, tokenizer = marian
    lm.save(tmp_path)
    again, cutter = AutoModelForSeq2SeqLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    for name, value in theirs.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert cutter(ENGLISH[0])["input_ids"] == tokenizer(ENGLISH[0])["input_ids"]
    kept = {"d_model", "encoder_layers", "decoder_layers", "decoder_start_token_id", "pad_token_id", "eos_token_id"}
    kept |= {"activation_function", "scale_embedding", "max_position_embeddings", "vocab_size", "forced_eos_token_id"}
    assert {one: getattr(again.config, one) for one in kept} == {one: getattr(theirs.config, one) for one in kept}
    assert again.generation_config.bad_words_ids == [[lm.config.start]]
    assert cutaway.load(tmp_path).config == lm.config
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / name).read_bytes() == (marian[0] / name).read_bytes()
    assert whole(tmp_path)  # as a folder in Hugging Face's cache is asked


def test_it_translates_by_its_verb_line_by_line(marian, lm, capsys, tmp_path):
    folder = str(marian[0])
    assert load_task(folder) == Translation(separator="<pad>", source_end="</s>")
    texts = tmp_path / "lines.txt"
    texts.write_text(f"{ENGLISH[0]}\n\n漢字\n")
    assert run(["translate", "--file", str(texts), "--model", folder, "--max-tokens", "6", "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = list(translate(lm, load_task(folder), [ENGLISH[0], "", "漢字"], max_tokens=6))
    assert [one["text"] for one in answers] == [one.text for one in expected]
    assert answers[1]["text"] == ""
    assert run(["translate", "fox " * 70, "--model", folder]) == 2
    assert "too long to be translated" in capsys.readouterr().err
    assert run(["translate", "fox", "--back", "--model", folder]) == 2
    assert "one direction only" in capsys.readouterr().err
    assert run(["generate", ENGLISH[0], "--model", folder, "--beams", "3", "--best", "2", "--max-tokens", "4"]) == 0
    assert run(["classify", "fox", "--model", folder]) == 2
    assert "translation" in capsys.readouterr().err


def spoiled(marian, tmp_path, name: str, content: bytes | None):
    shutil.copytree(marian[0], tmp_path / "spoiled")
    path = tmp_path / "spoiled" / name
    path.unlink() if content is None else path.write_bytes(content)
    return path.parent


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("target.spm", None, "lacks one of source.spm and target.spm"),
        ("source.spm", b"no model", "source.spm is not a SentencePiece model"),
        ("vocab.json", b"{", "vocab.json cannot be read"),
        ("vocab.json", b'{"a": 0}', "has no <unk>"),
        ("vocab.json", b'{"a": 1}', "from 0 on without gaps"),
        ("vocab.json", b'{"a": "b"}', "give every token a number"),
        ("target_vocab.json", b"{}", "a vocabulary for each language"),
    ],
)
def test_a_damaged_folder_is_refused_by_the_file(marian, tmp_path, name, content, says):
    with pytest.raises(CutawayError, match=says):
        Tokenizer.load(spoiled(marian, tmp_path, name, content))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"share_encoder_decoder_embeddings": False}, "vocabularies of their own"),
        ({"decoder_ffn_dim": 64}, "both sides must be alike"),
        ({"activation_function": "mish"}, "'mish'"),
        ({"eos_token_id": [0, 1]}, "one whole number"),
        ({"encoder_layers": 3}, "lacks encoder.layers.2"),
    ],
)
def test_a_shape_of_another_kind_is_refused(marian, tmp_path, changes, says):
    given = json.loads((marian[0] / "config.json").read_text()) | changes
    with pytest.raises(CutawayError, match=says):
        cutaway.load(spoiled(marian, tmp_path, "config.json", json.dumps(given).encode()))


def test_without_sentencepiece_one_is_told_how_to_get_it(marian, monkeypatch):
    known = builtins.__import__

    def without(name, *given):
        if name == "sentencepiece":
            raise ImportError(name)
        return known(name, *given)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CutawayError, match=r"pip install 'cutaway\[translate\]'"):
        Tokenizer.load(marian[0])


def test_what_a_marian_vocabulary_cannot_take_is_refused(lm):
    with pytest.raises(CutawayError, match="cannot be added"):
        lm.tokenizer.with_specials(["<|translate|>"])
    with pytest.raises(CutawayError, match="There is no token"):
        lm.tokenizer.decode([10_000])
