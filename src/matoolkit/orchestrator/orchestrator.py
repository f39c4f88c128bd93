"""The orchestrator: events into jobs, results into progress.

It is driven from outside: `handle_events` and `handle_results` take in what is there, `close` ends what is over,
`reconcile` and `drain` are called on a timer. None of them waits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from matoolkit.bus import Outgoing, Subscription
from matoolkit.bus.port import DeadReason
from matoolkit.errors import MatoolkitError
from matoolkit.messages import (
    BatchInit,
    Event,
    MemberAdded,
    MemberRemoved,
    PhaseDue,
    PollCheck,
    RetryCheck,
    UnknownMessage,
    UnreadableMessage,
    WorkerResult,
    decode_event,
    decode_result,
)
from matoolkit.orchestrator import (
    batch_init,
    catch_up,
    completion,
    lost_jobs,
    member_added,
    member_removed,
    phase_due,
    poll_check,
    retry_check,
    worker_result,
)
from matoolkit.orchestrator.intake import Intake, put_aside
from matoolkit.orchestrator.library import Library
from matoolkit.orchestrator.reconciliation import Reconciliation
from matoolkit.orchestrator.tracing import Tracing
from matoolkit.orchestrator.work import Closing, Settings, Work
from matoolkit.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matoolkit.bus import Bus, DeadLetter, Received
    from matoolkit.clock import Clock
    from matoolkit.store.database import Database, Transaction
    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

_AGAIN = "again-"
_LONGEST_ID = 128

_HANDLERS: tuple[tuple[type[Any], Callable[[Work, Any], None]], ...] = (
    (BatchInit, batch_init.handle),
    (MemberRemoved, member_removed.handle),
    (MemberAdded, member_added.handle),
    (PhaseDue, phase_due.handle),
    (RetryCheck, retry_check.handle),
    (PollCheck, poll_check.handle),
)
"""Leaving before coming and before phases, so that nobody is started who has just left."""


class Orchestrator:
    """One orchestrator; any number may share a database and its messages."""

    def __init__(
        self,
        database: Database,
        bus: Bus,
        clock: Clock,
        settings: Settings | None = None,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self.settings = settings or Settings()
        self._telemetry = telemetry
        self._database = database
        self._bus = bus
        self._clock = clock
        self._library = Library()
        self._reconciliation = Reconciliation()
        self._events = self._intake(self.events_subscription, self._take_events)
        self._results = self._intake(self.results_subscription, self._take_results)

    @property
    def events_subscription(self) -> Subscription:
        """Where events come in."""
        return Subscription(self.settings.events_topic, self.settings.events_subscription)

    @property
    def results_subscription(self) -> Subscription:
        """Where results come in."""
        return Subscription(self.settings.results_topic, self.settings.results_subscription)

    def handle_events(self) -> int:
        """Handle a set of events; how many there were."""
        return self._take_in(self._events)

    def handle_results(self) -> int:
        """Handle a set of results; how many there were."""
        return self._take_in(self._results)

    def given_events(self, messages: Sequence[Received]) -> None:
        """Handle events that somebody else has locked: who completes them all after this, or none when it fails."""
        self.close(self._events.take_given(messages))

    def given_results(self, messages: Sequence[Received]) -> None:
        """Handle results that somebody else has locked; likewise."""
        self.close(self._results.take_given(messages))

    def reconcile(self) -> None:
        """Find what is stuck and move it on; a part that fails keeps none of the others from it."""
        failures: list[Exception] = []
        for part in self._reconciliation.parts:
            try:
                self._reconcile(part)
            except Exception as error:  # noqa: BLE001 - the first of them is raised when all parts have had their turn
                log.warning("a part of reconciliation failed: %s", error)
                failures.append(error)
        if failures:
            raise failures[0]

    def drain(self) -> int:
        """Turn jobs that the bus gave up into failures, and put aside what it gave up of ours; how many there were."""
        drained = 0
        with self._database.reading() as tx:
            workers = self._bus.subscriptions(tx, self.settings.jobs_topic)
        for subscription in workers:
            drained += self._drain(subscription, self._report_lost)
        for subscription in (self.events_subscription, self.results_subscription):
            drained += self._drain(subscription, self._send_again)
        return drained

    def close(self, closing: Closing | None) -> None:
        """End what is over among the phases and batches that may be."""
        if closing:
            with self._database.transaction() as tx:
                completion.close(tx, self._library, closing, self._clock.now(), self._telemetry)

    def _reconcile(self, part: Callable[[Work], Closing | None]) -> None:
        with self._database.transaction() as tx:
            work = self._begin(tx)
            found = part(work)
            _settle_returns(work)
            closing = work.finish()
            tx.after_commit(work.tracing.end)
        self.close(closing if found is None else closing | found)

    def _take_in(self, intake: Intake) -> int:
        count, closing = intake.take_in()
        self.close(closing)
        return count

    def _intake(self, subscription: Subscription, handler: Callable[[Work, Sequence[Received]], None]) -> Intake:
        return Intake(self._database, self._bus, subscription, handler, self._begin, size=self.settings.set_size)

    def _begin(self, tx: Transaction) -> Work:
        telemetry = self._telemetry
        return Work(tx, self._clock.now(), self._bus, self.settings, self._library, telemetry, Tracing(telemetry))

    def _take_events(self, work: Work, messages: Sequence[Received]) -> None:
        events: list[Event] = []
        for message in messages:
            try:
                events.append(decode_event(message.body, message.properties.get("MessageType")))
            except UnknownMessage as error:
                log.warning("%s: passed over", error)
            except UnreadableMessage as error:
                put_aside(work, message, "Unreadable", str(error))
        work.tracing.begin("handle events", events, {"messages": len(messages)})
        for kind, handle in _HANDLERS:
            chosen = [each for each in events if isinstance(each, kind)]
            if chosen:
                handle(work, chosen)
        _settle_returns(work)

    def _take_results(self, work: Work, messages: Sequence[Received]) -> None:
        results: list[WorkerResult] = []
        for message in messages:
            try:
                results.append(decode_result(message.body))
            except UnreadableMessage as error:
                put_aside(work, message, "Unreadable", str(error))
        work.tracing.begin("handle results", results, {"messages": len(messages)})
        worker_result.handle(work, results)
        _settle_returns(work)

    def _drain(self, subscription: Subscription, handle: Callable[[Work, Sequence[Any]], None]) -> int:
        try:
            return self._drain_some(subscription, handle, self.settings.set_size)
        except MatoolkitError as error:
            if error.retryable:
                raise
            log.warning("dead letters of %s could not be handled together: %s", subscription.name, error)
        try:
            return self._drain_some(subscription, handle, 1)
        except MatoolkitError as error:
            if error.retryable:
                raise
            log.exception("a dead letter of %s cannot be handled and was put aside", subscription.name)
            return self._drain_some(subscription, _keep, 1)

    def _drain_some(self, subscription: Subscription, handle: Callable[[Work, Sequence[Any]], None], limit: int) -> int:
        if not self._bus.in_database:
            # On a bus elsewhere looking takes its time, and no row is to be locked meanwhile.
            with self._bus.transaction() as unit:
                if not self._bus.dead_letters(unit, subscription, 1):
                    return 0
        with self._database.transaction() as tx:
            dead = self._bus.take_dead(tx, subscription, limit)
            if not dead:
                return 0
            work = self._begin(tx)
            handle(work, dead)
            _settle_returns(work)
            closing = work.finish()
            tx.after_commit(work.tracing.end)
        self.close(closing)
        return len(dead)

    def _send_again(self, work: Work, dead: Sequence[DeadLetter]) -> None:
        """Our own messages that were given up.

        On a bus elsewhere each delivery counts while the database is away, and a long outage uses them up; so what was
        handed out too often is sent once more, and kept where operators see it when that did not help either.
        """
        outage = DeadReason.MAX_DELIVERY_COUNT
        again = [
            each
            for each in dead
            if not self._bus.in_database and each.reason == outage and not each.message_id.startswith(_AGAIN)
        ]
        for each in again:
            log.warning("the message %s of %s was given up, and is sent once more", each.message_id, each.topic)
            self._bus.publish(work.tx, each.topic, [Outgoing(each.body, each.properties, _again(each))])
        _keep(work, [each for each in dead if each not in again])

    def _report_lost(self, work: Work, dead: Sequence[Any]) -> None:
        for letter, error in lost_jobs.report(work, dead):
            put_aside(work, letter, "Unreadable", error)


def _again(letter: DeadLetter) -> str:
    return (_AGAIN + letter.message_id)[:_LONGEST_ID]


def _keep(work: Work, dead: Sequence[Any]) -> None:
    """Messages of ours that the bus gave up are kept where operators see them."""
    for letter in dead:
        put_aside(work, letter, letter.reason, letter.description or "")


def _settle_returns(work: Work) -> None:
    """Those whose leaving has ended and who have come back meanwhile start on what they missed."""
    if work.members_to_return:
        returning, work.members_to_return = work.members_to_return, set()
        catch_up.start(work, returning)
