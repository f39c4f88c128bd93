"""Manual batches: when they first moved, and how far an operator has taken them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, bindparam, func, update

from matoolkit.store.schema import batches
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.store.database import Transaction

_b = batches.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
STARTED = (
    update(batches)
    .where(_b.id == bindparam("batch"))
    .values(started_at=func.coalesce(_b.started_at, _now), current_phase=bindparam("phase"))
)


def moved(tx: Transaction, batch: int, phase: str | None, now: datetime) -> None:
    """An operator took it on, to a phase or to its init; the first time is what it counts from."""
    tx.change(STARTED, 1, batch=batch, phase=phase, now=now)
