"""What other installed packages add: their entry points in the group `cutaway` are imported and register themselves."""

from __future__ import annotations

from functools import cache


@cache
def load_plugins() -> None:
    """Import them, once; asked for only when a task or a model is not known by its name."""
    from importlib.metadata import entry_points

    for one in entry_points(group="cutaway"):
        one.load()
