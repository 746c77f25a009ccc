"""Weights that came without a tokenizer load: ids in, ids out; what needs text asks for one, and can be given it."""

import asyncio
import shutil

import pytest

import cutaway
from cutaway.errors import CutawayError
from cutaway.inspect.runs import run
from cutaway.runtime.native import library
from cutaway.runtime.native import packed_file as stored
from cutaway.runtime.native.pack import pack


@pytest.fixture(scope="module")
def bare(tiny_lm, tmp_path_factory):
    """The tiny model's folder, its tokenizer taken away."""
    path = tmp_path_factory.mktemp("bare") / "model"
    tiny_lm.save(path)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"):
        (path / name).unlink()
    return path


KINDS = [{}, {"engine": "torch"}, {"weights": "int8"}][: 2 if library.load() is None else 3]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def how(request):
    return request.param


@pytest.fixture(scope="module")
def lm(how, bare):
    return cutaway.load(bare, **how)


IDS = [5, 77, 200]


def test_ids_in_ids_out(lm, how, bare, tiny_lm):
    with_one = cutaway.load(bare, tokenizer=tiny_lm.tokenizer, **how)
    for settings in ({"temperature": 0}, {"seed": 1, "samples": 2}, {"beams": 3, "best": 2}):
        found = lm.generate(IDS, max_tokens=6, **settings)
        wanted = with_one.generate(IDS, max_tokens=6, **settings)
        for one, other in zip(*((each if isinstance(each, list) else [each]) for each in (found, wanted)), strict=True):
            assert one.ids == other.ids and one.text == ""
    assert [one.id for one in lm.predict(IDS)] == [one.id for one in with_one.predict(IDS)]
    assert lm.predict(IDS)[0].text == ""
    stream = lm.stream(IDS, max_tokens=6, temperature=0)
    assert [token.id for token in stream.tokens()][:6] == lm.generate(IDS, max_tokens=6, temperature=0).ids
    assert lm.generate("", max_tokens=2, temperature=0).ids  # from nothing, too


def test_the_other_ways_in_take_ids_too(lm):
    assert lm.logits(IDS).shape == (3, 320)
    assert len(lm.score(IDS).tokens) == 3
    assert lm.embed([IDS, IDS[:1]]).shape == (2, 48)
    assert run(lm, IDS).to_dict()["text"] == "[5][77][200]"  # a view shows the ids
    pieces = lm.astream(IDS, max_tokens=3, temperature=0).tokens()

    async def count():
        return [piece.id async for piece in pieces]

    assert asyncio.run(count())


@pytest.mark.parametrize(
    "asked",
    [
        lambda lm: lm.generate("Once"),
        lambda lm: lm.generate(["Once", "upon"]),
        lambda lm: lm.predict("Once"),
        lambda lm: lm.score("Once"),
        lambda lm: lm.tokenizer.encode("Once"),
        lambda lm: lm.tokenizer.decode([5]),
        lambda lm: lm.tokenizer.end,
        lambda lm: lm.tokenizer.vocabulary,
        lambda lm: lm.generate(IDS, stop=["."]),
    ],
)
def test_what_needs_text_asks_for_a_tokenizer(lm, asked):
    with pytest.raises(CutawayError, match=r"came without a tokenizer.*tokenizer='gpt2'.*--tokenizer gpt2"):
        asked(lm)


@pytest.mark.skipif(library.load() is None, reason="the native engine is not built here: no C++ compiler")
def test_it_is_saved_and_packed_and_loads_again_without_one(bare, tmp_path):
    lm = cutaway.load(bare)
    lm.save(tmp_path / "again")
    stored.write_packed(pack(lm.model, "float32"), lm.tokenizer, tmp_path / "again.cutaway")
    for path in (tmp_path / "again", tmp_path / "again.cutaway"):
        again = cutaway.load(path)
        assert again.generate(IDS, max_tokens=3, temperature=0).ids == lm.generate(IDS, max_tokens=3, temperature=0).ids
        with pytest.raises(CutawayError, match="came without a tokenizer"):
            again.generate("Once")


def test_a_tokenizer_can_be_named_by_folder_or_given(bare, tiny_lm, tmp_path):
    tiny_lm.tokenizer.save(tmp_path / "tokens")
    wanted = tiny_lm.generate("Once upon", max_tokens=5, temperature=0).text
    for tokenizer in (tmp_path / "tokens", str(tmp_path / "tokens"), tiny_lm.tokenizer):
        lm = cutaway.load(bare, tokenizer=tokenizer)
        assert lm.generate("Once upon", max_tokens=5, temperature=0).text == wanted


def test_one_that_does_not_fit_and_one_that_is_not_there_are_refused(bare):
    with pytest.raises(CutawayError, match="50,257 entries, the model only 320"):
        cutaway.load(bare, tokenizer="gpt2")
    with pytest.raises(CutawayError, match=r"There is no folder \./nowhere"):
        cutaway.load(bare, tokenizer="./nowhere")


def test_half_a_tokenizer_is_no_reason_to_go_without(tiny_lm, bare, tmp_path):
    shutil.copytree(bare, tmp_path / "model")
    (tmp_path / "model" / "vocab.json").write_text("{}")
    with pytest.raises(CutawayError, match=r"holds vocab.json but not merges.txt"):
        cutaway.load(tmp_path / "model")


def test_the_sentence_about_a_missing_vocabulary_names_ways_that_work(bare, tmp_path):
    with pytest.raises(CutawayError, match=r"tokenizer='gpt2'.*--tokenizer gpt2.*load\('gpt2'\)\.save\(folder\)"):
        cutaway.Tokenizer.load(bare)
    cutaway.Tokenizer.load("gpt2").save(tmp_path)
    assert len(cutaway.Tokenizer.load(tmp_path)) == 50_257
