"""A vocabulary's files: read wherever they come from, written as transformers reads them, refused when broken."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from cutaway import CutawayError, Tokenizer
from cutaway.text.bpe import ByRank, ByRules
from cutaway.text.vocabulary import ALPHABET, spell, unspell

GPT2_FILES = Path(__file__).parents[2] / "src" / "cutaway" / "data" / "gpt2"
TEXT = "Robots' orders:  obey\r\n\r\nthe café 2¾ 日本 👩‍👧 <|endoftext|>, don't\u00a0stop   "
MERGES = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n")]
Document = dict[str, Any]


def document() -> Document:
    """A small tokenizer.json of GPT-2's kind."""
    tokens = [*ALPHABET.values(), *map("".join, MERGES), "<|endoftext|>"]
    end = {"id": len(tokens) - 1, "content": "<|endoftext|>", "special": True}
    end |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [end], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": MERGES},
    }  # fmt: skip


def put(folder: Path, **files: object) -> Path:
    """Write files given as name_ext=content: text as it is, the rest as JSON."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / ".".join(name.rsplit("_", 1))).write_text(text, encoding="utf-8")
    return folder


def with_change(folder: Path, change: Callable[[Document], object]) -> Path:
    changed = document()
    change(changed)
    return put(folder, tokenizer_json=changed)


def reference(folder: Path, special: bool) -> tokenizers.Tokenizer:
    other = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    other.encode_special_tokens = not special
    return other


def test_every_byte_is_spelled_as_in_gpt2s_files() -> None:
    assert list(ALPHABET.values()) == list(json.loads((GPT2_FILES / "vocab.json").read_text(encoding="utf-8")))[:256]
    everything = bytes(range(256))
    assert spell(b" the") == "Ġthe" and unspell(spell(everything)) == everything
    for wrong in (" ", "\xad", "\n", "▁", "\ud800"):
        with pytest.raises(UnicodeEncodeError):
            unspell(wrong)


def test_openais_own_file_names_are_read(tmp_path: Path) -> None:
    shutil.copy(GPT2_FILES / "vocab.json", tmp_path / "encoder.json")
    shutil.copy(GPT2_FILES / "merges.txt", tmp_path / "vocab.bpe")
    ours = Tokenizer.load(tmp_path)
    assert ours.encode(TEXT, special=True) == Tokenizer.load().encode(TEXT, special=True)
    assert (len(ours), ours.end) == (50_257, 50_256)


@pytest.mark.parametrize("names", [[], ["<|to-french|>", "[SEP]", "two words", "😀"]], ids=["plain", "more"])
def test_what_is_saved_is_read_the_same_here_and_in_transformers(tmp_path: Path, names: list[str]) -> None:
    from transformers import AutoTokenizer, GPT2Tokenizer, GPT2TokenizerFast

    ours = Tokenizer.load().with_specials(names)
    ours.save(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    texts = [TEXT, "".join(names), f"a{TEXT.join(names)} b"]
    again = Tokenizer.load(folder)
    assert again.vocabulary == ours.vocabulary and again.merges == ours.merges and again.specials == ours.specials
    for kind in (AutoTokenizer, GPT2Tokenizer, GPT2TokenizerFast):
        theirs = kind.from_pretrained(folder)
        assert (len(theirs), theirs.eos_token_id) == (len(ours), ours.end)
        for text in texts:
            ids = ours.encode(text, special=True)
            assert theirs(text)["input_ids"] == ids == again.encode(text, special=True)
            assert theirs.decode(ids) == ours.decode(ids)
            assert theirs(text, split_special_tokens=True)["input_ids"] == ours.encode(text) == again.encode(text)
    assert sorted(path.name for path in folder.iterdir()) == [
        "merges.txt", "tokenizer.json", "tokenizer_config.json", "vocab.json",
    ]  # fmt: skip


def test_vocab_json_and_merges_txt_alone_are_enough(tmp_path: Path) -> None:
    ours = Tokenizer.load().with_specials(["<|to-french|>", "two words"])
    ours.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    assert Tokenizer.load(tmp_path).specials == ours.specials
    (tmp_path / "tokenizer_config.json").unlink()
    again = Tokenizer.load(tmp_path)
    assert again.specials == ours.specials and again.vocabulary == ours.vocabulary
    assert again.encode("x<|to-french|>", special=True) == ours.encode("x<|to-french|>", special=True)


def test_a_saved_gpt2_has_the_published_files(tmp_path: Path) -> None:
    Tokenizer.load().save(tmp_path)
    assert (tmp_path / "merges.txt").read_bytes() == (GPT2_FILES / "merges.txt").read_bytes()
    saved, published = ((folder / "vocab.json").read_text(encoding="utf-8") for folder in (tmp_path, GPT2_FILES))
    assert list(json.loads(saved).items()) == list(json.loads(published).items())


def test_tokens_added_in_a_file_of_their_own_are_read(tmp_path: Path) -> None:
    vocab = {token: i for i, token in enumerate([*ALPHABET.values(), "ab", "<|endoftext|>"])}
    put(tmp_path, vocab_json=vocab, merges_txt="#version: 0.2\r\na b\r\n", added_tokens_json={"<sep>": 258})
    ours = Tokenizer.load(tmp_path)
    assert ours.specials == {"<sep>": 258, "<|endoftext|>": 257} and ours.encode("ab<sep>", special=True) == [256, 258]


def test_a_special_token_may_come_before_the_bytes(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    def first(changed: Document) -> None:
        names = ["<|endoftext|>", *[token for token in changed["model"]["vocab"] if token != "<|endoftext|>"]]
        changed["model"]["vocab"] = {token: i for i, token in enumerate(names)}
        changed["added_tokens"][0]["id"] = 0

    ours = Tokenizer.load(with_change(tmp_path, first))
    assert isinstance(ours._engine.full, ByRank) and ours.end == 0
    for special in (False, True):
        assert ours.encode(TEXT, special) == reference(tmp_path, special).encode(TEXT).ids
    ours.save(tmp_path / "saved")
    assert reference(tmp_path / "saved", True).encode(TEXT).ids == ours.encode(TEXT, special=True)
    assert AutoTokenizer.from_pretrained(tmp_path / "saved")(TEXT)["input_ids"] == ours.encode(TEXT, special=True)
    assert Tokenizer.load(tmp_path / "saved").encode(TEXT) == ours.encode(TEXT)


def split(pattern: str) -> Document:
    return {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        ],
    }


WORD = {"id": 261, "content": "the", "special": False, "single_word": False, "lstrip": False, "rstrip": False}
UNUSUAL: dict[str, Callable[[Document], object]] = {
    "prefix space": lambda d: d["pre_tokenizer"].update(add_prefix_space=True),
    "another split": lambda d: d.update(pre_tokenizer=split(r"\d|\D+")),
    "normalizer": lambda d: d.update(normalizer={"type": "Lowercase"}),
    "merges in no order": lambda d: d["model"].update(merges=[*MERGES[2:], *MERGES[:2]]),
    "whole words": lambda d: d["model"].update(ignore_merges=True, merges=MERGES[:2]),
    "greedy special token": lambda d: d["added_tokens"][0].update(lstrip=True),
    "a word of its own": lambda d: d["added_tokens"].append({**WORD, "normalized": False}),
    "a word that is a token": lambda d: d["added_tokens"].append(
        {**WORD, "id": 257, "content": "he", "normalized": True}
    ),
    "an end to each text": lambda d: d.update(
        normalizer={"type": "Lowercase"}, truncation={"max_length": 3, "stride": 0, "strategy": "LongestFirst"}
    ),
}


@pytest.mark.parametrize("change", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_a_tokenizer_json_that_is_not_as_gpt2s_is_followed_to_the_letter(
    tmp_path: Path, change: Callable[[Document], object]
) -> None:
    folder = with_change(tmp_path, change)
    ours = Tokenizer.load(folder)
    assert isinstance(getattr(ours._engine, "full", ours._engine), ByRules)
    ours.with_specials(["<|x|>"]).save(tmp_path / "saved")
    again = Tokenizer.load(tmp_path / "saved")
    for text in (TEXT, "the thin <|endoftext|> inn"):
        for special in (False, True):
            other = reference(folder, special)
            other.no_truncation()
            ids = other.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, special) == ids == again.encode(text, special)
            assert ours.decode(ids) == other.decode(ids, skip_special_tokens=False)
    assert again.encode("<|x|>", special=True)[-1] == len(ours)
    assert ours.decode_bytes(ours.encode(b"\xff\xfe")) == b"\xff\xfe"
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert theirs("the thin inn<|x|>", add_special_tokens=False, truncation=False)["input_ids"] == again.encode(
        "the thin inn<|x|>", special=True
    )


def test_transformers_own_note_on_the_first_space_is_heeded(tmp_path: Path) -> None:
    folder = put(tmp_path, tokenizer_json=document(), tokenizer_config_json={"add_prefix_space": True})
    assert Tokenizer.load(folder).decode(Tokenizer.load(folder).encode("the")) == " the"


def test_the_first_space_is_put_before_a_text_from_the_older_files_too(tmp_path: Path) -> None:
    files = {
        "vocab_json": VOCAB,
        "merges_txt": "#version: 0.2\na b\n",
        "tokenizer_config_json": {"add_prefix_space": True},
    }
    ours = Tokenizer.load(put(tmp_path, **files))
    ours.save(tmp_path / "saved")
    assert ours.decode(ours.encode("ab")) == " ab"
    assert Tokenizer.load(tmp_path / "saved").encode("ab") == ours.encode("ab") == [VOCAB["Ġ"], VOCAB["ab"]]


def test_a_special_token_may_be_spelled_like_one_that_merges_make(tmp_path: Path) -> None:
    both = {**WORD, "id": 257, "content": "he", "special": True, "normalized": False}
    folder = with_change(tmp_path, lambda d: d["added_tokens"].append(both))
    ours = Tokenizer.load(folder)
    assert isinstance(ours._engine.full, ByRank) and (len(ours), ours.specials["he"]) == (261, 257)
    for special in (False, True):
        assert ours.encode(" the thin she", special) == reference(folder, special).encode(" the thin she").ids
    ours.save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved").encode(" the", special=True) == ours.encode(" the", special=True)


def test_the_end_of_a_text_may_have_another_name(tmp_path: Path) -> None:
    def rename(changed: Document) -> None:
        changed["added_tokens"][0]["content"] = "</s>"
        changed["model"]["vocab"]["</s>"] = changed["model"]["vocab"].pop("<|endoftext|>")

    folder = with_change(tmp_path, rename)
    with pytest.raises(CutawayError, match=r"has no <\|endoftext\|>\. Add one: tokenizer\.with_specials"):
        _ = Tokenizer.load(folder).end
    put(folder, tokenizer_config_json={"eos_token": {"content": "</s>"}})
    assert Tokenizer.load(folder).end == 260
    Tokenizer.load(folder).save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved").end == 260


def test_a_vocabulary_without_all_bytes_says_so_when_it_matters(tmp_path: Path) -> None:
    def forget(changed: Document) -> None:
        vocab = changed["model"]["vocab"]
        del vocab["Ā"]
        changed["model"]["vocab"] = {token: i for i, token in enumerate(vocab)}
        changed["added_tokens"][0]["id"] -= 1

    ours = Tokenizer.load(with_change(tmp_path, forget))
    assert ours.decode(ours.encode("the thin")) == "the thin"
    for text in ("a\0b", b"a\0b\xff"):
        with pytest.raises(CutawayError, match="no token for the byte 0x00"):
            ours.encode(text)


def damaged(**changes: object) -> Callable[[Document], object]:
    return lambda d: d["model"].update(changes)


BROKEN: list[tuple[str, Callable[[Document], object], str]] = [
    ("wordpiece", damaged(type="WordPiece"), "not a byte-level BPE.*WordPiece"),
    ("unigram", damaged(type="Unigram", vocab=[["a", -1.5]]), "not a byte-level BPE.*Unigram"),
    ("sentencepiece", lambda d: d.update(pre_tokenizer=None, normalizer={"type": "Prepend"}), "not a byte-level BPE"),
    ("clip", damaged(end_of_word_suffix="</w>"), "not a byte-level BPE.*end_of_word_suffix"),
    ("spelling", lambda d: d["model"]["vocab"].update({"▁the": 261}), "not a byte-level BPE.*▁the"),
    ("surrogate", lambda d: d["added_tokens"].append({"id": 261, "content": "\ud800", "special": True}), "ud800"),
    ("no model", lambda d: d.pop("model"), "no model"),
    ("model is text", lambda d: d.update(model="BPE"), "no model"),
    ("no vocabulary", lambda d: d["model"].pop("vocab"), "each token a whole number"),
    ("text as id", lambda d: d["model"]["vocab"].update({"!": "0"}), "each token a whole number"),
    ("true as id", lambda d: d["model"]["vocab"].update({'"': True}), "each token a whole number"),
    ("no id", lambda d: d["added_tokens"][0].pop("id"), "two ids"),
    ("duplicate id", lambda d: d["model"]["vocab"].update({"!": 7}), r"id 7 belongs to 2 tokens \('!', '\('\)"),
    ("hole", lambda d: d["model"]["vocab"].update({"!": 999}), "no token has the id 0"),
    ("negative id", lambda d: d["model"]["vocab"].update({"!": -1}), "negative id"),
    ("empty", lambda d: d.update(model={**d["model"], "vocab": {}, "merges": []}, added_tokens=[]), "empty"),
    ("unknown in merge", damaged(merges=["Ġ q"]), "'Ġ' [+] 'q' needs 'Ġq'"),
    ("no merges", lambda d: d["model"].pop("merges"), "no list of merges"),
    ("odd merge", damaged(merges=["Ġ t", "h e y"]), "merge 2, 'h e y'"),
    ("number as merge", damaged(merges=[5]), "merge 1, 5"),
    ("numbers in merge", damaged(merges=[[5, 6]]), "not between two texts"),
    ("added tokens", lambda d: d.update(added_tokens={"a": 1}), "added_tokens is not a list"),
    ("added token without text", lambda d: d.update(added_tokens=[{"id": 1}]), "added_tokens is not a list"),
    ("two ids", lambda d: d["added_tokens"][0].update(id=5), "two ids, 260 and 5"),
    ("unknown step", lambda d: d.update(normalizer={"type": "Magic"}), "not a tokenizer that can be run"),
    ("special id", lambda d: [d["model"]["vocab"].pop("<|endoftext|>"), *(
        d["added_tokens"].insert(0, {"id": 261, "content": "<x>", "special": True, "lstrip": True, "rstrip": False,
                                     "single_word": False, "normalized": False}) for _ in "1")], "by its own rules"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_tokenizer_json_is_named_with_its_fault(
    tmp_path: Path, change: Callable[[Document], object], message: str
) -> None:
    folder = with_change(tmp_path, change)
    with pytest.raises(CutawayError, match=message) as caught:
        Tokenizer.load(folder)
    assert "tokenizer.json" in str(caught.value)


VOCAB = {token: i for i, token in enumerate([*ALPHABET.values(), "ab", "<|endoftext|>"])}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no vocabulary.*'gpt2'"),
        ({"vocab_json": VOCAB}, "vocab.json but not merges.txt"),
        ({"vocab_bpe": "a b\n"}, "vocab.bpe but not encoder.json"),
        ({"vocab_json": "{", "merges_txt": "a b\n"}, "vocab.json is not valid JSON"),
        ({"vocab_json": [1], "merges_txt": "a b\n"}, "vocab.json should hold a JSON object"),
        ({"vocab_json": VOCAB, "merges_txt": "a b c\n"}, "merges.txt: merge 1, 'a b c'"),
        ({"vocab_json": VOCAB, "merges_txt": "a \n"}, "'a' [+] '' needs ''"),
        ({"vocab_json": VOCAB, "merges_txt": "a b\na c\n"}, "vocab.json.*needs 'ac'.*same tokenizer"),
        ({"tokenizer_json": "[" * 100_000}, "tokenizer.json is not valid JSON"),
        ({"tokenizer_json": "version https://git-lfs.github.com/spec/v1\n"}, "tokenizer.json.*git lfs pull"),
        ({"tokenizer_json": document(), "tokenizer_config_json": "{"}, "tokenizer_config.json is not valid JSON"),
    ],
)
def test_broken_or_missing_files_are_named(tmp_path: Path, files: dict[str, object], message: str) -> None:
    with pytest.raises(CutawayError, match=message):
        Tokenizer.load(put(tmp_path, **files))


def test_a_place_without_a_vocabulary_is_named(tmp_path: Path) -> None:
    with pytest.raises(CutawayError, match="nowhere does not exist"):
        Tokenizer.load(tmp_path / "nowhere")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CutawayError, match="is a file: name the folder"):
        Tokenizer.load(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_bytes(b'{"model": "\xff"}')
    with pytest.raises(CutawayError, match="not UTF-8 text"):
        Tokenizer.load(tmp_path)


def test_a_failed_save_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "merges.txt").write_text("old")
    written = Path.write_text

    def full(path: Path, text: str, **options: str) -> int:
        written(path, text[:10], **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CutawayError, match=r"No space left on device \(about 2,\d+,\d+ bytes are needed\)"):
        Tokenizer.load().save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["merges.txt"]
    assert (tmp_path / "merges.txt").read_text() == "old"
    with pytest.raises(CutawayError, match="could be written"):
        Tokenizer.load().save(tmp_path / "merges.txt")
