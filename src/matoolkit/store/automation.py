"""Whether new batches of a runbook are made; where nobody has ever said, they are."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import ColumnElement, bindparam, false, insert, select, update

from matoolkit.store.runbooks import folded
from matoolkit.store.schema import runbook_automation_settings
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from matoolkit.store.database import Transaction


class Automation(msgspec.Struct, frozen=True):
    """How the switch of a runbook stands, and who turned it last in each direction."""

    automation_enabled: bool = True
    enabled_at: datetime | None = None
    enabled_by: str | None = None
    disabled_at: datetime | None = None
    disabled_by: str | None = None


_a = runbook_automation_settings.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)

READ = select(_a.automation_enabled, _a.enabled_at, _a.enabled_by, _a.disabled_at, _a.disabled_by).where(
    _a.runbook_name == bindparam("named")
)
SWITCHED_OFF = select(_a.runbook_name).where(_a.automation_enabled == false())
SWITCH = {
    True: update(runbook_automation_settings)
    .where(_a.runbook_name == bindparam("named"))
    .values(automation_enabled=True, enabled_at=_now, enabled_by=bindparam("by")),
    False: update(runbook_automation_settings)
    .where(_a.runbook_name == bindparam("named"))
    .values(automation_enabled=False, disabled_at=_now, disabled_by=bindparam("by")),
}


def read(tx: Transaction, runbook_name: str) -> Automation:
    """How the switch of a runbook stands."""
    row = tx.execute(READ, named=folded(runbook_name)).first()
    return Automation() if row is None else Automation(bool(row[0]), *row[1:])


def switched_off(tx: Transaction) -> frozenset[str]:
    """The names, folded, of runbooks for which no new batches are made."""
    return frozenset(tx.execute(SWITCHED_OFF).scalars())


def switch(tx: Transaction, runbook_name: str, *, enabled: bool, now: datetime, by: str) -> None:
    """Turn it on or off."""
    named = folded(runbook_name)
    if not tx.execute(SWITCH[enabled], named=named, now=now, by=by).rowcount:
        tx.connection.execute(
            insert(runbook_automation_settings),
            {
                "runbook_name": named,
                "automation_enabled": enabled,
                "enabled_at": now if enabled else None,
                "enabled_by": by if enabled else None,
                "disabled_at": None if enabled else now,
                "disabled_by": None if enabled else by,
            },
        )
