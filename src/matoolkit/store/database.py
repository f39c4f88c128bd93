"""A database and its transactions: the only way in which anything is read or written.

A `Transaction` is a serial unit. On SQLite it takes the write lock as it begins, so that what it read is what it
changes; on PostgreSQL and Azure SQL it runs at read committed, and whoever decides from rows locks them first.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, Executable, create_engine, event, exc
from sqlalchemy.pool import QueuePool

from matoolkit.store.address import BadDatabaseUrl, described, parsed, scrubbed
from matoolkit.store.errors import (
    DatabaseFull,
    DatabaseUnavailable,
    DriverMissing,
    SignInRefused,
    TransactionConflict,
    translated,
)
from matoolkit.store.plans import settle_plans
from matoolkit.store.prepared import Answer, Prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from matoolkit.store.rows import Rows

_BUSY_TIMEOUT_SECONDS = 30
_READ_ONLY = "matoolkit_read_only"
_TURNS = 10


class GuardFailed(TransactionConflict):
    """A row was not in the state its change expected: somebody else was first."""


class Transaction:
    """One transaction under way: statements in, rows out, and what is to follow once it is committed."""

    def __init__(self, connection: Connection, prepared: dict[Executable, Prepared]) -> None:
        self._connection = connection
        self._prepared = prepared
        self._after_commit: list[Callable[[], None]] = []
        self.dialect: str = connection.dialect.name

    @property
    def connection(self) -> Connection:
        """The connection underneath, for what has no statement of its own."""
        return self._connection

    def execute(self, statement: Executable, **parameters: Any) -> Answer:
        """Run a statement, one that is kept: it is made ready the first time and stays so."""
        ready = self._prepared.get(statement)
        if ready is None:
            ready = self._prepared[statement] = Prepared(statement, self._connection.dialect)
        return ready.run(self._connection, parameters)

    def with_rows(
        self, statement: Executable, rows: Rows, values: Iterable[Sequence[Any]], **parameters: Any
    ) -> Answer:
        """Run a statement that takes rows."""
        return self.execute(statement, **rows.bind(self.dialect, values), **parameters)

    def change(self, statement: Executable, expected: int, **parameters: Any) -> None:
        """Run a guarded change and insist on how many rows it found."""
        _insist(self.execute(statement, **parameters).rowcount, expected)

    def change_rows(
        self, statement: Executable, rows: Rows, values: Sequence[Sequence[Any]], **parameters: Any
    ) -> None:
        """Run a guarded change of given rows and insist that it found every one of them."""
        if values:
            _insist(self.with_rows(statement, rows, values, **parameters).rowcount, len(values))

    def after_commit(self, action: Callable[[], None]) -> None:
        """Have something done once everything is safely written, and not at all otherwise."""
        self._after_commit.append(action)

    def committed(self) -> None:
        """Do what was asked for after the commit."""
        for action in self._after_commit:
            action()


class Database:
    """Where the state is kept."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.dialect: str = engine.dialect.name
        self._prepared: dict[Executable, Prepared] = {}
        # SQLite lets one transaction write, and makes the others ask again and again; here they queue up instead.
        self._turn: AbstractContextManager[object] = Lock() if self.dialect == "sqlite" else nullcontext()
        self._writer: Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction that is committed at the end of the block and undone when the block fails."""
        with _translated_errors(self.engine.url), self._turn, self._writing() as connection:
            transaction = Transaction(connection, self._prepared)
            yield transaction
        transaction.committed()

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A view of the state that changes nothing and holds nobody up."""
        with _translated_errors(self.engine.url), self.engine.connect() as connection:
            connection.execution_options(**{_READ_ONLY: True})
            with connection.begin():
                yield Transaction(connection, self._prepared)

    def close(self) -> None:
        """Give back every connection."""
        with self._turn:
            self._forget_writer()
        self.engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection within its transaction.

        SQLite's writers, who take turns, share one: to have one from the pool each time costs much of what a small
        transaction does.
        """
        if self.dialect != "sqlite":
            with self.engine.begin() as connection:
                yield connection
            return
        if self._writer is None:
            self._writer = self.engine.connect()
        try:
            with self._writer.begin():
                yield self._writer
        except exc.SQLAlchemyError:
            # Whatever it met, the next one starts on a connection that has met nothing.
            self._forget_writer()
            raise

    def _forget_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def open_database(url: str | URL, *, durable: bool = True, tokens: Callable[[str], str] | None = None) -> Database:
    """A database by its SQLAlchemy URL, or an Azure SQL database by its connection string.

    `durable=False` is for what may be lost with the machine; `tokens` gives the tokens that Azure SQL is signed in to
    with, where they do not come from Entra ID.
    """
    address = parsed(url)
    try:
        return Database(_engine(address, durable=durable, tokens=tokens))
    except ModuleNotFoundError as error:
        extra = " (pip install 'matoolkit[azure]')" if address.get_backend_name() == "mssql" else ""
        raise BadDatabaseUrl(f"{described(address)} needs the Python package {error.name}{extra}") from error
    except exc.NoSuchModuleError as error:
        raise BadDatabaseUrl(f"SQLAlchemy has no driver {address.drivername} for {described(address)}") from error


def _engine(address: URL, *, durable: bool, tokens: Callable[[str], str] | None) -> Engine:
    if address.get_backend_name() == "mssql":
        from matoolkit.store.azure_sql.engine import azure_sql_engine

        return azure_sql_engine(address, tokens)
    # What a statement was given may be people's data, so no error quotes it.
    if address.get_backend_name() == "sqlite":
        engine = create_engine(
            address,
            hide_parameters=True,
            poolclass=QueuePool,
            connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "isolation_level": None, "check_same_thread": False},
        )
        prepare_sqlite(engine, synchronous="FULL" if durable else "OFF")
    else:
        engine = create_engine(address, hide_parameters=True, pool_pre_ping=False, pool_size=8, max_overflow=8)
    if address.get_backend_name() == "postgresql":
        from matoolkit.store.arrays import prepare_postgresql

        prepare_postgresql(engine)
        settle_plans(engine)
    return engine


def _write_ahead(connection: Any) -> None:
    """Change over to a write-ahead log. SQLite does not wait by itself for who is just doing the same; we do."""
    for left in reversed(range(_TURNS)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if not left:
                raise
            # Waits for whoever writes.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        else:
            return


def prepare_sqlite(engine: Engine, *, synchronous: str) -> None:
    """Make SQLite's connections durable, and its transactions begin when we say so instead of at the first write."""

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: object) -> None:
        _write_ahead(connection)
        for pragma in (
            f"synchronous = {synchronous}",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -65536",
            "wal_autocheckpoint = 4000",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        read_only = connection.get_execution_options().get(_READ_ONLY, False)
        driver: Any = connection.connection.driver_connection
        try:
            driver.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise exc.DBAPIError.instance("BEGIN", None, error, sqlite3.Error, dialect=connection.dialect) from error


@contextmanager
def _translated_errors(address: URL) -> Iterator[None]:
    try:
        yield
    except exc.SQLAlchemyError as error:
        ours = translated(error)
        if ours is None:
            raise
        message = scrubbed(str(ours), address)
        if isinstance(ours, DatabaseUnavailable | DatabaseFull | SignInRefused | DriverMissing):
            message = f"{described(address)}: {message}"
        raise type(ours)(message) from error


def _insist(found: int, expected: int) -> None:
    if found != expected:
        raise GuardFailed(f"{found} of {expected} rows were in the state they were expected in")


__all__ = ["Database", "DatabaseUnavailable", "GuardFailed", "Transaction", "open_database", "prepare_sqlite"]
