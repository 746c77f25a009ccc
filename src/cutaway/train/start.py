"""The start of a training, all of it: gone on with from its last checkpoint, or set up from a recipe.

What comes out is a `Setup`: task, tokenizer, data in tokens, and the whole recipe. The model is built from it
(model.py), and the loop takes its steps (loop.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from cutaway import checkpoint
from cutaway.checkpoint.locate import locate
from cutaway.errors import CutawayError
from cutaway.home import cutaway_home
from cutaway.models.architecture import Architecture, architecture
from cutaway.tasks import LeftOut, Record, Task, load_task, task_from
from cutaway.text.tokenizer import Tokenizer
from cutaway.train import kept, resuming
from cutaway.train.data.pieces import texts
from cutaway.train.data.records import records
from cutaway.train.data.shards import Dataset, prepare
from cutaway.train.data.sources import PACKED, find
from cutaway.train.distributed import Team
from cutaway.train.events import Choice, Event, Progress
from cutaway.train.plan import Facts, Plan, context_for, make_plan, vocabulary_for
from cutaway.train.recipe import Recipe
from cutaway.train.teacher import check_teacher, choose_for_teacher, require_comparable

ENOUGH = 30_000_000
"""Characters to learn a vocabulary from; of more data, only some records are read for it."""
LEAST_TOKENS, LEAST_RECORDS = 64, 2

Listener = Callable[[Event], None]


@dataclass(frozen=True)
class Setup:
    """A training that can begin."""

    recipe: Recipe
    """Whole: nothing is left to choose."""
    task: Task
    tokenizer: Tokenizer
    dataset: Dataset
    choices: tuple[Choice, ...]


def start(
    recipe: Recipe | None, output: Path, resume: bool, team: Team, tell: Listener, records: Iterable[Record] | None
) -> tuple[Setup, Path | None]:
    """What to train, and the checkpoint to go on from, if there is one (see `loop.train` for what is given)."""
    begun = resuming.checkpoint_of(output, resume or team.restarted)
    if begun is not None:
        if records is not None and team.first:
            kept.require_same(records, output)
        ready = set_up_again(resuming.merged(begun, recipe), resuming.written_tokenizer(output), tell)
        return replace(ready, choices=resuming.other_steps(begun, ready.recipe)), begun
    if team.first:  # the first process sets it up and writes it down, the others read it
        if recipe is None and resume and (output / "recipe.toml").is_file():
            recipe = resuming.written_recipe(output)
        if recipe is None:
            raise CutawayError(f"There is nothing to resume in {output}: name the data or a recipe to start.")
        resuming.require_no_model(output)
        with kept.named_as_given(output):
            if records is not None:
                recipe = recipe.but({"data": {"paths": [str(kept.keep_records(records, output).absolute())]}})
            ready = set_up(recipe, team, tell)
        resuming.write_down(ready, output)
    team.wait()
    if not team.first:
        ready = set_up_again(resuming.written_recipe(output), resuming.written_tokenizer(output), tell)
    return ready, None


def set_up(recipe: Recipe, team: Team, tell: Listener) -> Setup:
    """Do everything that comes before the model: learn the vocabulary, prepare the data, choose what is left out."""
    plan = Plan(recipe)
    base = locate(recipe.model.from_) if recipe.model.from_ else None
    config = checkpoint.read_config(base) if base else None
    own = base is not None and not any(key.startswith("task.") for key in recipe.set_keys)
    task = load_task(base) if base and own else task_from(recipe.task)
    kind = recipe.model.kind or task.new_model["kind"]
    check_two_texts(task, architecture(kind if config is None else config.kind))
    if config is not None:
        task = task.for_model(config)
        check_same_shape(recipe, config)
        for key in ("context", "vocabulary"):
            if hasattr(config, key):
                plan.choose(f"model.{key}", getattr(config, key), "as the model has it")
    if task.own_tokenizer() is None and not any(text.strip() for text in texts_of(recipe, task, every=1)):
        raise CutawayError(
            f"There is nothing in {', '.join(recipe.data.paths)}: give data with {' and '.join(task.fields)}."
        )
    task = task.learn_classes(record for record, _ in read_records(recipe, task))
    if config is not None and task.outputs:
        with torch.device("meta"):  # a head that this model cannot carry is refused before anything is prepared
            task.with_head(architecture(config.kind).build(config))
    if recipe.teacher.from_:
        require_comparable(task)
        choose_for_teacher(plan, task)
    tokenizer = find_tokenizer(plan, task, base, tell)
    if not plan.recipe.model.context:
        lengths = example_lengths(recipe, task, tokenizer)
        size = data_size(recipe, task)
        plan.choose("model.context", *context_for(task, lengths, size // 4))
    task = task.within(plan.recipe.train.length or plan.recipe.model.context)
    if recipe.teacher.from_:
        check_teacher(plan.recipe, task, tokenizer, config)
    dataset = prepare_data(plan.recipe, task, tokenizer, tell)
    require_enough(dataset, task)
    facts = Facts(
        tokens=len(dataset.train.tokens),
        records=dataset.train.records,
        vocabulary=len(tokenizer),
        task=task,
        config=config,
    )
    rest = make_plan(plan.recipe, facts, team.device, team.world)
    whole = rest.recipe.but({"task": task.settings()})
    return Setup(whole, task, tokenizer, dataset, (*plan.choices, *rest.choices))


def set_up_again(recipe: Recipe, tokenizer: Tokenizer, tell: Listener) -> Setup:
    """The same for a training that has begun: its recipe is whole, and its data (if it is the same) in the cache."""
    task = task_from(recipe.task)
    return Setup(recipe, task, tokenizer, prepare_data(recipe, task, tokenizer, tell), ())


def read_records(recipe: Recipe, task: Task) -> Iterator[tuple[Record, object]]:
    return records(recipe.data.paths, recipe.data.columns or None, task.fields)


def data_size(recipe: Recipe, task: Task) -> int:
    """About how many bytes of text the data has; packed text is taken for four times its size."""
    files = find(recipe.data.paths, task.fields, recipe.data.columns or None).files
    return sum(path.stat().st_size * (4 if path.suffix.lower() in PACKED else 1) for path in files)


def find_tokenizer(plan: Plan, task: Task, base: Path | None, tell: Listener) -> Tokenizer:
    """The tokenizer of the model it goes on from, or the one that is named, or a new one learned from the data."""
    recipe = plan.recipe
    if base is not None:
        if recipe.model.tokenizer:
            raise CutawayError("A model keeps its own tokenizer: leave model.tokenizer out if model.from is given.")
        tokenizer = Tokenizer.load(base)
    elif (own := task.own_tokenizer()) is not None:
        if recipe.model.tokenizer or recipe.model.vocabulary not in (0, len(own)):
            raise CutawayError(
                f"The tokens of a {task.name} are given: leave out model.tokenizer and model.vocabulary."
            )
        tokenizer = own
        plan.choose("model.vocabulary", len(tokenizer), f"the events of a {task.name}")
    elif name := recipe.model.tokenizer or recipe.teacher.from_:
        tokenizer = Tokenizer.load("gpt2" if name == "gpt2" else locate(name))
        plan.choose("model.vocabulary", len(tokenizer), f"that of {name}")
    else:
        size = data_size(recipe, task)
        plan.choose("model.vocabulary", vocabulary_for(size) + len(task.specials), f"usual for {size:,} bytes of text")
        wanted = plan.recipe.model.vocabulary
        if wanted < 257 + len(task.specials):
            raise CutawayError(
                f"model.vocabulary is {wanted}, and a vocabulary needs at least {257 + len(task.specials)} entries: "
                f"the 256 bytes and {1 + len(task.specials)} special tokens."
            )
        learned_from = texts_of(recipe, task, every=max(1, size // ENOUGH))
        tell(Progress("vocabulary", 0, min(size, ENOUGH)))
        tokenizer = task.learn_tokenizer(
            learned_from, wanted, lambda done: tell(Progress("vocabulary", done, min(size, ENOUGH)))
        )
    missing = [name for name in task.specials if name not in tokenizer.specials]
    return tokenizer.with_specials(missing) if missing else tokenizer


def texts_of(recipe: Recipe, task: Task, every: int) -> Iterator[str]:
    """What a vocabulary is learned from: the texts of every so many records."""
    for record, _ in islice(read_records(recipe, task), 0, None, every):
        for name in task.fields:
            yield from texts(record.get(name))


def example_lengths(recipe: Recipe, task: Task, tokenizer: Tokenizer) -> list[int]:
    """How long the first examples are; of text, nothing: it has no examples."""
    if task.packed:
        return []
    lengths: list[int] = []
    for record, _ in islice(read_records(recipe, task), 2_000):
        try:
            lengths += [len(example.ids) for example in task.examples(record, tokenizer)]
        except LeftOut:
            continue
        except CutawayError:
            break  # which prepare will report, with its place
    return lengths


def prepare_data(recipe: Recipe, task: Task, tokenizer: Tokenizer, tell: Listener) -> Dataset:
    data = recipe.data

    def prepared(paths: Sequence[str], held_out: float | int) -> Dataset:
        return prepare(
            paths,
            tokenizer,
            task,
            Path(data.cache).expanduser() if data.cache else cutaway_home() / "data",
            held_out,
            data.seed,
            data.columns or None,
            progress=lambda done, total: tell(Progress("tokens", done, total)),
        )

    if data.validation:
        return replace(prepared(data.paths, 0), held=prepared(data.validation, 0).train)
    return prepared(data.paths, data.held_out)


def require_enough(dataset: Dataset, task: Task) -> None:
    """Refuse data there is nothing to learn from."""
    tokens, count = len(dataset.train.tokens), dataset.train.records
    if task.packed and tokens < LEAST_TOKENS:
        raise CutawayError(f"The text has only {tokens:,} tokens, too few to learn from: give a few pages at least.")
    if not task.packed and count < LEAST_RECORDS:
        raise CutawayError(f"There is only {count:,} record to learn from: give more.")


def check_two_texts(task: Task, kind: Architecture) -> None:
    """Refuse a task of one text for a model of two, or one that translates both ways."""
    if "start_token" in {one.name for one in fields(kind.Shape)} and not task.two_texts:
        raise CutawayError(
            f"A {kind.title} reads one text and writes another, and cannot learn {task.name} like this: train it for "
            "translation in one direction, or for summary."
        )


def check_same_shape(recipe: Recipe, config: Any) -> None:
    """Refuse a recipe for another model than the one it goes on from."""
    if recipe.model.kind not in ("", config.kind):
        raise CutawayError(
            f"The recipe says model.kind = {recipe.model.kind}, and {recipe.model.from_} is a {config.kind}: leave "
            "model.kind out, or leave model.from out to begin a new model."
        )
    for key in ("layers", "width", "heads", "vocabulary"):
        said, has = getattr(recipe.model, key), getattr(config, key, 0)
        if said and has and said != has:
            raise CutawayError(
                f"The recipe says model.{key} = {said:,}, and {recipe.model.from_} has {has:,}: "
                f"it is for another model. Leave model.{key} out, or leave model.from out to begin a new model."
            )
    said = recipe.model.positions
    if said and said != getattr(config, "positions", said):
        raise CutawayError(f"The recipe says model.positions = {said}, and {recipe.model.from_} has others.")
    if recipe.model.context > getattr(config, "context", recipe.model.context):
        raise CutawayError(
            f"The recipe says model.context = {recipe.model.context:,}, and {recipe.model.from_} has only "
            f"{config.context:,} positions."
        )
