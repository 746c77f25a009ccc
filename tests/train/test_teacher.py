"""Distillation: the three losses by their formulas, a student that learns, what cannot be compared, and resuming."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cutaway
from cutaway import train
from cutaway.errors import CutawayError
from cutaway.models.bert.model import Bert
from cutaway.models.bert.shape import Config
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config as Shape
from cutaway.tasks import Language, MaskedWords
from cutaway.text.wordpiece import WordPiece
from cutaway.train import recipe
from cutaway.train.teacher import Teacher, spread, start_as

RECORDS = [
    {"text": f"The {who} sat on the {what}. It was a {how} day. Then the {who} went home to sleep."}
    for who in ("fox", "dog", "owl") for what in ("mat", "log") for how in ("sunny", "rainy")
] * 2  # fmt: skip


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A teacher that knows the sentences: its folder."""
    folder = tmp_path_factory.mktemp("teacher")
    train.run(
        folder / "bert", records=RECORDS, task={"name": "masked words", "next_sentence": False}, steps=60, batch=16,
        held_out=4, cache=str(folder / "cache"), learning_rate=1e-2, layers=3, width=32, heads=2, vocabulary=320,
        context=32, dropout=0.0, precision="float32",
    )  # fmt: skip
    return folder / "bert"


@pytest.fixture
def common(tmp_path):
    return {
        "records": RECORDS, "held_out": 4, "cache": str(tmp_path / "cache"), "batch": 16, "heads": 2,
        "task": {"name": "masked words", "next_sentence": False}, "learning_rate": 1e-2, "precision": "float32",
    }  # fmt: skip


def pair(width: int = 16, head: str = "words"):
    torch.manual_seed(0)
    shape = Config(60, 32, 16, 2, 2, head=head, dropout=0.0)
    teacher, student = Bert(shape), Bert(shape.but(layers=1, width=width))
    for model in (teacher, student):  # far from the even chances of new weights
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(std=0.4)
    return teacher, student


def batch_of(task):
    rows = [
        {"ids": np.array([2, *np.random.default_rng(n).integers(5, 60, n), 3]), "second": np.array([4]),
         "marks": np.array([2, 3, 4, 60])}
        for n in (9, 14, 6)
    ]  # fmt: skip
    torch.manual_seed(1)
    return task.collate(rows)


def literal(student, teacher, batch, temperature=2.0):
    """The three losses as DistilBERT's training has them: transformers, research_projects/distillation/distiller.py."""
    outputs = []
    for model in (student, teacher):
        hidden = model.read(batch["inputs"], batch["segments"], batch["mask"])
        outputs.append((model.score(hidden), hidden))
    (s_logits, s_hidden), (t_logits, t_hidden) = outputs
    mask = batch["mask"].unsqueeze(-1).expand_as(s_logits)
    s_slct = torch.masked_select(s_logits, mask).view(-1, s_logits.size(-1))
    t_slct = torch.masked_select(t_logits, mask).view(-1, s_logits.size(-1))
    soft = (
        nn.KLDivLoss(reduction="batchmean")(
            F.log_softmax(s_slct / temperature, dim=-1), F.softmax(t_slct / temperature, dim=-1)
        )
        * temperature**2
    )
    hard = nn.CrossEntropyLoss(ignore_index=-100)(s_logits.view(-1, s_logits.size(-1)), batch["targets"].view(-1))
    mask = batch["mask"].unsqueeze(-1).expand_as(s_hidden)
    s_slct = torch.masked_select(s_hidden, mask).view(-1, s_hidden.size(-1))
    t_slct = torch.masked_select(t_hidden, mask).view(-1, s_hidden.size(-1))
    target = s_slct.new(s_slct.size(0)).fill_(1)
    cosine = nn.CosineEmbeddingLoss(reduction="mean")(s_slct, t_slct, target)
    return soft, hard, cosine


@pytest.mark.parametrize("pieces", [False, True], ids=["at once", "in pieces"])
def test_the_loss_and_its_gradient_are_those_of_distilbert(monkeypatch, pieces):
    if pieces:
        monkeypatch.setattr("cutaway.train.teacher.piece_rows", lambda rows, entries: 7)
    teacher, student = pair()
    task = MaskedWords(limit=32, next_sentence=False)
    batch = batch_of(task)
    soft, hard, cosine = literal(student, teacher, batch.tensors)
    wanted = 5.0 * soft + 2.0 * hard + 1.0 * cosine
    wanted.backward()
    right = {name: one.grad.clone() for name, one in student.named_parameters()}
    student.zero_grad()
    teacher.zero_grad()
    found = Teacher(teacher, recipe.Teacher("bert")).loss(task, student, batch.tensors, 1 / batch.count)
    assert found.sum.item() == pytest.approx(wanted.item(), rel=1e-5)
    found.sum.backward()
    for name, one in student.named_parameters():
        assert torch.allclose(one.grad, right[name], atol=1e-5), name
    assert all(one.grad is None for one in teacher.parameters())
    for weights in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 3.0, 2.0)):
        settings = recipe.Teacher("bert", temperature=4.0, soft=weights[0], hard=weights[1], cosine=weights[2])
        one = Teacher(teacher, settings).loss(task, student, batch.tensors, 1 / batch.count).sum
        parts = literal(student, teacher, batch.tensors, 4.0)
        assert float(one) == pytest.approx(float(sum(w * p for w, p in zip(weights, parts, strict=True))), rel=1e-5)


def test_what_writes_is_compared_where_its_loss_counts():
    torch.manual_seed(0)
    teacher, student = (GPT(Shape(60, 16, 16, layers, 2)) for layers in (2, 1))
    batch = Language().collate([{"ids": np.arange(12)}, {"ids": np.arange(5, 12)}])
    found = Teacher(teacher, recipe.Teacher("gpt", hard=1, soft=3)).loss(
        Language(), student, batch.tensors, 1 / batch.count
    )
    counts = batch.tensors["targets"] != -100
    said, right = (model(batch.tensors["inputs"])[counts] for model in (student, teacher))
    mine, theirs = (model.read(batch.tensors["inputs"])[counts] for model in (student, teacher))
    soft = ((right / 2).softmax(-1) * ((right / 2).log_softmax(-1) - (said / 2).log_softmax(-1))).sum(-1).mean() * 4
    hard = F.cross_entropy(said, batch.tensors["targets"][counts])
    cosine = (1 - (mine * theirs).sum(-1) / mine.norm(dim=-1) / theirs.norm(dim=-1)).mean()
    assert found.sum.item() == pytest.approx(float(3 * soft + hard + cosine), rel=1e-5)


def test_a_student_starts_with_every_second_block_as_distilbert_does():
    assert spread(12, 6) == [0, 2, 4, 7, 9, 11] and spread(4, 1) == [0] and spread(3, 3) == [0, 1, 2]
    torch.manual_seed(0)
    teacher = Bert(Config(60, 32, 16, 4, 2, head="words"))
    student = Bert(Config(60, 24, 16, 2, 2, head="words", segments=0, dialect="distilbert"))
    start_as(student, teacher)
    given, own = teacher.state_dict(), student.state_dict()
    assert torch.equal(own["blocks.0.mlp.widen.weight"], given["blocks.0.mlp.widen.weight"])
    assert torch.equal(own["blocks.1.mlp.widen.weight"], given["blocks.3.mlp.widen.weight"])
    assert torch.equal(own["position_embedding.weight"], given["position_embedding.weight"][:24])
    assert torch.equal(own["output.bias"], given["output.bias"])
    with pytest.raises(CutawayError, match=r"the shape \[32, 16\], and the teacher's \[64, 16\]"):
        start_as(Bert(Config(60, 24, 16, 2, 2, mlp_width=32, head="words")), teacher)


def test_a_student_learns_from_its_teacher_and_is_resumed_to_the_bit(taught, tmp_path, common):
    lesson = {"from": taught, "start": True}
    more = common | {"teacher": lesson, "steps": 16, "checkpoint_every": 8, "evaluate_every": 4, "model": {
        "shape": {"segments": 0, "dialect": "distilbert"}}}  # fmt: skip
    report = train.run(tmp_path / "student", **more)
    lm = cutaway.load(tmp_path / "student")
    assert (lm.config.layers, lm.config.width, lm.config.dialect) == (2, 32, "distilbert")
    assert lm.tokenizer.vocabulary == cutaway.load(taught).tokenizer.vocabulary
    assert lm.fill("The fox sat on [MASK] mat.", 1)[0].predictions[0].text == "the"
    shape = {"layers": 2, "width": 32, "tokenizer": str(taught), "context": 32, "seed": 0}
    alone = train.run(tmp_path / "alone", **common, **shape, steps=16)
    assert report.held_loss < alone.held_loss - 0.3  # held-out data is measured alike: by the task's own loss
    written = (tmp_path / "student" / "recipe.toml").read_text()
    assert "[teacher]" in written and "weights = " in written
    assert "[teacher]" not in (tmp_path / "alone" / "recipe.toml").read_text()

    stopped = iter(range(100))
    train.run(tmp_path / "again", **more, stop=lambda: next(stopped) >= 9)
    train.run(tmp_path / "again", resume=True)
    one, other = (tmp_path / name / "model.safetensors" for name in ("student", "again"))
    assert one.read_bytes() == other.read_bytes()

    stopped = iter(range(100))
    train.run(tmp_path / "other", **more, stop=lambda: next(stopped) >= 9)
    with pytest.raises(CutawayError, match=r"has other weights \(\w+\) than when this training began"):
        train.run(tmp_path / "other", resume=True, teacher={"from": tmp_path / "alone"})
    shutil.copytree(taught, tmp_path / "moved")
    train.run(tmp_path / "other", resume=True, teacher={"from": tmp_path / "moved"})
    assert (tmp_path / "other" / "model.safetensors").read_bytes() == one.read_bytes()


def test_a_teacher_that_cannot_be_compared_is_refused(taught, tmp_path, common):
    def refused(match, records=RECORDS, **more):
        with pytest.raises(CutawayError, match=match):
            train.run(tmp_path / "no", **{**common, "steps": 2, "records": records, **more})
        assert not (tmp_path / "no").exists()

    other = WordPiece.train(["Quite another text, about other things."] * 9, size=120)
    model = Bert(Config(len(other), 32, 32, 2, 2, head="words", end_token=other.end))
    cutaway.LanguageModel(model, other).save(tmp_path / "other")
    refused(
        r"other has another vocabulary \(\d+ entries, of which",
        teacher={"from": tmp_path / "other"},
        tokenizer=str(taught),
    )
    refused(
        "compares vectors of equal width, and the teacher .* has 32 numbers where the student has 16: set",
        teacher={"from": taught}, width=16, layers=1,
    )  # fmt: skip
    refused("a student cannot start with more blocks", teacher={"from": taught, "start": True}, layers=5)
    refused("width = 16, and the teacher has 32", teacher={"from": taught, "start": True}, width=16)
    refused(r"or from its teacher \(teacher.start\)", teacher={"from": taught, "start": True}, from_=taught)
    refused("reads 32 tokens, and texts of up to 64", teacher={"from": taught}, context=64, layers=1)
    bare = cutaway.load(taught)
    from cutaway.models.bert.heads import with_head

    cutaway.LanguageModel(with_head(bare.model, ""), bare.tokenizer).save(tmp_path / "bare")
    refused("has no head that scores words", teacher={"from": tmp_path / "bare"})
    refused("cannot learn classification from a teacher", task="classification", teacher={"from": taught},
            records=[{"text": "a", "label": "x"}, {"text": "b", "label": "y"}] * 4)  # fmt: skip
    refused("is a BERT: a student learns language from a GPT-2", task="language", teacher={"from": taught})
    for wrong, said in (({"temperature": 0}, "a number above 0"), ({"soft": -1}, "teacher.soft must be"),
                        ({"soft": 0, "hard": 0, "cosine": 0}, "nothing would be learned"),
                        ({"form": "x"}, "Did you mean 'from'")):  # fmt: skip
        refused(said, teacher={"from": taught, **wrong})
