"""The bus kept in the database, beside the state: what is published, settled and changed together is one commit."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.bus.errors import DatabaseNotSupported, LockLost, TopicNotFound
from matoolkit.bus.outgoing import entries, storable
from matoolkit.bus.port import DeadLetter, DeadReason, Depth, Received, Subscription, SweepReport
from matoolkit.bus.signals import Signals
from matoolkit.bus.sqlite import SqliteStorage
from matoolkit.bus.times import Moments, duration, moment
from matoolkit.bus.topology import Topology
from matoolkit.bus.waiting import Waiting, first_of, not_found
from matoolkit.clock import SystemClock
from matoolkit.store.address import described

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta

    from sqlalchemy import URL, TextClause

    from matoolkit.bus.port import Outgoing
    from matoolkit.bus.storage import Claimed, Storage
    from matoolkit.bus.topology import SubscriptionRule
    from matoolkit.clock import Clock
    from matoolkit.store.database import Database, Transaction

_LONGEST_REASON, _LONGEST_DESCRIPTION = 256, 4096

_EXPIRED = {"reason": DeadReason.TIME_TO_LIVE, "description": "nobody took the message within its time to live"}
_EXCEEDED = {
    "reason": DeadReason.MAX_DELIVERY_COUNT,
    "description": "handed out as often as allowed, and never settled",
}

_by_age = itemgetter(5, 0)
"""Of what was claimed: when it was enqueued, and its sequence."""
_decode_properties = msgspec.json.Decoder(dict[str, str]).decode


_NO_TOPICS = (
    "{} cannot hold the topics: name a Service Bus namespace beside it, or keep both state and topics in PostgreSQL"
)


def require_topics(address: URL) -> None:
    """Insist, before anything is opened, that a database is of a kind that can hold the topics."""
    if address.get_backend_name() not in {"sqlite", "postgresql"}:
        raise DatabaseNotSupported(_NO_TOPICS.format(described(address)))


class EmbeddedBus:
    """Topics and subscriptions in the tables of a database.

    With a clock every time comes from it. Without one it is PostgreSQL's own, and on SQLite the machine's.
    """

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self._database = database
        self._storage = _storage(database, clock)
        self._statements = self._storage.statements
        self._signals = Signals()
        self._waiting = Waiting(database, self._storage, self._signals)

    @property
    def in_database(self) -> bool:
        """It is."""
        return True

    def transaction(self) -> AbstractContextManager[Transaction]:
        """One of the database's."""
        return self._database.transaction()

    # Topics and subscriptions ------------------------------------------------------------------------------------

    def declare(self, tx: Transaction, topology: Topology) -> None:
        """In the order of their names, so that services starting together wait for each other and do not deadlock."""
        topology.check()
        for topic in sorted(topology.topics, key=lambda topic: topic.name):
            tx.execute(
                self._statements.declare_topic,
                name=topic.name,
                time_to_live_ms=duration(topic.time_to_live),
                duplicate_window_ms=duration(topic.duplicate_window),
            )
        for rule in sorted(topology.subscriptions, key=lambda rule: rule.subscription):
            tx.execute(
                self._statements.declare_subscription,
                topic_id=self._topic_id(tx, rule.topic),
                name=rule.name,
                filter_property=None if rule.filter is None else rule.filter.property,
                filter_value=None if rule.filter is None else rule.filter.value,
                lock_ms=duration(rule.lock_duration),
                max_delivery_count=rule.max_delivery_count,
            )

    def remove(self, tx: Transaction, subscription: Subscription) -> None:
        """Held against publishers, so that none leaves messages behind in what is no longer there."""
        self._storage.hold_subscriptions(tx)
        rule = self._find(tx, subscription)
        if rule is not None:
            tx.execute(self._statements.remove_subscription, subscription_id=rule)
            tx.execute(self._statements.remove_messages, subscription_id=rule)

    def hand_over(
        self, tx: Transaction, source: Subscription, heir: Callable[[Mapping[str, str]], SubscriptionRule]
    ) -> None:
        """Remove a subscription, and have what lies in it lie where `heir` says for its properties."""
        self._storage.hold_subscriptions(tx)
        subscription_id = self._subscription_id(tx, source)
        moving: dict[SubscriptionRule, list[int]] = {}
        for identifier, properties in tx.execute(self._statements.in_subscription, subscription_id=subscription_id):
            moving.setdefault(heir(_decode_properties(properties)), []).append(identifier)
        for rule, identifiers in moving.items():
            self.declare(tx, Topology(subscriptions=(rule,)))
            target = self._subscription_id(tx, rule.subscription)
            tx.execute(self._statements.move, subscription_id=target, ids=self._storage.numbers(identifiers))
        tx.execute(self._statements.remove_subscription, subscription_id=subscription_id)

    def subscriptions(self, tx: Transaction, topic: str) -> list[Subscription]:
        """By name."""
        return [Subscription(topic, name) for name in tx.execute(self._statements.subscriptions, topic=topic).scalars()]

    def listeners(self, tx: Transaction, topic: str, property_name: str) -> frozenset[str] | None:
        """By the filters there are now."""
        values: set[str] = set()
        for filter_property, filter_value in tx.execute(self._statements.filters, topic=topic):
            if filter_property is None:
                return None
            if filter_property == property_name:
                values.add(filter_value)
        return frozenset(values)

    # Sending -----------------------------------------------------------------------------------------------------

    def publish(self, tx: Transaction, topic: str, messages: Sequence[Outgoing]) -> None:
        """The messages are in the subscriptions when the transaction is committed, and only then is anybody woken."""
        prepared = entries(topic, messages)
        if not prepared:
            return
        reached = self._storage.publish(tx, topic, prepared)
        if reached is None:
            raise TopicNotFound(f"there is no topic {topic}")
        if reached:
            tx.after_commit(partial(self._signals.signal, reached))

    def cancel_scheduled(self, tx: Transaction, topic: str, message_ids: Collection[str]) -> int:
        """In every subscription they reached."""
        withdrawn = tx.execute(
            self._statements.cancel_scheduled,
            topic_id=self._topic_id(tx, topic),
            message_ids=self._storage.texts(sorted(message_ids)),
            **self._storage.times(),
        )
        return len(set(withdrawn.scalars()))

    # Receiving and settling --------------------------------------------------------------------------------------

    def receive(
        self, tx: Transaction, subscription: Subscription, limit: int, lock_for: timedelta | None = None
    ) -> list[Received]:
        """What expired or was handed out too often is noticed here, on what was claimed, and nowhere looked for."""
        noted = self._signals.noted()
        while True:
            claimed = self._storage.claim(tx, subscription, limit, lock_for)
            if claimed is None:
                raise not_found(subscription)
            if not claimed:
                self._waiting.came_up_empty(subscription, noted)
                return []
            received = self._hand_out(tx, subscription, claimed)
            if received:
                return received

    def take(self, tx: Transaction, subscription: Subscription, limit: int) -> list[Received]:
        """One write a message instead of two: nobody else can have it, and it is gone with the commit."""
        noted = self._signals.noted()
        while True:
            ready = self._storage.ready(tx, subscription, limit)
            if ready is None:
                raise not_found(subscription)
            if not ready:
                self._waiting.came_up_empty(subscription, noted)
                return []
            received = self._hand_out(tx, subscription, ready, counted=0)
            if received:
                sequences = [message.sequence for message in received]
                tx.execute(self._statements.take, ids=self._storage.numbers(sequences))
                return received

    def _hand_out(
        self, tx: Transaction, subscription: Subscription, claimed: Iterable[Claimed], counted: int = 1
    ) -> list[Received]:
        topic, name = subscription.topic, subscription.name
        received, expired, exceeded, moments = [], [], [], Moments()
        properties_seen: dict[str, Mapping[str, str]] = {}
        # The oldest first, also before those that were ready longer because their lock never had to end.
        for sequence, message_id, text, body, delivery_count, enqueued_at, locked_until, is_late, allowed in sorted(
            claimed, key=_by_age
        ):
            if delivery_count > allowed:
                exceeded.append(sequence)
                continue
            if is_late:
                expired.append(sequence)
                continue
            properties = properties_seen.get(text)
            if properties is None:
                properties = properties_seen[text] = _decode_properties(text)
            received.append(
                Received(
                    sequence,
                    topic,
                    name,
                    _given_id(sequence) if message_id is None else message_id,
                    body,
                    properties,
                    delivery_count,
                    moments[enqueued_at],
                    moments[locked_until],
                )
            )
        for sequences, why in ((exceeded, _EXCEEDED), (expired, _EXPIRED)):
            if sequences:
                tx.execute(
                    self._statements.refuse_claimed,
                    ids=self._storage.numbers(sequences),
                    counted=counted,
                    **why,
                    **self._storage.times(),
                )
        return received

    def complete(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """They are gone."""
        self._settle(tx, self._statements.complete, messages)

    def abandon(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """They are ready again, at their old place."""
        abandoned = self._settle(tx, self._statements.abandon, messages)
        if abandoned:
            self._announce(tx, sorted({subscription_id for _, subscription_id in abandoned}))

    def dead_letter(self, tx: Transaction, messages: Sequence[Received], reason: str, description: str = "") -> None:
        """They are set aside."""
        self._settle(
            tx,
            self._statements.dead_letter,
            messages,
            reason=storable(reason, _LONGEST_REASON),
            description=storable(description, _LONGEST_DESCRIPTION),
        )

    def renew(self, tx: Transaction, messages: Sequence[Received], lock_for: timedelta | None = None) -> datetime:
        """What could be renewed is, also when `LockLost` says that some could not: the caller may commit that."""
        lock_ms = None if lock_for is None else duration(lock_for)
        held = self._of_held(tx, self._statements.renew, messages, lock_ms=lock_ms)
        until = dict(held)
        lost = [message for message in messages if message.sequence not in until]
        if lost:
            raise LockLost(lost, [message for message in messages if message.sequence in until])
        return moment(min(until.values()))

    def _settle(
        self, tx: Transaction, statement: TextClause, messages: Sequence[Received], **parameters: Any
    ) -> list[Any]:
        rows = self._of_held(tx, statement, messages, **parameters)
        if len(rows) != len(messages):
            held = {row[0] for row in rows}
            lost = [message for message in messages if message.sequence not in held]
            if lost:
                raise LockLost(lost)
        return rows

    def _of_held(
        self, tx: Transaction, statement: TextClause, messages: Sequence[Received], **parameters: Any
    ) -> list[Any]:
        """Run a statement on messages: one run for each delivery count there is, which is nearly always one."""
        rows: list[Any] = []
        counts = {message.delivery_count for message in messages}
        for delivery_count in sorted(counts):
            sequences = [message.sequence for message in messages if message.delivery_count == delivery_count]
            rows += tx.execute(
                statement,
                ids=self._storage.numbers(sequences),
                delivery_count=delivery_count,
                **parameters,
                **self._storage.times(),
            ).all()
        return rows

    # What was set aside ------------------------------------------------------------------------------------------

    def dead_letters(self, tx: Transaction, subscription: Subscription, limit: int, after: int = 0) -> list[DeadLetter]:
        """By sequence."""
        subscription_id = self._subscription_id(tx, subscription)
        rows = tx.execute(self._statements.dead_letters, subscription_id=subscription_id, after=after, limit=limit)
        return _dead_letters(subscription, rows)

    def take_dead(self, tx: Transaction, subscription: Subscription, limit: int) -> list[DeadLetter]:
        """By sequence; gone once the transaction is committed."""
        subscription_id = self._subscription_id(tx, subscription)
        rows = tx.execute(self._statements.take_dead, subscription_id=subscription_id, limit=limit)
        return _dead_letters(subscription, rows)

    def resubmit(self, tx: Transaction, subscription: Subscription, sequences: Collection[int]) -> int:
        """New rows, whose sequences make new ids and which no lock of old can mean."""
        subscription_id = self._subscription_id(tx, subscription)
        ids = self._storage.numbers(sorted(sequences))
        taken: Sequence[Any] = tx.execute(
            self._statements.take_these_dead, subscription_id=subscription_id, ids=ids
        ).all()
        for _, properties, body in sorted(taken, key=itemgetter(0)):
            tx.execute(
                self._statements.put_back,
                subscription_id=subscription_id,
                properties=properties,
                body=body,
                **self._storage.times(),
            )
        if taken:
            self._announce(tx, [subscription_id])
        return len(taken)

    def release_all(self, tx: Transaction) -> int:
        """Give back whatever is locked: for who knows that nobody else is there, and everybody before has died."""
        return int(tx.execute(self._statements.release_all, **self._storage.times()).rowcount)

    # Housekeeping ------------------------------------------------------------------------------------------------

    def sweep(self, tx: Transaction, limit: int = 1000) -> SweepReport:
        """Both by an index on when it is time."""
        times = self._storage.times()
        expired = tx.execute(self._statements.expire, limit=limit, **_EXPIRED, **times).all()
        forgotten = tx.execute(self._statements.forget_message_ids, limit=limit, **times).all()
        return SweepReport(len(expired), len(forgotten))

    def depth(self, tx: Transaction, subscription: Subscription) -> Depth:
        """Goes through all that lies there."""
        subscription_id = self._subscription_id(tx, subscription)
        statement, times = self._statements.depth, self._storage.times()
        counts: Any = tx.execute(statement, subscription_id=subscription_id, **times).one()
        ready, scheduled, locked, dead, oldest = counts
        return Depth(ready, scheduled, locked, dead, None if oldest is None else moment(oldest))

    def next_due(self, tx: Transaction, subscription: Subscription) -> datetime | None:
        """By the index."""
        available_at = first_of(tx, self._storage, subscription)[2]
        return None if available_at is None else moment(available_at)

    # Waiting -----------------------------------------------------------------------------------------------------

    def wait(self, subscriptions: Collection[Subscription], timeout: float) -> bool:
        """See `Waiting`."""
        return self._waiting.wait(subscriptions, timeout)

    def wake(self) -> None:
        """For this process."""
        self._waiting.wake()

    def close(self) -> None:
        """Also stops listening for other processes."""
        self._waiting.close()

    # -------------------------------------------------------------------------------------------------------------

    def _announce(self, tx: Transaction, subscription_ids: Collection[int]) -> None:
        self._storage.announce(tx, subscription_ids)
        tx.after_commit(partial(self._signals.signal, subscription_ids))

    def _topic_id(self, tx: Transaction, topic: str) -> int:
        found = tx.execute(self._statements.find_topic, topic=topic).scalar()
        if found is None:
            raise TopicNotFound(f"there is no topic {topic}")
        return int(found)

    def _find(self, tx: Transaction, subscription: Subscription) -> int | None:
        names = {"topic": subscription.topic, "subscription": subscription.name}
        found: int | None = tx.execute(self._statements.find_subscription, **names).scalar()
        return found

    def _subscription_id(self, tx: Transaction, subscription: Subscription) -> int:
        found = self._find(tx, subscription)
        if found is None:
            raise not_found(subscription)
        return found


def _storage(database: Database, clock: Clock | None) -> Storage:
    if database.dialect == "sqlite":
        return SqliteStorage(clock or SystemClock())
    if database.dialect == "postgresql":
        from matoolkit.bus.postgresql import PostgresqlStorage
        from matoolkit.store.arrays import prepare_postgresql

        prepare_postgresql(database.engine)
        return PostgresqlStorage(clock)
    raise DatabaseNotSupported(_NO_TOPICS.format(described(database.engine.url)))


def _given_id(sequence: int) -> str:
    """The id of a message that was published without one."""
    return f"bus-{sequence}"


def _dead_letters(subscription: Subscription, rows: Iterable[Any]) -> list[DeadLetter]:
    return [
        DeadLetter(
            sequence,
            subscription.topic,
            subscription.name,
            _given_id(sequence) if message_id is None else message_id,
            body,
            _decode_properties(properties),
            delivery_count,
            moment(enqueued_at),
            moment(dead_at),
            reason,
            description,
        )
        for sequence, message_id, properties, body, delivery_count, enqueued_at, dead_at, reason, description in sorted(
            rows, key=itemgetter(0)
        )
    ]
