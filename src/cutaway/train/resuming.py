"""The output folder of a training: begun where nothing is lost by it, gone on with by the recipe it began with."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutaway.atomic import write_text
from cutaway.errors import CutawayError
from cutaway.text.tokenizer import Tokenizer
from cutaway.train import kept, state
from cutaway.train.events import Choice
from cutaway.train.lock import held
from cutaway.train.optimizer import learning_rate
from cutaway.train.recipe import Recipe

if TYPE_CHECKING:
    from cutaway.train.start import Setup

FREE = frozenset(
    f"train.{key}"
    for key in (
        "at_once", "checkpoint_every", "compile", "evaluate_batches", "evaluate_every", "patience", "prompt",
        "recompute", "sample_every", "shard", "tensorboard",
    )
) | {"data.paths", "data.validation", "data.cache", "teacher.from"}  # fmt: skip
"""What may be said anew when a training goes on: it changes no step (the data is known by its contents, a teacher by
its weights). So may the number of steps, which changes those to come."""


def checkpoint_of(output: Path, resume: bool) -> Path | None:
    """The checkpoint to go on from; None to begin. A training that is there already is not begun again by accident."""
    begun = state.latest(output / "training")
    if begun is not None and not resume:
        raise CutawayError(
            f"{output} contains a training that has reached step {state.read_state(begun).step:,}. "
            "Continue it (--resume), or choose another folder for a new one."
        )
    return begun


@contextmanager
def claimed(output: Path) -> Iterator[None]:
    """Make the folder and hold it alone. A training that is refused before its first step leaves nothing of its own."""
    if output.exists() and not output.is_dir():
        raise CutawayError(f"{output} is a file, and a model is written as a folder: choose another name.")
    training, recipe = output / "training", output / "recipe.toml"
    new = [path for path in (training, output, *output.parents) if not path.exists()]
    own_recipe = not recipe.exists()
    with ExitStack() as stack:
        stack.callback(remove_empty, new)
        try:
            training.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(training))
        except OSError as error:
            raise CutawayError(f"Nothing can be written to {output}: {error.strerror or error}.") from error
        try:
            yield
        except CutawayError:
            if training in new and not (output / "metrics.jsonl").exists():
                shutil.rmtree(training / "tokenizer", ignore_errors=True)
                (training / kept.FILE).unlink(missing_ok=True)
                if own_recipe:
                    recipe.unlink(missing_ok=True)
            raise


def remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # it is a file, or there is something in it
            folder.rmdir()


def require_no_model(output: Path) -> None:
    """Refuse a folder with a model in it before any work is done for nothing."""
    if (output / "config.json").exists():
        raise CutawayError(
            f"{output} holds a model already, which would be lost: choose another folder, or remove it first."
        )


def write_down(ready: Setup, output: Path) -> None:
    """Keep the whole recipe and the vocabulary, so that the training can go on by them alone."""
    tokenizer = output / "training" / "tokenizer"
    try:
        shutil.rmtree(tokenizer, ignore_errors=True)
        ready.tokenizer.save(tokenizer)
        write_text(output / "recipe.toml", ready.recipe.to_toml())
    except OSError as error:
        raise state.cannot_write(output / "recipe.toml", error) from error


def written_recipe(output: Path) -> Recipe:
    """The whole recipe of the training in a folder."""
    try:
        return Recipe.from_dict(tomllib.loads((output / "recipe.toml").read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise CutawayError(f"{output / 'recipe.toml'} cannot be read: {error}.") from None


def written_tokenizer(output: Path) -> Tokenizer:
    return Tokenizer.load(output / "training" / "tokenizer")


def merged(begun: Path, given: Recipe | None) -> Recipe:
    """The recipe a training goes on by: its own, with what may be said anew; refused if something else has changed."""
    was = state.read_state(begun)
    recipe = Recipe.from_dict(was.recipe)
    if (begun.parent / kept.FILE).is_file():  # which moves with the folder
        recipe = recipe.but({"data": {"paths": [str((begun.parent / kept.FILE).absolute())]}})
    if given is None:
        return recipe
    differ = []
    for key in sorted(given_keys(given)):
        new, old = given.get(key), recipe.get(key)
        if key == "train.steps" and new != old:
            recipe = with_steps(recipe, new, was.step)
        elif key in FREE:
            section, _, name = key.partition(".")
            recipe = recipe.but({section: {name: plain(new)}})
        elif plain(new) != plain(old) and new != "auto":
            differ.append(f"{key} was {plain(old)!r} and is {plain(new)!r} now")
    if differ:
        raise CutawayError(
            f"This training started with another recipe: {'; '.join(differ)}. "
            "Resume it as it was (--resume needs nothing more), or start a new one in another folder."
        )
    return recipe


def given_keys(given: Recipe) -> set[str]:
    """The keys a recipe gives a value of its own to."""
    plainly = Recipe()
    own = {f"{section}.{key}" for section, table in given.to_dict().items() for key in table}
    return set(given.set_keys) | {key for key in own if plain(given.get(key)) != plain(plainly.get(key))}


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def with_steps(recipe: Recipe, steps: int, step: int) -> Recipe:
    """The same recipe for another number of steps in all; the learning rate goes on as in a training of that many."""
    if steps <= step:
        raise CutawayError(
            f"This training has reached step {step:,}, and train.steps = {steps:,} is not beyond it: "
            "name a higher number, of all steps together, or resume it without one."
        )
    often = {
        "evaluate_every": 20,
        "sample_every": 10,
        "checkpoint_every": 10,
    }  # a training by the clock has left it open
    open_keys = {key: max(1, steps // times) for key, times in often.items() if not recipe.decided(f"train.{key}")}
    return recipe.but({"train": {"steps": steps, "time": "", **open_keys}})


def other_steps(begun: Path, recipe: Recipe) -> tuple[Choice, ...]:
    """What there is to tell of a training that goes on for another number of steps than it began with."""
    was = state.read_state(begun)
    before = Recipe.from_dict(was.recipe).train
    if before.steps == recipe.train.steps:
        return ()
    if before.time:
        return (Choice("train.steps", recipe.train.steps, "by the clock before"),)
    rates = learning_rate(was.step, before), learning_rate(was.step + 1, recipe.train)
    why = f"{before.steps:,} before; the learning rate was {rates[0]:.2e} and goes on from {rates[1]:.2e}"
    return (Choice("train.steps", recipe.train.steps, why),)


def write_anew(recipe: Recipe, begun: Path, output: Path) -> None:
    """Keep a recipe that was changed in resuming, so that a training stopped again goes on by it."""
    was = state.read_state(begun)
    if recipe.to_dict() != was.recipe:
        state.restate(begun, replace(was, recipe=recipe.to_dict()))
        try:
            write_text(output / "recipe.toml", recipe.to_toml())
        except OSError as error:
            raise state.cannot_write(output / "recipe.toml", error) from error
