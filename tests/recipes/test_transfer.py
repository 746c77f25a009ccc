"""benchmarks/transfer.py, a tiny version of it: two seeds, two shares, models that learn for a few steps."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import cutaway
from cutaway.errors import CutawayError
from cutaway.tasks import load_task

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "transfer.py"
SMALL = [f"model.{key}" for key in ("layers=1", "width=16", "heads=2", "context=64", "vocabulary=300")]
SMALL += ["train.steps=4", "train.batch=2", "train.warm_up=1", "data.held_out=5", "train.precision=float32"]
TUNE = ["train.batch=4", "train.length=48", "task.room=12", "train.warm_up=1", "train.precision=float32"]


@pytest.fixture(scope="module")
def transfer():
    spec = importlib.util.spec_from_file_location("transfer", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["transfer"] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, dice = tmp_path_factory.mktemp("reuters"), random.Random(0)
    for name, count in (("train", 60), ("test", 12)):
        firms = [f"{dice.choice(['Acme', 'Apex', 'Zenith'])} {dice.choice(['Oil', 'Steel'])} {n}" for n in range(count)]
        pairs = [{"article": f"{firm} said it will buy a firm for cash.", "summary": f"{firm} buys"} for firm in firms]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return folder


@pytest.fixture(scope="module")
def asked(transfer, data):
    return transfer.Experiment(str(data), (0.2, 1.0), (3, 5), (0, 1), 6, tuple(SMALL), tuple(TUNE))


@pytest.fixture(scope="module")
def done(transfer, asked, tmp_path_factory):
    output = tmp_path_factory.mktemp("out") / "transfer"
    return output, transfer.experiment(asked, output)


def test_every_share_is_learned_from_both_starts_with_every_seed(done):
    _, results = done
    found = {(one["start"], one["share"], one["seed"]): one for one in results["runs"]}
    assert len(found) == len(results["runs"]) == 12
    assert found["scratch", 0.2, 0]["pairs"] == 12 and found["scratch", 1.0, 0]["pairs"] == 60
    assert all(one["loss"] > 0 and 0 <= one["rougeL"] <= one["rouge1"] <= 100 for one in found.values())
    assert results["lead"]["words"] == 4 and results["lead"]["rouge1"] > 0


def test_both_starts_have_the_same_shape_vocabulary_and_task_and_one_has_read_before(done):
    output, _ = done
    recipes = {}
    for start in ("pretrained", "stacks", "scratch"):
        folder = output / "runs" / f"{start}-0.2-seed-1"
        recipes[start] = (folder / "recipe.toml").read_text()
        lm = cutaway.load(folder)
        assert (lm.config.layers, lm.config.width, lm.config.context) == (1, 16, 64)
        assert load_task(folder).limit == 48
    same = [(output / "runs" / f"{start}-1-seed-0" / "tokenizer.json").read_bytes() for start in recipes]
    assert same[0] == same[1] == same[2]
    assert str(output / "pretrained") in recipes["pretrained"] and str(output / "stacks") in recipes["stacks"]
    assert "from =" not in recipes["scratch"]
    for line in ("steps = 3", "seed = 1", "learning_rate", "batch = 4", "held_out = 2", 'keep = "best"'):
        assert sum(line in recipe for recipe in recipes.values()) == 3, line


def test_the_loss_is_that_of_the_headlines_given_their_articles(transfer, asked, done):
    output, results = done
    folder = output / "runs" / "pretrained-1-seed-0"
    lm, task = cutaway.load(folder), load_task(folder)
    total = count = 0.0
    for record in transfer.read(Path(asked.data) / "test.jsonl")[:6]:
        [example] = task.examples(record, lm.tokenizer)
        scores = lm.model(cutaway.load(folder).model.token_embedding.weight.new_tensor([example.ids]).long())[0]
        chances = scores.log_softmax(dim=-1)
        for place in range(example.arrays["answer"][0], len(example.ids)):
            total, count = total - chances[place - 1, example.ids[place]].item(), count + 1
    found = next(one for one in results["runs"] if (one["start"], one["share"], one["seed"]) == ("pretrained", 1.0, 0))
    assert found["loss"] == pytest.approx(total / count, rel=1e-4)


def test_the_two_stacks_have_read_the_articles_half_by_half_and_their_loss_is_of_the_headlines_too(
    transfer, asked, done
):
    output, results = done
    pairs = transfer.read(output / "pairs" / "halves.jsonl")
    articles = [one["article"] for one in transfer.read(Path(asked.data) / "train.jsonl")]
    assert [f"{one['article']} {one['summary']}" for one in pairs] == articles
    lm, task = cutaway.load(output / "runs" / "stacks-1-seed-0"), load_task(output / "runs" / "stacks-1-seed-0")
    assert lm.config.kind == "transformer"
    total = count = 0.0
    for record in transfer.read(Path(asked.data) / "test.jsonl")[:6]:
        [example] = task.examples(record, lm.tokenizer)
        answer = len(example.ids) - example.arrays["answer"][0]
        total, count = total - lm.score(example.ids).logprob, count + answer
    found = next(one for one in results["runs"] if (one["start"], one["share"], one["seed"]) == ("stacks", 1.0, 0))
    assert found["loss"] == pytest.approx(total / count, rel=1e-4)


def test_what_is_done_is_not_done_again(transfer, asked, done, monkeypatch):
    output, results = done
    monkeypatch.setattr(transfer, "train", lambda *_, **__: pytest.fail("nothing is left to learn"))
    assert transfer.experiment(asked, output) == results


def test_a_run_that_is_missing_is_made_up_for(transfer, asked, done, tmp_path, monkeypatch):
    output, results = done
    (output / "runs" / "scratch-0.2-seed-1" / "result.json").rename(tmp_path / "kept.json")
    learned = []
    monkeypatch.setattr(transfer, "learn", lambda recipe, folder: learned.append(folder.name))
    monkeypatch.setattr(transfer, "pretrain", lambda *_: None)
    again = transfer.experiment(asked, output)
    assert learned == ["scratch-0.2-seed-1"]
    assert [one["loss"] for one in again["runs"]] == [one["loss"] for one in results["runs"]]


def test_another_experiment_is_not_mixed_into_the_folder(transfer, asked, done):
    output, _ = done
    other = transfer.Experiment(asked.data, asked.shares, (3, 6), asked.seeds, 6, asked.pretrain, asked.tune)
    with pytest.raises(CutawayError, match="another experiment: steps was"):
        transfer.experiment(other, output)


def test_a_folder_of_an_earlier_cutaway_is_another_experiment(transfer, asked, tmp_path):
    """It knew neither recipes nor starts."""
    transfer.same_as_before(asked, tmp_path)
    file = tmp_path / "experiment.json"
    was = json.loads(file.read_text())
    file.write_text(json.dumps({key: one for key, one in was.items() if key not in ("recipe", "starts")}))
    with pytest.raises(CutawayError, match="another experiment: recipe was None, starts was None"):
        transfer.same_as_before(asked, tmp_path)


def test_a_small_share_is_part_of_a_larger_one_and_seeds_differ(transfer):
    pairs = [{"summary": str(n)} for n in range(1_000)]
    small, large = transfer.share_of(pairs, 0.01, 0), transfer.share_of(pairs, 0.1, 0)
    assert len(small) == 10 and large[:10] == small
    assert transfer.share_of(pairs, 0.01, 1) != small


def test_table_and_picture_show_every_number(transfer, asked, done):
    output, results = done
    table = transfer.table(asked, results["runs"], results["lead"]).splitlines()
    assert [line.split(" | ")[:2] for line in table[2:]] == [
        *(["| 12 (20%)", name] for name in transfer.STARTS.values()),
        *(["| 60 (100%)", name] for name in transfer.STARTS.values()), ["| none", "the article's first 4 words"],
    ]  # fmt: skip
    losses = [one["loss"] for one in results["runs"] if one["start"] == "scratch" and one["share"] == 1]
    assert f"{sum(losses) / 2:.2f} ± " in table[7]
    drawn = ElementTree.parse(output / "transfer.svg").getroot()
    dots = drawn.findall("{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 2 * len(results["runs"])


def test_the_command_line_prints_the_table(transfer, asked, done, monkeypatch, capsys):
    output, results = done
    line = ["transfer.py", "--data", asked.data, "-o", str(output), "--shares", "0.2", "1", "--steps", "3", "5"]
    line += ["--seeds", "0", "1", "--test", "6"]
    settings = [part for change in SMALL for part in ("--pretrain", change)]
    settings += [part for change in TUNE for part in ("--tune", change)]
    monkeypatch.setattr(sys, "argv", [*line, *settings, "--json"])
    transfer.main()
    printed = json.loads(capsys.readouterr().out)["runs"]
    assert [one["loss"] for one in printed] == [one["loss"] for one in results["runs"]]
    monkeypatch.setattr(sys, "argv", [*line, "--tune", "train.batch=8"])
    with pytest.raises(SystemExit, match="another experiment"):
        transfer.main()
