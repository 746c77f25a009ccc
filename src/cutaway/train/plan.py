"""One line is enough: what a recipe leaves out is chosen here, to fit the data, the time and the machine.

The rules are rules of thumb, and each choice is told with its reason. A model should see about ten tokens for each of
its parameters, and have no more than about four parameters for each token of the data; the largest shape of the ladder
for which both hold is taken. With a number of steps, the plan is the same on every machine of a kind; with a time, how
fast this machine is gets measured, in a few steps, and the clock ends the training (see pace.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any

import torch

from cutaway import processor
from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import architecture, count_parameters, places, start_of
from cutaway.models.steps import LOGITS
from cutaway.tasks import Task
from cutaway.tasks.token_loss import token_loss
from cutaway.train.events import Choice
from cutaway.train.learner import prepare_blocks
from cutaway.train.optimizer import make_optimizer
from cutaway.train.recipe import Recipe, Train, seconds
from cutaway.train.threads import computing_in, threads_for

LADDER = (
    (2, 64), (3, 96), (4, 128), (4, 192), (6, 256), (6, 320), (6, 384), (8, 448), (8, 512), (10, 640), (12, 768),
    (16, 896), (24, 1024), (36, 1280), (48, 1600),
)  # fmt: skip
"""Layers and width of the shapes to choose from."""
TOKENS_PER_PARAMETER = 10
PARAMETERS_PER_TOKEN = 4
MOST_EPOCHS = 20
"""Beyond this a model learns its data by heart."""
EPOCHS_OF_TUNING = 3
TIME = "10m"
"""If nothing is said."""
AT_ONCE = {"cpu": 4_096, "mps": 16_384, "cuda": 32_768}
"""About how many tokens go through the model together: enough to keep the machine busy, and little memory."""
MEASURING = 0.01
"""The share of the time that held-out data may be measured for, each time."""
WIDE = 192
"""From this width on, bfloat16 is faster than float32 where a processor has instructions for it: it was 0.84 times as
fast with vectors of 64 numbers and 1.57 times with 320."""


@dataclass(frozen=True)
class Facts:
    """What a plan is made from."""

    tokens: int
    """In the training data."""
    records: int
    vocabulary: int
    task: Task
    config: Any = None
    """The shape that is given, where training goes on from a model."""


Speed = Callable[[Any, int, int, str], float]
"""(shape, rows at once, tokens in a row, precision) -> tokens per second."""


class Plan:
    """A recipe becoming whole, and the choices made on the way."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self.choices: list[Choice] = []

    def choose(self, key: str, value: object, why: str) -> None:
        """Fill a key, unless it was given."""
        if not self.recipe.decided(key):
            section, _, name = key.partition(".")
            self.recipe = self.recipe.but({section: {name: value}})
            self.choices.append(Choice(key, value, why))


def vocabulary_for(size: int) -> int:
    """How many tokens a new vocabulary should have for a text of so many bytes."""
    for limit, entries in ((200_000, 512), (1_000_000, 1_024), (5_000_000, 2_048), (50_000_000, 4_096),
                           (500_000_000, 8_192), (5_000_000_000, 16_384)):  # fmt: skip
        if size < limit:
            return entries
    return 32_768


def context_for(task: Task, lengths: Sequence[int], tokens: int) -> tuple[int, str]:
    """How far a new model should look: text by text, or as far as nearly all examples (of these lengths) reach."""
    if task.packed:
        context = task.reach
        while context > 16 and tokens < 20 * context:
            context //= 2
        usual = "enough for a page of simple text" if task.reach == 256 else f"usual for {task.name}s"
        return context, usual if context == task.reach else "there is little text"
    reach = sorted(lengths)[int(len(lengths) * 0.995)] if lengths else 64
    return min(1_024, max(32, -(-reach // 32) * 32)), f"199 of 200 examples have at most {reach:,} tokens"


def precision_for(device: torch.device, width: int) -> tuple[str, str]:
    """The faster numbers for a model of this width, by what the machine has and no stopwatch; and why."""
    if device.type == "cuda":
        has = torch.cuda.is_bf16_supported()
        return ("bfloat16", "this GPU has it") if has else ("float32", "this GPU has no bfloat16")
    if device.type != "cpu":
        return "float32", f"usual on {device.type}"
    if not processor.multiplies_bfloat16():
        return "float32", "this processor has no instructions for bfloat16"
    if width < WIDE:
        return "float32", f"converting costs more than bfloat16 saves where vectors have less than {WIDE} numbers"
    return "bfloat16", "this processor has instructions for it"


def make_plan(recipe: Recipe, facts: Facts, device: torch.device, world: int = 1, speed: Speed | None = None) -> Plan:
    """Choose everything that is left out but vocabulary and context, which the data was cut by (see start.py)."""
    plan = Plan(recipe)
    speed = speed or measure_on(device, 0.02 * allowed(recipe.train))
    choose_rows(plan, facts, world, device)
    choose_shape(plan, facts, speed, device)
    if recipe.train.precision == "auto":
        precision, why = precision_for(device, width_of(shape(plan.recipe, facts)))
        plan.recipe = plan.recipe.but({"train": {"precision": precision}})
        plan.choices.append(Choice("train.precision", precision, why))
    if device.type == "cpu":
        plan.choose("train.threads", *threads_for(plan.recipe.train, width_of(shape(plan.recipe, facts))))
    expected = choose_steps(plan, facts, speed)
    size = count_parameters(shape(plan.recipe, facts))
    lora = plan.recipe.lora.rank > 0
    if lora:
        plan.choose("lora.alpha", 2.0 * plan.recipe.lora.rank, "twice the rank")
    usual = usual_rate(size)
    if facts.config is None:
        plan.choose("train.learning_rate", float(f"{usual:.1e}"), f"usual for {size:,} parameters")
    elif lora:
        plan.choose("train.learning_rate", 5e-4, "usual for LoRA")
    else:
        plan.choose("train.learning_rate", float(f"{usual / 10:.1e}"), "a tenth of what a new model would take")
    train = plan.recipe.train
    epochs = expected * train.batch / per_epoch(facts, train)
    if facts.config is None:
        dropout = 0.2 if epochs > 8 else 0.1 if epochs > 2 else 0.0
        plan.choose("model.dropout", dropout, f"the data is gone through {epochs:.1f} times")
    else:
        plan.choose("model.dropout", getattr(facts.config, "dropout", 0.0), "as the model has it")
    return plan


def usual_rate(size: int) -> float:
    """The peak learning rate for a new model of so many parameters (Kaplan et al. 2020)."""
    return 0.003239 - 0.0001395 * torch.tensor(float(size)).log().item()


def choose_rows(plan: Plan, facts: Facts, world: int, device: torch.device) -> None:
    """How long rows are, how many make a batch, and how many go through the model at once."""
    recipe = plan.recipe
    plan.choose("train.length", recipe.model.context, "the model's context")
    length = plan.recipe.train.length
    if length > recipe.model.context:
        raise CutawayError(f"train.length is {length:,}, more than the model's context of {recipe.model.context:,}.")
    if facts.task.packed:
        per_step = min(16_384, max(1_024, facts.tokens // 200))
        rows, why = max(1, per_step // length), f"{per_step:,} tokens a step"
        rows = min(rows, max(1, facts.tokens // length))
    else:
        rows = 16 if facts.config is not None else 32
        rows, why = min(rows, max(1, facts.records // 4)), "usual for records"
    plan.choose("train.batch", -(-rows // world) * world, why)
    batch = plan.recipe.train.batch
    if batch % world:
        raise CutawayError(f"train.batch is {batch}, which cannot be divided equally between {world} processes.")
    share = batch // world
    fitting = max(1, AT_ONCE.get(device.type, 4_096) // (length * facts.task.rows if not facts.task.packed else length))
    at_once = next(rows for rows in range(min(share, fitting), 0, -1) if share % rows == 0)
    plan.choose("train.at_once", at_once, f"{at_once * length:,} tokens together keep memory small")


def choose_shape(plan: Plan, facts: Facts, speed: Speed, device: torch.device) -> None:
    """The shape of a new model."""
    recipe, train = plan.recipe, plan.recipe.train
    known = {one.name for one in fields(architecture(recipe.model.kind or facts.task.new_model["kind"]).Shape)}
    open_keys = [key for key in ("layers", "width", "heads") if key in known and not recipe.decided(f"model.{key}")]
    if facts.config is not None or not open_keys:
        return
    shapes = dict.fromkeys(shape(recipe, facts, layers, width) for layers, width in LADDER)
    candidates = sorted(((one, count_parameters(one)) for one in shapes), key=lambda pair: pair[1])
    rate, tokens = 0.0, train.steps * train.batch * train.length
    if not train.steps and len(candidates) > 1:
        probe = candidates[min(4, len(candidates) - 1)][0]
        precision = precision_for(device, probe.width)[0] if train.precision == "auto" else train.precision
        rate = speed(probe, train.at_once, train.length, precision) * operations(probe, train.length)
    chosen = candidates[0][0]
    for config, size in candidates:
        seen = tokens or min(MOST_EPOCHS * facts.tokens, int(allowed(train) * rate / operations(config, train.length)))
        if seen >= TOKENS_PER_PARAMETER * size and size <= PARAMETERS_PER_TOKEN * facts.tokens:
            chosen = config
    size = count_parameters(chosen)
    seen = tokens or min(MOST_EPOCHS * facts.tokens, int(allowed(train) * rate / operations(chosen, train.length)))
    why = f"{size:,} parameters, for {facts.tokens:,} tokens of data and about {seen:,} to be read"
    for key in open_keys:
        plan.choose(f"model.{key}", getattr(chosen, key), why)


def choose_steps(plan: Plan, facts: Facts, speed: Speed) -> int:
    """How many steps the data is good for, and how often to look up from the work; how many there will be, about."""
    train, expected = plan.recipe.train, plan.recipe.train.steps
    if not train.steps:
        plan.choose("train.time", TIME, "nothing was said; --steps would make it the same on any machine")
        spoken = plan.recipe.train.time
        per_second = speed(shape(plan.recipe, facts), train.at_once, train.length, train.precision)
        row = train.length if facts.task.packed else min(train.length, max(1, facts.tokens // max(1, facts.records)))
        fit = max(1, int(0.8 * seconds(spoken) * per_second / (train.batch * row)))  # the rest is for all but steps
        tuning = facts.config is not None and not train.time
        most = max(1, round((EPOCHS_OF_TUNING if tuning else MOST_EPOCHS) * per_epoch(facts, train) / train.batch))
        times = f"{most * train.batch / per_epoch(facts, train):.0f} times through the data at the most"
        why = f"{times}; about {fit:,} fit into {spoken}, at {per_second:,.0f} tokens/s"
        plan.choose("train.steps", most, f"{times}, in less than {spoken}" if most <= fit else why)
        expected = min(fit, most)
        few = int(MEASURING * seconds(spoken) * 2 * per_second / (train.batch * row))  # it is faster than learning
        if "train.evaluate_batches" not in plan.recipe.set_keys and few < train.evaluate_batches:
            plan.recipe = plan.recipe.but({"train": {"evaluate_batches": max(1, few)}})
            plan.choices.append(Choice("train.evaluate_batches", max(1, few), "so that measuring takes little time"))
    if not plan.recipe.train.time:  # else the clock tells when
        plan.choose("train.checkpoint_every", max(1, -(-expected // 10)), "ten times in all")
        plan.choose("train.evaluate_every", max(1, expected // 20), "twenty times in all")
        plan.choose("train.sample_every", max(1, expected // 10), "ten times in all")
    return expected


def shape(recipe: Recipe, facts: Facts, layers: int = 0, width: int = 0) -> Any:
    """The model's shape: the one it goes on from, or the recipe's, filled up from a step of the ladder."""
    if facts.config is not None:
        return facts.config
    model = recipe.model
    width = model.width or width
    heads = model.heads or next(
        n for n in range(max(1, width // (64 if width >= 256 else 32)), 0, -1) if width % n == 0
    )
    return new_shape(recipe, facts.task, facts.vocabulary, width=width, layers=model.layers or layers, heads=heads)


def new_shape(recipe: Recipe, task: Task, vocabulary: int, **more: Any) -> Any:
    """The shape of a new model for a task, as the recipe has it and with what is said beside it."""
    model, fixed = recipe.model, dict(task.new_model)
    kind = fixed.pop("kind")
    said: dict[str, Any] = {
        "width": model.width, "layers": model.layers, "heads": model.heads, "context": model.context,
    }  # fmt: skip
    said |= {"positions": model.positions} if model.positions else {}
    made = architecture(model.kind or kind)
    known = {one.name for one in fields(made.Shape)}
    if model.positions and "positions" not in known:
        raise CutawayError(f"model.positions cannot be set for {task.name}: a {made.title} has absolute positions.")
    for name in model.shape:
        if name not in known:
            raise CutawayError(f"model.shape has {name!r}, which a {made.title} has not.{nearest(name, known)}")
    given = {"vocabulary": vocabulary, **said, **more, **fixed, **model.shape}
    try:
        return made.Shape(**{name: value for name, value in given.items() if name in known})
    except TypeError as error:
        raise CutawayError(f"model.shape is not that of a {made.title}: {error}.") from None


def width_of(shape: Any) -> int:
    """The length of the vectors in a model, as far as its shape tells."""
    return getattr(shape, "width", 0)


def allowed(train: Train) -> float:
    return seconds(train.time or TIME)


def per_epoch(facts: Facts, train: Train) -> float:
    """How many rows go through the data once."""
    return max(1.0, facts.tokens / train.length if facts.task.packed else facts.records)


def operations(config: Any, length: int) -> float:
    """Floating-point operations to train on one token: six for each weight it meets, and attention's."""
    inner = getattr(config, "mlp_width", 2 * config.width)  # a recurrent layer has two matrices, each for its gates
    met = config.layers * (4 * config.width**2 + 2 * config.width * inner) + config.vocabulary * config.width
    return 6.0 * met + 6.0 * config.layers * config.width * length


def measure_on(device: torch.device, patience: float = 5.0) -> Speed:
    """A function that measures how many tokens a second this machine trains on, in so many seconds or a few steps."""

    def measure(config: Any, rows: int, length: int, precision: str) -> float:
        with torch.random.fork_rng(devices=[]):  # nobody's luck changes by being measured
            model = architecture(config.kind).build(config).to(device)
            prepare_blocks(model, compiled=False, recompute=False)
            ids = torch.randint(0, config.vocabulary, (rows, length + 1), device=device)
            if (start := start_of(config)) is not None:  # two texts of equal length
                ids[ids == start] = config.end
                ids[:, length // 2] = start
        optimizer = make_optimizer(model, Train(learning_rate=1e-4))
        scores_words = LOGITS in places(config)

        def step() -> float:
            begun = time.perf_counter()
            with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
                if scores_words:
                    loss = token_loss(model, ids[:, :-1], ids[:, 1:], 1 / (rows * length))
                else:
                    loss = model(ids[:, :-1]).float().square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
            return time.perf_counter() - begun

        train = Train(at_once=rows, length=length)  # in the threads it will be trained in: more may wait for each other
        with computing_in(threads_for(train, width_of(config))[0] if device.type == "cpu" else 0):
            step()
            took = [step()]
            while len(took) < 5 and sum(took) < min(5.0, patience):
                took.append(step())
        return rows * length / median(took)

    return measure
