"""`cutaway train`: a model of your own, from text or records, from nothing or from another model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from cutaway.cli import screen
from cutaway.cli.options import argument, option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.train.recipe import Recipe

MODEL, LEARNING = "Model (default: chosen to fit)", "Training (default: chosen to fit)"


def train(
    output: Annotated[Path, option("--output", "-o", value="FOLDER", help="The folder for the model.")],
    data: Annotated[
        list[Path] | None,
        argument(
            metavar="DATA",
            help="Files and folders of .txt, .jsonl, .tsv, .csv, .parquet or .mid, compressed or not; or a recipe.",
        ),
    ] = None,
    task: Annotated[
        str | None,
        option(
            "--task",
            value="TASK",
            help="language, completion, chat, translation, summary, classification, entailment, similarity, choice or "
            "performance (MIDI). "
            "[dim]\\[default: language, or that of --from][/]",
        ),
    ] = None,
    resume: Annotated[bool, option("--resume", help="Resume the training in the folder.")] = False,
    from_: Annotated[
        str | None, option("--from", value="MODEL", panel=MODEL, help="Start from this model instead of a new one.")
    ] = None,
    layers: Annotated[int | None, option("--layers", value="N", panel=MODEL, help="The number of blocks.")] = None,
    width: Annotated[int | None, option("--width", value="N", panel=MODEL, help="The length of its vectors.")] = None,
    heads: Annotated[
        int | None, option("--heads", value="N", panel=MODEL, help="The number of attention heads in a block.")
    ] = None,
    context: Annotated[
        int | None, option("--context", value="N", panel=MODEL, help="The longest text it can process, in tokens.")
    ] = None,
    vocabulary: Annotated[
        int | None, option("--vocabulary", value="N", panel=MODEL, help="The size of its vocabulary, in tokens.")
    ] = None,
    time: Annotated[
        str | None,
        option("--time", value="TIME", panel=LEARNING, help="How long the whole run may take: 90s, 30m, 1h30m."),
    ] = None,
    steps: Annotated[
        int | None,
        option("--steps", value="N", panel=LEARNING, help="The number of steps; with --resume, in total."),
    ] = None,
    batch: Annotated[
        int | None, option("--batch", value="N", panel=LEARNING, help="The batch size: rows of text, or records.")
    ] = None,
    learning_rate: Annotated[
        float | None, option("--learning-rate", value="N", panel=LEARNING, help="The peak learning rate.")
    ] = None,
    patience: Annotated[
        int | None,
        option("--patience", value="N", panel=LEARNING, help="Stop after N evaluations in a row without improvement."),
    ] = None,
    checkpoint_every: Annotated[
        int | None, option("--checkpoint-every", value="N", panel=LEARNING, help="Save a checkpoint every N steps.")
    ] = None,
    seed: Annotated[
        int | None, option("--seed", "-s", value="N", panel=LEARNING, help="The same seed gives the same model.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        option("--set", value="KEY=VALUE", help="Any other key of a recipe, like train.schedule=linear. Repeatable."),
    ] = None,
    as_json: Annotated[bool, option("--json", help="Print events as JSON, one object per line.")] = False,
) -> int:
    """Train a model of your own.

    Settings left out are chosen to fit the data and the time, and printed. Ctrl-C saves and exits.

    Example: cutaway train my.txt -o my-model --time 30m

    Example: cutaway train pairs.tsv --task translation -o my-translator

    Example: cutaway train recipes/x.toml -o my-model --set train.steps=100
    """
    clock = since_now()
    flags: dict[str, dict[str, Any]] = {
        "model": {
            "from": from_, "layers": layers, "width": width, "heads": heads, "context": context,
            "vocabulary": vocabulary,
        },
        "task": {"name": task},
        "train": {
            "time": time, "steps": steps, "batch": batch, "learning_rate": learning_rate,
            "patience": patience, "checkpoint_every": checkpoint_every, "seed": seed,
        },
    }  # fmt: skip
    recipe = read_recipe(data or [], flags, settings or [], resume)
    from cutaway.cli import training

    watch: training.Lines | training.Screen = training.Lines() if as_json else training.Screen(output)
    with screen.working("waking torch"):
        from cutaway.train.loop import train as learn
    try:
        with watch:
            report = learn(recipe, output, resume, watch, clock=clock)
    except KeyboardInterrupt:
        if not as_json:
            screen.aside(training.interrupted(output))
        return 130
    return 130 if report.reason == "stopped" else 0


def since_now() -> Callable[[], float]:
    """A clock that begins now: loading torch is part of the time that was asked for."""
    begun = monotonic()
    return lambda: monotonic() - begun


def read_recipe(data: list[Path], flags: dict[str, dict[str, Any]], changes: list[str], resume: bool) -> Recipe | None:
    """The recipe that is named, or one for the data; with what the command line says. None: the one that was begun."""
    from cutaway.train.recipe import Recipe

    given = {
        section: table
        for section, values in flags.items()
        if (table := {key: value for key, value in values.items() if value is not None})
    }
    if [path for path in data if path.suffix == ".toml"]:
        if len(data) > 1:
            raise CutawayError("A recipe names its own data: give one recipe, or data, not both.")
        recipe = Recipe.load(data[0], changes)  # data named by a change need not be where the recipe says
    else:
        recipe = Recipe.from_dict({"data": {"paths": [str(path.absolute()) for path in data]}} if data else {})
    recipe = recipe.but(given).changed(changes)
    if resume and not recipe.set_keys:
        return None
    if not recipe.data.paths and not resume:
        raise CutawayError("There is no training data: name files, folders or a recipe; or --resume a training.")
    return recipe
