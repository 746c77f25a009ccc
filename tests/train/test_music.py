"""Learning from folders of MIDI: by the one loop, split by piece, varied by seed and place, bad files named."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import cutaway
from cutaway.errors import CutawayError
from cutaway.music import Events, Performance, read_midi, write_midi
from cutaway.music.vocabulary import event_tokenizer, is_of_events
from cutaway.tasks import LeftOut, Performances, task_from
from cutaway.train.data.batches import Batches, once
from cutaway.train.data.shards import prepare
from cutaway.train.events import Prepared, Step
from cutaway.train.loop import train
from cutaway.train.recipe import Recipe


def played(seed: int, count: int = 60) -> Performance:
    chance = np.random.default_rng(seed)
    starts = np.cumsum(chance.integers(1, 40, count)) * 0.01
    lengths = chance.integers(5, 80, count) * 0.01
    return Performance.of(
        starts, starts + lengths, 48 + 2 * chance.integers(0, 16, count), chance.integers(30, 110, count)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four pieces, each a folder with three performances; two bad files; something that is no music."""
    root = tmp_path_factory.mktemp("music")
    for piece in range(4):
        (root / f"piece{piece}").mkdir()
        for player in range(3):
            write_midi(played(10 * piece + player), root / f"piece{piece}" / f"player{player}.mid")
    (root / "text.mid").write_text("no music")
    (root / "piece0" / "cut.mid").write_bytes((root / "piece0" / "player0.mid").read_bytes()[:60])
    (root / "notes.txt").write_text("about the pieces")
    return root


def recipe(folder, cache, **task):
    return {
        "model": {"layers": 1, "width": 16, "heads": 2, "context": 32, "positions": "relative", "dropout": 0.1},
        "data": {"paths": [str(folder)], "cache": str(cache), "held_out": 0.2},
        "task": {"name": "performance", **task},
        "train": {
            "steps": 6, "batch": 4, "at_once": 2, "learning_rate": 5e-3, "checkpoint_every": 3, "evaluate_every": 3,
            "precision": "float32", "sample_every": 3, "seed": 3, "threads": 1,
        },
    }  # fmt: skip


def test_a_pianist_is_trained_and_resumed_to_the_bit(folder, tmp_path):
    given, told = recipe(folder, tmp_path / "cache"), []
    whole = train(Recipe.from_dict(given), tmp_path / "whole", on_event=told.append)
    [ready] = [one for one in told if isinstance(one, Prepared)]
    assert ready.data.documents == 12 and ready.data.dropped == {"unusable": 2}
    assert [name for name in ("cut.mid", "text.mid") for one in ready.data.refused if name in one] == [
        "cut.mid",
        "text.mid",
    ]
    assert whole.metrics["loss_per_note"] > whole.held_loss > 0
    steps = iter(range(100))
    train(Recipe.from_dict(given), tmp_path / "parts", stop=lambda: next(steps) >= 3)
    train(None, tmp_path / "parts", resume=True)
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert one == other
    lm = cutaway.load(tmp_path / "whole")
    assert is_of_events(lm.tokenizer) and lm.config.relative and lm.config.vocabulary == 389


def test_the_loss_per_note_is_that_of_all_held_out_events_over_its_notes(folder, tmp_path):
    given = recipe(folder, tmp_path / "cache")
    given["train"] |= {"evaluate_batches": 1000}
    report = train(Recipe.from_dict(given), tmp_path / "model")
    task = task_from(given["task"])
    data = prepare([folder], event_tokenizer(), task, tmp_path / "cache", 0.2)
    model = cutaway.load(tmp_path / "model", engine="torch").model
    loss = count = notes = 0
    with torch.no_grad():
        for examples in once(data.held, 4, 32):
            batch = task.collate(examples)
            loss += float(task.loss(model, batch.tensors).sum)
            count += batch.count
            notes += int((batch.tensors["targets"].unsqueeze(-1) == torch.arange(128)).sum())
    assert report.held_loss == pytest.approx(loss / count, rel=1e-4)
    assert report.metrics["loss_per_note"] == pytest.approx(loss / notes, rel=1e-4)


def test_two_cores_prepare_what_one_does(folder, tmp_path):
    one, two = (
        prepare([folder], event_tokenizer(), Performances(), tmp_path / str(workers), 0.2, workers=workers)
        for workers in (1, 2)
    )
    assert np.array_equal(one.train.tokens, two.train.tokens) and np.array_equal(one.held.tokens, two.held.tokens)
    assert one.report == two.report


def test_pieces_are_held_out_whole(folder, tmp_path):
    data = prepare([folder], event_tokenizer(), Performances(piece="folder"), tmp_path, 3)
    events = Events()
    known = {tuple(events.encode(read_midi(path))): path.parent.name for path in folder.glob("*/player*.mid")}
    sides = [
        {known[tuple(split[number][1:].tolist())] for number in range(len(split))} for split in (data.train, data.held)
    ]
    assert len(sides[0]) == 3 and len(sides[1]) == 1 and not sides[0] & sides[1]
    assert len(data.held) == 3


def test_windows_are_varied_by_seed_and_place_whoever_takes_them(folder, tmp_path):
    data = prepare([folder], event_tokenizer(), Performances(), tmp_path, 0.2)
    task = Performances(transpose=5, tempo=20)

    def batches(seed: int, rank: int = 0, world: int = 1, vary: bool = True) -> list:
        made = Batches(data.train, 4, 32, seed, rank, world, task.varied if vary else None)
        return [next(made) for _ in range(3)]

    whole, halves = batches(1), list(zip(batches(1, 0, 2), batches(1, 1, 2), strict=True))
    for one, (left, right) in zip(whole, halves, strict=True):
        assert all(np.array_equal(a["ids"], b["ids"]) for a, b in zip(one, [*left, *right], strict=True))
    plain = batches(1, vary=False)
    changed = [
        not np.array_equal(a["ids"], b["ids"])
        for x, y in zip(whole, plain, strict=True)
        for a, b in zip(x, y, strict=True)
    ]
    assert sum(changed) > 8
    assert all(len(one["ids"]) <= 33 for batch in whole for one in batch)
    later = Batches(data.train, 4, 32, 1, vary=task.varied)
    later.restore({**later.state(), "position": 2})
    assert all(np.array_equal(a["ids"], b["ids"]) for a, b in zip(next(later), whole[2], strict=True))


def test_what_is_no_performance_is_left_out_by_name():
    task = Performances()
    with pytest.raises(LeftOut, match=r"a\.mid is not a MIDI file") as caught:
        task.examples({"midi": b"hello", "name": "a.mid"}, event_tokenizer())
    assert caught.value.told and caught.value.reason == "unusable"
    with pytest.raises(CutawayError, match="bytes of a MIDI file"):
        task.examples({"midi": "hello"}, event_tokenizer())


@pytest.mark.parametrize("wrong", [{"transpose": 20}, {"tempo": -1}, {"piece": "bar"}])
def test_odd_settings_are_refused(wrong):
    with pytest.raises(CutawayError):
        Performances(**wrong)


def test_a_folder_without_music_and_one_of_bad_files_are_refused(folder, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("words")
    for paths, says in (([tmp_path / "texts"], r"no \.mid"), ([folder / "text.mid"], "not a MIDI file")):
        given = recipe(folder, tmp_path / "cache")
        given["data"]["paths"] = [str(path) for path in paths]
        with pytest.raises(CutawayError, match=says):
            train(Recipe.from_dict(given), tmp_path / "model")
    given = recipe(folder, tmp_path / "cache")
    given["model"]["tokenizer"] = "gpt2"
    with pytest.raises(CutawayError, match=r"leave out model\.tokenizer"):
        train(Recipe.from_dict(given), tmp_path / "other")


def test_relative_attention_is_chosen_in_a_recipe_and_trains_with_muon(settings, tmp_path):
    settings["model"] |= {"positions": "relative"}
    settings["train"] |= {"optimizer": "muon", "steps": 2}
    seen = []
    train(Recipe.from_dict(settings), tmp_path / "model", on_event=seen.append)
    assert cutaway.load(tmp_path / "model").config.positions == "relative"
    assert len([one for one in seen if isinstance(one, Step)]) == 2
    settings["model"] |= {"from": str(tmp_path / "model"), "positions": "absolute"}
    del settings["model"]["vocabulary"]
    with pytest.raises(CutawayError, match=r"model\.positions"):
        train(Recipe.from_dict(settings), tmp_path / "again")
    with pytest.raises(CutawayError, match="absolute, relative"):
        Recipe.from_dict({"model": {"positions": "rotary"}})
