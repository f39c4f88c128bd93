"""What waits to be sent to a bus that is not in the database: written in the transaction whose changes it speaks of.

A relay *takes* rows for a while, in the order they were written, sends them, and says that they are *sent*. It does not
hold a transaction open while it sends. When it dies in between, its time runs out and another one sends the same
messages under the same ids, which the bus recognises as duplicates: nothing is lost, and nothing arrives twice.

A message for later stays here when it is sent, with the bus's sequence for it, until its time has come: by that it can
be withdrawn, whoever sent it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from sqlalchemy import BigInteger, Column, String, bindparam, delete, func, insert, select, update

from matoolkit.bus.outgoing import entries
from matoolkit.bus.port import Outgoing
from matoolkit.bus.times import duration, milliseconds, moment
from matoolkit.store.bus_schema import outbox
from matoolkit.store.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from matoolkit.clock import Clock
    from matoolkit.store.database import Transaction

_decode_properties = msgspec.json.Decoder(dict[str, str]).decode

_IDS = Rows(Column("id", BigInteger), name="taken")
_NEW = Rows(
    Column("position", BigInteger),
    Column("message_id", String),
    Column("properties", String),
    Column("body", String),
    Column("deliver_at", BigInteger),
    Column("time_to_live_ms", BigInteger),
    name="written",
)
_SEQUENCES = Rows(Column("id", BigInteger), Column("sequence", BigInteger), name="scheduled")
_MESSAGE_IDS = Rows(Column("message_id", String(128)), name="withdrawn")

# Ids follow the order in which the messages were given.
_WRITE = insert(outbox).from_select(
    ["topic", "message_id", "properties", "body", "deliver_at", "time_to_live_ms", "written_at"],
    select(
        bindparam("topic", type_=String(128)),
        _NEW.c.message_id,
        _NEW.c.properties,
        _NEW.c.body,
        _NEW.c.deliver_at,
        _NEW.c.time_to_live_ms,
        bindparam("now", type_=BigInteger),
    )
    .order_by(_NEW.c.position)
    .offset(0),  # without it, SQLAlchemy leaves the order out for Azure SQL
    include_defaults=False,
)

# The first that no relay is at; another relay's, in its transaction at this moment, are passed over.
_FREE = (
    select(
        outbox.c.id,
        outbox.c.topic,
        outbox.c.message_id,
        outbox.c.properties,
        outbox.c.body,
        outbox.c.deliver_at,
        outbox.c.time_to_live_ms,
    )
    .where(outbox.c.sequence.is_(None), outbox.c.taken_until <= bindparam("now", type_=BigInteger))
    .order_by(outbox.c.id)
    .limit(bindparam("limit", type_=BigInteger))
    .with_for_update(skip_locked=True)
    .with_hint(outbox, "WITH (UPDLOCK, ROWLOCK, READPAST)", "mssql")
)
_TAKE = (
    update(outbox).where(outbox.c.id.in_(select(_IDS.c.id))).values(taken_until=bindparam("until", type_=BigInteger))
)
_SENT = delete(outbox).where(outbox.c.id.in_(select(_IDS.c.id)))
_WAITING = select(func.count(), func.min(outbox.c.written_at)).where(outbox.c.sequence.is_(None))
# Sent for later, and kept for its sequence.
_SCHEDULED = update(outbox).where(outbox.c.id == _SEQUENCES.c.id).values(sequence=_SEQUENCES.c.sequence)
# What may still be withdrawn: not sent yet, or sent for a time that has not come.
_TO_WITHDRAW = (
    select(outbox.c.id, outbox.c.sequence)
    .where(
        outbox.c.topic == bindparam("topic", type_=String(128)),
        outbox.c.message_id.in_(select(_MESSAGE_IDS.c.message_id)),
        outbox.c.deliver_at > bindparam("now", type_=BigInteger),
    )
    .with_for_update()
    .with_hint(outbox, "WITH (UPDLOCK, ROWLOCK)", "mssql")
)
# Whose time has come is the bus's alone.
_OVER = delete(outbox).where(outbox.c.sequence.is_not(None), outbox.c.deliver_at <= bindparam("now", type_=BigInteger))


class Lag(Struct, frozen=True):
    """How far relays are behind."""

    waiting: int
    """Messages that have not been sent."""
    since: datetime | None
    """When the oldest of them was written."""


class Unsent(Struct, frozen=True):
    """A message on its way to the bus."""

    id: int
    topic: str
    message: Outgoing


class Outbox:
    """Takes what is published, and hands it to relays. Hosts' clocks may differ: what is taken early is a duplicate."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: list[Callable[[], None]] = []

    def tell(self, relay: Callable[[], None]) -> None:
        """Have a relay of this process told whenever something was written."""
        self._told.append(relay)

    def publish(self, tx: Transaction, topic: str, messages: Sequence[Outgoing]) -> None:
        """Have messages sent once the transaction is committed, and not at all otherwise."""
        rows = [(position, *entry[:-1]) for position, entry in enumerate(entries(topic, messages))]
        if rows:
            tx.with_rows(_WRITE, _NEW, rows, topic=topic, now=self._now())
            for tell in self._told:
                tx.after_commit(tell)

    def withdraw(self, tx: Transaction, topic: str, message_ids: Collection[str]) -> tuple[int, list[int]]:
        """Withdraw messages for later: how many were not sent yet, and the sequences of those the bus has."""
        named = [(each,) for each in sorted(message_ids)]
        rows = tx.with_rows(_TO_WITHDRAW, _MESSAGE_IDS, named, topic=topic, now=self._now()).all() if named else []
        if rows:
            tx.with_rows(_SENT, _IDS, [(row[0],) for row in rows])
        sequences = [row[1] for row in rows if row[1] is not None]
        return len(rows) - len(sequences), sequences

    def take(self, tx: Transaction, limit: int, hold_for: timedelta = timedelta(seconds=60)) -> list[Unsent]:
        """The next messages, which are this relay's alone for a while; commit before sending them."""
        now = self._now()
        rows = tx.execute(_FREE, now=now, limit=limit).all()
        if rows:
            tx.with_rows(_TAKE, _IDS, [(row[0],) for row in rows], until=now + duration(hold_for))
        return [
            Unsent(
                sequence,
                topic,
                Outgoing(
                    body,
                    _decode_properties(properties),
                    f"outbox-{sequence}" if message_id is None else message_id,
                    None if deliver_at is None else moment(deliver_at),
                    None if time_to_live_ms is None else timedelta(milliseconds=time_to_live_ms),
                ),
            )
            for sequence, topic, message_id, properties, body, deliver_at, time_to_live_ms in rows
        ]

    def sent(self, tx: Transaction, messages: Sequence[Unsent]) -> None:
        """They have arrived. Whoever took them in the meantime will send them again, under the same ids."""
        if messages:
            tx.with_rows(_SENT, _IDS, [(message.id,) for message in messages])

    def scheduled(self, tx: Transaction, messages: Sequence[tuple[Unsent, int]]) -> None:
        """They have arrived, for later, each under a sequence of the bus's."""
        if messages:
            tx.with_rows(_SCHEDULED, _SEQUENCES, [(message.id, sequence) for message, sequence in messages])

    def forget(self, tx: Transaction) -> None:
        """Forget sequences of messages whose time has come."""
        tx.execute(_OVER, now=self._now())

    def give_back(self, tx: Transaction, messages: Sequence[Unsent], retry_at: datetime) -> None:
        """They could not be sent now; nobody is to take them before that moment."""
        if messages:
            tx.with_rows(_TAKE, _IDS, [(message.id,) for message in messages], until=milliseconds(retry_at))

    def lag(self, tx: Transaction) -> Lag:
        """How many messages have not been sent, and since when."""
        waiting, since = tx.execute(_WAITING).one()
        return Lag(waiting, None if since is None else moment(since))

    def _now(self) -> int:
        return milliseconds(self._clock.now())
