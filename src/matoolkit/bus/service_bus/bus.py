"""The bus on Azure Service Bus.

Within a transaction of the database messages are published through the outbox, which a relay drains, and settled once
the transaction is committed: a crash in between has them delivered again, which every handler bears. Within a unit of
the bus's own they are sent and settled at its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from threading import Event, Lock, get_ident
from typing import TYPE_CHECKING, Any

from matoolkit.bus.errors import BusError, LockLost
from matoolkit.bus.outgoing import distinct, storable
from matoolkit.bus.port import DeadLetter, Depth, Outgoing, Received, Subscription, SweepReport
from matoolkit.bus.service_bus import conversion
from matoolkit.bus.service_bus.entities import Entities
from matoolkit.bus.service_bus.inbox import Inbox
from matoolkit.bus.service_bus.sending import send, withdraw
from matoolkit.bus.service_bus.unit import NoDatabase, Unit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime, timedelta

    from matoolkit.bus.outbox import Outbox
    from matoolkit.bus.service_bus.links import Links
    from matoolkit.bus.topology import Topology
    from matoolkit.clock import Clock
    from matoolkit.store.database import Transaction


_Verb = Callable[[Inbox, "Sequence[Received]"], "Sequence[Received]"]

log = logging.getLogger(__name__)

_LONGEST_REASON, _LONGEST_DESCRIPTION = 256, 4096
_LET_PASS = 0.005
_PAUSE_WITHOUT_BUS = 0.5


class ServiceBus:
    """Topics and subscriptions of a namespace."""

    def __init__(self, links: Links, clock: Clock, outbox: Outbox | None = None) -> None:
        self._links = links
        self._clock = clock
        self._outbox = outbox
        self._entities = Entities(links, clock)
        self._lock = Lock()
        self._inboxes: dict[tuple[Subscription, bool], Inbox] = {}
        self._scheduled: dict[tuple[str, str], tuple[int, datetime]] = {}
        """Sequences of what this process scheduled itself, by topic and id; the outbox keeps its own."""
        self._taken: dict[tuple[Subscription, int], list[Received]] = {}
        """Dead letters a thread took in a transaction of which it is not known that it was committed."""
        self._interruptions = 0
        self._interrupted = Event()
        self._closed = False

    @property
    def in_database(self) -> bool:
        """It is not."""
        return False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A unit: see there what it promises."""
        unit = Unit()
        try:
            yield unit
            self._finish(unit)
        except BaseException:
            # Also when it ends badly: nobody was given what it received.
            for give_back in unit.received:
                _quietly(give_back)
            raise
        unit.committed()

    # Topics and subscriptions ------------------------------------------------------------------------------------

    def declare(self, tx: Transaction, topology: Topology) -> None:  # noqa: ARG002 - done at once, by its own means
        """Done at once; see `Entities` for who may."""
        self._entities.declare(topology)

    def remove(self, tx: Transaction, subscription: Subscription) -> None:  # noqa: ARG002 - the same
        """Done at once."""
        self._entities.remove(subscription)
        for dead in (False, True):
            self._links.receiver(subscription, dead=dead).close()

    def subscriptions(self, tx: Transaction, topic: str) -> list[Subscription]:  # noqa: ARG002 - not in the database
        """As found at most a minute ago."""
        return self._entities.subscriptions(topic)

    def listeners(
        self,
        tx: Transaction,  # noqa: ARG002 - not in the database
        topic: str,
        property_name: str,
    ) -> frozenset[str] | None:
        """By the filters of at most a minute ago."""
        return self._entities.listeners(topic, property_name)

    # Sending -----------------------------------------------------------------------------------------------------

    def publish(self, tx: Transaction, topic: str, messages: Sequence[Outgoing]) -> None:
        """Through the outbox, or at the end of a unit."""
        if isinstance(tx, Unit):
            tx.send(topic, list(distinct(topic, messages)))
        else:
            self._given_outbox().publish(tx, topic, messages)

    def deliver(self, topic: str, messages: Sequence[Outgoing]) -> list[int | None]:
        """Send now; for each message the sequence by which it can be withdrawn, if it is for later."""
        return send(self._links, topic, messages)

    def cancel_scheduled(self, tx: Transaction, topic: str, message_ids: Collection[str]) -> int:
        """Those that have not left the outbox, and those whose sequence is known; a unit withdraws at once."""
        if not isinstance(tx, Unit):
            unsent, sequences = self._given_outbox().withdraw(tx, topic, message_ids)
            if sequences:
                tx.after_commit(lambda: _quietly(partial(withdraw, self._links, topic, sequences)))
            return unsent + len(sequences)
        known: dict[int, str] = {}
        for each in sorted(message_ids):
            scheduled = self._scheduled.get((topic, each))
            if scheduled is not None and scheduled[1] > self._clock.now():
                known[scheduled[0]] = each
        withdrawn = withdraw(self._links, topic, sorted(known))
        for sequence in withdrawn:
            self._scheduled.pop((topic, known[sequence]), None)
        return len(withdrawn)

    # Receiving and settling --------------------------------------------------------------------------------------

    def receive(
        self,
        tx: Transaction,
        subscription: Subscription,
        limit: int,
        lock_for: timedelta | None = None,  # noqa: ARG002 - a lock is as long as its subscription says
    ) -> list[Received]:
        """Locked for as long as the subscription says, whatever was asked for."""
        messages = self._inbox(subscription).receive(limit)
        if isinstance(tx, Unit) and messages:
            tx.received.append(partial(self._inbox(subscription).abandon, messages))
        return messages

    def take(
        self,
        tx: Transaction,  # noqa: ARG002 - never done
        subscription: Subscription,
        limit: int,  # noqa: ARG002 - never done
    ) -> list[Received]:
        """Not on this bus."""
        raise NoDatabase(f"messages of {subscription.name} cannot be taken with a transaction: lock and settle them")

    def complete(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """Once the transaction is committed; a lock that is known to be lost undoes it."""
        self._settle(tx, messages, Inbox.complete)

    def abandon(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """Once the transaction is committed."""
        self._settle(tx, messages, Inbox.abandon)

    def dead_letter(self, tx: Transaction, messages: Sequence[Received], reason: str, description: str = "") -> None:
        """Once the transaction is committed."""
        reason, description = storable(reason, _LONGEST_REASON), storable(description, _LONGEST_DESCRIPTION)

        def set_aside(inbox: Inbox, some: Sequence[Received]) -> list[Received]:
            return inbox.dead_letter(reason, description, some)

        self._settle(tx, messages, set_aside)

    def renew(
        self,
        tx: Transaction,  # noqa: ARG002 - done at once
        messages: Sequence[Received],
        lock_for: timedelta | None = None,  # noqa: ARG002 - a lock is as long as its subscription says
    ) -> datetime:
        """Done at once, one after the other."""
        lost: list[Received] = []
        until: list[datetime] = []
        for subscription, some in _by_subscription(messages).items():
            gone, first = self._inbox(subscription).renew(some)
            lost += gone
            until += [] if first is None else [first]
        if lost:
            raise LockLost(lost, [each for each in messages if each not in lost])
        return min(until)

    # What was set aside ------------------------------------------------------------------------------------------

    def dead_letters(
        self,
        tx: Transaction,  # noqa: ARG002 - not in the database
        subscription: Subscription,
        limit: int,
        after: int = 0,
    ) -> list[DeadLetter]:
        """Read without locking."""
        now = self._clock.now()
        seen = self._inbox(subscription, dead=True).peek(limit, after)
        return [conversion.dead_letter(message, subscription, now) for message in seen]

    def take_dead(self, tx: Transaction, subscription: Subscription, limit: int) -> list[DeadLetter]:
        """Locked, and completed once the transaction is committed; when it is not, the same are given again."""
        mine = (subscription, get_ident())
        inbox = self._inbox(subscription, dead=True)
        now = self._clock.now()
        held = [each for each in self._taken.pop(mine, []) if inbox.holds(each, now)] or inbox.receive(limit)
        held.sort(key=_sequence)
        self._taken[mine] = held
        given = held[:limit]
        if given:

            def settle() -> Sequence[Received]:
                self._taken[mine] = [each for each in self._taken.get(mine, []) if each not in given]
                return inbox.complete(given)

            tx.after_commit(partial(_quietly, settle))
        return [_dead_letter(each, now) for each in given]

    def resubmit(self, tx: Transaction, subscription: Subscription, sequences: Collection[int]) -> int:
        """Sent to the topic, so to every subscription whose filter passes them; completed after that."""
        wanted = set(sequences)
        inbox = self._inbox(subscription, dead=True)
        there = {each.sequence_number for each in inbox.peek(_MANY)} & wanted if wanted else set()
        found: list[Received] = []
        others: list[Received] = []
        while len(found) < len(there):
            some = inbox.receive(_MANY)
            found += [each for each in some if each.sequence in there]
            others += [each for each in some if each.sequence not in there]
            if not some:
                break
        inbox.abandon(others)
        found.sort(key=_sequence)
        if found:
            tx.after_commit(partial(self._send_again, inbox, subscription.topic, found))
        return len(found)

    # Housekeeping ------------------------------------------------------------------------------------------------

    def sweep(self, tx: Transaction, limit: int = 1000) -> SweepReport:  # noqa: ARG002 - there is nothing to do
        """Service Bus does that by itself."""
        return SweepReport(0, 0)

    def depth(self, tx: Transaction, subscription: Subscription) -> Depth:
        """What is locked counts as ready, and what is scheduled is not in a subscription yet."""
        first = self._inbox(subscription).peek(1)
        oldest = first[0].enqueued_time_utc if first else None
        counts = self._entities.counts(subscription)
        if counts is None:
            counts = (len(self._inbox(subscription).peek(_MANY)), len(self.dead_letters(tx, subscription, _MANY)))
        return Depth(ready=counts[0], scheduled=0, locked=0, dead=counts[1], oldest_enqueued_at=oldest)

    def next_due(self, tx: Transaction, subscription: Subscription) -> datetime | None:  # noqa: ARG002 - not there
        """Of what is in the subscription, locked or not."""
        first = self._inbox(subscription).peek(1)
        return first[0].enqueued_time_utc if first else None

    # Waiting -----------------------------------------------------------------------------------------------------

    def wait(self, subscriptions: Collection[Subscription], timeout: float) -> bool:
        """By asking for one message, which is kept for who receives next."""
        ends = time.monotonic() + timeout
        interruptions = self._interruptions
        while not self._closed and self._interruptions == interruptions:
            left = ends - time.monotonic()
            for subscription in subscriptions:
                inbox = self._inbox(subscription)
                try:
                    if inbox.look(min(left, self._links.settings.slice / len(subscriptions))):
                        return not self._closed
                except BusError as error:
                    if not error.retryable:
                        raise
                    # Who receives is told; here it is only waited for.
                    self._interrupted.wait(max(0.0, min(left, _PAUSE_WITHOUT_BUS)))
                if inbox.wanted:
                    time.sleep(_LET_PASS)
            if left <= 0:
                return False
        return False

    def wake(self) -> None:
        """At the end of the slice under way."""
        self._interruptions += 1
        self._interrupted.set()
        self._interrupted.clear()

    def close(self) -> None:
        """Links stay open, so that what is under way can be settled; `disconnect` closes them."""
        self._closed = True
        self._interrupted.set()

    def disconnect(self) -> None:
        """Give back what is locked, and close every link."""
        self.close()
        self._links.close()

    # -------------------------------------------------------------------------------------------------------------

    def _inbox(self, subscription: Subscription, *, dead: bool = False) -> Inbox:
        with self._lock:
            inbox = self._inboxes.get((subscription, dead))
            if inbox is None:
                link = self._links.receiver(subscription, dead=dead)
                patience = self._links.settings.patience
                inbox = self._inboxes[subscription, dead] = Inbox(link, subscription, self._clock, patience)
            return inbox

    def _given_outbox(self) -> Outbox:
        if self._outbox is None:
            raise NoDatabase("nothing can be published within a transaction of a database without an outbox")
        return self._outbox

    def _settle(self, tx: Transaction, messages: Sequence[Received], verb: _Verb) -> None:
        settlements = [
            partial(verb, self._inbox(subscription), some) for subscription, some in _by_subscription(messages).items()
        ]
        if isinstance(tx, Unit):
            tx.settlements += settlements
            return
        now = self._clock.now()
        lost = [each for each in messages if not self._inbox(_subscription(each)).holds(each, now)]
        if lost:
            raise LockLost(lost)
        for settle in settlements:
            tx.after_commit(partial(_quietly, settle))

    def _finish(self, unit: Unit) -> None:
        for topic, messages in unit.outgoing:
            for message, sequence in zip(messages, self.deliver(topic, messages), strict=True):
                if sequence is not None and message.message_id is not None and message.deliver_at is not None:
                    self._remember(topic, message.message_id, sequence, message.deliver_at)
        lost = [each for settle in unit.settlements for each in settle()]
        if lost:
            raise LockLost(lost)

    def _remember(self, topic: str, message_id: str, sequence: int, deliver_at: datetime) -> None:
        now = self._clock.now()
        for key in [key for key, (_, due) in self._scheduled.items() if due <= now]:
            del self._scheduled[key]
        self._scheduled[topic, message_id] = (sequence, deliver_at)

    def _send_again(self, inbox: Inbox, topic: str, found: list[Received]) -> None:
        again = [
            Outgoing(each.body, _without_reason(each.properties), f"again-{each.sequence}-{each.message_id}"[:128])
            for each in found
        ]
        self.deliver(topic, again)
        inbox.complete(found)


_MANY = 1000
_sequence = attrgetter("sequence")


def _quietly(settle: Callable[[], Any]) -> None:
    """Settle what has been handled. Should it fail, the messages come again and are handled again."""
    try:
        lost = settle()
    except BusError as error:
        log.warning("messages could not be settled and will be delivered again: %s", error)
    else:
        if lost and isinstance(lost[0], Received):
            log.warning("%s", LockLost(lost))


def _subscription(message: Received) -> Subscription:
    return Subscription(message.topic, message.subscription)


def _by_subscription(messages: Sequence[Received]) -> dict[Subscription, list[Received]]:
    grouped: dict[Subscription, list[Received]] = {}
    for message in messages:
        grouped.setdefault(_subscription(message), []).append(message)
    return grouped


def _without_reason(properties: Any) -> dict[str, str]:
    return {name: value for name, value in properties.items() if not name.startswith("DeadLetter")}


def _dead_letter(message: Received, now: datetime) -> DeadLetter:
    properties = message.properties
    return DeadLetter(
        message.sequence,
        message.topic,
        message.subscription,
        message.message_id,
        message.body,
        _without_reason(properties),
        message.delivery_count - 1,
        message.enqueued_at,
        now,
        properties.get("DeadLetterReason", ""),
        properties.get("DeadLetterErrorDescription", ""),
    )
