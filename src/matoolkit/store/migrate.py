"""Bringing a database to the schema this version works with, and refusing to work with any other.

The revisions are the files in `migrations/versions`, in the order of their names. There is no way back: what an older
version would have to forget cannot be known, so a backup is the way back.
"""

from __future__ import annotations

from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Select, column, inspect, select, table, text

from matoolkit.store.address import described
from matoolkit.store.arriving import arrive
from matoolkit.store.azure_sql.readiness import hold_alone, require_ready
from matoolkit.store.errors import SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alembic.config import Config
    from sqlalchemy import Connection

    from matoolkit.store.arriving import Patience
    from matoolkit.store.database import Database

_FOLDER = Path(__file__).parent / "migrations"
_TABLE = "alembic_version"
_VERSION: Select[str] = select(column("version_num")).select_from(table(_TABLE))

# Whoever migrates waits for another who does. SQLite's transactions wait for each other anyway.
_ALONE = ("SET LOCAL lock_timeout = '5min'", "SELECT pg_advisory_xact_lock(7766284)")


# Filtered indexes ask for these; drivers set them, and sqlcmd does not.
_SETTINGS = {"mssql": "SET QUOTED_IDENTIFIER ON;\nSET ANSI_NULLS ON;\n\nGO\n\n"}


class MigrationReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a migration did."""

    database: str
    """Named without credentials."""
    before: str | None
    """The revision the database was at; nothing when it was empty."""
    after: str
    applied: list[str]
    """The revisions that were missing."""


def migrate(database: Database, patience: Patience | None = None) -> MigrationReport:
    """Bring the schema up to date, in one transaction; one that is up to date stays as it is."""
    from alembic import command

    revisions = _revisions()
    arrive(database, patience)
    require_ready(database)
    with database.transaction() as tx:
        if tx.dialect == "postgresql":
            for statement in _ALONE:
                tx.execute(text(statement))
        elif tx.dialect == "mssql":
            hold_alone(tx)
        before = _revision(tx.connection)
        if before is not None and before not in revisions:
            raise SchemaMismatch(_newer(database, before))
        missing = _after(before)
        if missing:
            command.upgrade(_configuration(connection=tx.connection), "head")
    return MigrationReport(
        database=described(database.engine.url), before=before, after=max(revisions), applied=missing
    )


def require_current(database: Database, patience: Patience | None = None) -> None:
    """Insist that the database has exactly the schema of this version; one that sleeps is waited for."""
    arrive(database, patience)
    require_ready(database)
    with database.reading() as tx:
        found = _revision(tx.connection)
    name, fix = described(database.engine.url), "run `matoolkit migrate`"
    if found is None:
        raise SchemaMismatch(f"{name} has no tables of matoolkit: {fix}")
    if found not in _revisions():
        raise SchemaMismatch(_newer(database, found))
    if missing := _after(found):
        raise SchemaMismatch(f"{name} is at revision {found} and lacks {_titles(missing)}: {fix}")


def script(dialect: str) -> str:
    """The whole schema as statements for a database that is not there: for review, and for who runs them by hand."""
    from alembic import command

    output = StringIO()
    command.upgrade(_configuration(dialect=dialect, output=output), "head", sql=True)
    return _SETTINGS.get(dialect, "") + output.getvalue()


def _newer(database: Database, found: str) -> str:
    return (
        f"{described(database.engine.url)} is at revision {found}, which is newer than this version of matoolkit"
        f" (revision {max(_revisions())}): install the version it was migrated with, or a newer one"
    )


def _revision(connection: Connection) -> str | None:
    """The revision a database is at, if it ever was at one."""
    if not inspect(connection).has_table(_TABLE):
        return None
    found: str | None = connection.execute(_VERSION).scalar()
    return found


@cache
def _revisions() -> dict[str, str]:
    """All revisions in order, with what they are about, read off the names of their files."""
    names = sorted(path.stem for path in (_FOLDER / "versions").glob("[0-9]*.py"))
    return {revision: title for revision, _, title in (name.partition("_") for name in names)}


def _after(revision: str | None) -> list[str]:
    return [each for each in _revisions() if revision is None or each > revision]


def _titles(revisions: Sequence[str]) -> str:
    return ", ".join(f"{each} ({_revisions()[each].replace('_', ' ')})" for each in revisions)


def _configuration(*, output: StringIO | None = None, **attributes: Any) -> Config:
    from alembic.config import Config

    configuration = Config(output_buffer=output, attributes=attributes)
    # Alembic takes `%` for the start of a variable.
    configuration.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    configuration.set_main_option("path_separator", "os")
    return configuration
