"""What a view is: declared once, and from that come the `inspect` verb, the address, its types and the widget.

A view is a function of a run, wrapped with what the rest of the house must know of it. Its parameters are annotated
with their help, its first line says what it shows, and its result is a frozen dataclass (`numbers.ViewResult`):

    @view("How long the vectors are", reads=("blocks.*.residual",))
    def norms(run, layer: Annotated[int, param("Which layer, from 0.", "--layer", "-l")] = 0) -> Norms:
        \"""How long the vector of each token is after one layer.\"""

    register(norms)

Nothing here knows of HTTP or of command lines.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from cutaway.errors import CutawayError, nearest
from cutaway.models.architecture import Place, places

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
    of: Literal["run", "text", "model", "weights"] = "run"
    """What it is asked of: a text carried through, a text alone, a model, or its weights alone."""
    surfaces: tuple[str, ...] = ("verb", "served")
    begin: Callable[..., Run] | None = None
    """How its run is made from a model, ids and the parameters, where it is not the usual way."""
    passes: Callable[..., int] | None = None
    """From a run and the parameters: how often the model is gone through, for those who watch the progress."""
    post: bool = False
    """Whether a server is asked with a body, for parameters that no address can hold."""
    remember: bool = False
    """Whether a server keeps answers at hand: they are small, and for a long text dear."""

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
                hint = get_type_hints(self.function, include_extras=True)[one.name]
            kind, info = get_args(hint)
            found[one.name] = replace(info, name=one.name, type=kind, default=one.default)
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

    def fits(self, known: Mapping[str, Place]) -> bool:
        """Whether a model with these intermediates can be shown."""
        return not self.missing(known)

    def missing(self, known: Mapping[str, Place]) -> list[str]:
        return [pattern for pattern in self.reads if not any(fnmatchcase(name, pattern) for name in known)]

    def check(self, lm: LanguageModel) -> None:
        """Refuse a model that the view does not fit."""
        if missing := self.missing(places(lm.config)):
            raise CutawayError(
                f"The view {self.name} does not fit {lm.name}: it reads {' and '.join(missing)}, which a model of the "
                f"kind {lm.config.kind} does not have. Choose another view, or another model.",
                "no_view",
                view=self.name,
                model=lm.name,
                reads=", ".join(missing),
            )

    def compute(self, run: Run, given: Mapping[str, Any]) -> Any:
        """The result, for these parameters; the others have their defaults."""
        self.check(run.lm)
        return self.function(run, **given)


def view(title: str, result: type[ViewResult] | str | None = None, **more: Any) -> Callable[[Callable[..., Any]], View]:
    """Make a view of a function: see `View`. The result is what the function is annotated to return."""

    def wrap(function: Callable[..., Any]) -> View:
        returns = result or get_type_hints(function)["return"]
        return View(function.__name__, title, function, returns, **more)

    return wrap


_KNOWN: dict[str, View] = {}


def register(*some: View) -> None:
    """Make views known: from now on they have a verb, an address, types and a widget."""
    _KNOWN.update({one.name: one for one in some})


def views() -> dict[str, View]:
    """All views by name, the included ones first."""
    importlib.import_module("cutaway.inspect.views")
    return dict(_KNOWN)


def find(name: str) -> View:
    """A view by its name."""
    known = views()
    if name not in known:
        raise CutawayError(f"There is no view {name!r}.{nearest(name, known)}")
    return known[name]
