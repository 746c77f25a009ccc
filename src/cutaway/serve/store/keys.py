"""API keys: made at random, shown once, kept as a hash, each for some of the server's scopes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from cutaway.errors import CutawayError, nearest
from cutaway.serve.store.database import Database, KeyRow, now

SCOPES = {
    "use": "models, completions, chat, embeddings, tokens",
    "explain": "what is inside: the explorer's pages and views",
    "teach": "files and fine-tuning jobs",
    "metrics": "the figures for Prometheus",
}
"""What a key may be for."""
PREFIX = "sk-cutaway-"


@dataclass(frozen=True)
class Key:
    """A key as the server knows it: everything but the key itself."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: int
    revoked_at: int | None = None


class Keys:
    def __init__(self, database: Database):
        self.database = database

    def add(self, name: str, scopes: Sequence[str] = ()) -> tuple[Key, str]:
        """A new key, and the secret, which is not kept: it has 256 random bits, so a plain hash guards it."""
        for scope in scopes:
            if scope not in SCOPES:
                raise CutawayError(f"There is no scope {scope!r}. Known: {', '.join(SCOPES)}.{nearest(scope, SCOPES)}")
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise CutawayError("A key needs a name of at most 200 characters, so that you know it again.")
        secret = PREFIX + secrets.token_urlsafe(32)
        chosen = [scope for scope in SCOPES if scope in (scopes or SCOPES)]
        row = KeyRow(
            id=f"key-{secrets.token_hex(4)}", name=name, hash=hashed(secret), scopes=chosen, created_at=now(),
            revoked_at=None,
        )  # fmt: skip
        with self.database.writing() as session:
            session.add(row)
            session.flush()
            return known(row), secret

    def listing(self) -> list[Key]:
        with self.database.reading() as session:
            return [known(row) for row in session.query(KeyRow).order_by(KeyRow.number)]

    def revoke(self, name: str) -> Key:
        """End a key, by its id or its name; it counts from the next request on."""
        with self.database.writing() as session:
            rows = session.query(KeyRow).filter((KeyRow.id == name) | (KeyRow.name == name)).all()
            rows = [row for row in rows if row.revoked_at is None]
            if not rows:
                raise CutawayError(f"There is no key {name!r} in force. See: cutaway serve keys list")
            if len(rows) > 1:
                raise CutawayError(f"{len(rows)} keys are called {name!r}: give the id, as `keys list` shows it.")
            rows[0].revoked_at = now()
            return known(rows[0])

    def find(self, secret: str) -> Key | None:
        """The key in force that this is the secret of."""
        if not secret.startswith(PREFIX):
            return None
        with self.database.reading() as session:
            row = session.query(KeyRow).filter_by(hash=hashed(secret), revoked_at=None).one_or_none()
            return None if row is None else known(row)


def known(row: KeyRow) -> Key:
    return Key(row.id, row.name, tuple(row.scopes), row.created_at, row.revoked_at)


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
