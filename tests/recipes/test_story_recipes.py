"""recipes/graft_stories.py and distil_stories.py: a GPT-2 learns from a Llama; here a small one with random weights."""

from __future__ import annotations

import importlib
import struct
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import cutaway
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
DIM, HIDDEN, LAYERS, HEADS, CONTEXT = 24, 64, 2, 2, 40
TEXT = "the cat sat on the mat. The cat's hat, a naïve hat."


@pytest.fixture(scope="module")
def distilling():
    sys.path.insert(0, str(RECIPES))
    try:
        yield importlib.import_module("distil_stories")
    finally:
        sys.path.remove(str(RECIPES))
        for name in ("distil_stories", "graft_stories", "sample_stories"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def grafting(distilling):
    return sys.modules["graft_stories"]


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
    lm = cutaway.load(tmp_path / "start")
    assert len(lm.generate("The", max_tokens=3, seed=1, logit_bias={lm.tokenizer.end: -1e9}).ids) == 3


@pytest.fixture
def windows(distilling, grafting, teacher, folder):
    tokenizer = cutaway.Tokenizer.train([TEXT] * 50, 300, ("<|endoftext|>",))
    recipe = grafting.Recipe.from_dict({"data": {"paths": [folder]}})
    data = grafting.prepare_data(recipe, grafting.Language(), tokenizer, lambda _: None)
    return distilling.Windows(teacher, tokenizer, data, 128, 0, 1)


def test_a_lesson_meets_the_teacher_where_the_same_text_has_ended(windows, teacher):
    lesson, tokenizer = windows.lesson(6), windows.stories.tokenizer
    assert torch.equal(lesson.inputs[:, 1:], lesson.targets[:, :-1])
    assert len(lesson.where) == len(lesson.at) == len(lesson.told) > 100
    assert lesson.told.any() and not lesson.told.all()
    flat, targets = lesson.inputs.flatten().tolist(), lesson.targets.flatten().tolist()
    meetings = torch.stack([lesson.where, lesson.text, lesson.at, lesson.told.long()], 1)
    for place, text, at, told in meetings.tolist():
        row = place // 128 * 128
        ends = [i for i in range(row, place) if flat[i] == windows.end]
        ours = tokenizer.decode(flat[(ends[-1] + 1 if ends else row) : place + 1])
        theirs = lesson.texts[text]
        assert teacher.decode(theirs[1 : at + 1]).strip() == ours.strip()
        if told:
            after = theirs[at + 1] if at + 1 < len(theirs) else 1
            assert windows.firsts[windows.group[targets[place]]] == after


def test_some_windows_begin_with_a_story_and_no_end_token(windows):
    begins = [windows.window() for _ in range(60)]
    text = windows.stories.tokenizer.decode
    assert any(text(window).startswith("The cat sat on mat") for window in begins)
    assert all(len(window) == 129 for window in begins)


def test_a_second_lesson_begins_after_the_stories_of_the_first(distilling, windows):
    stories = windows.stories
    later = distilling.Windows(stories.teacher, stories.tokenizer, stories.data, 128, skip=5)
    fifth = stories.data.train[stories.order[5]].tolist()
    assert later.window(may_jump=False)[: len(fifth)] == fifth[:129]


def test_chances_are_those_the_stories_were_chosen_by(distilling):
    torch.manual_seed(0)
    vectors, outputs = torch.randn(4, DIM), torch.randn(300, DIM)
    found = distilling.chances(vectors, outputs)
    for row, vector in zip(found, vectors, strict=True):
        scores, order = (outputs @ vector / distilling.WARMTH).topk(distilling.LIKELIEST)
        likely = scores.softmax(0)
        kept = likely * (likely.cumsum(0) - likely < distilling.NUCLEUS)
        torch.testing.assert_close(row[order], kept / kept.sum())
        assert row.sum().item() == pytest.approx(1)


def test_the_words_gradients_are_those_of_the_loss_that_is_meant(distilling, windows, teacher):
    torch.manual_seed(2)
    size, outputs = len(windows.group), teacher.embedding[torch.from_numpy(windows.firsts)]
    hidden, matrix = ((0.5 * torch.randn(count, DIM)).requires_grad_() for count in (30, size))
    targets, asked, told = torch.randint(size, (30,)), torch.arange(5, 25), torch.randn(20, DIM)
    loss = distilling.Words.apply(hidden, matrix, targets, asked, told, windows, outputs)
    found = torch.autograd.grad(loss, [hidden, matrix])

    logs = (hidden @ matrix.T).log_softmax(1)
    words = -logs.gather(1, targets[:, None])[:, 0]
    assert loss.item() == pytest.approx(words.mean().item(), abs=1e-5)
    groups = torch.zeros(30, len(windows.firsts)).index_add(1, windows.group, logs.exp()).log()
    came = groups.gather(1, windows.group[targets][:, None])[:, 0]
    taught = -(distilling.chances(told, outputs) * groups[asked]).sum(1) + (words + came)[asked]
    a = distilling.TAUGHT
    meant = (words.index_add(0, asked, -a * words[asked]).sum() + a * taught.sum()) / 30
    for one, other in zip(found, torch.autograd.grad(meant, [hidden, matrix]), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_the_teacher_is_asked_where_it_can_tell(distilling, windows, teacher):
    lesson = windows.lesson(6)
    vectors = distilling.ask(teacher, lesson)
    told = lesson.told.nonzero()[:, 0]
    for number in range(0, len(told), 7):
        text, at = lesson.texts[lesson.text[told[number]]], int(lesson.at[told[number]])
        scores = teacher.step(torch.tensor([text[: at + 1]]), 0)[0]
        torch.testing.assert_close(teacher.embedding @ vectors[number], scores, atol=1e-4, rtol=1e-4)


def test_distilling_teaches_what_the_teacher_would_say(distilling, grafting, teacher, folder, capsys, monkeypatch):
    monkeypatch.setattr(distilling, "OPENING", 2)  # these stories are short,
    monkeypatch.setattr(distilling, "RATE", 5e-3)  # and so is the training
    lm = grafting.graft(teacher, folder, steps=1, seed=0, fitting=5, batch=4)

    def apart():
        """How far our chances are from the teacher's, in nats."""
        recipe = distilling.Recipe.from_dict({"data": {"paths": [folder], "held_out": 400}})
        data = distilling.prepare_data(recipe, distilling.Language(), lm.tokenizer, lambda _: None)
        here = distilling.Windows(teacher, lm.tokenizer, data, 128, 0, 1)
        lesson = here.lesson(4)
        theirs = distilling.chances(distilling.ask(teacher, lesson), teacher.embedding[torch.from_numpy(here.firsts)])
        with torch.inference_mode():
            ours = lm.model(lesson.inputs).flatten(0, 1)[lesson.where[lesson.told]].softmax(1)
        grouped = torch.zeros_like(theirs).index_add_(1, here.group, ours)
        return float((theirs * (theirs.clamp(1e-9).log() - grouped.clamp(1e-9).log())).sum(1).mean())

    before = apart()
    distilling.distil(teacher, lm, folder, steps=40, rows=2)
    assert len([line for line in capsys.readouterr().out.splitlines() if "min left" in line]) >= 2
    assert apart() < before - 0.1


def test_processes_go_on_with_the_mean_of_their_gradients(distilling, monkeypatch):
    one, other = torch.nn.Parameter(torch.zeros(2, 3)), torch.nn.Parameter(torch.zeros(4))
    one.grad, other.grad = torch.ones(2, 3), torch.arange(4.0)
    monkeypatch.setattr(distilling.together, "all_reduce", lambda flat: flat.add_(torch.arange(10.0)))
    monkeypatch.setattr(distilling.together, "get_world_size", lambda: 2)
    distilling.share_gradients([one, other])
    assert torch.equal(one.grad, (torch.ones(6) + torch.arange(6.0)).view(2, 3) / 2)
    assert torch.equal(other.grad, (torch.arange(4.0) + torch.arange(6.0, 10)) / 2)


def test_the_rate_rises_and_falls(distilling):
    rates = [distilling.rate(step, 1000) / distilling.RATE for step in (10, 500, 1000)]
    assert rates == pytest.approx([0.5 * (1 - 0.0098), 0.51, 0.02])
