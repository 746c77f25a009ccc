"""`cutaway pull`: fetch a model from the hub, once; it then loads without a network. Needs no torch."""

from __future__ import annotations

from typing import Annotated

from rich.text import Text

from cutaway.cli import options, screen
from cutaway.cli.options import option
from cutaway.errors import CutawayError


def pull(
    name: Annotated[str | None, options.argument(metavar="NAME", help="gpt2, or org/name.")] = None,
    revision: Annotated[str | None, option("--revision", value="REV", help="A branch, a tag or a commit.")] = None,
    listing: Annotated[bool, option("--list", "-l", help="Show the models on this machine.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Download a model from the hub, or list those on this machine.

    The hub is Hugging Face's. Every file is checked, and an interrupted pull continues where it stopped.

    gpt2, gpt2-medium, gpt2-large and gpt2-xl are pinned to one revision each.

    Example: cutaway pull gpt2
    """
    if listing:
        if name is not None or revision is not None:
            raise CutawayError("--list shows everything: give it neither a name nor a revision.")
        show_local(as_json)
        return
    if name is None:
        raise CutawayError(
            "Which model? For example: cutaway pull gpt2. To list the models on this machine: cutaway pull --list"
        )
    from cutaway.checkpoint import hub
    from cutaway.cli import progress

    with progress.files() as report:
        folder = hub.pull(name, revision, report)
    if as_json:
        files = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
        screen.show_json({"name": name, "folder": str(folder), "files": files})
    else:
        screen.show(Text(str(folder)))


def show_local(as_json: bool) -> None:
    from cutaway.checkpoint import hub

    models = hub.local()
    if as_json:
        screen.show_json(
            [
                {"name": model.name, "revision": model.revision, "folder": str(model.folder), "bytes": model.bytes}
                for model in models
            ]
        )
        return
    if not models:
        screen.show("No models from the hub on this machine. Download one: cutaway pull gpt2", style="dim")
        return
    widest = max(len(model.name) for model in models)
    for model in models:
        line = Text(f"{model.name:<{widest}}  {model.bytes / 1e6:>8,.0f} MB  ")
        line.append(f"{model.revision[:12]}  {model.folder}", "dim")
        screen.show(line)
