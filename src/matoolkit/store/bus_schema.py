"""The tables of the embedded bus, and the outbox that feeds a bus elsewhere.

They are the bus's own: their times are milliseconds since 1970, so that SQL can add to them on every database alike,
and nothing refers to the state's tables, so that a worker may be given these and no others.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    String,
    Table,
    UnicodeText,
    UniqueConstraint,
    text,
)

from matoolkit.store.schema import Identity, metadata
from matoolkit.store.types import exact

_LIVE = text("dead_at IS NULL")
_DEAD = text("dead_at IS NOT NULL")

bus_topics = Table(
    "bus_topics",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", exact(String(128)), nullable=False),
    Column("time_to_live_ms", BigInteger, nullable=False),
    Column("duplicate_window_ms", BigInteger, nullable=False),
    UniqueConstraint("name"),
)

bus_subscriptions = Table(
    "bus_subscriptions",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("topic_id", Identity, nullable=False),
    Column("name", exact(String(128)), nullable=False),
    Column("filter_property", exact(String(64))),
    Column("filter_value", exact(String(256))),
    Column("lock_ms", BigInteger, nullable=False),
    Column("max_delivery_count", Integer, nullable=False),
    UniqueConstraint("topic_id", "name"),
    # A removed subscription's id must not come back while somebody still speaks of the old one.
    sqlite_autoincrement=True,
)

# One row for each subscription that a message reached. No foreign keys: they would cost a look-up for each message.
bus_messages = Table(
    "bus_messages",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("subscription_id", Identity, nullable=False),
    # When it may be handed out: its scheduled time, the end of its lock, or since when it lies here.
    Column("available_at", BigInteger, nullable=False),
    Column("delivery_count", Integer, nullable=False, server_default="0"),
    Column("enqueued_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("dead_at", BigInteger),
    Column("dead_reason", exact(String(256))),
    Column("dead_description", UnicodeText),
    # Empty when the bus gave the id, which is made of the row's.
    Column("message_id", exact(String(128))),
    Column("properties", UnicodeText, nullable=False),
    Column("body", UnicodeText, nullable=False),
    # Id and delivery count are the lock, so an id must never be used again.
    sqlite_autoincrement=True,
)
Index(
    "ix_bus_messages_available",
    bus_messages.c.subscription_id,
    bus_messages.c.available_at,
    bus_messages.c.id,
    sqlite_where=_LIVE,
    postgresql_where=_LIVE,
    mssql_where=_LIVE,
)
Index(
    "ix_bus_messages_expires",
    bus_messages.c.expires_at,
    sqlite_where=_LIVE,
    postgresql_where=_LIVE,
    mssql_where=_LIVE,
)
Index(
    "ix_bus_messages_dead",
    bus_messages.c.subscription_id,
    bus_messages.c.id,
    sqlite_where=_DEAD,
    postgresql_where=_DEAD,
    mssql_where=_DEAD,
)

# The ids that a topic has seen, and until when another message with one of them is a duplicate.
bus_message_ids = Table(
    "bus_message_ids",
    metadata,
    Column("topic_id", Identity, nullable=False),
    Column("message_id", exact(String(128)), nullable=False),
    Column("until", BigInteger, nullable=False),
    PrimaryKeyConstraint("topic_id", "message_id"),
    sqlite_with_rowid=False,
)
Index("ix_bus_message_ids_until", bus_message_ids.c.until)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("topic", exact(String(128)), nullable=False),
    # Empty when the bus is to give the id, which is made of the row's.
    Column("message_id", exact(String(128))),
    Column("properties", UnicodeText, nullable=False),
    Column("body", UnicodeText, nullable=False),
    Column("deliver_at", BigInteger),
    Column("time_to_live_ms", BigInteger),
    # Until then a relay is at it; after that it is anybody's again.
    Column("taken_until", BigInteger, nullable=False, server_default="0"),
    Column("written_at", BigInteger, nullable=False),
    # Of a message for later, once it is sent: by that it can be withdrawn.
    Column("sequence", BigInteger),
    sqlite_autoincrement=True,
)
_UNSENT = text("sequence IS NULL")
Index("ix_outbox_unsent", outbox.c.id, sqlite_where=_UNSENT, postgresql_where=_UNSENT, mssql_where=_UNSENT)
