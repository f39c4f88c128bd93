"""What has to be true of an Azure SQL database before anything is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from matoolkit.store.address import described
from matoolkit.store.errors import SchemaMismatch, TransactionConflict

if TYPE_CHECKING:
    from matoolkit.store.database import Database, Transaction

STATE = text("SELECT is_read_committed_snapshot_on, compatibility_level FROM sys.databases WHERE database_id = DB_ID()")
_OLDEST_LEVEL = 130
"""Since this one there is OPENJSON, by which sets are one parameter."""
# The lock is the transaction's. How it went is a number that nobody is told of who does not ask.
ALONE = text(
    "DECLARE @given INT; "
    "EXEC @given = sp_getapplock @Resource = 'matoolkit-migrate', @LockMode = 'Exclusive',"
    " @LockOwner = 'Transaction', @LockTimeout = 90000; "
    "SELECT @given AS given"
)


def require_ready(database: Database) -> None:
    """Insist on what every new Azure SQL database has: sets as JSON, and readers who do not wait for writers."""
    if database.dialect != "mssql":
        return
    with database.reading() as tx:
        snapshots, level = tx.execute(STATE).one()
    name = described(database.engine.url)
    if not snapshots:
        raise SchemaMismatch(
            f"{name} has READ_COMMITTED_SNAPSHOT switched off: as its administrator, run"
            " ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE"
        )
    if level < _OLDEST_LEVEL:
        raise SchemaMismatch(
            f"{name} behaves like a server from before 2016: as its administrator, run"
            " ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 160"
        )


def hold_alone(tx: Transaction) -> None:
    """Nobody else migrates until the commit; another one who does is waited for."""
    if int(tx.execute(ALONE).scalar_one()) < 0:
        raise TransactionConflict("somebody else has been migrating the database for a minute and a half")
