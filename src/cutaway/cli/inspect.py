"""`cutaway inspect VIEW TEXT`: look inside the model at work on a text; a view is a verb of its own below this one."""

from __future__ import annotations

import functools
import inspect as python
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from rich.text import Text

from cutaway.atomic import write_text
from cutaway.cli import drawings, options, screen
from cutaway.cli.options import option
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.inspect.change import Change
    from cutaway.inspect.runs import Run
    from cutaway.language_model import LanguageModel

Layer = Annotated[int, option("--layer", "-l", value="N", help="Which layer, from 0; -1 is the last.")]
Layers = Annotated[list[int] | None, option("--layer", "-l", value="N", help="Only this layer; repeatable.")]
Head = Annotated[int, option("--head", value="N", help="Which head, from 0.")]
Position = Annotated[int, option("--position", "-p", value="N", help="Which token, from 0; -1 is the last.")]
At = Annotated[int | None, option("--position", "-p", value="N", help="Only this token, from 0; -1 is the last.")]
Chosen = Annotated[str | None, option("--token", value="TOKEN", help="The next token to explain, as text or id:N.")]
Seed = Annotated[int, option("--seed", "-s", value="N", help="The same seed gives the same result.")]
MaxTokens = Annotated[int, option("--max-tokens", "-n", value="N", help="How many tokens to generate.")]
Html = Annotated[Path | None, option("--html", value="FILE", help="Write a self-contained HTML page.")]
Against = Annotated[
    str | None, option("--against", value="TOKEN", help="Explain the difference to this token's logit.")
]
Count5 = Annotated[int, option("-k", "--count", value="N", help="How many predictions to show for each layer.")]
Watch = Annotated[
    list[str] | None, option("--watch", value="TOKEN", help="Also show the rank of this token; repeatable.")
]
Continuation = Annotated[str, option("--continuation", "-c", value="TEXT", help="Explain each token of this text.")]
Write = Annotated[int, option("--write", "-w", value="N", help="Generate N tokens and explain each.")]
Method = Annotated[str, option("--method", value="METHOD", help="gradient (x input), or integrated (gradients).")]
Points = Annotated[int, option("--steps", value="N", help="Integrated gradients: the number of points.")]
Top = Annotated[int, option("--count", "-k", value="N", help="How many neurons to show.")]
Count8 = Annotated[int, option("--count", "-k", value="N", help="How many to find.")]
AblateHeads = Annotated[list[str] | None, option("--ablate-head", value="L.H", help="Layer.head; repeatable.")]
AblateNeurons = Annotated[list[str] | None, option("--ablate-neuron", value="L.N", help="Layer.neuron; repeatable.")]
SteerAt = Annotated[int | None, option("--steer", value="LAYER", help="Add a direction after this layer.")]
PushAt = Annotated[int | None, option("--push", value="LAYER", help="Push towards one token after this layer.")]
Toward = Annotated[str, option("--toward", value="TEXT", help="Push: the token. Steer: the text to steer towards.")]
Away = Annotated[str, option("--away", value="TEXT", help="Steer: the text to steer away from.")]
Strength = Annotated[float, option("--strength", value="N", help="Steer, push: the factor for the added direction.")]
PatchName = Annotated[str | None, option("--patch", value="NAME", help="Replace this value by that of another text.")]
Source = Annotated[str, option("--from", value="TEXT", help="Patch: the other text.")]
SourcePosition = Annotated[int | None, option("--from-position", value="N", help="Patch: the token in the other text.")]
Where = Annotated[int | None, option("--at", value="N", help="Apply changes at this token only.")]
Beams = Annotated[int, option("--beams", "-b", value="N", help="The number of beams.")]
Penalty = Annotated[float, option("--length-penalty", value="N", help="Higher favours longer texts.")]

POSITIONS = 64
"""The lens is drawn for this many tokens, the last ones, unless one is named."""


@dataclass(frozen=True)
class Asked:
    """What every view is asked with: the model, the text, and where the answer goes."""

    lm: LanguageModel
    ids: list[int]
    as_json: bool
    html: Path | None

    def run(self, continuation: str = "", changes: tuple[Change, ...] = ()) -> Run:
        from cutaway.inspect.runs import run

        return run(self.lm, self.ids, continuation, changes)

    def token(self, text: str) -> int:
        """A token named on the command line: its text (a space in front is tried, too), or id:N."""
        from cutaway.inspect.runs import token_id

        return token_id(self.lm, text)

    def answer(self, view: str, run: Run | None, data: dict[str, Any], draw: Callable[[], None]) -> None:
        """The view as JSON, as a page, or drawn here."""
        about = run.to_dict() if run else None
        if self.html:
            from cutaway.inspect.page import page

            write_text(self.html, page(view, about, data))
        if self.as_json:
            screen.show_json({"view": view, **({"run": about} if about else {}), **data})
        elif self.html:
            screen.show(Text(str(self.html)))
        else:
            draw()


def view(function: Callable[..., None]) -> Callable[..., None]:
    """A view as a verb, with the options that all views share: they become the `Asked` that its function gets."""

    def shared(
        text: Annotated[str | None, options.argument(metavar="TEXT", help="The text to look at.")] = None,
        file: options.File = None,
        special: options.Special = False,
        model: options.Model = "builtin",
        tokenizer: options.TokenizerName = None,
        device: options.Device = None,
        dtype: options.Dtype = None,
        html: Html = None,
        as_json: options.AsJson = False,
    ) -> Asked:
        given = options.read_text(text, file)
        if not given:
            raise CutawayError(f'There is no text to inspect. Example: cutaway inspect {function.__name__} "A robot"')
        if html is not None and html.is_dir():
            raise CutawayError(f"{html} is a folder: --html takes the name of a file to write.")
        lm = options.load(model, device, dtype, tokenizer=tokenizer)
        return Asked(lm, lm.tokenizer.encode(given, special=special), as_json, html)

    @functools.wraps(function)
    def verb(**given: Any) -> None:
        asked = shared(**{name: given.pop(name) for name in python.signature(shared).parameters})
        function(asked, **given)

    hints = {**get_type_hints(shared, include_extras=True), **get_type_hints(function, include_extras=True)}
    own = [one for one in python.signature(function).parameters.values() if one.name != "asked"]
    common = list(python.signature(shared).parameters.values())
    order = [common[0], *own, *common[1:]]  # the text, the view's own options, the shared ones
    parameters = [one.replace(annotation=hints[one.name], kind=one.KEYWORD_ONLY) for one in order]
    verb.__signature__ = python.Signature(parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {one.name: one.annotation for one in parameters}
    return verb


@view
def attention(asked: Asked, layer: Layer = 0, head: Head = 0, position: At = None) -> None:
    """What one head attends to: scores, mask, weights, output.

    Example: cutaway inspect attention "A robot must obey" --layer 2 --head 1
    """
    from cutaway.inspect.attention import PARTS
    from cutaway.inspect.attention import attention as look

    run = asked.run()
    found = look(run, layer, head, position)
    parts = PARTS if len(run) <= 256 or position is not None else ("scores", "weights")
    asked.answer("attention", run, found.to_dict(parts), lambda: drawings.attention(run, found))


@view
def heads(asked: Asked, layer: Layers = None) -> None:
    """All heads at a glance: entropy, distance, previous token, induction.

    Example: cutaway inspect heads "one two three one two three"
    """
    from cutaway.inspect.attention import heads as look

    run = asked.run()
    found = look(run, layer or None, picture=24)
    asked.answer("heads", run, found.to_dict(), lambda: drawings.heads(run, found))


def roles(
    tokens: Annotated[int, option("--tokens", value="N", help="How many random tokens, each repeated once.")] = 32,
    texts: Annotated[int, option("--texts", value="N", help="How many such sequences.")] = 8,
    seed: Seed = 0,
    model: options.Model = "builtin",
    device: options.Device = None,
    dtype: options.Dtype = None,
    html: Html = None,
    as_json: options.AsJson = False,
) -> None:
    """Induction, previous-token and duplicate-token heads, measured on repeated random tokens.

    Example: cutaway inspect roles --texts 16
    """
    from cutaway.inspect.roles import roles as look

    lm = options.load(model, device, dtype)
    found = look(lm, tokens, texts, seed)
    data = {"model": lm.name, **found.to_dict()}
    Asked(lm, [], as_json, html).answer("roles", None, data, lambda: drawings.roles(found))


@view
def path(asked: Asked, position: Position = -1, token: Chosen = None, against: Against = None) -> None:
    """A token's path through the layers, and what each head and MLP adds to a next token's logit.

    Example: cutaway inspect path "Once upon a" --token " time"
    """
    from cutaway.inspect.path import attribution
    from cutaway.inspect.path import path as look

    run = asked.run()
    found = look(run, position)
    parts = attribution(run, position, chosen(asked, token), chosen(asked, against))
    data = {"path": found.to_dict(), "attribution": parts.to_dict()}
    asked.answer("path", run, data, lambda: drawings.path(run, found, parts))


@view
def lens(asked: Asked, position: At = None, k: Count5 = 5, token: Chosen = None, watch: Watch = None) -> None:
    """The logit lens: ranks and predictions after each layer, as if it were the last.

    Example: cutaway inspect lens "Once upon a" --watch " time" --watch " little"
    """
    from cutaway.inspect.lens import lens as look

    run = asked.run()
    watched = [asked.token(one) for one in watch or []]
    positions = range(len(run))[-POSITIONS:] if position is None else [position]
    found = look(run, positions, k, watched, chosen(asked, token))
    asked.answer("lens", run, found.to_dict(), lambda: drawings.lens(run, found))


@view
def saliency(
    asked: Asked, continuation: Continuation = "", write: Write = 0, method: Method = "gradient", steps: Points = 16
) -> None:
    """Which tokens led to the next one, or to each token of a continuation.

    Example: cutaway inspect saliency "Once upon a time, there was a" --write 5
    """
    from cutaway.inspect.runs import written
    from cutaway.inspect.saliency import saliency as look

    if continuation and write:
        raise CutawayError("Give a continuation, or let the model generate one: not both.")
    run = written(asked.lm, asked.ids, write) if write else asked.run(continuation)
    found = look(run, None, method, steps)
    asked.answer("saliency", run, found.to_dict(), lambda: drawings.saliency(run, found))


@view
def neurons(asked: Asked, layer: Layers = None, position: At = None, top: Top = 10) -> None:
    """The strongest neurons: which tokens activate them, which next tokens they promote.

    Example: cutaway inspect neurons "The cat sat on the" --layer 3
    """
    from cutaway.inspect.neurons import neurons as look

    run = asked.run()
    found = look(run, layer or None, top, position)
    asked.answer("neurons", run, found.to_dict(), lambda: drawings.neurons(run, found))


@view
def groups(asked: Asked, count: Count8 = 8, layer: Layers = None, seed: Seed = 0) -> None:
    """Neurons that behave alike on this text (k-means).

    Example: cutaway inspect groups "The cat sat on the mat." --count 5
    """
    from cutaway.inspect.factors import groups as look

    run = asked.run()
    found = look(run, count, layer or None, seed)
    asked.answer("groups", run, found.to_dict(), lambda: drawings.groups(run, found))


@view
def factors(asked: Asked, count: Count8 = 6, layer: Layers = None, seed: Seed = 0) -> None:
    """What activates together: activations as 2 to 20 non-negative factors (NMF).

    Example: cutaway inspect factors "The cat sat on the mat. The dog ran." --count 4
    """
    from cutaway.inspect.factors import factors as look

    run = asked.run()
    found = look(run, count, layer or None, seed)
    asked.answer("factors", run, found.to_dict(), lambda: drawings.factors(run, found))


@view
def change(
    asked: Asked,
    ablate_head: AblateHeads = None,
    ablate_neuron: AblateNeurons = None,
    steer: SteerAt = None,
    push: PushAt = None,
    toward: Toward = "",
    away: Away = "",
    strength: Strength = 1.0,
    patch: PatchName = None,
    source: Source = "",
    source_position: SourcePosition = None,
    at: Where = None,
    position: Position = -1,
) -> None:
    """Ablate a head or neuron, steer, push towards a token, or patch from another text: before and after.

    Example: cutaway inspect change "Once upon a" --ablate-head 2.1 --ablate-head 2.3

    Example: cutaway inspect change "The day was" --steer 3 --toward " happy" --away " sad"

    Example: cutaway inspect change "The day was" --push 3 --toward " happy"

    Example: cutaway inspect change "The cat sat" --patch blocks.1.residual --from "The dog sat"
    """
    from cutaway.inspect import change as changing

    changes: list[Change] = [changing.AblateHead(*pair("--ablate-head", one), at) for one in ablate_head or []]
    changes += [changing.AblateNeuron(*pair("--ablate-neuron", one), at) for one in ablate_neuron or []]
    if steer is not None:
        if not toward:
            raise CutawayError("--steer needs a direction. Add --toward TEXT (and --away TEXT).")
        changes.append(changing.Steer(steer, toward, away, strength, at))
    if push is not None:
        if not toward:
            raise CutawayError("--push needs a token. Add --toward TOKEN, with its space: --toward ' happy'.")
        changes.append(changing.Toward(push, toward, strength, at))
    if patch is not None:
        if not source:
            raise CutawayError("--patch needs another text to take the value from. Add --from TEXT.")
        changes.append(changing.Patch(patch, source, at, source_position))
    if not changes:
        raise CutawayError(
            "There is no change to make. Add --ablate-head, --ablate-neuron, --steer, --push or --patch."
        )
    before, after = asked.run(), asked.run(changes=tuple(changes))
    found = changing.changed(before, after, position)
    asked.answer("change", after, found.to_dict(), lambda: drawings.change(after, found))


def sweep(
    clean: Annotated[str, options.argument(metavar="CLEAN", help="The text with the answer.")],
    corrupted: Annotated[str, options.argument(metavar="CORRUPTED", help="As many tokens, with another answer.")],
    token: Annotated[str, option("--for", value="TOKEN", help="The answer to the clean text, as text or id:N.")],
    against: Annotated[str | None, option("--against", value="TOKEN", help="Measure the lead over this token.")] = None,
    what: Annotated[str, option("--what", value="WHAT", help="residual, attention, mlp or head.")] = "residual",
    position: Position = -1,
    special: options.Special = False,
    model: options.Model = "builtin",
    tokenizer: options.TokenizerName = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    html: Html = None,
    as_json: options.AsJson = False,
) -> None:
    """Patch one piece of the clean text's run after another into the corrupted one's: where the answer lies.

    Example: cutaway inspect sweep "She had a ball. She saw the" "She had a hat. She saw the" --for " ball"
    """
    from cutaway.cli import progress
    from cutaway.inspect.metric import LogitDifference, Probability

    lm = options.load(model, device, dtype, tokenizer=tokenizer)
    first, second = (lm.tokenizer.encode(text, special=special) for text in (clean, corrupted))
    metric = LogitDifference(token, against, position=position) if against else Probability(token, position=position)
    with progress.counted(f"patching {what}") as report:
        found = lm.sweep(first, second, what, metric=metric, progress=report)
    data = {"model": lm.name, **found.to_dict()}
    Asked(lm, [], as_json, html).answer("sweep", None, data, lambda: drawings.sweep(found))


@view
def cache(asked: Asked, max_tokens: MaxTokens = 10) -> None:
    """What each generation step computes, what it reuses from the cache, and the cost without it.

    Example: cutaway inspect cache "Once upon a time" --max-tokens 8
    """
    from cutaway.inspect.cache import cache as look

    found = look(asked.lm, asked.ids, max_tokens, top_k=1)
    asked.answer("cache", None, found.to_dict(), lambda: drawings.cache(found))


@view
def beams(asked: Asked, beams: Beams = 3, max_tokens: MaxTokens = 6, length_penalty: Penalty = 1.0) -> None:
    """The whole search tree of a beam search.

    Example: cutaway inspect beams "Once upon a" --beams 3 --max-tokens 4
    """
    from cutaway.inspect.beams import tree

    found = tree(asked.lm, asked.ids, beams, max_tokens, length_penalty=length_penalty)
    asked.answer("beams", None, found.to_dict(), lambda: drawings.beams(found))


def parameters(
    name: Annotated[str, options.argument(metavar="NAME", help="A matrix, as `cutaway parameters` lists them.")],
    size: Annotated[int, option("--size", value="N", help="At most N x N cells.")] = 64,
    model: options.Model = "builtin",
    html: Html = None,
    as_json: options.AsJson = False,
) -> None:
    """A weight matrix as a heat map.

    Example: cutaway inspect parameters blocks.0.mlp.widen.weight
    """
    from cutaway.inspect.picture import picture

    lm = options.load(model, "cpu", None)
    found = picture(lm, name, size)
    data = {"model": lm.name, **found.to_dict()}
    Asked(lm, [], as_json, html).answer("parameters", None, data, lambda: drawings.parameters(picture(lm, name, 32)))


def chosen(asked: Asked, text: str | None) -> int | None:
    return None if text is None else asked.token(text)


def pair(name: str, text: str) -> tuple[int, int]:
    """`2.1` as layer 2 and head (or neuron) 1."""
    layer, dot, number = text.partition(".")
    if not (dot and layer.removeprefix("-").isdecimal() and number.removeprefix("-").isdecimal()):
        raise CutawayError(f"{name} takes a layer and a number, like 2.1 or -1.0 (the last layer), not {text!r}.")
    return int(layer), int(number)


VIEWS = (
    attention, heads, roles, path, lens, saliency, neurons, groups, factors, change, sweep, cache, beams,
    parameters,
)  # fmt: skip
