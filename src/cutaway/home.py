"""Where Cutaway keeps what it has fetched and prepared: the only place that asks."""

from __future__ import annotations

import os
from pathlib import Path


def cutaway_home() -> Path:
    """`$CUTAWAY_HOME`, or `cutaway` in the user's cache folder."""
    home = os.environ.get("CUTAWAY_HOME")
    return Path(home).expanduser().absolute() if home else user_cache() / "cutaway"


def cutaway_state() -> Path:
    """What a server keeps, and must not lose: in `$CUTAWAY_HOME`, or in the folder for the user's state."""
    if os.environ.get("CUTAWAY_HOME"):
        return cutaway_home() / "server"
    xdg = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path.home() / ".local" / "state") / "cutaway"


def user_cache() -> Path:
    """The folder that programs keep such things in."""
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return xdg if xdg.is_absolute() else Path.home() / ".cache"
