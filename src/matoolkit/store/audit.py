"""Who did what: a row beside the change it speaks of, in its transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import insert

from matoolkit.store.schema import audit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from matoolkit.store.database import Transaction


def record(
    tx: Transaction,
    at: datetime,
    actor: str,
    action: str,
    target: str,
    *,
    batch_id: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Note that somebody did something to something."""
    tx.connection.execute(
        insert(audit),
        {
            "at": at,
            "actor": actor,
            "action": action,
            "target": target,
            "batch_id": batch_id,
            "detail_json": None if detail is None else msgspec.json.encode(detail).decode(),
        },
    )
