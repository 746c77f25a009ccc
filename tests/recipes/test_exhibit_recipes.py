"""The exhibit model's recipes, all of them, with a teacher of random weights: what `make builtin-smoke` runs."""

from __future__ import annotations

import importlib
import random
import re
import struct
import sys
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import cutaway
from cutaway.language_model import LanguageModel
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

ROOT = Path(__file__).resolve().parents[2]
MODULES = [path.stem for path in (ROOT / "recipes").glob("*.py")]
DIM, HIDDEN, LAYERS, HEADS, CONTEXT = 24, 64, 2, 2, 64


@pytest.fixture(scope="module")
def recipes():
    """A function: the module of a recipe's name."""
    sys.path.insert(0, str(ROOT / "recipes"))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(ROOT / "recipes"))
        for name in (*MODULES, "exhibits"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def weights(recipes, tmp_path_factory):
    """The folder of a small teacher, in the file format of llama2.c; its size is told to the recipe."""
    pieces = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256))]
    pieces += [bytes([byte]) for byte in range(32, 127)]
    pieces += [piece.encode() for piece in (" t", "he", " the", "at", " c", " cat", " s", " sat", " m", " mat", " w")]
    shapes = [
        (len(pieces), DIM), (LAYERS, DIM), *3 * [(LAYERS, DIM, DIM)], (LAYERS, DIM, DIM), (LAYERS, DIM),
        (LAYERS, HIDDEN, DIM), (LAYERS, DIM, HIDDEN), (LAYERS, HIDDEN, DIM), (DIM,),
    ]  # fmt: skip
    numbers = (
        torch.randn(sum(int(np.prod(shape)) for shape in shapes), generator=torch.Generator().manual_seed(1)) * 0.2
    )
    model = struct.pack("7i", DIM, HIDDEN, LAYERS, HEADS, HEADS, len(pieces), CONTEXT) + numbers.numpy().tobytes()
    words = b"".join(struct.pack("fi", -float(rank), len(piece)) + piece for rank, piece in enumerate(pieces))
    folder = tmp_path_factory.mktemp("teacher")
    (folder / "llama2.data").write_bytes(model + struct.pack("i", 16) + words)
    recipes("sample_stories").Teacher.SIZE = len(model)
    return folder


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    lines = [
        f"The cat sat on mat {n}, and the mat was under the cat, which sat and sat and was fat." for n in range(1200)
    ]
    (folder / "stories.txt").write_text("".join(f"{line}\n<|endoftext|>\n" for line in lines), encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def start(recipes):
    """A small story model with a vocabulary of its own, and what becomes of it with a part of GPT-2's."""
    torch.manual_seed(0)
    texts = ["The cat sat on the mat, and the mat was under the cat. "] * 3
    before = cutaway.Tokenizer.train(texts, 300)
    shape = Config(len(before), 32, DIM, 2, 2, end_token=before.end)
    tokenizer = recipes("gpt2_subset").subset(cutaway.Tokenizer.load("gpt2").encode(texts[0]), 600)
    model = LanguageModel(GPT(shape), before)
    return model, recipes("exhibit_start").begin(model, tokenizer, 48)


@pytest.fixture(scope="module")
def begin(recipes, stories, start, weights):
    """A function: a training in a folder."""
    teach = recipes("teach_exhibits")

    def make(folder):
        training = teach.Training(folder, start[1], stories, 0, weights)
        for shard in range(len(training.cache)):
            training.cache.make(shard)  # the other processes do not know the small teacher
        assert training.cache.groups
        return training

    return make


def test_exhibits_of_some_kinds_only(recipes, tmp_path, monkeypatch):
    exhibits = recipes("exhibits")
    asked = ["-o", str(tmp_path / "some.txt"), "--tokens", "4000", "--only", "capital", "cycle"]
    monkeypatch.setattr(sys, "argv", ["exhibits.py", *asked])
    exhibits.main()
    lines = [one for one in (tmp_path / "some.txt").read_text().splitlines() if one.strip("<|endoftx>")]
    names = [kind.__name__ for kind, _ in exhibits.KINDS]
    assert len(lines) > 50 and {"capital", "cycle", "brackets"} <= set(names)
    assert not any(set(line) & set("[](){}<>") for line in lines)
    every = list(islice(exhibits.documents(1), 300))
    assert any(set(text) & set("[](){}<>") for text in every)


def test_tokens_that_both_vocabularies_have_keep_their_vectors(start):
    before, now = start
    old, new = before.model.token_embedding.weight, now.model.token_embedding.weight
    for word in (b" cat", b" mat", b"a", b" "):
        ids = {t: [i for i in range(len(t)) if t.token_bytes(i) == word] for t in (before.tokenizer, now.tokenizer)}
        for mine, theirs in zip(ids[now.tokenizer], ids[before.tokenizer], strict=False):
            assert torch.equal(new[mine], old[theirs])
    assert torch.equal(new[now.tokenizer.end], old[before.tokenizer.end])
    places = now.model.position_embedding.weight
    assert torch.equal(places[:32], before.model.position_embedding.weight)
    assert torch.equal(places[32:48], places[16:32].flip(0))  # running back, without a jump


def test_a_head_is_made_that_looks_at_the_token_before(recipes, start, monkeypatch):
    previous = recipes("exhibit_previous")
    monkeypatch.setattr(previous, "WAVES", 8)
    torch.manual_seed(1)
    lm = LanguageModel(GPT(start[1].model.config.but(width=64, heads=2, context=96)), start[1].tokenizer)
    texts = previous.sample(lm, rows=16, length=24)

    def given(ids, first):
        trace = lm.trace([*([lm.tokenizer.end] * first), *ids.tolist()], keep="blocks.0.attention.weights")
        return trace["blocks.0.attention.weights"].diagonal(-1, 1, 2)[:, first:].mean(1)  # [head]

    assert max(given(texts[0], 0)) < 0.5
    turned = previous.wave_code(torch.tensor([6.0, 7.0]))
    torch.testing.assert_close(previous.turn_back() @ turned[1], turned[0], rtol=1e-4, atol=1e-5)
    head = previous.make(lm.model, texts)
    assert previous.settle(lm.model, texts, head) > 0.9
    fresh = previous.sample(lm, seed=5, rows=2, length=24)
    assert all(given(ids, first)[head] > 0.8 for ids in fresh for first in (0, 40))  # other texts, anywhere


def test_exhibits_are_the_same_for_the_same_seed_and_never_use_held_out_words(recipes):
    words, documents = recipes("exhibit_words"), recipes("exhibits").documents
    once, again, other = (list(islice(documents(seed), 400)) for seed in (1, 1, 2))
    assert once == again and once != other
    only = {plural for _, plural in words.held_out(words.PLURALS)} - {"laws", "songs"}
    written = set(re.findall(r"\w+", " ".join(once)))
    assert only and not only & written
    assert set(words.NAMES) <= written  # a token that is never the next one is unlearned: names are new in their order


def test_counting_counts(recipes):
    rng = random.Random(5)
    for _ in range(300):
        numbers = recipes("exhibits").series(rng)
        assert len({b - a for a, b in pairwise(numbers)}) == 1 and min(numbers) >= 0


def test_the_teacher_is_asked_after_the_opening_and_its_chances_add_up_to_one(recipes, begin, tmp_path):
    training = begin(tmp_path)
    shard, groups = training.cache.read(0), training.cache.groups
    asked = np.nonzero(shard.counts)[0]
    begins = np.nonzero(shard.tokens == training.tokenizer.end)[0]
    into = asked - begins[np.searchsorted(begins, asked, "right") - 1]
    assert len(asked) > 500 and into.min() > recipes("distil_stories").OPENING
    ends = np.cumsum(shard.counts, dtype=int)
    for place in asked[:200]:
        some = slice(ends[place] - shard.counts[place], ends[place])
        assert float(shard.chance[some].astype(float).sum()) == pytest.approx(1, abs=0.01)
        assert len(set(shard.which[some].tolist())) == shard.counts[place]
    assert sorted(groups.members) == list(range(len(training.tokenizer)))
    for group in range(len(groups.firsts)):
        assert (groups.group[groups.members[groups.starts[group] : groups.starts[group + 1]]] == group).all()


def test_the_loss_has_the_gradients_it_says(recipes, begin, tmp_path):
    """Against autograd, on the same loss written down plainly."""
    teach = recipes("teach_exhibits")
    training = begin(tmp_path)
    members = teach.Members(training.cache.groups)
    generator = torch.Generator().manual_seed(3)
    vocabulary, count = len(training.tokenizer), 30
    hidden = torch.randn(count, DIM, generator=generator, requires_grad=True)
    matrix = torch.randn(vocabulary, DIM, generator=generator, requires_grad=True)
    targets = torch.randint(vocabulary, (count,), generator=generator)
    place = torch.tensor([2, 2, 2, 7, 7, 20])
    which = torch.tensor([0, 3, 5, int(members.group[targets[7]]), 1, 4])
    chance = torch.tensor([0.5, 0.3, 0.2, 0.6, 0.4, 1.0])
    teach.Words.apply(hidden, matrix, targets, (place, which, chance, torch.tensor([11, 12])), members).backward()
    found = hidden.grad.clone(), matrix.grad.clone()
    hidden.grad = matrix.grad = None
    logs = (hidden @ matrix.T).log_softmax(1)
    plain = -logs.gather(1, targets[:, None])[:, 0]
    chances = torch.zeros(count, len(members.starts) - 1).index_add_(1, members.group, logs.exp())
    taught = plain.clone()
    for row in (2, 7, 20):
        says = -(chance[place == row] * chances[row, which[place == row]].log()).sum()
        came = members.group[targets[row]]
        taught[row] = (
            says + plain[row] + chances[row, came].log()
        )  # the group from the teacher, the token from the text
    counted = torch.ones(count).index_fill_(0, torch.tensor([11, 12]), 0)
    ((plain + teach.TAUGHT * (taught - plain)) * counted).sum().div(counted.sum()).backward()
    for mine, theirs in zip(found, (hidden.grad, matrix.grad), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def test_a_training_that_was_ended_goes_on_as_if_it_had_not_been(recipes, begin, tmp_path):
    whole, parts = begin(tmp_path / "whole"), begin(tmp_path / "parts")
    whole.run(4, 2, 60, workers=1, look=4)
    before = parts.shared.weights.clone()
    parts.run(2, 0, 60, workers=2, look=0)
    again = begin(tmp_path / "parts")
    assert (again.step, again.at) == (2, parts.at)
    assert not torch.equal(again.shared.weights, before)
    again.run(4, 2, 60, workers=2, look=4)
    assert torch.equal(again.shared.weights, whole.shared.weights)  # with another number of processes, too
    kept = cutaway.load(tmp_path / "parts" / "model")
    assert torch.equal(
        kept.model.token_embedding.weight, again.shared.view(again.shared.mean, "token_embedding.weight")
    )
    few = recipes("exhibit_lessons").Lessons(whole.cache, 48, 0, shards=1)
    assert {few.shard_of(number) for number in range(4)} == {whole.lessons.shard_of(0)}
    assert '"bits_per_byte"' in (tmp_path / "parts" / "log.jsonl").read_text()


def test_words_of_the_vocabulary_are_copied_but_none_that_is_held_out(recipes):
    exhibits, words = recipes("exhibits"), recipes("exhibit_words")
    unseen = [one for some in (words.FOOD, words.THINGS, words.CHARACTERS) for one in words.held_out(some)]
    tokens = [" robot", " must", " Obey", " orders", "the", " x", " 12", " né", *(f" {one}" for one in unseen)]
    known = exhibits.words_of(tokens)
    assert known == ["robot", "must", "Obey", "orders"]
    written = "\n".join(islice(exhibits.documents(3, known), 200))
    assert "must Obey" in written and "must Obey" not in "\n".join(islice(exhibits.documents(3), 200))
    copied = [
        line.split() for line in map(exhibits.plain, (exhibits.any_words(random.Random(n), known) for n in range(99)))
    ]
    assert not {word.strip(",").lower() for line in copied for word in line} & set(unseen)


def test_the_model_is_made_ready_to_ship(recipes, start, stories, weights, tmp_path, monkeypatch):
    ship = recipes("ship_builtin")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "stories15M").symlink_to(weights)
    start[1].save(tmp_path / "model")
    ship.ship(tmp_path / "model", stories, tmp_path / "builtin")
    lm = cutaway.load(tmp_path / "builtin")
    assert lm.recommended == ship.RECOMMENDED
    assert torch.equal(lm.model.token_embedding.weight, start[1].model.token_embedding.weight.half().float())
    assert lm.tokenizer.gpt2_ids is not None
    (tmp_path / "log.jsonl").write_text('{"step": 20, "loss": 3.5}\n{"step": 20, "bits_per_byte": 0.9}\n')
    text = ship.card(tmp_path, tmp_path / "builtin", stories, cases=2)
    assert all(one in text for one in ("20 steps", "600 of GPT-2's own tokens", "**Seed 3**"))
    assert "<svg" in (tmp_path / "builtin" / "loss.svg").read_text()
    with pytest.raises(SystemExit, match="MB"):
        ship.ship(tmp_path / "model", stories, tmp_path / "builtin", most=1000)


def test_how_an_exhibit_begins_is_learned_only_where_no_end_token_is_before_it(recipes, begin, tmp_path, monkeypatch):
    lessons = recipes("exhibit_lessons")
    monkeypatch.setattr(lessons, "UNFORESEEN", 0)  # what is random is another test's
    training = begin(tmp_path)
    end, stories, seen = training.tokenizer.end, 0, set()
    for piece in training.lessons.pieces(0):
        ids, length = piece.ids[:, :-1], piece.ids.shape[1] - 1
        quiet = np.zeros(ids.size, bool)
        quiet[piece.quiet] = True
        for row, silent in zip(ids, quiet.reshape(-1, length), strict=True):
            for at in np.nonzero(row == end)[0]:
                after = silent[at : at + lessons.QUIET]
                seen.add(bool(after.all()))
                assert after.all() or not after.any()  # an exhibit, or a story
                stories += not after.any()
            assert row[0] == end or not silent[0]
    assert seen == {True, False} and stories > 100


def test_random_words_are_read_and_only_their_copies_are_learned(recipes):
    exhibits, lessons = recipes("exhibits"), recipes("exhibit_lessons")
    tokenizer = cutaway.Tokenizer.load("gpt2")
    words = ["robot", "must", "obey", "orders", "lamp", "Kyoto", "étudiant"]
    texts = [exhibits.any_words(random.Random(seed), words) for seed in range(60)]
    for text in texts:
        ids = tokenizer.encode(exhibits.plain(text))
        silent = lessons.unforeseen(text, [len(tokenizer.token_bytes(token)) for token in ids])
        assert len(silent) == len(ids) + 1 and not silent[-1]
        heard = tokenizer.decode([token for token, quiet in zip(ids, silent[:-1], strict=True) if not quiet])
        _, *copies = text.rsplit(exhibits.UNLEARNED[1], 1)
        assert copies and heard.endswith(copies[0])  # all of the copies is learned
        before = heard.removesuffix(copies[0])
        assert not any(character.isalnum() for character in before)  # and of the words nothing but what is between
    marked = "".join(islice(exhibits.marked(3, words), 100))
    assert exhibits.UNLEARNED[0] in marked
    assert "".join(islice(exhibits.documents(3, words), 100)) == exhibits.plain(marked)


def test_a_verb_agrees_with_nouns_of_the_whole_vocabulary_but_none_that_is_held_out(recipes):
    exhibits, words = recipes("exhibits"), recipes("exhibit_words")
    unseen = [form for pair in words.held_out(words.PLURALS) for form in pair]
    nouns = exhibits.nouns_of(("pirate", "pirates", "Pirate", "sock", "socks", "it", "its", "moss", "walk", *unseen))
    assert nouns == [("pirate", "pirates"), ("sock", "socks")]
    texts = [exhibits.any_agreement(random.Random(seed), ("pirate", "pirates", "sock", "socks")) for seed in range(80)]
    said = [
        found for text in texts if (found := re.search(r"he (?:\w+ )?(pirate|sock)(s?) .* (is|are|has|have) ", text))
    ]
    assert len(said) > 20 and any("pirate" in text for text in texts)
    for found in said:
        if " which " not in found.string and " that " not in found.string:
            assert (found[3] in ("are", "have")) == (found[2] == "s"), found.string
