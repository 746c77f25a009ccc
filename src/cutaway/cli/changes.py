"""Changes inside the model, as they are written on a command line."""

from __future__ import annotations

from typing import Annotated, Any

from cutaway.cli.options import option
from cutaway.errors import CutawayError

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


def changes(
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
) -> list[dict[str, Any]]:
    """The changes that the options name, in their JSON form."""
    found: list[dict[str, Any]] = []
    for kind, flag, given in (("head", "--ablate-head", ablate_head), ("neuron", "--ablate-neuron", ablate_neuron)):
        for one in given or []:
            layer, number = pair(flag, one)
            found.append({"kind": f"ablate_{kind}", "layer": layer, kind: number})
    if steer is not None:
        if not toward:
            raise CutawayError("--steer needs a direction. Add --toward TEXT (and --away TEXT).")
        found.append({"kind": "steer", "layer": steer, "toward": toward, "away": away, "strength": strength})
    if push is not None:
        if not toward:
            raise CutawayError("--push needs a token. Add --toward TOKEN, with its space: --toward ' happy'.")
        found.append({"kind": "toward", "layer": push, "token": toward, "strength": strength})
    if patch is not None:
        if not source:
            raise CutawayError("--patch needs another text to take the value from. Add --from TEXT.")
        found.append({"kind": "patch", "name": patch, "text": source, "source": source_position})
    if not found:
        raise CutawayError(
            "There is no change to make. Add --ablate-head, --ablate-neuron, --steer, --push or --patch."
        )
    return [{**one, "position": at} for one in found]


def pair(name: str, text: str) -> tuple[int, int]:
    """`2.1` as layer 2 and head (or neuron) 1."""
    layer, dot, number = text.partition(".")
    if not (dot and layer.removeprefix("-").isdecimal() and number.removeprefix("-").isdecimal()):
        raise CutawayError(f"{name} takes a layer and a number, like 2.1 or -1.0 (the last layer), not {text!r}.")
    return int(layer), int(number)
