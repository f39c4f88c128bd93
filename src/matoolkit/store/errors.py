"""What can go wrong with the database, told apart by whether trying again helps."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from sqlalchemy import exc

from matoolkit.errors import MatoolkitError
from matoolkit.store.azure_sql.said import Meaning, is_ours, meaning, shown

if TYPE_CHECKING:
    from collections.abc import Iterator


class StoreError(MatoolkitError):
    """The database refused."""


class DatabaseUnavailable(StoreError):
    """The database cannot be reached, or ended the connection."""

    retryable = True


class SignInRefused(StoreError):
    """The database does not let in who signs in."""


class DriverMissing(StoreError):
    """The database's driver cannot be loaded."""


class TransactionConflict(StoreError):
    """Two transactions wanted the same rows; this one was undone and may be tried again."""

    retryable = True


class DatabaseFull(StoreError):
    """The database cannot write: the disk is full or the file is read-only."""

    retryable = True


class RuleBroken(StoreError):
    """A row breaks a rule of the schema, whenever it is written: a fault of the program."""


class SchemaMismatch(StoreError):
    """The database's schema is not the one this version works with."""


_CONFLICTS = {
    "23503",  # foreign key violation: somebody removed the row meanwhile
    "23505",  # unique violation: somebody wrote the row meanwhile
    "23P01",  # exclusion violation
    "40001",  # serialization failure
    "40P01",  # deadlock detected
    "55P03",  # lock not available
    "57014",  # statement cancelled: a time limit of ours
}
_DISK_FULL = "53100"
_UNAVAILABLE = {
    "25006",  # read-only: a standby that is about to take over
    "57P01",  # terminated by an administrator
    "57P02",  # crash shutdown
    "57P03",  # the server is starting up
}
_SQLITE_SAME_ROW = {
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
}
# A plain SQLITE_ERROR, such as a table that is not there, is a fault of the program.
_SQLITE_KINDS: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: TransactionConflict,
    sqlite3.SQLITE_LOCKED: TransactionConflict,
    sqlite3.SQLITE_CONSTRAINT: RuleBroken,
    sqlite3.SQLITE_FULL: DatabaseFull,
    sqlite3.SQLITE_READONLY: DatabaseFull,
    sqlite3.SQLITE_CANTOPEN: DatabaseUnavailable,
    sqlite3.SQLITE_CORRUPT: DatabaseUnavailable,
    sqlite3.SQLITE_IOERR: DatabaseUnavailable,
    sqlite3.SQLITE_NOTADB: DatabaseUnavailable,
    sqlite3.SQLITE_PROTOCOL: DatabaseUnavailable,
}


def translated(error: exc.SQLAlchemyError) -> StoreError | None:
    """The error of ours that stands for a driver's, or nothing when it is a fault of the program."""
    if not isinstance(error, exc.DBAPIError):
        return None
    if is_ours(error.orig):
        return _microsoft_error(error)
    code = getattr(error.orig, "sqlite_errorcode", None)
    kind = _sqlite_kind(code) if code is not None else _server_kind(error)
    return None if kind is None else kind(_first_line(error))


def _sqlite_kind(code: int) -> type[StoreError] | None:
    """By SQLite's code, of which the last byte is the family."""
    if code in _SQLITE_SAME_ROW:
        return TransactionConflict
    return _SQLITE_KINDS.get(code & 0xFF)


def _server_kind(error: exc.DBAPIError) -> type[StoreError] | None:
    """By the standard's code, which a server sends and a broken connection does not."""
    state = getattr(error.orig, "sqlstate", None)
    if state in _CONFLICTS:
        return TransactionConflict
    if isinstance(error, exc.IntegrityError):
        return RuleBroken if state else TransactionConflict
    if state == _DISK_FULL:
        return DatabaseFull
    refused = state is None and error.statement is None  # while connecting, or at the commit
    if refused or error.connection_invalidated or state in _UNAVAILABLE or isinstance(error, exc.OperationalError):
        return DatabaseUnavailable
    return None


_MICROSOFT_KINDS: dict[Meaning, type[StoreError]] = {
    Meaning.AWAY: DatabaseUnavailable,
    Meaning.CONFLICT: TransactionConflict,
    Meaning.TOO_LONG: TransactionConflict,
    Meaning.FULL: DatabaseFull,
    Meaning.RULE: RuleBroken,
    Meaning.REFUSED: SignInRefused,
    Meaning.NO_DRIVER: DriverMissing,
}


def _microsoft_error(error: exc.DBAPIError) -> StoreError | None:
    """By the server's words, which are all that Microsoft's driver hands on."""
    found = meaning(error.orig)
    # While connecting there is no statement, and nobody whose row one could have waited for.
    if error.statement is None and isinstance(error, exc.OperationalError) and found in {None, Meaning.TOO_LONG}:
        found = Meaning.AWAY
    if found is None and error.connection_invalidated:
        found = Meaning.AWAY
    return None if found is None else _MICROSOFT_KINDS[found](shown(error.orig))


def _first_line(error: exc.DBAPIError) -> str:
    """The driver's message without the statement and its parameters, which may hold people's data."""
    return next(_lines(str(error.orig)), type(error.orig).__name__)


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())
