"""WordPiece folders, as Chinese GPT-2 models have them: BertTokenizer's ids, and text back without stray spaces."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cutaway
from cutaway.errors import CutawayError
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.tokenizer import Tokenizer
from cutaway.text.wordpiece import WordPiece

TOKENS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "我", "们", "是", "机", "器", "人", "。", "，", "！", "the",
    "robot", "##s", "must", "ob", "##ey", "un", "##able", "Robot", ".", ",", "!", "2", "##0", "##1", "a", "b",
    "##c", "é", "e", "-",
]  # fmt: skip
TEXTS = [
    "我们是机器人。",
    "the robots must obey.",
    "我们 the robot，201!",
    "Robot unable é",
    "",
    "   ",
    "[SEP] the [MASK]",
    "zzz 们\n\t们",
]


def folder_of(path: Path, **config: object) -> Path:
    path.mkdir(exist_ok=True)
    (path / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **config}))
    return path


@pytest.mark.parametrize("lower", [True, False])
def test_the_ids_are_those_of_bert_tokenizer(lower: bool, tmp_path: Path):
    from transformers import BertTokenizer

    folder = folder_of(tmp_path, do_lower_case=lower)
    theirs, ours = BertTokenizer.from_pretrained(folder), Tokenizer.load(folder)
    for text in TEXTS:
        assert ours.encode(text, special=True) == theirs.encode(text, add_special_tokens=False), text


ODD = st.text(
    st.sampled_from(
        "aAbBéÉŁßıİ\u0301\u0130\u00ad\u200b\u200d\ufeff\ufffd\x00\x07 \t\n\u3000\u00a0"
        "我们你好한글ひらカ٣१2.,!?-'\"$€+=^`|~「」…—🤖👨‍👩‍👧x"
    )
    | st.characters(codec="utf-8"),
    max_size=40,
)
"""Accents, signs, spaces and marks of every kind that BERT's rules speak of, and anything else."""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Tokenizer, object]]:
    """A vocabulary learned here, with capitals and without, and what transformers makes of its files."""
    from transformers import BertTokenizer

    texts = [
        "We are robots, you and me: déjà vu! 我们是机器人。 x-y 201 'tis $3.50 a+b=c",
        "İstanbul Łódź straße 한글 カタカナ",
    ] * 30
    found = []
    for lower in (True, False):
        folder = tmp_path_factory.mktemp("trained")
        learned = WordPiece.train(texts, 400, lower=lower)
        learned.save(folder)
        found.append((Tokenizer.load(folder), BertTokenizer.from_pretrained(folder)))
    return found


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ODD, ODD)
def test_odd_texts_and_pairs_are_cut_as_bert_tokenizer_cuts_them(pairs, text: str, second: str):
    for ours, theirs in pairs:
        ids = ours.encode(text, special=True)
        assert ids == theirs.encode(text, add_special_tokens=False)
        assert ours.encode_batch([text, second], special=True) == [ids, ours.encode(second, special=True)]
        if second:  # which transformers takes for no second text at all
            assert ours.frame(ids, ours.encode(second, special=True)) == theirs(text, second)["input_ids"]
        assert ours.frame(ids) == theirs(text)["input_ids"]


def test_training_gives_whole_words_to_what_is_frequent_and_a_piece_to_every_letter():
    told: list[int] = []
    tokenizer = WordPiece.train((text for text in ["the robot obeys", "the fox"] * 50), 120, progress=told.append)
    assert [tokenizer.spelling(i) for i in range(5)] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert [tokenizer.spelling(i) for i in tokenizer.encode("The ROBOT")] == ["the", "robot"]
    assert tokenizer.decode(tokenizer.encode("toe fox")) == "toe fox"
    assert tokenizer.special("unk") not in tokenizer.encode("toe") and tokenizer.special("unk") in tokenizer.encode("☃")
    assert told[-1] == 50 * len("the robot obeysthe fox")
    assert pickle.loads(pickle.dumps(tokenizer)).encode("the fox") == tokenizer.encode("the fox")
    with pytest.raises(CutawayError, match="too small"):
        WordPiece.train(["a"], 20)


def test_a_folder_with_tokenizer_json_alone_is_the_same_tokenizer(tmp_path: Path):
    from transformers import BertTokenizer

    for lower in (True, False):
        folder, alone = folder_of(tmp_path / f"both{lower}", do_lower_case=lower), tmp_path / f"alone{lower}"
        alone.mkdir()
        BertTokenizer.from_pretrained(folder).backend_tokenizer.save(str(alone / "tokenizer.json"))
        ours, theirs = Tokenizer.load(alone), Tokenizer.load(folder)
        assert len(ours) == len(theirs) and ours.end == theirs.end
        for text in TEXTS:
            assert ours.encode(text, special=True) == theirs.encode(text, special=True)
    document = json.loads((alone / "tokenizer.json").read_text())
    (alone / "tokenizer.json").write_text(json.dumps(document | {"normalizer": {"type": "Lowercase"}}))
    with pytest.raises(CutawayError, match="another rule than BERT's"):
        Tokenizer.load(alone)


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_any_text_has_ids_and_the_ids_a_text(text: str):
    tokenizer = Tokenizer.load(FOLDER)
    ids = tokenizer.encode(text)
    assert all(0 <= i < len(tokenizer) for i in ids)
    stream = tokenizer.stream()
    assert "".join(stream.add(i) for i in ids) + stream.finish() == tokenizer.decode(ids)


def test_chinese_comes_back_without_spaces_and_english_with_them(tmp_path: Path):
    tokenizer = Tokenizer.load(folder_of(tmp_path, do_lower_case=False))
    for text in ("我们是机器人。", "the robots must obey.", "the robot, the robots!", "我们the robot们"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_special_name_in_a_text_is_text(tmp_path: Path):
    tokenizer = Tokenizer.load(folder_of(tmp_path))
    assert tokenizer.encode("[SEP]", special=True) == [3]
    assert 3 not in tokenizer.encode("[SEP]")


def test_it_is_kept_whole_by_save_pickle_and_copy(tmp_path: Path):
    tokenizer = Tokenizer.load(folder_of(tmp_path / "one", do_lower_case=False)).with_specials(["<sep>"])
    tokenizer.save(tmp_path / "two")
    for other in (Tokenizer.load(tmp_path / "two"), pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
        assert other.encode("Robot <sep> 我", special=True) == [22, len(TOKENS), 5]
        assert other.end == 3


def test_a_model_with_such_tokens_runs_saves_and_packs(tmp_path: Path):
    tokenizer = Tokenizer.load(folder_of(tmp_path / "one"))
    torch.manual_seed(0)
    lm = LanguageModel(GPT(Config(vocabulary=len(TOKENS), context=32, width=32, layers=1, heads=2)), tokenizer)
    lm.save(tmp_path / "model")
    back = cutaway.load(tmp_path / "model")
    assert back.generate("我们", max_tokens=5, seed=1).ids == lm.generate("我们", max_tokens=5, seed=1).ids

    from cutaway.runtime.native import pack
    from cutaway.runtime.native import packed_file as stored

    stored.write_packed(pack.pack(lm.model, "int8"), tokenizer, tmp_path / "model.cutaway")
    assert Tokenizer.load(tmp_path / "model.cutaway").encode("我们 robots") == tokenizer.encode("我们 robots")


@pytest.mark.parametrize(
    ("content", "says"),
    [("a\nb\na\n", "two lines"), ("a\nb\n", r"no \[UNK\]"), ("", "one token on each line")],
)
def test_a_damaged_vocabulary_is_named(content: str, says: str, tmp_path: Path):
    (tmp_path / "vocab.txt").write_text(content)
    with pytest.raises(CutawayError, match=says):
        Tokenizer.load(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    global FOLDER
    FOLDER = folder_of(tmp_path_factory.mktemp("wordpiece") / "folder")
