"""`cutaway serve keys`: make, list and revoke the keys of a server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from cutaway.cli import screen
from cutaway.cli.options import AsJson, argument, option
from cutaway.serve import configuration

if TYPE_CHECKING:
    from cutaway.serve.store.keys import Keys

State = Annotated[
    str | None, option("--state", value="FOLDER", help="The server's folder. [dim]\\[default: as the server has it][/]")
]
DatabaseAddress = Annotated[
    str | None, option("--database", value="TEXT", help="The server's database. [dim]\\[default: as it has it][/]")
]
Config = Annotated[str | None, option("--config", "-c", value="FILE", help="The server's TOML file of settings.")]
ABOUT = "The API keys of the server: needed as soon as it listens on more than this machine."


def add(
    name: Annotated[str, argument("NAME", help="Whose key it is, for you to know it again.")],
    scopes: Annotated[
        list[str] | None,
        option("--scope", value="SCOPE", help="use, explain, teach or metrics; repeatable. [dim]\\[default: all][/]"),
    ] = None,
    state: State = None,
    database: DatabaseAddress = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Make a key, and show it: this once, since only its hash is kept.

    Example: cutaway serve keys add "the class" --scope use --scope explain
    """
    key, secret = opened(state, database, config).add(name, scopes or ())
    if as_json:
        screen.show_json({"id": key.id, "name": key.name, "scopes": list(key.scopes), "key": secret})
        return
    screen.show(secret)
    screen.aside(f"{key.id}, for {', '.join(key.scopes)}. Keep it: it is not shown again.")


def list_keys(
    state: State = None, database: DatabaseAddress = None, config: Config = None, as_json: AsJson = False
) -> None:
    """List the keys: what each is for, and whether it is still in force.

    Example: cutaway serve keys list
    """
    keys = opened(state, database, config).listing()
    if as_json:
        screen.show_json([{**vars(key), "scopes": list(key.scopes)} for key in keys])
        return
    for key in keys:
        made = time.strftime("%Y-%m-%d", time.gmtime(key.created_at))
        ended = "" if key.revoked_at is None else "  revoked"
        screen.show(f"{key.id}  {made}  {','.join(key.scopes):26}  {screen.harmless(key.name)}{ended}")
    if not keys:
        screen.aside("There are no keys. Make one: cutaway serve keys add NAME")


def revoke(
    name: Annotated[str, argument("KEY", help="Its id, or its name.")],
    state: State = None,
    database: DatabaseAddress = None,
    config: Config = None,
) -> None:
    """End a key: from the next request on it is refused.

    Example: cutaway serve keys revoke key-1a2b3c4d
    """
    key = opened(state, database, config).revoke(name)
    screen.aside(f"{key.id} ({screen.harmless(key.name)}) is no longer in force.")


VERBS: dict[str, Callable[..., None]] = {"add": add, "list": list_keys, "revoke": revoke}


def opened(state: str | None, database: str | None, config: str | None) -> Keys:
    """The keys of the server that is configured like this."""
    from cutaway.serve import start

    start.require()
    from cutaway.serve.store import open_database
    from cutaway.serve.store.keys import Keys

    return Keys(open_database(configuration.read_settings({"state": state, "database": database}, config)))
