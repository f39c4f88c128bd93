"""Takes what lies in the outbox to the bus: any number of relays may, and each goes on where another one died.

Nothing is sent while a transaction is open. Messages are taken for a while, sent under their ids, and then marked as
sent; dying before sending costs that while, dying before marking costs a duplicate that the bus recognises.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from itertools import groupby
from threading import Event
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from matoolkit.bus.errors import BusBusy, BusError, MessageTooLarge
from matoolkit.store.dead_messages import park

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matoolkit.bus.outbox import Lag, Outbox, Unsent
    from matoolkit.bus.port import Outgoing
    from matoolkit.clock import Clock
    from matoolkit.store.database import Database, Transaction

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=1)
_PAUSE_WHEN_BUSY = timedelta(seconds=10)
"""What Service Bus asks of who is throttled."""


class Carrier(Protocol):
    """What messages are handed to."""

    def deliver(self, topic: str, messages: Sequence[Outgoing]) -> list[int | None]:
        """Send now; for each message the sequence by which it can be withdrawn, if it is for later."""


class RelaySettings(Struct, frozen=True, kw_only=True):
    """How much a relay takes on."""

    set_size: int = 500
    """How many messages are taken at a time."""
    hold_for: timedelta = timedelta(seconds=60)
    """How long nobody else takes them: after a crash they lie that long."""


class Relay:
    """One relay. `work` is called again and again, `rest` when there was nothing to do."""

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        carrier: Carrier,
        clock: Clock,
        settings: RelaySettings | None = None,
        *,
        refused: Callable[[Transaction, str, Outgoing, str], None] | None = None,
    ) -> None:
        """Take what it stands between; `refused` is told, in a transaction, of a message the bus will never take."""
        self._refused = refused
        self._database = database
        self._outbox = outbox
        self._carrier = carrier
        self._clock = clock
        self._settings = settings or RelaySettings()
        self._written = Event()
        self._failures = 0
        outbox.tell(self._written.set)

    def work(self) -> int:
        """Send what is next; how many messages that was. A bus that is away or busy is an error that may be retried."""
        self._written.clear()
        with self._database.transaction() as tx:
            taken = self._outbox.take(tx, self._settings.set_size, self._settings.hold_for)
            if not taken:
                self._outbox.forget(tx)
        done = 0
        topics = [list(some) for _, some in groupby(taken, key=lambda each: each.topic)]
        for position, some in enumerate(topics):
            try:
                done += self._carry(some)
            except BusError as error:
                self._give_back([each for part in topics[position:] for each in part], error)
                raise
        if taken:
            self._failures = 0
        return done

    def rest(self, seconds: float = 1.0) -> None:
        """Wait until something is written in this process, or for so long: others write as well."""
        self._written.wait(seconds)

    def wake(self) -> None:
        """End a rest."""
        self._written.set()

    def lag(self) -> Lag:
        """How far relays are behind, all together."""
        with self._database.reading() as tx:
            return self._outbox.lag(tx)

    def _carry(self, messages: Sequence[Unsent]) -> int:
        try:
            self._send(messages)
        except MessageTooLarge as error:
            if len(messages) > 1:
                half = len(messages) // 2
                return self._carry(messages[:half]) + self._carry(messages[half:])
            self._put_aside(messages[0], error)
            return 0
        return len(messages)

    def _send(self, messages: Sequence[Unsent]) -> None:
        sequences = self._carrier.deliver(messages[0].topic, [each.message for each in messages])
        pairs = list(zip(messages, sequences, strict=True))
        with self._database.transaction() as tx:
            self._outbox.sent(tx, [message for message, sequence in pairs if sequence is None])
            self._outbox.scheduled(tx, [(message, sequence) for message, sequence in pairs if sequence is not None])

    def _give_back(self, messages: Sequence[Unsent], error: BusError) -> None:
        """Not before a while, which grows: a bus that is throttled is not helped by who asks again at once."""
        pause = min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
        if isinstance(error, BusBusy):
            pause = max(pause, _PAUSE_WHEN_BUSY)
        self._failures = min(self._failures + 1, 10)
        log.warning("%d messages wait another %.0f s to be sent: %s", len(messages), pause.total_seconds(), error)
        with self._database.transaction() as tx:
            self._outbox.give_back(tx, messages, self._clock.now() + pause)

    def _put_aside(self, unsent: Unsent, error: MessageTooLarge) -> None:
        """What the namespace's tier does not take lies where operators see it."""
        message = unsent.message
        log.error("the message %s of %s is too large and was put aside: %s", message.message_id, unsent.topic, error)
        with self._database.transaction() as tx:
            park(
                tx,
                topic=unsent.topic,
                message_id=message.message_id or "",
                properties=message.properties,
                properties_json=msgspec.json.encode(dict(message.properties)).decode(),
                body=message.body,
                reason="TooLarge",
                error=str(error),
                now=self._clock.now(),
            )
            self._outbox.sent(tx, [unsent])
            if self._refused is not None:
                self._refused(tx, unsent.topic, message, str(error))
