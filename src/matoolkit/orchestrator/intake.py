"""Messages of one subscription, a set at a time, each set handled and settled in one transaction.

With a bus that lives in the database a set is taken, handled and gone in a single commit. Where that fails, and on a
bus elsewhere, messages are locked first, so that deliveries are counted; a set that fails is halved until the bad
message stands alone, which is put aside with its error while its neighbours go on. A bus elsewhere is told that they
are done after the commit, and delivers them again if it never hears of it: handlers bear that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from matoolkit.bus import LockLost
from matoolkit.store.dead_messages import park
from matoolkit.store.errors import DatabaseFull, DatabaseUnavailable, TransactionConflict
from matoolkit.telemetry.metrics import HANDLED, PUT_ASIDE

if TYPE_CHECKING:
    from matoolkit.bus import Bus, DeadLetter, Received, Subscription
    from matoolkit.orchestrator.work import Closing, Work
    from matoolkit.store.database import Database, Transaction

log = logging.getLogger(__name__)

_TRIES = 5
_SUSPICIOUS = 3
"""Deliveries after which a process may have died of a message rather than of something else."""
_PASSING = (DatabaseUnavailable, DatabaseFull)


Handler = Callable[["Work", Sequence["Received"]], None]
"""What is done with a set of messages, in the transaction of the work."""


class Intake:
    """Where a subscription's messages come in."""

    def __init__(
        self,
        database: Database,
        bus: Bus,
        subscription: Subscription,
        handler: Handler,
        begin: Callable[[Transaction], Work],
        *,
        size: int,
    ) -> None:
        self._database = database
        self._bus = bus
        self._subscription = subscription
        self._handler = handler
        self._begin = begin
        self._size = size
        self._careful = True
        """Lock before handling: after a failure, and at the start, as the last process may have died of a message."""
        self._held: Sequence[Received] = ()
        """Locked and not settled, because the database went away in between."""

    def take_in(self) -> tuple[int, Closing | None]:
        """Handle what is there; how many messages that was, and what may have to be closed thereby."""
        if self._careful or not self._bus.in_database:
            return self._take_in_carefully()
        try:
            with self._database.transaction() as tx:
                messages = self._bus.take(tx, self._subscription, self._size)
                if not messages:
                    return 0, None
                closing = self._handle(tx, messages)
        except _PASSING:
            raise
        except Exception:
            log.info("a set of messages could not be handled at once; it is taken apart", exc_info=True)
            self._careful = True
            return self._take_in_carefully()
        return len(messages), closing

    def take_given(self, messages: Sequence[Received]) -> Closing | None:
        """Handle what somebody else has locked, who settles it: everything after this, and nothing when it fails.

        A message may be one that processes die of; its neighbours, which come again and again with it, are then handled
        one by one, from either end by turns, so that it keeps none of them from being handled.
        """
        deliveries = max((each.delivery_count for each in messages), default=0)
        if deliveries <= _SUSPICIOUS:
            return self._settle(messages, ours=False)
        closing: Closing | None = None
        # By sequence, since what is given back does not always come in the same order.
        for each in sorted(messages, key=lambda message: message.sequence, reverse=bool(deliveries % 2)):
            found = self._settle([each], ours=False)
            closing = closing | found if closing and found else closing or found
        return closing

    def _take_in_carefully(self) -> tuple[int, Closing | None]:
        if not self._held:
            # On a bus elsewhere receiving takes its time, and no row is to be locked meanwhile.
            where = self._database if self._bus.in_database else self._bus
            with where.transaction() as tx:
                self._held = self._bus.receive(tx, self._subscription, self._size)
        messages = self._held
        closing = self._settle(messages)
        self._held, self._careful = (), False
        return len(messages), closing

    def _settle(self, messages: Sequence[Received], *, ours: bool = True) -> Closing | None:
        """Handle locked messages, all at once or in ever smaller parts; `ours` are settled here as well."""
        if not messages:
            return None
        error: Exception | None = None
        for _ in range(_TRIES):
            try:
                with self._database.transaction() as tx:
                    closing = self._handle(tx, messages)
                    if ours:
                        self._bus.complete(tx, messages)
            except LockLost as lost:
                # Somebody else has them now, or will; what they did was undone with this transaction.
                gone = {each.sequence for each in lost.lost}
                return self._settle([each for each in messages if each.sequence not in gone])
            except TransactionConflict as conflict:
                error = conflict
            except _PASSING:
                raise
            except Exception as failure:  # noqa: BLE001 - whatever it is, it must not stop the neighbours
                error = failure
                break
            else:
                return closing
        if len(messages) > 1:
            half = len(messages) // 2
            first, second = self._settle(messages[:half], ours=ours), self._settle(messages[half:], ours=ours)
            return first | second if first and second else first or second
        self._put_aside(messages[0], error, ours=ours)
        return None

    def _handle(self, tx: Transaction, messages: Sequence[Received]) -> Closing:
        work = self._begin(tx)
        try:
            self._handler(work, messages)
            closing = work.finish()
        except Exception as error:
            work.tracing.end(type(error).__name__)
            raise
        work.count(HANDLED, len(messages), subscription=self._subscription.name, topic=self._subscription.topic)
        tx.after_commit(work.tracing.end)
        return closing

    def _put_aside(self, message: Received, error: Exception | None, *, ours: bool) -> None:
        """Park what cannot be handled; what only met others too often is tried again later."""
        if isinstance(error, TransactionConflict):
            if not ours:
                raise error
            with self._database.transaction() as tx:
                self._bus.abandon(tx, [message])
            return
        log.error(
            "the message %s of %s cannot be handled and was put aside",
            message.message_id,
            message.topic,
            exc_info=error,
        )
        with self._database.transaction() as tx:
            work = self._begin(tx)
            put_aside(work, message, "HandlerFailed", f"{type(error).__name__}: {error}")
            if ours:
                self._bus.complete(tx, [message])


def put_aside(work: Work, message: Received | DeadLetter, reason: str, error: str) -> None:
    """Keep a message with why it could not be handled."""
    work.count(PUT_ASIDE, 1, topic=message.topic, reason=reason)
    park(
        work.tx,
        topic=message.topic,
        message_id=message.message_id,
        properties=message.properties,
        properties_json=msgspec.json.encode(dict(message.properties)).decode(),
        body=message.body,
        reason=reason,
        error=error,
        now=work.now,
    )
