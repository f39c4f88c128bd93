"""The embedded bus on PostgreSQL: any number of processes on any number of hosts.

Without a clock of its own every time is the database's, as each statement begins: hosts whose clocks differ do not
expire each other's locks. Publishing and claiming are one statement each, because each costs a round trip.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import text

from matoolkit.bus.statements import FIND_SUBSCRIPTION, Statements, Words
from matoolkit.bus.times import duration, milliseconds
from matoolkit.store.arrays import BigIntArray, TextArray

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import timedelta

    from sqlalchemy import TextClause

    from matoolkit.bus.outgoing import Entry
    from matoolkit.bus.port import Subscription
    from matoolkit.bus.storage import Claimed
    from matoolkit.clock import Clock
    from matoolkit.store.database import Transaction

CHANNEL = "matoolkit_bus"
"""On which subscriptions' ids are announced with NOTIFY."""

# `statement_timestamp()` is the latest of PostgreSQL's times that an index may still be searched by.
_DATABASE_NOW = "CAST(floor(extract(epoch FROM statement_timestamp()) * 1000) AS bigint)"
_GIVEN_NOW = "CAST(:now AS bigint)"

# Message ids are taken in their own order, so that two who publish the same ones wait and do not deadlock. Messages are
# numbered in the order they were given. Each subscription reached is announced once.
# Properties are parsed once for all filters, and not at all where there are none.
_PUBLISH = """
    WITH topic AS MATERIALIZED (
        SELECT id, time_to_live_ms, duplicate_window_ms FROM bus_topics WHERE name = :topic
    ), given AS MATERIALIZED (
        SELECT g.*, CASE WHEN EXISTS (
            SELECT FROM bus_subscriptions s, topic WHERE s.topic_id = topic.id AND s.filter_property IS NOT NULL
        ) THEN CAST(g.properties AS jsonb) END AS parsed
        FROM unnest(
            CAST(:message_ids AS text[]), CAST(:properties AS text[]), CAST(:bodies AS text[]),
            CAST(:deliver_at AS bigint[]), CAST(:time_to_live AS bigint[])
        ) WITH ORDINALITY AS g (message_id, properties, body, deliver_at, time_to_live, position)
    ), remembered AS (
        INSERT INTO bus_message_ids (topic_id, message_id, until)
        SELECT topic.id, given.message_id, {now} + topic.duplicate_window_ms FROM given, topic
        WHERE given.message_id IS NOT NULL AND topic.duplicate_window_ms > 0 ORDER BY given.message_id
        ON CONFLICT (topic_id, message_id) DO UPDATE SET until = excluded.until WHERE bus_message_ids.until <= {now}
        RETURNING message_id
    ), stored AS (
        INSERT INTO bus_messages
            (subscription_id, available_at, enqueued_at, expires_at, message_id, properties, body)
        SELECT s.id, greatest(g.deliver_at, {now}), greatest(g.deliver_at, {now}),
            greatest(g.deliver_at, {now}) + least(g.time_to_live, topic.time_to_live_ms),
            g.message_id, g.properties, g.body
        FROM given g, topic, bus_subscriptions s
        WHERE s.topic_id = topic.id
          AND (s.filter_property IS NULL OR g.parsed ->> s.filter_property = s.filter_value)
          AND (g.message_id IS NULL OR topic.duplicate_window_ms = 0
               OR g.message_id IN (SELECT message_id FROM remembered))
        ORDER BY g.position, s.id
        RETURNING subscription_id
    ), announced AS (
        SELECT subscription_id, pg_notify('{channel}', CAST(subscription_id AS text)) AS done
        FROM stored GROUP BY subscription_id
    )
    SELECT announced.subscription_id, announced.done FROM topic LEFT JOIN announced ON true
"""

# The inner query is ended by its limit on the index; the array keeps the update on the primary key whatever the planner
# believes the limit to be. In which order the rows come back is nobody's promise, and putting them in order here would
# need a join of the two, which is the slower way.
_CLAIM = """
    WITH rule AS MATERIALIZED (
        SELECT s.id, s.lock_ms, s.max_delivery_count FROM bus_topics t JOIN bus_subscriptions s ON s.topic_id = t.id
        WHERE t.name = :topic AND s.name = :subscription
    ), picked AS MATERIALIZED (
        SELECT m.id FROM bus_messages m
        WHERE m.subscription_id = (SELECT id FROM rule) AND m.dead_at IS NULL AND m.available_at <= {now}
        ORDER BY m.available_at, m.id LIMIT :limit FOR UPDATE SKIP LOCKED
    )
    UPDATE bus_messages
    SET available_at = {now} + coalesce(CAST(:lock_ms AS bigint), (SELECT lock_ms FROM rule)),
        delivery_count = delivery_count + 1
    WHERE id = ANY(ARRAY(SELECT id FROM picked))
    RETURNING id, message_id, properties, body, delivery_count, enqueued_at, available_at,
        expires_at <= {now}, (SELECT max_delivery_count FROM rule)
"""

_READY = """
    WITH rule AS MATERIALIZED (
        SELECT s.id, s.max_delivery_count FROM bus_topics t JOIN bus_subscriptions s ON s.topic_id = t.id
        WHERE t.name = :topic AND s.name = :subscription
    )
    SELECT m.id, m.message_id, m.properties, m.body, m.delivery_count + 1, m.enqueued_at, m.available_at,
        m.expires_at <= {now}, (SELECT max_delivery_count FROM rule)
    FROM bus_messages m
    WHERE m.subscription_id = (SELECT id FROM rule) AND m.dead_at IS NULL AND m.available_at <= {now}
    ORDER BY m.available_at, m.id LIMIT :limit FOR UPDATE OF m SKIP LOCKED
"""

_FIND_SUBSCRIPTION = text(FIND_SUBSCRIPTION)
_ANNOUNCE = text("SELECT pg_notify(:channel, CAST(id AS text)) FROM unnest(CAST(:ids AS bigint[])) AS given (id)")
_HOLD_SUBSCRIPTIONS = text("LOCK TABLE bus_subscriptions IN ACCESS EXCLUSIVE MODE")


class _Worded(NamedTuple):
    shared: Statements
    publish: TextClause
    claim: TextClause
    ready: TextClause


@cache
def _worded(now: str) -> _Worded:
    shared = Statements(
        Words(
            now=now,
            these="id = ANY(CAST(:ids AS bigint[]))",
            named="= ANY(CAST(:message_ids AS text[]))",
            ids_of="= ANY(ARRAY",
            end=")",
            skip_locked="FOR UPDATE SKIP LOCKED",
        )
    )
    return _Worded(
        shared,
        text(_PUBLISH.format(now=now, channel=CHANNEL)),
        text(_CLAIM.format(now=now)),
        text(_READY.format(now=now)),
    )


class PostgresqlStorage:
    """PostgreSQL, with its own clock or, for rehearsals, a given one."""

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        self._worded = _worded(_DATABASE_NOW if clock is None else _GIVEN_NOW)
        self.statements = self._worded.shared

    def times(self) -> dict[str, int]:
        """The clock's time; nothing when the time is the database's."""
        return {} if self._clock is None else {"now": milliseconds(self._clock.now())}

    def numbers(self, values: Collection[int]) -> Any:
        """A binary array."""
        return BigIntArray(values)

    def texts(self, values: Collection[str]) -> Any:
        """A binary array."""
        return TextArray(values)

    def publish(self, tx: Transaction, topic: str, entries: Sequence[Entry]) -> list[int] | None:
        """One statement."""
        message_ids, properties, bodies, deliver_at, time_to_live, _ = zip(*entries, strict=True)
        reached = tx.execute(
            self._worded.publish,
            topic=topic,
            message_ids=TextArray(message_ids),
            properties=TextArray(properties),
            bodies=TextArray(bodies),
            deliver_at=BigIntArray(deliver_at),
            time_to_live=BigIntArray(time_to_live),
            **self.times(),
        ).all()
        if not reached:
            return None
        return [row[0] for row in reached if row[0] is not None]

    def claim(
        self, tx: Transaction, subscription: Subscription, limit: int, lock_for: timedelta | None
    ) -> Sequence[Claimed] | None:
        """One statement, and a second one to tell a subscription that is empty from none."""
        names = {"topic": subscription.topic, "subscription": subscription.name}
        lock_ms = None if lock_for is None else duration(lock_for)
        claimed: Sequence[Any] = tx.execute(
            self._worded.claim, **names, limit=limit, lock_ms=lock_ms, **self.times()
        ).all()
        if not claimed and tx.execute(_FIND_SUBSCRIPTION, **names).first() is None:
            return None
        return claimed

    def ready(self, tx: Transaction, subscription: Subscription, limit: int) -> Sequence[Claimed] | None:
        """Row locks keep everybody else from them until the commit."""
        names = {"topic": subscription.topic, "subscription": subscription.name}
        found: Sequence[Any] = tx.execute(self._worded.ready, **names, limit=limit, **self.times()).all()
        if not found and tx.execute(_FIND_SUBSCRIPTION, **names).first() is None:
            return None
        return found

    def announce(self, tx: Transaction, subscription_ids: Collection[int]) -> None:
        """NOTIFY, which PostgreSQL holds back until the commit."""
        tx.execute(_ANNOUNCE, channel=CHANNEL, ids=BigIntArray(subscription_ids))

    def hold_subscriptions(self, tx: Transaction) -> None:
        """A lock that waits for whoever is publishing."""
        tx.execute(_HOLD_SUBSCRIPTIONS)
