"""What a view is: declared once, and from that come the `inspect` verb, the address, its types and the widget.

A view is a function of a run, wrapped with what the rest of the house must know of it. Its parameters are annotated
with their help, its first line says what it shows, and its result is a frozen dataclass (`numbers.ViewResult`):

    @view("How long the vectors are", reads=("blocks.*.residual",))
    def norms(run, layer: Annotated[int, param("Which layer, from 0.", "--layer", "-l")] = 0) -> Norms:
        \"""How long the vector of each token is after one layer.\"""

    register(norms)

It can be called like the function it was: `norms(run, layer=2)`. Nothing here knows of HTTP or of command lines.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import architecture, places, start_of
from cutaway.plugins import load_plugins

if TYPE_CHECKING:
    from cutaway.inspect.numbers import ViewResult
    from cutaway.inspect.runs import Run
    from cutaway.language_model import LanguageModel

REQUIRED: Any = inspect.Parameter.empty
Word = int | str
"""A parameter that names a token: by its id, or by its text."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a view: what it is for stands in the annotation, beside its type."""

    help: str
    flags: tuple[str, ...] = ()
    """Its names on a command line, with what it takes there (`value`); without any it is an argument or not there."""
    value: str = "N"
    argument: bool = False
    low: float | None = None
    high: float | None = None
    """A server takes only numbers from low to high, and lists and texts no longer than high: a stranger may ask."""
    served: Any = ...
    """Its default when a server is asked, if it is another one (or REQUIRED)."""
    only: Literal["", "served", "verb"] = ""
    """Where it can be given, if not everywhere."""
    name: str = ""
    type: Any = None
    default: Any = REQUIRED

    @property
    def served_default(self) -> Any:
        return self.default if self.served is ... else self.served


def param(help: str, *flags: str, **more: Any) -> Any:  # noqa: A002
    """What stands in the annotation of a parameter: its help, its flags on a command line, and see `Parameter`."""
    return Parameter(help, flags, **more)


@dataclass(frozen=True)
class View:
    """A view: its name, what it shows, its parameters, its result, and for which models it fits."""

    name: str
    title: str
    function: Callable[..., Any]
    """From a run and the parameters to the result."""
    result: type[ViewResult] | str
    """The result's class; of an included view where it is found ("lens.Lens"), so that naming one imports no torch."""
    reads: tuple[str, ...] = ()
    """Patterns of names: a view fits a model that has intermediates for all of them."""
    needs: tuple[str, ...] = ()
    """What it asks of the model itself, as one would write it after `model.`: "score", "config.layers"."""
    of: Literal["run", "pair", "text", "model", "weights"] = "run"
    """What it is asked of: a text carried through, two texts (a source and a target), a text alone, a model, or its
    weights alone."""
    surfaces: tuple[str, ...] = ("verb", "served")
    begin: Callable[..., Run] | None = None
    """How its run is made from a model, ids and the parameters, where it is not the usual way."""
    passes: Callable[..., int] | None = None
    """From a run and the parameters: how often the model is gone through, for those who watch the progress."""
    post: bool = False
    """Whether a server is asked with a body, for parameters that no address can hold."""
    remember: bool = False
    """Whether a server keeps answers at hand: they are small, and for a long text dear."""

    def __post_init__(self) -> None:
        """Refuse what could not be shown: one view that is not whole would break the list of all."""
        for name in ("reads", "needs"):
            given = getattr(self, name)
            if not isinstance(given, tuple | list):
                raise CutawayError(f'The view {self.name}: {name} is a tuple of names, ("logits",), not {given!r:.80}.')
        if not inspect.signature(self.function).parameters:
            raise CutawayError(f"The view {self.name} is a function of a run: its first parameter is the run.")
        _ = self.parameters
        if isinstance(self.result, str):
            return
        from cutaway.inspect.numbers import ViewResult

        kind: Any = self.result
        if not (isinstance(kind, type) and issubclass(kind, ViewResult) and is_dataclass(kind)):
            raise CutawayError(
                f"The view {self.name} gives a {getattr(kind, '__name__', kind)!s:.80}: its result must be a frozen "
                "dataclass that inherits from cutaway.inspect.numbers.ViewResult."
            )

    @property
    def origin(self) -> tuple[str, str]:
        """Where it was written: a cell of a notebook that is run again gives the same view anew."""
        return self.function.__module__, self.function.__qualname__

    @property
    def about(self) -> str:
        """What it shows, in a line, and examples."""
        return inspect.getdoc(self.function) or self.title

    @property
    def parameters(self) -> dict[str, Parameter]:
        found = {}
        for one in list(inspect.signature(self.function).parameters.values())[1:]:
            hint = one.annotation
            if isinstance(hint, str):
                hint = hints_of(self.function)[one.name]
            kind, *info = get_args(hint) or (None,)
            if len(info) != 1 or not isinstance(info[0], Parameter):
                raise CutawayError(
                    f"The view {self.name} says nothing of its parameter {one.name!r}: annotate it, like "
                    f'{one.name}: Annotated[int, param("What it is for.", "--{one.name}")].'
                )
            found[one.name] = replace(info[0], name=one.name, type=kind, default=one.default)
        return found

    @property
    def Result(self) -> type[ViewResult]:
        if not isinstance(self.result, str):
            return self.result
        module, _, name = self.result.partition(".")
        found: type[ViewResult] = getattr(importlib.import_module(f"cutaway.inspect.{module}"), name)
        return found

    @property
    def result_name(self) -> str:
        return self.result.partition(".")[2] if isinstance(self.result, str) else self.result.__name__

    def fits(self, lm: LanguageModel) -> bool:
        """Whether this model can be shown."""
        return self.reads_alike(lm) and not missing(lm, self.reads, self.needs)

    def reads_alike(self, lm: LanguageModel) -> bool:
        """Whether it is of as many texts as the model reads."""
        return self.of in ("model", "weights") or (self.of == "pair") == (start_of(lm.config) is not None)

    def check(self, lm: LanguageModel) -> None:
        """Refuse a model that the view does not fit."""
        if not self.reads_alike(lm):
            ours, its = ("two texts", "one") if self.of == "pair" else ("one text", "two, a source and a target")
            raise CutawayError(
                f"The view {self.name} shows models of {ours}, and {lm.name} reads {its}. Choose another view, or "
                "another model.",
                "no_pair" if self.of == "pair" else "no_single",
                view=self.name,
                model=lm.name,
            )
        check_fits(self.name, lm, self.reads, self.needs)

    def compute(self, run: Run, given: Mapping[str, Any]) -> Any:
        """The result, for these parameters; the others have their defaults."""
        self.check(run.lm)
        return self.function(run, **given)

    def __call__(self, run: Run, **given: Any) -> Any:
        return self.compute(run, given)


def missing(lm: LanguageModel, reads: Iterable[str], needs: Iterable[str]) -> list[str]:
    """What a model lacks of what is read of its intermediates, or else of what is asked of the model itself."""
    known = places(lm.config)
    lacking = [pattern for pattern in reads if not any(fnmatchcase(name, pattern) for name in known)]
    if (
        lacking or architecture(lm.config.kind).native
    ):  # which is GPT-2, and need not be made of packed weights for this
        return lacking
    return [f"model.{path}" for path in needs if not has(lm.model, path)]


def has(thing: Any, path: str) -> bool:
    """Whether it has this attribute: "blocks.0.mlp" is the MLP of its first block."""
    for name in path.split("."):
        thing = getattr(thing, name, None)
        if thing is None:
            return False
    return True


def check_fits(name: str, lm: LanguageModel, reads: Iterable[str], needs: Iterable[str]) -> None:
    """Refuse a model that a view of this name cannot show."""
    if lacking := missing(lm, reads, needs):
        raise CutawayError(
            f"The view {name} does not fit {lm.name}: it reads {' and '.join(lacking)}, which a model of the "
            f"kind {lm.config.kind} does not have. Choose another view, or another model.",
            "no_view",
            view=name,
            model=lm.name,
            reads=", ".join(lacking),
        )


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise CutawayError(f"The annotations of the view {function.__name__} cannot be read: {error}.") from None


def view(title: str, result: type[ViewResult] | str | None = None, **more: Any) -> Callable[[Callable[..., Any]], View]:
    """Make a view of a function: see `View`. The result is what the function is annotated to return."""

    def wrap(function: Callable[..., Any]) -> View:
        known = [field.name for field in fields(View)]
        for name in more:
            if name not in known:
                raise CutawayError(f"A view has no {name!r}.{nearest(name, known)}")
        returns = result or hints_of(function).get("return")
        if returns is None:
            raise CutawayError(f"The view {function.__name__} does not say what it gives: annotate what it returns.")
        return View(function.__name__, title, function, returns, **more)

    return wrap


_KNOWN: dict[str, View] = {}
TAKEN = ("record",)
"""A verb that is no view: it makes what `contexts` looks up."""


def register(*some: View) -> None:
    """Make views known: from now on they have a verb, a widget, and in a server that is made after this an address."""
    importlib.import_module("cutaway.inspect.views")  # whose names are taken, and come first
    for one in some:
        if not isinstance(one, View):
            raise CutawayError(f"{one!r:.80} is no view: put @view(...) above the function.")
        known = _KNOWN.get(one.name)
        if one.name in TAKEN or (known and known.origin != one.origin):
            whose = f" (in {known.origin[0]})" if known else ""
            raise CutawayError(f"There is a view {one.name!r} already{whose}: give the function another name.")
    _KNOWN.update({one.name: one for one in some})


def views(installed: bool = False) -> dict[str, View]:
    """All views by name, the included ones first; with those of installed packages, if they are asked for."""
    importlib.import_module("cutaway.inspect.views")
    if installed:
        load_plugins()
    return dict(_KNOWN)


def find(name: str) -> View:
    """A view by its name."""
    known = views()
    if name not in known:
        known = views(installed=True)
    if name not in known:
        raise CutawayError(f"There is no view {name!r}.{nearest(name, known)}")
    return known[name]
