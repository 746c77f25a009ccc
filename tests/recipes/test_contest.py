"""benchmarks/contest.py in small: four machines, two seeds, made pairs, a few steps."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.inspect.contest import KINDS
from cutaway.tasks.scores import bleu

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "contest.py"
SMALL = (
    "model.layers=1", "model.width=16", "model.context=48", "model.vocabulary=300", "train.batch=8", "train.at_once=8",
    "train.warm_up=1", "data.held_out=4", "train.precision=float32", "train.threads=1",
)  # fmt: skip
HEADS = "model.heads=2"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("contest", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["contest"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["contest"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("multi30k")
    words = {"fox": "renard", "dog": "chien", "cat": "chat"}
    doing = {"runs": "court", "sleeps": "dort", "eats": "mange"}
    pairs = [(f"the {a} {b}", f"le {c} {d}") for a, c in words.items() for b, d in doing.items()] * 6
    for name, some in (("train", pairs), ("test_2016_flickr", pairs[:6])):
        for language, side in (("en", 0), ("fr", 1)):
            (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in some))
    return folder


@pytest.fixture(scope="module")
def asked(script, data):
    return script.Contest(str(data), "fr", tuple(script.KINDS), 4, (0, 1), 0, 1, (*SMALL, HEADS))


@pytest.fixture(scope="module")
def done(script, asked, tmp_path_factory):
    pytest.importorskip("sacrebleu", reason="sacrebleu is not installed")
    output = tmp_path_factory.mktemp("out") / "contest"
    return output, script.contest(asked, output)


def test_all_four_learn_from_the_same_pairs_and_are_asked_the_same(script, done):
    output, results = done
    assert [one["kind"] for one in results["rows"]] == ["plain", "attention", "transformer", "gpt2"]
    assert len(results["runs"]) == 8 and all(len(one["answers"]) == 6 for one in results["runs"])
    recipes = {kind: (output / "runs" / f"{kind}-seed-0" / "recipe.toml").read_text() for kind in script.KINDS}
    assert all("steps = 4" in one and "batch = 8" in one for one in recipes.values())
    first = (output / "runs" / "plain-seed-0" / "tokenizer.json").read_bytes()
    for one in results["runs"]:
        assert (output / "runs" / f"{one['kind']}-seed-{one['seed']}" / "tokenizer.json").read_bytes() == first
        assert one["seconds"] > 0
    assert len({one["tokens"] for one in results["rows"]}) == 1  # the budget
    assert all(one["interval"][0] <= one["interval"][1] for one in results["rows"])
    made = (output / "contest.md").read_text().splitlines()
    assert len(made) == 2 + 4 and made[2].startswith("| recurrent | ")
    drawn = ElementTree.parse(output / "contest.svg").getroot()
    assert len(drawn.findall("{*}rect")) == 4 and len(drawn.findall("{*}circle")) == 8
    assert json.loads((output / "results.json").read_text())["rows"][0]["bleu"] == results["rows"][0]["bleu"]


def test_what_is_done_is_kept_and_another_contest_is_refused(script, asked, done, monkeypatch):
    output, results = done
    monkeypatch.setattr(script, "train", lambda *given, **more: pytest.fail("it was trained again"))
    assert script.contest(asked, output)["rows"] == results["rows"]
    with pytest.raises(CutawayError, match="holds another contest: steps was 4"):
        script.contest(script.Contest(**{**vars(asked), "steps": 5}), output)


def test_the_numbers_are_shipped_for_the_explorer_without_asking_anybody_again(
    script, asked, done, tmp_path, monkeypatch, capsys
):
    output, results = done
    monkeypatch.setattr(script, "train", lambda *given, **more: pytest.fail("it was trained again"))
    monkeypatch.setattr(script, "RESULTS", tmp_path / "contest" / "results.json")
    options = ["--data", asked.data, "-o", str(output), "--steps", "4", "--seeds", "0", "1", "--beams", "1", "--ship"]
    changes = [part for one in asked.changes for part in ("--set", one)]
    monkeypatch.setattr(sys, "argv", ["contest.py", *options, *changes])
    script.main()
    assert "| recurrent |" in capsys.readouterr().out
    told = json.loads((tmp_path / "contest" / "results.json").read_text())
    assert told["target"] == "fr" and told["steps"] == 4 and told["test"] == 6 and told["seeds"] == [0, 1]
    for row, whole in zip(told["rows"], results["rows"], strict=True):
        assert row["bleu"] == whole["bleu"] and row["interval"] == list(whole["interval"])
        assert row["kind"] in KINDS and "answers" not in row


def test_what_was_stopped_goes_on_to_the_same_end(script, asked, done, tmp_path, monkeypatch):
    output, _ = done
    real, left = script.train, iter(range(1_000))
    monkeypatch.setattr(script, "train", lambda *given, **more: real(*given, **more, stop=lambda: next(left) >= 1))
    with pytest.raises(script.Stopped):
        script.run(asked, tmp_path, "attention", 0)
    monkeypatch.setattr(script, "train", real)
    found = script.run(asked, tmp_path, "attention", 0)
    place = Path("runs") / "attention-seed-0" / "model.safetensors"
    assert (tmp_path / place).read_bytes() == (output / place).read_bytes() and found["seconds"] > 0


def test_bleu_is_that_of_sacrebleu_and_its_interval_holds_it(script):
    pytest.importorskip("sacrebleu", reason="sacrebleu is not installed")
    references = [f"le chien {n} court dans le grand jardin vert" for n in range(40)]
    answers = [one.replace("grand", "petit") if n % 3 else one for n, one in enumerate(references)]
    table = script.counts(answers, [{"target": one} for one in references])
    whole = bleu(answers, references).value
    assert script.score(table) == pytest.approx(whole)
    low, high = script.interval([table, table])
    assert low < whole < high and high - low < 20
    assert script.interval([table]) == script.interval([table])  # the same resamples each time
    assert np.isclose(script.score(script.counts(references, [{"target": one} for one in references])), 100)


def test_missing_files_are_named(script, asked, tmp_path):
    with pytest.raises(CutawayError, match=r"test_2016_flickr.en.gz is missing"):
        script.contest(script.Contest(**{**vars(asked), "data": str(tmp_path)}), tmp_path / "out")
