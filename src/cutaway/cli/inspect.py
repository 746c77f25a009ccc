"""`cutaway inspect VIEW TEXT`: look inside the model at work on a text. A verb for every view that is declared."""

from __future__ import annotations

import inspect as python
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from rich.text import Text

from cutaway.atomic import write_text
from cutaway.cli import drawings, options, screen
from cutaway.cli.changes import changes
from cutaway.cli.options import Option, option
from cutaway.errors import CutawayError
from cutaway.inspect.view import Parameter, View, Word, views
from cutaway.inspect.views import Changes, Position
from cutaway.inspect.views_causal import metric_of

if TYPE_CHECKING:
    from cutaway.language_model import LanguageModel

Html = Annotated[Path | None, option("--html", value="FILE", help="Write a self-contained HTML page.")]
TextToSee = Annotated[str | None, options.argument(metavar="TEXT", help="The text to look at.")]

TEXTS = ("run", "pair", "text")
"""What a view is asked of, where a text is given."""
OUT: dict[str, tuple[Any, Any]] = {"html": (Html, None), "as_json": (options.AsJson, False)}
MODEL: dict[str, tuple[Any, Any]] = {"model": (options.Model, "builtin")}
MACHINE: dict[str, tuple[Any, Any]] = {"device": (options.Device, None), "dtype": (options.Dtype, None)}
TEXT: dict[str, tuple[Any, Any]] = {
    "file": (options.File, None), "special": (options.Special, False), **MODEL,
    "tokenizer": (options.TokenizerName, None), **MACHINE, **OUT,
}  # fmt: skip
TARGET = Annotated[str, option("--target", value="TEXT", help="The translation, or its beginning.")]
SHARED = {
    "run": TEXT,
    "pair": {"target": (TARGET, ""), **TEXT},
    "text": TEXT,
    "model": {**MODEL, **MACHINE, **OUT},
    "weights": {**MODEL, **OUT},
}
"""The options that views have besides their own, by what they are asked of."""


def verb(view: View) -> Callable[..., None]:
    """A view as a verb: its text, its own options, and those that all views share."""
    own = [one for one in view.parameters.values() if one.only != "served"]
    of_text = view.of in TEXTS
    parameters = [keyword("text", TextToSee, None)] if of_text else []
    for one in own:
        parameters += list(changing().values()) if one.type is Changes else [as_option(one)]
    parameters += [keyword(name, hint, default) for name, (hint, default) in SHARED[view.of].items()]

    def call(**given: Any) -> None:
        shared = {name: given.pop(name, None) for name in ("text", "target", *TEXT)}
        for one in own:
            if one.type is Changes:
                given[one.name] = changes(**{name: given.pop(name) for name in changing()})
        show(view, shared, given)

    call.__name__, call.__doc__ = view.name, view.about
    call.__signature__ = python.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def keyword(name: str, hint: Any, default: Any) -> python.Parameter:
    return python.Parameter(name, python.Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def as_option(one: Parameter) -> python.Parameter:
    """A view's parameter in the words of a command line; a token is named by its text there."""
    if one.argument:
        info: Any = options.argument(metavar=one.value, help=one.help)
    else:
        info = Option(one.flags, one.value, one.help, None)
    return keyword(one.name, Annotated[as_text(one.type), info], one.default)


def as_text(kind: Any) -> Any:
    parts = get_args(kind)
    if get_origin(kind) is list:
        return list[as_text(parts[0])]  # type: ignore[misc]
    if set(get_args(Word)) <= set(parts):
        return str | None if type(None) in parts else str
    if type(None) in parts:
        return as_text(parts[0]) | None
    return kind


def changing() -> dict[str, python.Parameter]:
    hints = get_type_hints(changes, include_extras=True)
    return {name: keyword(name, hints[name], one.default) for name, one in python.signature(changes).parameters.items()}


def show(view: View, shared: dict[str, Any], given: dict[str, Any]) -> None:
    """Load the model, make the run, and give the view's answer: as JSON, as a page, or drawn here."""
    html: Path | None = shared["html"]
    text = options.read_text(shared["text"], shared["file"]) if view.of in TEXTS else ""
    if view.of in TEXTS and not text:
        raise CutawayError(f'There is no text to inspect. Example: cutaway inspect {view.name} "A robot"')
    check_page(html)
    device = "cpu" if view.of == "weights" else shared["device"]
    lm = options.load(shared["model"], device, shared["dtype"], tokenizer=shared["tokenizer"])
    view.check(lm)

    made = begun(view, lm, text, shared, given)
    found = view.compute(made, given)
    seen = getattr(found, "run", made)  # a change is shown with the run that it made
    about = seen.to_dict() if view.of in ("run", "pair") else None
    data = found.to_dict() if view.of in TEXTS else {"model": lm.name, **found.to_dict()}
    answer(view.name, about, data, html, shared["as_json"], lambda: drawings.draw(view.name, seen, found))


def begun(view: View, lm: LanguageModel, text: str, shared: dict[str, Any], given: dict[str, Any]) -> Any:
    """The run that a view is shown of."""
    from cutaway.inspect.runs import run, unread

    if view.of == "pair":
        from cutaway.inspect.pairs import pair_run

        return pair_run(lm, lm.pair(text, shared["target"]))
    whole = lm.reads_both_ways  # which reads a text with its marks
    ids = lm.ids(text) if whole else lm.tokenizer.encode(text, special=bool(shared["special"])) if text else []
    begin = view.begin or (lambda lm, ids, _: run(lm, ids) if view.of == "run" else unread(lm, ids))
    return begin(lm, ids, given)


def answer(
    name: str,
    about: dict[str, Any] | None,
    data: dict[str, Any],
    html: Path | None,
    as_json: bool,
    draw: Callable[[], None],
) -> None:
    """The view as JSON, as a page, or drawn here."""
    if html:
        from cutaway.inspect.page import page

        write_text(html, page(name, about, data))
    if as_json:
        screen.show_json({"view": name, **({"run": about} if about else {}), **data})
    elif html:
        screen.show(Text(str(html)))
    else:
        draw()


def check_page(html: Path | None) -> None:
    if html is not None and html.is_dir():
        raise CutawayError(f"{html} is a folder: --html takes the name of a file to write.")


def sweep(
    clean: Annotated[str, options.argument(metavar="CLEAN", help="The text with the answer.")],
    corrupted: Annotated[
        str | None, options.argument(metavar="CORRUPTED", help="As many tokens, with another answer; for zero, none.")
    ] = None,
    token: Annotated[
        str | None, option("--for", value="TOKEN", help="The answer to the clean text, as text or id:N.")
    ] = None,
    against: Annotated[str | None, option("--against", value="TOKEN", help="Measure the lead over this token.")] = None,
    metric: Annotated[str, option("--metric", value="METRIC", help="probability, loss, rank or kl.")] = "",
    what: Annotated[
        str, option("--what", value="WHAT", help="residual, attention, mlp, head, attention pattern or neuron.")
    ] = "residual",
    how: Annotated[str, option("--how", value="HOW", help="patch, resample, zero or mean.")] = "patch",
    over: Annotated[Path | None, option("--over", value="FILE", help="Mean: of the texts in this file.")] = None,
    layer: Annotated[list[int] | None, option("--layer", "-l", value="N", help="Only this layer; repeatable.")] = None,
    unit: Annotated[
        list[int] | None, option("--unit", "-u", value="N", help="Only this token, head or neuron; repeatable.")
    ] = None,
    estimate: Annotated[bool, option("--estimate", help="Estimate all cells from one backward pass.")] = False,
    position: Annotated[int, option("--position", "-p", value="N", help=get_args(Position)[1].help)] = -1,
    special: options.Special = False,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    html: Html = None,
    as_json: options.AsJson = False,
) -> None:
    """Replace one piece of a run after another, by the clean text's, another text's, zero or a mean: where it matters.

    Example: cutaway inspect sweep "She had a ball. She saw the" "She had a hat. She saw the" --for " ball"

    Example: cutaway inspect sweep "She had a ball. She saw the" --how zero --what head
    """
    from cutaway.cli import progress

    check_page(html)
    lm: LanguageModel = options.load(model, device, dtype, tokenizer=tokenizer)
    first = lm.tokenizer.encode(clean, special=special)
    second = None if corrupted is None else lm.tokenizer.encode(corrupted, special=special)
    given: dict[str, Any] = {"how": how, "layers": layer or None, "units": unit or None, "exact": not estimate}
    if over is not None:
        from cutaway.inspect.contexts import texts_of

        given["over"] = list(texts_of(over))
    measured = metric_of(token, against, position, metric)
    with progress.counted(f"sweeping {what}") as report:
        found = lm.sweep(first, second, what, metric=measured, progress=report, **given)
    answer("sweep", None, {"model": lm.name, **found.to_dict()}, html, as_json, lambda: drawings.sweep(found))


def record(
    corpus: Annotated[Path, options.argument(metavar="FILE", help="Texts, between blank lines, or JSON lines.")],
    what: Annotated[str, option("--what", value="WHAT", help="neuron or head.")] = "neuron",
    out: Annotated[Path | None, option("--out", "-o", value="FILE", help="Where to; by default in the cache.")] = None,
    name: Annotated[str, option("--name", value="NAME", help="What the corpus is called; by default the file.")] = "",
    top: Annotated[int, option("--count", "-k", value="N", help="How many places to keep of each.")] = 5,
    tokens: Annotated[int | None, option("--tokens", value="N", help="Read so many tokens at most.")] = None,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Read a corpus, and write down where each neuron or head is strongest; ended, it goes on where it was.

    Example: cutaway inspect record stories.txt --tokens 200000
    """
    from cutaway.cli import progress

    lm: LanguageModel = options.load(model, device, dtype, tokenizer=tokenizer)

    from cutaway.inspect.contexts import record as make
    from cutaway.inspect.contexts import recorded_at, texts_of

    path = out or recorded_at(lm, what)
    with progress.counted(f"reading {corpus.name}") as report:
        found = make(
            lm, texts_of(corpus), path, what, corpus=name or corpus.stem, top=top, tokens=tokens,
            progress=lambda read: report(read, tokens or read),
        )  # fmt: skip
    if as_json:
        screen.show_json({"file": str(path), **found.about})
    else:
        screen.show(Text(f"{found.about['read']:,} tokens read: {path}"))


def verbs(installed: bool = False) -> tuple[Callable[..., None], ...]:
    """Every view that has a verb, in the order of the help; a sweep shows its progress, and has a verb of its own."""
    found = [verb(view) for view in views(installed).values() if "verb" in view.surfaces]
    after = next(place for place, one in enumerate(found, 1) if one.__name__ == "change")
    return (*found[:after], sweep, *found[after:], record)
