"""Telemetry of a process: begun as its environment says, told how things stand, and ended with it."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from matoolkit import __version__
from matoolkit.clock import SystemClock
from matoolkit.store import levels
from matoolkit.telemetry import Reading, metrics
from matoolkit.telemetry.starting import begin_telemetry
from matoolkit.worker.health import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from matoolkit.bus import Bus, Names, Subscription
    from matoolkit.bus.relay import Relay
    from matoolkit.clock import Clock
    from matoolkit.hosts.shared import Shared
    from matoolkit.hosts.worker_host import WorkerHost
    from matoolkit.store.database import Database, Transaction
    from matoolkit.telemetry import Metric, Telemetry

_Told = tuple["Metric", Reading]
_HEALTH = {Status.HEALTHY: 0, Status.DEGRADED: 1, Status.UNHEALTHY: 2}


@contextmanager
def telling(
    environment: Mapping[str, str],
    service: str,
    *,
    instance: str | None = None,
    conceal: Callable[[str], str] = str,
    with_log: bool = True,
) -> Iterator[Telemetry]:
    """Telemetry, for as long as the process works; nobody is told unless the environment names somebody."""
    telemetry = begin_telemetry(
        environment,
        service,
        instance=instance or f"{socket.gethostname()}:{os.getpid()}",
        version=__version__,
        conceal=conceal,
        with_log=with_log,
    )
    try:
        yield telemetry
    finally:
        telemetry.close()


def watch_state(telemetry: Telemetry, database: Database, clock: Clock) -> None:
    """Have it looked at where the wave is; from any number of processes, which all see the same."""
    if telemetry.is_on:
        telemetry.watch(
            lambda: _state(database, clock),
            metrics.MEMBERS_ACTIVE,
            metrics.MEMBERS_STUCK,
            metrics.PHASES_OVERDUE,
            metrics.RUNBOOKS_FAULTY,
            metrics.DEAD_MESSAGES,
            metrics.LEAD,
        )


def watch_queues(telemetry: Telemetry, bus: Bus, names: Names, clock: Clock) -> None:
    """Have it looked at what lies in every subscription."""
    if telemetry.is_on:
        telemetry.watch(lambda: _queues(bus, names, clock), metrics.QUEUE_DEPTH, metrics.QUEUE_OLDEST)


def watch_outbox(telemetry: Telemetry, relay: Relay, clock: Clock) -> None:
    """Have it looked at how far relays are behind."""
    if telemetry.is_on:
        telemetry.watch(lambda: _outbox(relay, clock), metrics.OUTBOX_WAITING, metrics.OUTBOX_AGE)


def watch_shared(telemetry: Telemetry, found: Shared, names: Names) -> None:
    """All three, of what a process shares with others."""
    clock = SystemClock()
    watch_state(telemetry, found.database, clock)
    watch_queues(telemetry, found.bus, names, clock)
    if found.relayed is not None:
        watch_outbox(telemetry, found.relayed.relay, clock)


def watch_worker(telemetry: Telemetry, host: WorkerHost) -> None:
    """Have it looked at how a worker is."""
    if telemetry.is_on:
        telemetry.watch(lambda: _worker(host), metrics.JOBS_RUNNING, metrics.WORKER_HEALTH)


def _state(database: Database, clock: Clock) -> Iterator[_Told]:
    now = clock.now()
    with database.reading() as tx:
        found = levels.read(tx, now)
    yield metrics.MEMBERS_ACTIVE, Reading(found.active)
    for reason, members in (("idle", found.idle), ("silent", found.silent), ("held", found.held)):
        yield metrics.MEMBERS_STUCK, Reading(members, {"reason": reason})
    yield metrics.PHASES_OVERDUE, Reading(found.overdue)
    yield metrics.RUNBOOKS_FAULTY, Reading(found.faulty)
    yield metrics.DEAD_MESSAGES, Reading(found.dead)
    if found.led_until is not None:
        yield metrics.LEAD, Reading((found.led_until - now).total_seconds())


def _queues(bus: Bus, names: Names, clock: Clock) -> Iterator[_Told]:
    now = clock.now()
    with bus.transaction() as tx:
        depths = [(each, bus.depth(tx, each)) for each in _subscriptions(bus, tx, names)]
    for place, depth in depths:
        labels = {"topic": place.topic, "subscription": place.name}
        for state, count in (
            ("ready", depth.ready),
            ("scheduled", depth.scheduled),
            ("locked", depth.locked),
            ("dead", depth.dead),
        ):
            yield metrics.QUEUE_DEPTH, Reading(count, {**labels, "state": state})
        since = depth.oldest_enqueued_at
        yield metrics.QUEUE_OLDEST, Reading(0.0 if since is None else max(0.0, (now - since).total_seconds()), labels)


def _subscriptions(bus: Bus, tx: Transaction, names: Names) -> list[Subscription]:
    return [each for topic in (names.events, names.jobs, names.results) for each in bus.subscriptions(tx, topic)]


def _outbox(relay: Relay, clock: Clock) -> Iterator[_Told]:
    lag = relay.lag()
    yield metrics.OUTBOX_WAITING, Reading(lag.waiting)
    age = 0.0 if lag.since is None else max(0.0, (clock.now() - lag.since).total_seconds())
    yield metrics.OUTBOX_AGE, Reading(age)


def _worker(host: WorkerHost) -> Iterator[_Told]:
    labels = {"worker": host.manner.worker_id}
    yield metrics.JOBS_RUNNING, Reading(host.running(), labels)
    yield metrics.WORKER_HEALTH, Reading(_HEALTH[host.health().status], labels)
