"""The tokenizer: GPT-2's ids exactly, any text and any bytes there and back, and no half characters on the way."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from cutaway import CutawayError, Tokenizer

GPT2_FILES = Path(__file__).parents[2] / "src" / "cutaway" / "data" / "gpt2"
LLAMACPP = Path(__file__).parents[3] / "shared" / "data" / "ref_llamacpp_gpt2_tokenizer"
MILLION = 1_000_000

VARIED = [
    "",
    "\0",
    " ",
    "  ",
    "\t\n\r\v\f",
    "Hello world",
    " Hello  world   ",
    "A robot must obey the orders given it by human beings except where such orders would conflict with the First Law.",
    "I'm you're he'd she'll they've it's don't I'M YOU'RE 'sentence ''s 'll'",
    "line one\r\nline two\r\n\r\n\r\nline three\n",
    "1234567890 3.14159 1,000,000 ½ ² Ⅷ ٣",
    "def f(x):\n    return x ** 2  # squared\n\n\n\tif x:\n\t\tpass\n",
    "naïve café Ærøskøbing Äpfel e\u0301 o\u0308",
    "Кириллица ελληνικά עברית العربية हिन्दी ไทย 한국어 日本語 中文字符",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 😀😀😀",
    "a\u00a0b\u2003c\u3000d\u200be\ufefff\u180eg\x1ch\x1fi\x85j",
    "<|endoftext|> in the <|endoftext|>text<|endoftext|>",
    "SolidGoldMagikarp rawdownloadcloneembedreportprint petertodd",
    "////////////////////////////////////////--------------------================~~~~~~~~",
    "".join(map(chr, range(0x250))),
    "".join(map(chr, range(0xFF00, 0x10000))) + "\U0010ffff\U00010000",
]
TRICKY = st.lists(
    st.sampled_from(
        [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\x1c", "'s", "'ll", "'", "the", "ing", "A", "9", "42", "½",
         "é", "中", "😀", "\u200d", "!", "...", "<|endoftext|>", "<|", "|>", "_", "\0"]
    ),
    max_size=30,
).map("".join)  # fmt: skip
TEXTS = st.text(max_size=60) | TRICKY


@pytest.fixture(scope="module")
def gpt2() -> Tokenizer:
    return Tokenizer.load()


@pytest.fixture(scope="module")
def reference() -> tokenizers.Tokenizer:
    """The other implementation, from the same files, with `<|endoftext|>` read as text."""
    model = tokenizers.models.BPE.from_file(str(GPT2_FILES / "vocab.json"), str(GPT2_FILES / "merges.txt"))
    other = tokenizers.Tokenizer(model)
    other.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return other


def test_gpt2s_own_ids(gpt2: Tokenizer) -> None:
    assert (len(gpt2), gpt2.end, gpt2.specials) == (50_257, 50_256, {"<|endoftext|>": 50_256})
    assert gpt2.encode("Hello world") == [15496, 995]
    assert gpt2.encode(" this is 🦙.cpp") == [428, 318, 12520, 99, 247, 13, 20322]
    assert gpt2.encode("\n\n\n") == [628, 198]
    assert gpt2.vocabulary["Ġthe"] == 262 and gpt2.token_bytes(262) == b" the"
    assert gpt2.merges[0] == ("Ġ", "t") and len(gpt2.merges) == 50_000
    assert list(gpt2.vocabulary.values()) == list(range(50_257))


@pytest.mark.parametrize("text", VARIED, ids=range(len(VARIED)))
def test_the_same_ids_as_the_tokenizers_library(text: str, gpt2: Tokenizer, reference: tokenizers.Tokenizer) -> None:
    assert gpt2.encode(text) == reference.encode(text).ids
    assert gpt2.decode(gpt2.encode(text)) == text


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_any_text_has_the_ids_of_the_tokenizers_library_and_comes_back(
    text: str, gpt2: Tokenizer, reference: tokenizers.Tokenizer
) -> None:
    ids = gpt2.encode(text)
    assert ids == reference.encode(text).ids
    assert gpt2.decode(ids) == text


@pytest.mark.parametrize(
    "end", [0x3100, pytest.param(0x110000, marks=pytest.mark.slow)], ids=["common", "all of Unicode"]
)
def test_every_character_counts_as_letter_digit_space_or_sign_as_in_the_tokenizers_library(
    end: int, gpt2: Tokenizer, reference: tokenizers.Tokenizer
) -> None:
    for start in range(0, end, 0x100):
        characters = [chr(i) for i in range(start, start + 0x100) if not 0xD800 <= i < 0xE000]
        text = "".join(f"a{char}a 1{char}1 !{char}! {char} " for char in characters)
        assert gpt2.encode(text) == reference.encode(text).ids, hex(start)


def test_the_same_ids_as_llamacpp(gpt2: Tokenizer) -> None:
    if not LLAMACPP.is_dir():
        pytest.skip(f"{LLAMACPP} is not there; the other parity tests need nothing from outside")
    texts = (LLAMACPP / "ggml-vocab-gpt-2.gguf.inp").read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n")
    lines = (LLAMACPP / "ggml-vocab-gpt-2.gguf.out").read_text(encoding="utf-8").split("\n")
    assert len(texts) > 40
    for text, line in zip(texts, lines, strict=True):
        assert gpt2.encode(text) == [int(number) for number in line.split()], text


@given(data=st.binary(max_size=60) | TEXTS.map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_come_back(data: bytes, gpt2: Tokenizer) -> None:
    assert gpt2.decode_bytes(gpt2.encode(data)) == data


@given(data=st.binary(max_size=30))
@settings(deadline=None)
def test_bytes_smuggled_in_a_text_come_back_as_bytes(data: bytes, gpt2: Tokenizer) -> None:
    assert gpt2.decode_bytes(gpt2.encode(data.decode("utf-8", "surrogateescape"))) == data


def test_bytes_that_are_text_have_the_ids_of_the_text(gpt2: Tokenizer) -> None:
    for text in VARIED:
        assert gpt2.encode(text.encode()) == gpt2.encode(text)
    assert gpt2.decode_bytes(gpt2.encode(bytes(range(256)))) == bytes(range(256))
    assert gpt2.encode(b"caf\xe9 au lait") == [*gpt2.encode("caf"), *gpt2.encode(b"\xe9"), *gpt2.encode(" au lait")]
    assert gpt2.encode("“".encode()[:2]) == [447]  # merged, though it is half a character


def test_half_characters_in_a_text_become_what_they_can_mean(gpt2: Tokenizer) -> None:
    assert gpt2.encode("\ud83d\ude00") == gpt2.encode("😀")  # two halves, as a careless JSON reader leaves them
    assert gpt2.encode("\udcc3\udca9") == gpt2.encode("é")  # two bytes, as a command line in the C locale has them
    assert gpt2.encode("a\ud83db") == gpt2.encode("a\ufffdb")
    assert gpt2.decode_bytes(gpt2.encode("x\udcffy")) == b"x\xffy"


@pytest.mark.parametrize(
    "text",
    [
        " " * MILLION + "x",
        "x" + "\n" * MILLION,
        "\t" * 300_000 + "word " * 60_000 + "\u3000" * 300_000 + "end",
        "a" * 400_000,
        "abcdefghij1" * 30_000,
        "中" * 300_000,
        "<|endoftext|>" * 30_000,
    ],
    ids=["spaces", "newlines", "runs", "a", "no space", "chinese", "ends"],
)
def test_very_long_runs_of_anything_have_exact_ids(text: str, gpt2: Tokenizer, reference: tokenizers.Tokenizer) -> None:
    ids = gpt2.encode(text)
    assert ids == reference.encode(text).ids
    assert gpt2.decode(ids) == text


def test_a_special_token_in_a_text_is_text_unless_asked_otherwise(gpt2: Tokenizer) -> None:
    text = "one<|endoftext|> two"
    assert gpt2.encode(text) == [505, 27, 91, 437, 1659, 5239, 91, 29, 734]
    assert gpt2.encode(text, special=True) == [505, 50256, 734]
    assert gpt2.encode(text.encode() + b"\xff", special=True) == [505, 50256, 734, 187]
    assert gpt2.encode_batch([text, ""], special=True) == [[505, 50256, 734], []]
    assert gpt2.decode([505, 50256, 734]) == text


def test_special_tokens_can_be_added_and_the_longest_name_wins(gpt2: Tokenizer) -> None:
    more = gpt2.with_specials(["<|to|>", "<|to|>french", "<|to|>", "<|endoftext|>"])
    assert more.specials == {"<|endoftext|>": 50256, "<|to|>": 50257, "<|to|>french": 50258}
    assert (len(more), len(gpt2), more.end) == (50_259, 50_257, 50_256)
    assert more.encode("a<|to|>french<|to|> b", special=True) == [64, 50258, 50257, 275]
    assert more.encode("a<|to|> b") == gpt2.encode("a<|to|> b")
    assert more.decode([50258, 64]) == "<|to|>frencha"
    assert more.vocabulary["<|to|>"] == 50257
    odd = gpt2.with_specials(["ein Satz – mit Leerzeichen", "😀"])
    assert odd.encode("x😀ein Satz – mit Leerzeichen", special=True) == [87, 50258, 50257]
    assert odd.decode([50258]) == "😀"


@pytest.mark.parametrize("name", ["", "the", "é"])
def test_a_special_token_may_not_be_an_ordinary_one(name: str, gpt2: Tokenizer) -> None:
    with pytest.raises(CutawayError, match="cannot be a special token"):
        gpt2.with_specials([name])


@pytest.mark.parametrize("wrong", [50_257, -1, 2**40])
def test_an_id_out_of_range_is_named(wrong: int, gpt2: Tokenizer) -> None:
    for use in (gpt2.token_bytes, gpt2.stream().add, lambda i: gpt2.decode([1, i]), lambda i: gpt2.decode_bytes([i])):
        with pytest.raises(CutawayError, match=f"no token {wrong}.*0 to 50,256"):
            use(wrong)


def test_every_id_has_bytes(gpt2: Tokenizer) -> None:
    everything = [gpt2.token_bytes(i) for i in range(len(gpt2))]
    assert all(everything) and len(set(everything)) == len(gpt2)
    assert gpt2.decode_bytes(range(len(gpt2))) == b"".join(everything)


def test_ids_may_come_from_arrays_and_iterators(gpt2: Tokenizer) -> None:
    numpy = pytest.importorskip("numpy")
    assert gpt2.decode(numpy.array([15496, 995])) == gpt2.decode(iter((15496, 995))) == "Hello world"


@given(ids=st.lists(st.integers(0, 255) | st.integers(0, 50_256), max_size=40))
@settings(max_examples=300, deadline=None)
def test_a_streamed_text_is_the_whole_text(ids: list[int], gpt2: Tokenizer) -> None:
    stream = gpt2.stream()
    parts = [stream.add(i) for i in ids]
    assert "".join(parts) + stream.finish() == gpt2.decode(ids)
    assert stream.add(64) + stream.finish() == "a"  # and it can begin again


@given(text=TEXTS)
@settings(deadline=None)
def test_a_stream_never_shows_half_a_character(text: str, gpt2: Tokenizer) -> None:
    stream, seen = gpt2.stream(), ""
    for i in gpt2.encode(text):
        seen += stream.add(i)
        assert text.startswith(seen)
    assert stream.finish() == "" and seen == text


def test_a_stream_gives_a_character_when_its_last_byte_comes(gpt2: Tokenizer) -> None:
    stream = gpt2.stream()
    assert [stream.add(i) for i in [12520, 99, 247, 64]] == [" ", "", "🦙", "a"]
    assert stream.add(12520) == " " and stream.finish() == "\ufffd"


def test_a_batch_has_the_ids_of_its_texts(gpt2: Tokenizer) -> None:
    texts = [*VARIED, "\ud800", "word " * 100_000, *("some text" for _ in range(20_000)), ""]
    assert gpt2.encode_batch(texts) == [gpt2.encode(text) for text in texts]
    assert gpt2.encode_batch([]) == []


def test_many_threads_get_the_same_ids(gpt2: Tokenizer) -> None:
    texts = VARIED * 8
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(gpt2.encode, texts)) == [gpt2.encode(text) for text in texts]


def test_a_tokenizer_can_be_sent_to_another_process(gpt2: Tokenizer) -> None:
    sent = pickle.loads(pickle.dumps(gpt2.with_specials(["<|x|>"])))
    assert sent.encode("Hello<|x|>", special=True) == [15496, 50257]


def test_what_it_gives_away_cannot_change_it(gpt2: Tokenizer) -> None:
    gpt2.specials.clear()
    gpt2.vocabulary.clear()
    gpt2.merges.clear()
    assert gpt2.specials and gpt2.vocabulary and gpt2.merges


def test_cutting_a_text_needs_neither_torch_nor_numpy_nor_the_tokenizers_library() -> None:
    code = (
        "import sys, cutaway; assert cutaway.Tokenizer.load().encode('Hello world') == [15496, 995]; "
        "print(sorted({'torch', 'numpy', 'tokenizers', 'transformers', 'requests'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
