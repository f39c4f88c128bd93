"""Leases: who alone may do something for now, and the proof of it that every transaction asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, delete, exists, insert, select, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from matoolkit.store.locking import for_share
from matoolkit.store.schema import leases
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from datetime import timedelta

    from sqlalchemy.sql.compiler import SQLCompiler

    from matoolkit.store.database import Transaction


SCHEDULER: Final = "scheduler"
"""The lease of the one scheduler that ticks."""


class _DatabaseTime(FunctionElement[Any]):
    inherit_cache = True
    name = "database_time"
    type = UtcDateTime()


@compiles(_DatabaseTime)
@compiles(_DatabaseTime, "sqlite")
def _never_asked(_element: _DatabaseTime, _compiler: SQLCompiler, **_kw: Any) -> str:
    return "CURRENT_TIMESTAMP"


@compiles(_DatabaseTime, "postgresql")
def _postgresql(_element: _DatabaseTime, _compiler: SQLCompiler, **_kw: Any) -> str:
    return "clock_timestamp()"


@compiles(_DatabaseTime, "mssql")
def _mssql(_element: _DatabaseTime, _compiler: SQLCompiler, **_kw: Any) -> str:
    return "SYSUTCDATETIME()"


_l = leases.c
_name: BindParameter[str] = bindparam("named")
_holder: BindParameter[str] = bindparam("by")
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
_until: ColumnElement[datetime] = bindparam("until", type_=UtcDateTime)

DATABASE_TIME = select(_DatabaseTime())
KEEP = update(leases).where(_l.name == _name, _l.holder == _holder).values(expires_at=_until)
TAKE = update(leases).where(_l.name == _name, _l.expires_at <= _now).values(holder=_holder, expires_at=_until)
BEGIN = insert(leases).from_select(
    ["name", "holder", "expires_at"],
    select(bindparam("named", type_=_l.name.type), bindparam("by", type_=_l.holder.type), _until).where(
        ~exists().where(_l.name == _name)
    ),
)
HELD: Select[Any] = for_share(select(_l.holder).where(_l.name == _name, _l.holder == _holder), leases)
GIVE_BACK = delete(leases).where(_l.name == _name, _l.holder == _holder)
FREE = delete(leases).where(_l.name == _name)
READ = select(_l.holder, _l.expires_at).where(_l.name == _name)


def database_time(tx: Transaction) -> datetime:
    """What the database's own clock says, which is the same for everybody who shares it."""
    moment: datetime = tx.execute(DATABASE_TIME).scalar_one()
    return moment.astimezone(UTC)


def keep(tx: Transaction, name: str, holder: str, until: datetime) -> bool:
    """Hold on to a lease; whether it is still held. One that has run out is kept as long as nobody took it."""
    return tx.execute(KEEP, named=name, by=holder, until=until).rowcount == 1


def take(tx: Transaction, name: str, holder: str, now: datetime, duration: timedelta) -> bool:
    """Take a lease that nobody holds, or whose time is over; whether it was there to be taken."""
    until = now + duration
    if tx.execute(TAKE, named=name, by=holder, now=now, until=until).rowcount == 1:
        return True
    return tx.execute(BEGIN, named=name, by=holder, until=until).rowcount == 1


def is_held(tx: Transaction, name: str, holder: str) -> bool:
    """Whether a lease is held by somebody; if so, nobody can take it until the commit."""
    return tx.execute(HELD, named=name, by=holder).first() is not None


def give_back(tx: Transaction, name: str, holder: str) -> None:
    """Let somebody else have it at once."""
    tx.execute(GIVE_BACK, named=name, by=holder)


def free(tx: Transaction, name: str) -> None:
    """Take it from whoever has it: for who knows that they have died."""
    tx.execute(FREE, named=name)


def read(tx: Transaction, name: str) -> tuple[str, datetime] | None:
    """Who holds it, and until when."""
    row = tx.execute(READ, named=name).first()
    return None if row is None else (row[0], row[1])
