"""What other installed packages add: their entry points in the group `cutaway` are imported and register themselves."""

from __future__ import annotations

import warnings
from functools import cache


@cache
def load_plugins() -> None:
    """Import them, once: when a task, a model or a view is not known by its name, or all views are listed.

    One that cannot be imported is told of, and left out: it must not keep anyone from the rest.
    """
    from importlib.metadata import entry_points

    for one in entry_points(group="cutaway"):
        try:
            one.load()
        except Exception as error:
            warnings.warn(f"The installed package of {one.value} could not be loaded: {error}", stacklevel=2)
