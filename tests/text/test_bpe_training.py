"""A vocabulary learned from text: as long as asked, the same however the text is cut up, and of use to others."""

from __future__ import annotations

import _thread
import bz2
import gzip
import lzma
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway import CutawayError, Tokenizer
from cutaway.text import bpe_training
from cutaway.text.bpe import ByRank
from cutaway.text.vocabulary import ALPHABET

LAW = (
    "a robot must obey the orders given it by human beings except where such orders would conflict with the first law; "
    "un robot doit obéir aux ordres qui lui sont donnés par un être humain, sauf si de tels ordres entrent en conflit "
    "avec la première loi. 機械 は 人間 に あたえられた 命令 に 服従 しなければならない 42 1942 !"
)
WORDS = LAW.split()


def story(words: int, seed: int = 0) -> str:
    chance = random.Random(seed)
    return "".join(chance.choice(WORDS) + chance.choice([" ", " ", " ", ", ", "\n", "  \r\n", "\n\n\n", "'s "])
                   for _ in range(words))  # fmt: skip


STORY = story(3_000)


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return Tokenizer.train([STORY], 400)


def test_the_layout_is_gpt2s(trained: Tokenizer) -> None:
    tokens = list(trained.vocabulary)
    assert tokens[:256] == list(ALPHABET.values())
    assert tokens[256:-1] == ["".join(pair) for pair in trained.merges]
    assert (len(trained), trained.specials, trained.end) == (400, {"<|endoftext|>": 399}, 399)
    assert "Ġorders" in tokens


def test_the_first_merge_is_the_commonest_pair() -> None:
    assert Tokenizer.train(["xyxyxy xy zz"], 258).merges == [("x", "y")]


def test_it_is_learned_bpe_and_runs_on_the_fast_engine(trained: Tokenizer) -> None:
    assert isinstance(trained._engine.full, ByRank)


@given(text=st.text(max_size=40) | st.lists(st.sampled_from([*WORDS, " ", "'s", "\n"]), max_size=20).map("".join))
@settings(deadline=None)
def test_any_text_has_the_ids_of_the_tokenizers_library_and_comes_back(text: str, trained: Tokenizer) -> None:
    plain = {token: i for token, i in trained.vocabulary.items() if i != trained.end}
    other = tokenizers.Tokenizer(tokenizers.models.BPE(plain, trained.merges))
    other.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert trained.encode(text) == other.encode(text).ids
    assert trained.decode(trained.encode(text)) == text


def test_it_is_learned_as_the_tokenizers_library_learns_it(trained: Tokenizer) -> None:
    other = tokenizers.Tokenizer(tokenizers.models.BPE())
    other.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=399, min_frequency=2, show_progress=False, initial_alphabet=list(ALPHABET.values())
    )
    other.train_from_iterator([STORY], trainer)
    assert other.get_vocab() == {token: i for token, i in trained.vocabulary.items() if i != trained.end}


def test_what_was_trained_is_saved_and_read_the_same_in_transformers(trained: Tokenizer, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    bare = Tokenizer.train([STORY], 300, specials=())
    assert (len(bare), bare.specials) == (300, {})
    for ours, name in ((trained, "end"), (bare, "bare")):
        ours.save(tmp_path / name)
        theirs = AutoTokenizer.from_pretrained(tmp_path / name)
        text = story(50, seed=1)
        assert len(theirs) == len(ours)
        assert theirs(text)["input_ids"] == ours.encode(text) == Tokenizer.load(tmp_path / name).encode(text)


def test_how_the_text_is_cut_up_changes_nothing(
    trained: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpe_training, "BLOCK", 17)
    monkeypatch.setattr(bpe_training, "CHUNK", 11)
    (tmp_path / "story.txt").write_bytes(STORY.encode())
    assert Tokenizer.train([STORY], 400).merges == trained.merges
    assert Tokenizer.train_files([tmp_path / "story.txt"], 400).merges == trained.merges


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)])
def test_packed_files_are_read(ending: str, pack, trained: Tokenizer, tmp_path: Path) -> None:
    half = STORY.index("\n", len(STORY) // 2)
    (tmp_path / f"first{ending}").write_bytes(pack(STORY[:half].encode()))
    (tmp_path / "second.txt").write_bytes(STORY[half:].encode())
    files = [tmp_path / f"first{ending}", tmp_path / "second.txt"]
    heard: list[tuple[int, int]] = []
    learned = Tokenizer.train_files(files, 400, progress=lambda done, total: heard.append((done, total)))
    assert learned.merges == trained.merges
    size = sum(path.stat().st_size for path in files)
    assert heard[-1] == (size, size) and heard == sorted(heard) and {total for _, total in heard} == {size}
    (tmp_path / f"first{ending}").write_bytes(pack(STORY.encode())[:-20])
    with pytest.raises(CutawayError, match=rf"first{ending} cannot be read"):
        Tokenizer.train_files(files, 400)


def test_progress_hears_of_every_character() -> None:
    heard: list[int] = []
    Tokenizer.train(["one ", "two ", "three"], 260, progress=heard.append)
    assert heard == [4, 8, 13]


def test_special_tokens_divide_the_texts_and_are_not_learned() -> None:
    text = "ab<|endoftext|>ba<|sep|>" * 50
    learned = Tokenizer.train([text], 300, specials=["<|endoftext|>", "<|sep|>"])
    assert learned.merges == [("a", "b"), ("b", "a")] or learned.merges == [("b", "a"), ("a", "b")]
    assert learned.specials == {"<|endoftext|>": 258, "<|sep|>": 259}


def test_texts_are_read_one_after_the_other_and_never_held_together() -> None:
    ahead = 0

    def texts() -> Iterator[str]:
        nonlocal ahead
        for i in range(2_000):
            yield f"text number {i} " * 10
            ahead = i

    heard: list[int] = []
    Tokenizer.train(texts(), 300, progress=lambda read: heard.append(ahead))
    assert heard == [max(0, i - 1) for i in range(2_000)]


def test_long_words_neither_stop_it_nor_become_tokens() -> None:
    learned = Tokenizer.train(["a" * 200_000, "".join(random.Random(0).choices("ACGT", k=50_000))], 400)
    assert max(len(learned.token_bytes(i)) for i in range(399)) <= bpe_training.LONGEST


def test_half_characters_are_passed_over() -> None:
    assert Tokenizer.train(["ab\ud800ab"] * 2, 257).merges == []
    assert Tokenizer.train(["ab\ud800 ab"] * 2, 258).merges == [("a", "b")]


def test_ctrl_c_ends_it() -> None:
    heard: list[int] = []

    def interrupt(read: int) -> None:
        if not heard:
            _thread.interrupt_main()
        heard.append(read)

    with pytest.raises(KeyboardInterrupt):
        Tokenizer.train((f"text {i}" for i in range(10_000_000)), 300, progress=interrupt)  # as good as without end
    learning = [thread for thread in threading.enumerate() if thread.name == "bpe-training"]
    for thread in learning:
        thread.join(60)
    assert not any(thread.is_alive() for thread in learning)  # nothing reads on behind the caller's back
    assert heard[-1] < 10_000_000


def test_a_mistake_in_the_callers_texts_is_the_callers_to_see() -> None:
    def texts() -> Iterator[str]:
        yield "one"
        raise ZeroDivisionError("my own")

    with pytest.raises(ZeroDivisionError, match="my own"):
        Tokenizer.train(texts(), 300)


def test_too_small_a_vocabulary_is_refused_with_the_smallest_size() -> None:
    with pytest.raises(CutawayError, match="smallest size is 257"):
        Tokenizer.train([STORY], 256)
    assert len(Tokenizer.train([STORY], 257)) == 257
    assert len(Tokenizer.train(["too little text for more"], 5_000)) < 270


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_refused(texts: list[str], tmp_path: Path) -> None:
    with pytest.raises(CutawayError, match="no text to train on"):
        Tokenizer.train(texts, 300)


def test_files_that_cannot_be_learned_from_are_named(tmp_path: Path) -> None:
    with pytest.raises(CutawayError, match="no files"):
        Tokenizer.train_files([], 300)
    with pytest.raises(CutawayError, match=r"gone.txt does not exist"):
        Tokenizer.train_files([tmp_path / "gone.txt"], 300)
    with pytest.raises(CutawayError, match="is not a file"):
        Tokenizer.train_files([tmp_path], 300)
    (tmp_path / "latin.txt").write_bytes(("text " * 300_000).encode() + "café".encode("latin-1") + b" more")
    with pytest.raises(CutawayError, match=r"latin.txt is not UTF-8 text: byte 1,500,003 does not fit.*iconv"):
        Tokenizer.train_files([tmp_path / "latin.txt"], 300)
    (tmp_path / "no.gz").write_bytes(b"not packed at all")
    with pytest.raises(CutawayError, match=r"no.gz cannot be read"):
        Tokenizer.train_files([tmp_path / "no.gz"], 300)
