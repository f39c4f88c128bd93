"""A worker with its threads: one for the event loop, one that keeps locks, two for the bus, and those of functions."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from matoolkit.hosts.threads import DaemonThreads
from matoolkit.telemetry import SILENT
from matoolkit.worker.concealing import Concealer
from matoolkit.worker.health import Health, judged, report
from matoolkit.worker.post import Post, Renewal
from matoolkit.worker.running import Runner, Services
from matoolkit.worker.worker import Left, Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from matoolkit.bus import Bus, SubscriptionRule
    from matoolkit.clock import Clock
    from matoolkit.telemetry import Telemetry
    from matoolkit.worker.registry import Registry

log = logging.getLogger(__name__)

Tenant = AbstractAsyncContextManager[Services]
"""Opened in the event loop, signed in; closed when the worker ends."""

_RENEWALS_PER_LOCK = 3
_LAST_WORDS = 0.4
_CLERKS = 2


@dataclass(frozen=True, slots=True)
class Manner:
    """How a worker works."""

    worker_id: str = ""
    parallelism: int = 2
    idle_seconds: float = 0
    grace_seconds: float = 30


class WorkerHost:
    """Runs a worker in the thread that calls `run`, as often as that is called."""

    def __init__(
        self,
        bus: Bus,
        rule: SubscriptionRule,
        registry: Registry,
        clock: Clock,
        *,
        manner: Manner | None = None,
        tenant: Callable[[], Tenant] | None = None,
        concealer: Concealer | None = None,
        telemetry: Telemetry = SILENT,
    ) -> None:
        self.manner = manner or Manner()
        self._bus = bus
        self._rule = rule
        self._registry = registry
        self._clock = clock
        self._tenant = tenant or _no_tenant
        self._concealer = concealer or Concealer()
        self._telemetry = telemetry
        self._lock = Lock()
        self._stops = 0
        self._worker: Worker | None = None
        self._services = Services()

    def run(self, when_open: Callable[[], None] | None = None) -> Left:
        """Work until told to stop, or idle for long enough; `when_open` is called once the tenant is reached."""
        return asyncio.run(self._run(when_open))

    def stop(self) -> None:
        """Have it end, within its grace period; told again, at once. From any thread."""
        with self._lock:
            self._stops += 1
            if self._worker is not None:
                self._worker.stop()

    def give_up(self) -> None:
        """Give back every job while the event loop does not turn; for who is about to end the process."""
        worker = self._worker
        messages = [] if worker is None else worker.held.to_renew(0)
        if messages:
            thread = Thread(target=self._give_back, args=(messages,), name="last-words", daemon=True)
            thread.start()
            thread.join(_LAST_WORDS)

    def running(self) -> int:
        """How many jobs are under way."""
        return 0 if self._worker is None else self._worker.gauge.running

    def health(self) -> Health:
        """How it is."""
        gauge = None if self._worker is None else self._worker.gauge
        health = judged(gauge, time.monotonic(), complaints=tuple(self._services.complaints()))
        # Errors of others stand in there, and whoever asks is told.
        return Health(health.status, tuple(self._concealer.out_of_text(each) for each in health.reasons))

    def health_report(self) -> tuple[int, dict[str, Any]]:
        """What the health address answers."""
        health = self.health()
        gauge = None if self._worker is None else self._worker.gauge
        return health.http_status, report(health, gauge, self.manner.worker_id)

    async def _run(self, when_open: Callable[[], None] | None) -> Left:
        manner = self.manner
        functions, clerk = DaemonThreads("function", manner.parallelism), DaemonThreads("clerk", _CLERKS)
        ended = Event()
        try:
            async with self._tenant() as services:
                self._services = services
                if when_open is not None:
                    when_open()
                worker = Worker(
                    Post(self._bus, self._rule.subscription),
                    Runner(
                        self._registry,
                        self._clock,
                        functions,
                        worker_id=manner.worker_id,
                        services=services,
                        concealer=self._concealer,
                        named_results=not self._bus.in_database,
                        telemetry=self._telemetry,
                    ),
                    clerk,
                    parallelism=manner.parallelism,
                    idle_seconds=manner.idle_seconds,
                    grace_seconds=manner.grace_seconds,
                )
                with self._lock:
                    self._worker = worker
                    for _ in range(self._stops):
                        worker.stop()
                Thread(target=self._keep_locks, args=(worker, ended), name="locks", daemon=True).start()
                return await worker.run()
        finally:
            ended.set()
            functions.shutdown()
            clerk.shutdown()

    def _keep_locks(self, worker: Worker, ended: Event) -> None:
        """In a thread of its own, so that a function which blocks the event loop does not cost the others' locks."""
        renewal = Renewal(self._bus, worker.held)
        interval = self._rule.lock_duration.total_seconds() / _RENEWALS_PER_LOCK
        pause = interval
        while not ended.wait(pause):
            try:
                lost = renewal.renew(time.monotonic())
            except Exception as error:  # noqa: BLE001 - locks are kept whatever happens; the loop tells of a bus that is away
                log.warning("locks could not be renewed: %s", error)
                pause = interval / _RENEWALS_PER_LOCK
            else:
                pause = interval
                if lost:
                    worker.lost(lost)

    def _give_back(self, messages: list[Any]) -> None:
        try:
            with self._bus.transaction() as tx:
                self._bus.abandon(tx, messages)
        except Exception as error:  # noqa: BLE001 - the process ends; what is not given back comes back later
            log.warning("jobs could not be given back, and come back when their locks expire: %s", error)


def _no_tenant() -> Tenant:
    return nullcontext(Services())
