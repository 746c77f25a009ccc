"""From a recipe to everything a training needs: task, tokenizer, data in tokens, the whole recipe, and the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import nn

from cutaway import checkpoint
from cutaway.checkpoint import huggingface
from cutaway.checkpoint.locate import locate
from cutaway.checkpoint.shape import CONFIG
from cutaway.errors import CutawayError
from cutaway.home import cutaway_home
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.tasks import Language, LeftOut, Record, Task, load_task, task_from
from cutaway.tasks.head import SCORE, Classifier, read_classifier
from cutaway.text.tokenizer import Tokenizer
from cutaway.train import lora
from cutaway.train.data.pieces import texts
from cutaway.train.data.records import records
from cutaway.train.data.shards import Dataset, prepare
from cutaway.train.data.sources import PACKED, find
from cutaway.train.distributed import Team
from cutaway.train.events import Choice, Event, Progress
from cutaway.train.plan import Facts, Plan, context_for, make_plan, vocabulary_for
from cutaway.train.recipe import Recipe

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


def set_up(recipe: Recipe, team: Team, tell: Listener) -> Setup:
    """Do everything that comes before the model: learn the vocabulary, prepare the data, choose what is left out."""
    plan = Plan(recipe)
    base = locate(recipe.model.from_) if recipe.model.from_ else None
    config = checkpoint.read_config(base) if base else None
    own = base is not None and not any(key.startswith("task.") for key in recipe.said)
    task = load_task(base) if base and own else task_from(recipe.task)
    if config is not None:
        check_same_shape(recipe, config)
        context = recipe.model.context or config.context
        plan.choose("model.context", context, "as the model has it")
        plan.choose("model.vocabulary", config.vocabulary, "as the model has it")
    if not any(text.strip() for text in texts_of(recipe, task, every=1)):
        raise CutawayError(
            f"There is nothing in {', '.join(recipe.data.paths)}: give data with {' and '.join(task.fields)}."
        )
    task = task.learn_classes(record for record, _ in read(recipe, task))
    tokenizer = find_tokenizer(plan, task, base, tell)
    if not recipe.model.context and config is None:
        lengths = example_lengths(recipe, task, tokenizer)
        size = data_size(recipe, task)
        plan.choose("model.context", *context_for(task, lengths, size // 4))
    task = task.within(plan.recipe.train.length or plan.recipe.model.context)
    dataset = prepare_data(plan.recipe, task, tokenizer, tell)
    require_enough(dataset, task)
    facts = Facts(
        tokens=len(dataset.train.tokens),
        records=len(dataset.train) // dataset.train.rows,
        vocabulary=len(tokenizer),
        task=task,
        config=config,
    )
    rest = make_plan(plan.recipe, facts, team.device, team.world)
    whole = rest.recipe.but({"task": task.settings()})
    return Setup(whole, task, tokenizer, dataset, (*plan.choices, *rest.choices))


def resume(recipe: Recipe, tokenizer: Tokenizer, tell: Listener) -> Setup:
    """The same for a training that has begun: its recipe is whole, and its data (if it is the same) in the cache."""
    task = task_from(recipe.task)
    return Setup(recipe, task, tokenizer, prepare_data(recipe, task, tokenizer, tell), ())


def read(recipe: Recipe, task: Task) -> Iterator[tuple[Record, object]]:
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
    elif recipe.model.tokenizer:
        name = recipe.model.tokenizer
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
        specials = ("<|endoftext|>", *task.specials)
        tokenizer = Tokenizer.train(
            learned_from, wanted, specials, lambda done: tell(Progress("vocabulary", done, min(size, ENOUGH)))
        )
    missing = [name for name in task.specials if name not in tokenizer.specials]
    return tokenizer.with_specials(missing) if missing else tokenizer


def texts_of(recipe: Recipe, task: Task, every: int) -> Iterator[str]:
    """What a vocabulary is learned from: the texts of every so many records."""
    for record, _ in islice(read(recipe, task), 0, None, every):
        for name in task.fields:
            yield from texts(record.get(name))


def example_lengths(recipe: Recipe, task: Task, tokenizer: Tokenizer) -> list[int]:
    """How long the first examples are; of text, nothing: it has no examples."""
    if isinstance(task, Language):
        return []
    lengths: list[int] = []
    for record, _ in islice(read(recipe, task), 2_000):
        try:
            lengths += [len(example.ids) for example in task.examples(record, tokenizer)]
        except LeftOut:
            continue
        except CutawayError:
            break  # which prepare will report, with its place
    return lengths


def prepare_data(recipe: Recipe, task: Task, tokenizer: Tokenizer, tell: Listener) -> Dataset:
    data = recipe.data
    return prepare(
        data.paths,
        tokenizer,
        task,
        Path(data.cache).expanduser() if data.cache else cutaway_home() / "data",
        data.held_out,
        data.seed,
        data.columns or None,
        progress=lambda done, total: tell(Progress("tokens", done, total)),
    )


def require_enough(dataset: Dataset, task: Task) -> None:
    """Refuse data there is nothing to learn from."""
    tokens, count = len(dataset.train.tokens), len(dataset.train) // dataset.train.rows
    if isinstance(task, Language) and tokens < LEAST_TOKENS:
        raise CutawayError(f"The text has only {tokens:,} tokens, too few to learn from: give a few pages at least.")
    if not isinstance(task, Language) and count < LEAST_RECORDS:
        raise CutawayError(f"There is only {count:,} record to learn from: give more.")


def check_same_shape(recipe: Recipe, config: Config) -> None:
    """Refuse a recipe for another model than the one it goes on from."""
    for key in ("layers", "width", "heads", "vocabulary"):
        said, has = getattr(recipe.model, key), getattr(config, key)
        if said and said != has:
            raise CutawayError(
                f"The recipe says model.{key} = {said:,}, and {recipe.model.from_} has {has:,}: "
                f"it is for another model. Leave model.{key} out, or leave model.from out to begin a new model."
            )
    if recipe.model.context > config.context:
        raise CutawayError(
            f"The recipe says model.context = {recipe.model.context:,}, and {recipe.model.from_} has only "
            f"{config.context:,} positions."
        )


def build(setup: Setup, team: Team) -> GPT | Classifier:
    """The model as it is before the first step, on its device."""
    recipe, task = setup.recipe, setup.task
    torch.manual_seed(recipe.train.seed)
    vocabulary = len(setup.tokenizer)
    model: GPT | Classifier
    if recipe.model.from_:
        model = base_model(locate(recipe.model.from_), task, setup.tokenizer, recipe.model.dropout)
    else:
        shape = recipe.model
        model = GPT(
            Config(
                vocabulary=vocabulary, context=shape.context, width=shape.width, layers=shape.layers, heads=shape.heads,
                dropout=shape.dropout, end_token=setup.tokenizer.end,
            )
        )  # fmt: skip
    if task.outputs and isinstance(model, GPT):
        model = Classifier(model, task.outputs)
    if recipe.lora.rank:
        lora.adapt(model, recipe.lora.rank, recipe.lora.alpha)
    return model.to(team.device).train()


def base_model(folder: Path, task: Task, tokenizer: Tokenizer, dropout: float) -> GPT | Classifier:
    """The model to go on from, with room for the task's separators; its head too, if it is one for such a task."""
    if (folder / CONFIG).is_file() and SCORE in huggingface.read_tensors(huggingface.find_weights(folder)):
        classifier = read_classifier(folder)
        body = with_vocabulary(classifier.gpt, len(tokenizer), dropout)
        own = load_task(folder)
        own = own if task.limit is None else own.within(task.limit)
        same = classifier.score.out_features == task.outputs and own.settings() == task.settings()
        if not same:
            return body
        classifier.gpt = body
        return classifier
    return with_vocabulary(checkpoint.read_model(folder), len(tokenizer), dropout)


@torch.no_grad()
def with_vocabulary(model: GPT, entries: int, dropout: float) -> GPT:
    """The same model with at least so many entries, and this dropout. New entries begin near the mean of the old."""
    config, end = model.config, model.config.end
    weights = model.state_dict()
    more = entries - config.vocabulary
    if more > 0:
        for name in ("token_embedding.weight", "output.weight"):
            if name in weights:
                old = weights[name]
                new = old.mean(dim=0) + torch.empty(more, old.shape[1]).normal_(std=0.02)
                weights[name] = torch.cat([old, new])
        config = config.but(vocabulary=entries, end_token=end)
    with torch.device("meta"):
        other = GPT(config.but(dropout=dropout, end_token=end))
    other.load_state_dict(weights, assign=True)
    for parameter in other.parameters():
        parameter.requires_grad_(True)
    return other


def learning(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
