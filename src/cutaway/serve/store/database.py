"""The tables of the server, in SQLite (a file in its state folder) or in PostgreSQL, by the address alone.

What has been committed is on the disk: SQLite runs with `synchronous = FULL`. Rows are ordered by the number they got,
never by the clock, which may jump.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Connection,
    Engine,
    Integer,
    String,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
)
from sqlalchemy import exc as errors
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from cutaway.errors import CutawayError

VERSION = 1
WAIT = 5.0
"""Seconds that a writer waits for another one before it gives up."""
Number = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up by itself only in an INTEGER


class Unavailable(CutawayError):
    """The database or the storage could not take it: nothing was written. `full` where the disk is, else it is busy
    or away."""

    def __init__(self, message: str, full: bool = False):
        super().__init__(message)
        self.full = full


class Table(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {dict[str, Any]: JSON, list[str]: JSON}


class Version(Table):
    __tablename__ = "version"
    number: Mapped[int] = mapped_column(primary_key=True)


class FileRow(Table):
    """A file that was uploaded; its bytes are in the storage."""

    __tablename__ = "files"
    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str]
    purpose: Mapped[str]
    bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[int] = mapped_column(BigInteger)


class JobRow(Table):
    """A fine-tuning job."""

    __tablename__ = "jobs"
    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[int] = mapped_column(BigInteger)
    finished_at: Mapped[int | None] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(String(32), index=True)
    model: Mapped[str]
    training_file: Mapped[str]
    validation_file: Mapped[str | None]
    suffix: Mapped[str | None]
    seed: Mapped[int] = mapped_column(BigInteger)
    hyperparameters: Mapped[dict[str, Any]]
    notes: Mapped[dict[str, Any]]
    """The job's `metadata`, which is the client's own."""
    result: Mapped[str | None] = mapped_column(String(255), unique=True)
    """The name of the model that came of it."""
    trained_tokens: Mapped[int | None] = mapped_column(BigInteger)
    steps: Mapped[int | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON)


class EventRow(Table):
    """Something that happened in a job. One of a step is there once, however often the step was taken."""

    __tablename__ = "events"
    __table_args__ = (UniqueConstraint("job", "step"),)
    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    job: Mapped[str] = mapped_column(String(64), index=True)
    created_at: Mapped[int] = mapped_column(BigInteger)
    level: Mapped[str] = mapped_column(String(16))
    message: Mapped[str]
    step: Mapped[int | None]
    """Of the metrics of a step; None in a message."""
    data: Mapped[dict[str, Any]]


class CheckpointRow(Table):
    """Weights on the way, which are a model of this server as well."""

    __tablename__ = "checkpoints"
    __table_args__ = (UniqueConstraint("job", "step"),)
    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    job: Mapped[str] = mapped_column(String(64), index=True)
    created_at: Mapped[int] = mapped_column(BigInteger)
    step: Mapped[int]
    model: Mapped[str] = mapped_column(String(255), unique=True)
    metrics: Mapped[dict[str, Any]]


class KeyRow(Table):
    """An API key: only its hash, so that whoever reads the database cannot use it."""

    __tablename__ = "keys"
    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str]
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[int] = mapped_column(BigInteger)
    revoked_at: Mapped[int | None] = mapped_column(BigInteger)


class Database:
    """Sessions that read, and sessions that write; whatever the database is."""

    def __init__(self, address: str):
        self.address = address
        self.engine = connect(address)
        self.sqlite = self.engine.dialect.name == "sqlite"
        self.lock = threading.Lock()  # of this process: SQLite's own wait is not fair
        with explained():
            Table.metadata.create_all(self.engine)
            with self.writing() as session:
                add_columns(session.connection())
                known = session.query(Version).one_or_none()
                if known is None:
                    session.add(Version(number=VERSION))
                elif known.number > VERSION:
                    raise CutawayError(f"{hidden(address)} was written by a newer Cutaway: install that one.")
            self.open = self.engine.connect() if self.sqlite else None
            if self.open is not None:
                # Its log is removed with the last connection, and the next one could not read on a disk that is full.
                self.open.exec_driver_sql("SELECT number FROM version").all()
                self.open.rollback()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        with explained(), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """What is done with the session is written whole at the end, or not at all."""
        with explained(), self.lock if self.sqlite else _none():
            options: Any = self.engine.execution_options(writes=True)
            with Session(options, expire_on_commit=False) as session, session.begin():
                yield session

    def ping(self) -> None:
        """Raises what keeps the database from answering."""
        with self.reading() as session:
            session.query(Version).one()

    def close(self) -> None:
        if self.open is not None:
            self.open.close()
        self.engine.dispose()


@contextmanager
def _none() -> Iterator[None]:
    yield


def add_columns(connection: Connection) -> None:
    """Give tables that an older Cutaway made the columns that they lack, empty in the rows that are there."""
    unless = "" if connection.dialect.name == "sqlite" else "IF NOT EXISTS "  # another server may be faster
    for table in Table.metadata.sorted_tables:
        known = {one["name"] for one in inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                kind = column.type.compile(connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {unless}{column.name} {kind}")


def sqlite_address(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"


def connect(address: str) -> Engine:
    try:
        if address.startswith("sqlite"):
            engine = create_engine(
                address, poolclass=NullPool, connect_args={"timeout": WAIT, "check_same_thread": False}
            )
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin)
            return engine
        if address.startswith("postgresql://"):
            address = address.replace("postgresql://", "postgresql+psycopg://", 1)
        return create_engine(address, pool_pre_ping=True, connect_args={"connect_timeout": 5})
    except (errors.ArgumentError, errors.NoSuchModuleError, ModuleNotFoundError) as error:
        raise CutawayError(
            f"The database {hidden(address)} cannot be used ({error}). "
            "Give sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME with pip install 'cutaway[postgres]'."
        ) from None


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so (`_begin`)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", f"busy_timeout = {int(1000 * WAIT)}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    """A writer takes its place at once: one that first read could not wait for another writer any more."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def explained() -> Iterator[None]:
    """What a database says, for the one who asked."""
    try:
        yield
    except (errors.IntegrityError, errors.DataError, errors.ProgrammingError):
        raise  # a mistake of ours
    except errors.DBAPIError as error:
        said = str(error.orig)
        if "full" in said or "No space left" in said:
            raise Unavailable("The disk is full, and nothing was written. Make room and try again.", True) from error
        if "locked" in said or "busy" in said:
            raise Unavailable("The database is busy, and nothing was written. Try again in a moment.") from error
        raise Unavailable(f"The database does not answer: {said.strip()}.") from error


def hidden(address: str) -> str:
    """An address without its password."""
    head, at, tail = address.rpartition("@")
    return f"{head.partition('://')[0]}://...@{tail}" if at else address


def now() -> int:
    """The second, as the API says it."""
    return int(time.time())
