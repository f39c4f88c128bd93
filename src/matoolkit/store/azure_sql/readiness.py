"""What has to be true of an Azure SQL database before anything is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from matoolkit.store.address import described
from matoolkit.store.errors import SchemaMismatch, TransactionConflict

if TYPE_CHECKING:
    from matoolkit.store.database import Database, Transaction

SNAPSHOTS = text("SELECT is_read_committed_snapshot_on FROM sys.databases WHERE database_id = DB_ID()")
# The lock is the transaction's. How it went is a number that nobody is told of who does not ask.
ALONE = text(
    "DECLARE @given INT; "
    "EXEC @given = sp_getapplock @Resource = 'matoolkit-migrate', @LockMode = 'Exclusive',"
    " @LockOwner = 'Transaction', @LockTimeout = 90000; "
    "SELECT @given AS given"
)


def require_snapshots(database: Database) -> None:
    """Insist that whoever reads does not wait for those who write, as it is in every new Azure SQL database."""
    if database.dialect != "mssql":
        return
    with database.reading() as tx:
        on = tx.execute(SNAPSHOTS).scalar()
    if not on:
        raise SchemaMismatch(
            f"{described(database.engine.url)} has READ_COMMITTED_SNAPSHOT switched off: as its administrator, run"
            " ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE"
        )


def hold_alone(tx: Transaction) -> None:
    """Nobody else migrates until the commit; another one who does is waited for."""
    if int(tx.execute(ALONE).scalar_one()) < 0:
        raise TransactionConflict("somebody else has been migrating the database for a minute and a half")
