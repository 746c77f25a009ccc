"""Samples begin where the model has learned to begin."""

from __future__ import annotations

from cutaway.cli import training
from cutaway.train import samples
from cutaway.train.events import Report, Sampled
from cutaway.train.loop import train
from cutaway.train.metrics import read_lines
from cutaway.train.recipe import Recipe


def sampled(settings, folder, text, **more):
    (folder / "text.txt").write_text(text)
    settings["data"] |= {"paths": [str(folder / "text.txt")], "held_out": 0}
    settings["train"] |= {"steps": 2, "sample_every": 2} | more
    train(Recipe.from_dict(settings), folder / "model")
    [line] = read_lines(folder / "model" / "samples.jsonl")
    return line["prompt"]


def test_of_a_single_document_they_begin_as_its_text_does(settings, tmp_path):
    """Its end token was seen once: what follows it would be left to chance."""
    assert sampled(settings, tmp_path, "\nThe old fox saw.\nThe bear went up and down again.\n" * 40) == "The old fox"


def test_a_prompt_that_was_given_is_taken(settings, tmp_path):
    assert sampled(settings, tmp_path, "The old fox saw.\n" * 80, prompt="A bear") == "A bear"


def test_of_many_documents_they_begin_after_the_end_token(settings, tmp_path):
    text = "".join(f"The fox saw the moon {n} times.\n<|endoftext|>\n" for n in range(samples.FEW + 20))
    assert sampled(settings, tmp_path, text) == ""


def test_the_command_that_is_suggested_begins_so_too(tmp_path, capsys):
    watch = training.Screen(tmp_path / "model")
    watch.verb = "generate"
    watch(Sampled(2, "The old fox", " saw.", None))
    watch.end(Report(tmp_path / "model", "done", 2, 2, 1.0, None, None, None, 2, 10, 1.0))
    assert f"Try it: cutaway generate --model {tmp_path / 'model'} 'The old fox'" in " ".join(
        capsys.readouterr().err.split()
    )
