"""Where Cutaway keeps what it has fetched and prepared: the only place that asks."""

from __future__ import annotations

import os
from pathlib import Path


def cutaway_home() -> Path:
    """`$CUTAWAY_HOME`, or `cutaway` in the user's cache folder."""
    home = os.environ.get("CUTAWAY_HOME")
    return Path(home).expanduser().absolute() if home else user_cache() / "cutaway"


def user_cache() -> Path:
    """The folder that programs keep such things in."""
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return xdg if xdg.is_absolute() else Path.home() / ".cache"
