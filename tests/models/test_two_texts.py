"""Models of two texts in the one loop, the one decoder and the verbs: both kinds, on the same terms."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import cutaway
from cutaway import inspect, train
from cutaway.cli import run
from cutaway.errors import CutawayError
from cutaway.models.architecture import architecture
from cutaway.tasks import Translation, load_task
from cutaway.tasks.answer import translate
from cutaway.tasks.token_loss import IGNORED, token_loss
from cutaway.train import loop
from cutaway.train.optimizer import learning_rate
from cutaway.train.recipe import Recipe, Train

ANIMALS, DEEDS = ("fox", "dog", "owl", "bear", "cat", "hen"), ("runs", "sleeps", "eats", "sings", "jumps")
RECORDS = [{"source": f"the {who} {does}", "target": f"{does}o {who}a"} for who in ANIMALS for does in DEEDS]
KINDS: dict[str, dict[str, Any]] = {
    "transformer": {"kind": "transformer", "shape": {"norm": "pre"}, "heads": 2, "learning_rate": 0.01},
    "seq2seq": {"kind": "seq2seq", "shape": {"attention": "additive"}, "steps": 120, "learning_rate": 0.03},
}
FOLDERS = pytest.mark.parametrize("kind", KINDS)


def settings(kind: str, cache, **more: Any) -> dict[str, Any]:
    return {
        "task": {"name": "translation", "smoothing": 0.1}, "layers": 1, "width": 32, "steps": 60, "batch": 30,
        "seed": 1, "dropout": 0.0, "held_out": 0, "cache": str(cache), "sample_every": 30, "checkpoint_every": 20,
        **KINDS[kind], **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One translator of each kind, trained to know thirty sentences."""
    place = tmp_path_factory.mktemp("translators")
    for kind in KINDS:
        train.run(place / kind, records=RECORDS * 4, **settings(kind, place / "cache"))
    return place


@FOLDERS
def test_it_learns_in_the_one_loop_and_translates_alike_however_it_is_asked(folders, kind, capsys, tmp_path):
    folder = folders / kind
    lm, task, sources = cutaway.load(folder), load_task(folder), [one["source"] for one in RECORDS]
    assert architecture(lm.config.kind).kind == kind
    assert lm.config.start == lm.tokenizer.specials["<|translate|>"]
    greedy = [one.text for one in translate(lm, task, sources, beams=1)]
    assert sum(text == one["target"] for text, one in zip(greedy, RECORDS, strict=True)) >= 27
    assert [one.text for one in translate(lm, task, sources, beams=1, batch=1)] == greedy  # padded = alone
    assert lm.generate(sources[3], top_k=1).text == greedy[3]
    assert "".join(lm.stream(sources[3], top_k=1)) == greedy[3]
    [best, second] = lm.generate(sources[3], beams=4, best=2)
    assert best.score > second.score
    target = lm.tokenizer.encode(best.text)
    scored = lm.score([*lm.pair(sources[3]), *target, lm.config.end])
    assert [one.id for one in scored.tokens] == [*target, lm.config.end]
    assert scored.logprob / len(scored.tokens) == pytest.approx(best.score, abs=1e-4)
    assert lm.predict(sources[3], k=1)[0].id == lm.generate(sources[3], top_k=1).ids[0]
    assert lm.generate(sources[3], seed=4).text == lm.generate(sources[3], seed=4).text
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    assert {"prompt", "text", "reference"} <= samples[-1].keys()

    texts = tmp_path / "test.jsonl"
    texts.write_text("".join(json.dumps(record) + "\n" for record in RECORDS[:8]))
    assert run(["evaluate", "--on", str(texts), "--model", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 8  # BLEU, which sentences of two words have none of
    assert run(["parameters", "--model", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == sum(one.numel() for one in lm.model.parameters())


@FOLDERS
def test_a_training_that_was_stopped_ends_with_the_same_bytes(folders, kind, tmp_path):
    given = settings(kind, folders / "cache", steps=12, checkpoint_every=4, sample_every=0, precision="float32")
    train.run(tmp_path / "whole", records=RECORDS * 4, **given)
    asked = iter([False] * 5 + [True])
    assert train.run(tmp_path / "parts", records=RECORDS * 4, stop=lambda: next(asked), **given).step == 6
    assert train.run(tmp_path / "parts", resume=True).reason == "done"
    for name in ("model.safetensors", "task.json", "config.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@FOLDERS
def test_training_goes_on_from_a_folder(folders, kind, tmp_path):
    report = train.run(
        tmp_path / "more", records=RECORDS * 4, from_=str(folders / kind), steps=2, held_out=0,
        cache=str(tmp_path / "cache"), sample_every=0,
    )  # fmt: skip
    assert report.loss < 1.7
    with pytest.raises(CutawayError, match=r"model\.kind = gpt2, and .* is a "):
        train.run(tmp_path / "not", records=RECORDS, from_=str(folders / kind), kind="gpt2", steps=2)


@FOLDERS
def test_a_trace_has_the_names_of_the_map_and_a_value_put_in_changes_what_follows(folders, kind):
    lm = cutaway.load(folders / kind)
    ids = lm.pair("the fox runs", "runso")
    name = {"transformer": "decoder.blocks.0.cross.weights", "seq2seq": "decoder.attention.weights"}[kind]
    weights = lm.trace(ids, keep=name)[name]
    assert weights.shape[-1] == len(lm.tokenizer.encode("the fox runs"))
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    other = lm.trace(ids, keep="logits", replace={name: lambda value: torch.ones_like(value) / value.shape[-1]})
    assert not torch.equal(other["logits"], lm.trace(ids, keep="logits")["logits"])
    [one, two] = lm.traces(["the fox runs", "the owl"], keep="logits")
    torch.testing.assert_close(one["logits"], lm.trace("the fox runs", keep="logits")["logits"], atol=1e-5, rtol=0)
    assert two["logits"].shape[0] == 1  # after the start of the target


@FOLDERS
def test_what_the_decoder_looks_at_is_a_row_for_each_token_of_the_target(folders, kind, capsys):
    lm = cutaway.load(folders / kind)
    found = inspect.alignment(lm, "the fox runs", "runso foxa")
    assert [one.id for one in found.source] == lm.tokenizer.encode("the fox runs")
    assert [one.id for one in found.target] == lm.tokenizer.encode("runso foxa")
    assert found.weights.shape == (len(found.target), len(found.source))
    name = {"transformer": "decoder.blocks.0.cross.weights", "seq2seq": "decoder.attention.weights"}[kind]
    ids = [*lm.pair("the fox runs"), found.target[0].id]  # as it was when the second token was still to come
    row = lm.trace(ids, keep=name)[name][..., -1, :]
    torch.testing.assert_close(torch.from_numpy(found.weights[1]), row.mean(0) if row.ndim == 2 else row)
    if kind == "transformer":
        one = inspect.alignment(lm, "the fox runs", "runso foxa", head=1)
        torch.testing.assert_close(torch.from_numpy(one.weights[1]), row[1])
        with pytest.raises(CutawayError, match="There is no layer 1"):
            inspect.alignment(lm, "the fox runs", "runso", layer=1)
    assert run(["translate", "the fox runs", "--model", str(folders / kind), "--alignment", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["alignment"]["weights"]) == len(told["alignment"]["target"])
    assert sum(told["alignment"]["weights"][0]) == pytest.approx(1, abs=1e-4)
    assert run(["translate", "the fox runs", "--model", str(folders / kind), "--alignment"]) == 0
    shown = capsys.readouterr().out
    assert "looked at" in shown
    assert shown.splitlines()[-1] == told["text"]
    with pytest.raises(CutawayError, match="There is no target"):
        inspect.alignment(lm, "the fox runs", "")
    with pytest.raises(CutawayError, match="which reads one text"):
        inspect.alignment(cutaway.load("builtin"), "a", "b")


def test_without_attention_there_is_nothing_to_align(folders):
    lm = cutaway.load(folders / "seq2seq")
    shape = architecture("seq2seq").Shape(lm.config.vocabulary, width=8, attention="none", start_token=3)
    plain = cutaway.LanguageModel(architecture("seq2seq").build(shape), lm.tokenizer, "plain")
    with pytest.raises(CutawayError, match="has no attention"):
        inspect.alignment(plain, "the fox runs", "runso")


@FOLDERS
def test_mistakes_are_told_in_words(folders, kind, tmp_path, capsys):
    folder = folders / kind
    lm = cutaway.load(folder)
    assert lm.generate([]) == []
    assert list(translate(lm, load_task(folder), [])) == []
    with pytest.raises(CutawayError, match="The source is empty"):
        lm.generate("")
    with pytest.raises(CutawayError, match="no start token"):
        lm.generate([1, 2, 3])
    with pytest.raises(CutawayError, match="too long to be translated"):
        list(translate(lm, load_task(folder), ["fox " * 60]))
    for verb in ("summarize", "classify", "compose"):
        assert run([verb, *(["the fox"] if verb != "compose" else []), "--model", str(folder)]) == 2
    assert run(["inspect", "lens", "the fox", "--model", str(folder)]) == 2
    assert "shows models of one text" in capsys.readouterr().err
    with pytest.raises(CutawayError, match="reads one text and writes another"):
        inspect.run(lm, "the fox")
    assert run(["predict", "", "--model", str(folder)]) == 2
    assert "The source is empty" in capsys.readouterr().err
    with pytest.raises(CutawayError, match="reads one text, not two"):
        cutaway.load("builtin").pair("a", "b")
    odd = next(translate(lm, load_task(folder), ["ЖЖ 漢字 \ud83d"]))  # bytes have tokens, whatever they spell
    assert odd.source == "ЖЖ 漢字 \ud83d"


def test_a_recipe_names_the_kind_and_what_is_wrong_with_its_shape(tmp_path):
    known = {"records": RECORDS, "task": "translation", "steps": 2, "layers": 1, "width": 16, "held_out": 0}
    for given, says in (
        ({"kind": "transfomer"}, "transformer"),
        ({"kind": "seq2seq", "shape": {"cel": "gru"}}, r"model.shape has 'cel', .*'cell'"),
        ({"kind": "seq2seq", "shape": {"cell": "rnn"}}, "gru, lstm"),
        ({"kind": "seq2seq", "task": "language"}, "cannot learn language"),
        ({"kind": "seq2seq", "task": {"name": "translation", "back": "<|back|>"}}, "in one direction"),
        ({"kind": "transformer", "shape": "pre"}, "must be a table"),
    ):
        with pytest.raises(CutawayError, match=says):
            task = given.get("task", "translation")
            records = [{"text": "the fox runs " * 40}] if task == "language" else RECORDS
            train.run(tmp_path / "none", cache=str(tmp_path / "cache"), **(known | given | {"records": records}))
    recipe = Recipe.from_dict({"model": {"kind": "seq2seq", "shape": {"cell": "lstm", "bidirectional": True}}})
    (tmp_path / "recipe.toml").write_text(recipe.to_toml())
    assert Recipe.load(tmp_path / "recipe.toml").model == recipe.model


@FOLDERS
def test_with_a_time_what_is_left_out_of_its_shape_is_chosen(kind, tmp_path):
    clock = iter(range(10_000))
    recipe = Recipe.from_dict({
        "model": {"kind": kind, **({"width": 32} if kind == "seq2seq" else {})},
        "task": {"name": "translation"}, "train": {"time": "40s", "sample_every": 0},
        "data": {"held_out": 0, "cache": str(tmp_path / "cache")},
    })  # fmt: skip
    report = loop.train(recipe, tmp_path / "chosen", records=RECORDS * 4, clock=lambda: float(next(clock)))
    assert report.step > 1
    assert cutaway.load(tmp_path / "chosen").config.kind == kind
    for target in ("gguf", "onnx", "cutaway-int8"):
        assert run(["convert", str(tmp_path / "chosen"), "--to", target, "-o", str(tmp_path / "no")]) == 2


def test_the_papers_schedule():
    width, warm_up = 512, 4_000
    given = Train(schedule="inverse_sqrt", warm_up=warm_up, learning_rate=(width * warm_up) ** -0.5, steps=100_000)
    for step in (1, 100, 4_000, 4_001, 50_000):
        paper = width**-0.5 * min(step**-0.5, step * warm_up**-1.5)
        assert learning_rate(step, given) == pytest.approx(paper)


def test_label_smoothing_is_that_of_the_paper_with_a_matrix_and_without_and_only_in_training():
    shape = architecture("transformer").Shape(vocabulary=20, width=8, layers=1, heads=2)
    torch.manual_seed(0)
    model = architecture("transformer").build(shape)
    inputs = torch.tensor([[1, 2, shape.start, 4, 5]])
    targets = torch.tensor([[IGNORED, IGNORED, 4, 5, shape.end]])
    chances = model(inputs)[0, 2:].log_softmax(-1)
    plain = -chances[range(3), targets[0, 2:]]
    expected = (0.9 * plain - 0.1 * chances.mean(-1)).sum()
    assert token_loss(model, inputs, targets, 1.0, 0.1).item() == pytest.approx(expected.item(), rel=1e-5)
    assert F.cross_entropy(model(inputs)[0], targets[0], reduction="sum").item() == pytest.approx(
        token_loss(model, inputs, targets).item(), rel=1e-5
    )
    task, batch = Translation(smoothing=0.1), {"inputs": inputs, "targets": targets}
    assert task.loss(model.train(), batch).sum.item() == pytest.approx(expected.item(), rel=1e-5)
    assert task.loss(model.eval(), batch).sum.item() == pytest.approx(plain.sum().item(), rel=1e-5)
    assert math.isfinite(expected.item())
    with pytest.raises(CutawayError, match="below 1"):
        Translation(smoothing=1.0)
