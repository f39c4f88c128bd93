"""Members found with a query on a database that SQLAlchemy reaches.

SQLite is opened read-only and lets a query do nothing but read. PostgreSQL gets a read-only transaction, a server-side
cursor and a statement timeout. On any other database the transaction is rolled back at the end, and the account's
rights decide.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, exc, make_url
from sqlalchemy.pool import NullPool

from matoolkit.scheduler.sources.errors import (
    BadConnection,
    ExtraNotInstalled,
    NothingToRead,
    QueryRefused,
    SignInRefused,
    SourceError,
    SourceUnavailable,
)
from matoolkit.scheduler.sources.watch import Watch, first_line
from matoolkit.store.address import described, scrubbed

if TYPE_CHECKING:
    from collections.abc import Generator

    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.sources.port import Chunk
    from matoolkit.scheduler.sources.settings import SourceSettings

_MAY_READ: Final = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
}
_UNREACHABLE_SQLITE: Final = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
}
_CONNECT_SECONDS: Final = 15
_CANCEL_SECONDS: Final = 5.0


class SqlSource:
    """A query on a database."""

    def __init__(self, data_source: DataSource, settings: SourceSettings) -> None:
        self._query = data_source.query
        self._settings = settings
        self._address = _address(data_source.connection, settings.variable(data_source.connection, "its connection"))
        self._place = described(self._address)

    def read(self) -> Generator[Chunk]:
        """Run the query and give its rows in chunks."""
        watch = Watch(self._settings, f"the query on {self._place}")
        engine = self._engine(watch)
        try:
            with engine.connect() as connection, watch.interrupting(lambda: _interrupt(connection)):
                self._settle(connection, watch)
                options = {"stream_results": True, "max_row_buffer": self._settings.chunk_rows, "no_parameters": True}
                with closing(connection.exec_driver_sql(self._query, execution_options=options)) as result:
                    if not result.returns_rows or result.cursor is None:
                        raise NothingToRead(f"the query on {self._place} returns no columns: it has to be a SELECT")
                    columns = [str(column[0]) for column in result.cursor.description]
                    yield from watch.chunks(columns, result.fetchmany)
                connection.rollback()
        except exc.SQLAlchemyError as error:
            raise self._translated(error, watch) from error
        except (UnicodeError, ValueError, OverflowError) as error:
            raise QueryRefused(f"{self._place} returns a value that cannot be read: {first_line(error)}") from error
        finally:
            engine.dispose()

    def _engine(self, watch: Watch) -> Engine:
        seconds = min(_CONNECT_SECONDS, watch.remaining())
        try:
            if self._address.get_backend_name() == "sqlite":
                return create_engine("sqlite://", poolclass=NullPool, creator=self._sqlite, hide_parameters=True)
            arguments = {"connect_timeout": max(1, round(seconds))} if self._is_postgresql else {}
            return create_engine(self._address, poolclass=NullPool, connect_args=arguments, hide_parameters=True)
        except ModuleNotFoundError as error:
            raise ExtraNotInstalled(
                f"{self._place} needs the Python package {error.name}: install it where the scheduler runs"
            ) from error
        except exc.NoSuchModuleError as error:
            raise BadConnection(f"SQLAlchemy has no driver {self._address.drivername} for {self._place}") from error

    @property
    def _is_postgresql(self) -> bool:
        return self._address.get_backend_name() == "postgresql"

    def _sqlite(self) -> sqlite3.Connection:
        file = Path(self._address.database or "").absolute()
        return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=5, check_same_thread=False)

    def _settle(self, connection: Connection, watch: Watch) -> None:
        """Make sure of what can be made sure of before the query is seen."""
        driver: Any = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            driver.set_authorizer(_only_reading)
        elif self._is_postgresql:
            driver.server_cursor_factory = _Cursor
            milliseconds = max(1, int(watch.remaining() * 1000))
            connection.exec_driver_sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
            connection.exec_driver_sql(f"SET statement_timeout = {milliseconds}")
            connection.commit()

    def _translated(self, error: exc.SQLAlchemyError, watch: Watch) -> SourceError:
        if watch.over:
            return watch.too_long()
        original = getattr(error, "orig", None)
        said = scrubbed(first_line(original or error), self._address)
        kind = _kind(error, original)
        return kind(f"{self._place}: {said}")


class _Cursor(psycopg.ServerCursor[Any]):
    """A cursor that goes silently: SQLAlchemy leaves it open when its connection is lost, and closes that."""

    def __del__(self, *_: object) -> None:
        pass


def _address(name: str, value: str) -> URL:
    try:
        address = make_url(value)
    except (exc.ArgumentError, ValueError):
        raise BadConnection(
            f"{name} holds no URL that can be read: it should look like postgresql+psycopg://user:password@host/name"
            " or sqlite:////path/to/file, with special characters of the password percent-encoded"
        ) from None  # its text quotes a part of the URL
    if "@" in (address.host or ""):
        raise BadConnection(f"the URL in {name} has more than one @: in the password, write %40 for it")
    if address.get_backend_name() == "sqlite" and address.database in {None, "", ":memory:"}:
        raise BadConnection(f"the URL in {name} names no file: it should look like sqlite:////path/to/file")
    if address.drivername == "postgresql":
        return address.set(drivername="postgresql+psycopg")
    return address


def _only_reading(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _MAY_READ else sqlite3.SQLITE_DENY


def _interrupt(connection: Connection) -> None:
    """End what the connection is doing, from another thread."""
    driver: Any = connection.connection.driver_connection
    for name, arguments in (("interrupt", {}), ("cancel_safe", {"timeout": _CANCEL_SECONDS}), ("cancel", {})):
        if callable(cancel := getattr(driver, name, None)):
            with suppress(Exception):
                cancel(**arguments)
            break
    # A server that does not answer does not cancel either; without its socket, nothing waits for it.
    if callable(fileno := getattr(driver, "fileno", None)):
        with suppress(Exception), socket.socket(fileno=os.dup(fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)


def _kind(error: exc.SQLAlchemyError, original: BaseException | None) -> type[SourceError]:
    if isinstance(original, sqlite3.Error):
        code = getattr(original, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return SourceUnavailable if code in _UNREACHABLE_SQLITE else QueryRefused
    state = str(getattr(original, "sqlstate", None) or "")
    if state.startswith("28"):
        return SignInRefused
    if state.startswith(("08", "53", "57")):
        return SourceUnavailable
    if not state and isinstance(error, exc.OperationalError | exc.InterfaceError):
        return SignInRefused if "password" in str(original).lower() else SourceUnavailable
    return QueryRefused
