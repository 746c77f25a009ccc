"""What the server keeps: jobs, files and keys. A database for what is said of them, a storage for their bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cutaway.errors import CutawayError
from cutaway.serve.settings import ServeSettings

if TYPE_CHECKING:
    from cutaway.serve.store.database import Database
    from cutaway.serve.store.storage import Storage


def state_folder(settings: ServeSettings) -> Path:
    """The server's folder, made if need be, for its user alone."""
    if settings.state is None:
        raise CutawayError("The server has no folder to keep keys and jobs in: give it one (state).")
    folder = Path(settings.state).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CutawayError(f"The server's folder {folder} cannot be made: {error.strerror or error}.") from None
    return folder


def open_database(settings: ServeSettings) -> Database:
    """The database that is configured, or SQLite in the server's folder."""
    from cutaway.serve.store.database import Database, sqlite_address

    return Database(settings.database or sqlite_address(state_folder(settings) / "cutaway.db"))


def open_storage(settings: ServeSettings) -> Storage:
    """The storage that is configured, or a folder of the server's."""
    from cutaway.serve.store.storage import Storage

    folder = state_folder(settings)
    return Storage(settings.storage or str(folder / "storage"), folder / "cache")
