"""Messages that could not be handled, kept with why, to be looked at and sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from matoolkit.store.schema import dead_messages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from matoolkit.store.database import Transaction


def park(
    tx: Transaction,
    *,
    topic: str,
    message_id: str,
    properties: Mapping[str, Any],
    properties_json: str,
    body: str,
    reason: str,
    error: str | None,
    now: datetime,
) -> None:
    """Put a message aside."""
    tx.connection.execute(
        insert(dead_messages),
        {
            "at": now,
            "topic": topic,
            "message_id": message_id,
            "message_type": properties.get("MessageType"),
            "reason": reason,
            "error": error,
            "properties_json": properties_json,
            "body": body,
        },
    )
