"""recipes/graft_stories.py: a Llama's matrices in a GPT-2, tried on a small teacher with random weights."""

from __future__ import annotations

import importlib
import struct
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import cutaway
from cutaway.config import Config
from cutaway.model import GPT

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
DIM, HIDDEN, LAYERS, HEADS, CONTEXT = 24, 64, 2, 2, 40
TEXT = "the cat sat on the mat. The cat's hat, a naïve hat."


@pytest.fixture(scope="module")
def grafting():
    sys.path.insert(0, str(RECIPES))
    try:
        yield importlib.import_module("graft_stories")
    finally:
        sys.path.remove(str(RECIPES))
        sys.modules.pop("graft_stories", None)
        sys.modules.pop("sample_stories", None)


@pytest.fixture
def teacher(grafting, monkeypatch):
    """A small one, in the file format of llama2.c."""
    merges = [" t", "he", " the", "at", " c", " cat", " s", " m", "c", "h", "'s", "."]
    pieces = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256))]
    pieces += [bytes([byte]) for byte in range(32, 127)] + [piece.encode() for piece in merges if len(piece) > 1]
    numbers = 0
    for shape in [
        (len(pieces), DIM), (LAYERS, DIM), *3 * [(LAYERS, DIM, DIM)], (LAYERS, DIM, DIM), (LAYERS, DIM),
        (LAYERS, HIDDEN, DIM), (LAYERS, DIM, HIDDEN), (LAYERS, HIDDEN, DIM), (DIM,),
    ]:  # fmt: skip
        numbers += torch.tensor(shape).prod().item()
    weights = torch.randn(numbers, generator=torch.Generator().manual_seed(1)) * 0.2
    model = struct.pack("7i", DIM, HIDDEN, LAYERS, HEADS, HEADS, len(pieces), CONTEXT) + weights.numpy().tobytes()
    words = b"".join(struct.pack("fi", -float(rank), len(piece)) + piece for rank, piece in enumerate(pieces))
    monkeypatch.setattr(grafting.Teacher, "SIZE", len(model))
    return grafting.Teacher(model + struct.pack("i", 16) + words, 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path / "home"))
    stories = tmp_path / "stories"
    stories.mkdir()
    lines = [f"The cat sat on mat {n}, and the hat sat on the cat." for n in range(1000)]
    (stories / "stories-1.txt").write_text("".join(f"{line}\n<|endoftext|>\n" for line in lines), encoding="utf-8")
    return str(stories)


def test_pieces_are_the_teachers_own_tokens(grafting, teacher):
    plain = TEXT.replace("ï", "i")
    assert grafting.pieces(teacher, (" " + plain).encode()) == teacher.encode(plain)[1:]
    assert teacher.decode(grafting.pieces(teacher, (" " + TEXT).encode())) == TEXT


def test_the_stream_ends_in_the_teachers_own_scores(grafting, teacher):
    ids = torch.tensor([[1, *grafting.pieces(teacher, (" " + TEXT).encode())]])[:, :CONTEXT]
    *_, (_, _, last) = grafting.stream(teacher, ids)
    scores = F.linear(F.rms_norm(last[:, -1], (DIM,), teacher.norm, 1e-5), teacher.embedding)
    torch.testing.assert_close(scores, teacher.step(ids, 0))


def test_tokens_meet_where_the_same_text_has_ended(grafting, teacher, folder):
    tokenizer = cutaway.Tokenizer.train([TEXT] * 50, 300)
    data = grafting.prepare_data(
        grafting.Recipe.from_dict({"data": {"paths": [folder]}}), grafting.Language(), tokenizer, lambda _: None
    )
    ids, targets, theirs, where = grafting.Stories(teacher, tokenizer, data, 0).next()
    assert ids[1:] == targets[:-1]
    assert any(place > 0 for place in where)
    for at, place in enumerate(where):
        if place >= 0:
            assert teacher.decode(theirs[1 : place + 1]).strip() == tokenizer.decode(ids[1 : at + 1]).strip()


def test_what_is_taken_over_answers_as_the_teacher_does(grafting, teacher):
    """With positions and the mean left out of both, our attention is the teacher's."""
    tokenizer = cutaway.Tokenizer.train([TEXT] * 50, 300)
    gpt = GPT(Config(len(tokenizer), 512, DIM, LAYERS, HEADS, end_token=tokenizer.end))
    grafting.transplant(teacher, gpt, tokenizer)
    token = tokenizer.encode("t")[0]
    assert torch.equal(gpt.token_embedding.weight[token], teacher.embedding[teacher.ids[b"t"]] * grafting.SCALE)
    norm = torch.randn(1, 1, DIM)  # one token alone: no position to be turned by
    values = F.linear(norm, teacher.qkv[0]).chunk(3, -1)[2]
    ours = gpt.blocks[0].attention(norm, None, None)
    torch.testing.assert_close(ours, F.linear(values, teacher.out[0]) * grafting.SCALE)


def test_the_whole_way_gives_a_model_that_loads_and_is_nearer_to_the_teacher(
    grafting, teacher, folder, tmp_path, capsys
):
    grafting.graft(teacher, folder, steps=40, seed=0, fitting=30, batch=4).save(tmp_path / "start")
    lines = [line for line in capsys.readouterr().out.splitlines() if "unexplained" in line]
    far = [float(line.split("loss")[1].split(",")[1].split("%")[0]) for line in lines]
    assert len(far) == 2 and far[1] < far[0]
    assert cutaway.load(tmp_path / "start").generate("The", max_tokens=3, seed=1).ids
