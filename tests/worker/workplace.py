"""A real bus with jobs on it, workers that take them, and the results they leave."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any

from matoolkit.bus import EmbeddedBus, Names, Outgoing, Topology
from matoolkit.clock import SystemClock
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.messages import Kind, WorkerJob, correlated, decode_result, encode
from matoolkit.worker.registry import Registry, described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.bus import DeadLetter, Received
    from matoolkit.bus.port import Depth
    from matoolkit.messages import WorkerResult
    from matoolkit.store.database import Database
    from matoolkit.worker.registry import Function

SECONDS = 30
NAMES = Names()
WORKER = "worker-01"


class Gate:
    """Functions wait at it, and the test knows how many do."""

    def __init__(self) -> None:
        self._entered = Semaphore(0)
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self.entered = 0
        self.left_by_cancellation = 0
        self.is_open = False

    async def wait(self) -> None:
        event = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), event))
        self.entered += 1
        self._entered.release()
        if not self.is_open:
            try:
                await event.wait()
            except asyncio.CancelledError:
                self.left_by_cancellation += 1
                raise

    def until_entered(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._entered.acquire(timeout=SECONDS), "nobody came"

    def open(self) -> None:
        self.is_open = True
        for loop, event in self._waiting:
            loop.call_soon_threadsafe(event.set)


@dataclass
class Working:
    """A worker at work."""

    host: WorkerHost
    thread: Thread

    def join(self) -> None:
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()


class Workplace:
    """One bus, one worker's subscription, and the orchestrator's."""

    def __init__(self, database: Database, lock: float = 60, bus: EmbeddedBus | None = None) -> None:
        self.database = database
        self.clock = SystemClock()
        self.bus = bus or EmbeddedBus(database)
        self.rule = NAMES.worker(WORKER, timedelta(seconds=lock))
        self.results_at = NAMES.topology().subscriptions[1].subscription
        with self.bus.transaction() as tx:
            self.bus.declare(tx, NAMES.topology())
            self.bus.declare(tx, Topology(subscriptions=(self.rule,)))
        self._number = 0

    def job(self, function: str = "Do-It", parameters: dict[str, Any] | None = None, **fields: Any) -> WorkerJob:
        self._number += 1
        known = {"job_id": f"step-{self._number}", "idempotency_key": f"step-{self._number}"} | fields
        return WorkerJob(
            batch_id=7,
            worker_id=WORKER,
            function_name=function,
            parameters=parameters or {},
            correlation_data=correlated(Kind.STEP, self._number, runbook=("wave", 1)),
            **known,
        )

    def send(self, *jobs: WorkerJob) -> None:
        self.send_bodies(*((encode(job), job.job_id) for job in jobs))

    def send_bodies(self, *bodies: tuple[str, str | None]) -> None:
        with self.bus.transaction() as tx:
            outgoing = [
                Outgoing(body=body, properties={"WorkerId": WORKER}, message_id=message_id)
                for body, message_id in bodies
            ]
            self.bus.publish(tx, NAMES.jobs, outgoing)

    def results(self, count: int = 1) -> list[WorkerResult]:
        """So many results, sorted by job; and that there are no more."""
        found: list[WorkerResult] = []
        ends = time.monotonic() + SECONDS
        while len(found) < count:
            with self.bus.transaction() as tx:
                received = self.bus.receive(tx, self.results_at, 1000)
                self.bus.complete(tx, received)
            found += [decode_result(each.body) for each in received]
            if received:
                ends = time.monotonic() + SECONDS
            else:
                assert time.monotonic() < ends, f"{len(found)} of {count} results came"
                self.bus.wait([self.results_at], 1)
        assert len(found) == count
        return sorted(found, key=lambda each: each.job_id)

    def result(self) -> WorkerResult:
        (found,) = self.results(1)
        return found

    def results_ready(self) -> int:
        with self.bus.transaction() as tx:
            return self.bus.depth(tx, self.results_at).ready

    def no_results(self) -> bool:
        return self.results_ready() == 0

    def jobs(self) -> Depth:
        with self.bus.transaction() as tx:
            return self.bus.depth(tx, self.rule.subscription)

    def dead(self) -> list[DeadLetter]:
        with self.bus.transaction() as tx:
            return self.bus.dead_letters(tx, self.rule.subscription, 100)

    def take(self) -> list[Received]:
        """As another worker would."""
        with self.bus.transaction() as tx:
            return self.bus.receive(tx, self.rule.subscription, 100)

    def expire_locks(self) -> None:
        """As if the time of every lock were over."""
        with self.database.transaction() as tx:
            tx.connection.exec_driver_sql("UPDATE bus_messages SET available_at = enqueued_at WHERE delivery_count > 0")

    def locked_until(self) -> int:
        with self.database.reading() as tx:
            (found,) = tx.connection.exec_driver_sql(
                "SELECT max(available_at) FROM bus_messages WHERE delivery_count > 0"
            ).one()
            return int(found or 0)

    def host(self, *functions: Function, bus: Any = None, tenant: Any = None, **manner: Any) -> WorkerHost:
        registry = Registry()
        registry.add(functions, "test")
        known = Manner(**{"worker_id": WORKER, "parallelism": 4, "grace_seconds": 5, **manner})
        return WorkerHost(bus or self.bus, self.rule, registry, self.clock, manner=known, tenant=tenant)

    @contextmanager
    def working(self, *functions: Function, **settings: Any) -> Iterator[Working]:
        host = self.host(*functions, **settings)
        thread = Thread(target=host.run, daemon=True)
        thread.start()
        working = Working(host, thread)
        yield working
        host.stop()
        working.join()


def doing(code: Callable[..., Any], name: str = "Do-It", **how: Any) -> Function:
    """A function that is registered under a name."""
    return described(name, code, **how)
