"""What lies before a worker: whether it has a place at the jobs, how much waits there, and since when."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from matoolkit.bus import Names
from matoolkit.bus.topology import WORKER_ID

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.bus import Bus, Subscription
    from matoolkit.store.database import Transaction

_SILENT_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Queue:
    """What lies before a worker."""

    waiting: int
    running: int
    oldest: datetime | None

    def is_silent(self, now: datetime) -> bool:
        """Whether jobs have been waiting for long and none is being run."""
        return bool(self.waiting and not self.running and self.oldest and now - self.oldest > _SILENT_AFTER)


class Queues(Protocol):
    """Knows the workers' queues."""

    def of(self, tx: Transaction, worker_id: str) -> Queue | None:
        """What lies before a worker; nothing when nobody has made a place for it, so that its jobs are lost."""

    def listeners(self, tx: Transaction) -> frozenset[str] | None:
        """The workers that have a place at the jobs; nothing when there is one that serves every id."""

    def all(self, tx: Transaction) -> dict[str | None, Queue]:
        """What lies before each worker that has a place; no id stands for one that serves every id."""


@dataclass(frozen=True, slots=True)
class BusQueues:
    """The queues of a bus that lies in the database."""

    bus: Bus
    names: Names = field(default_factory=Names)

    def of(self, tx: Transaction, worker_id: str) -> Queue | None:
        """Its own subscription, or that of a worker that serves every id."""
        there = {each.name: each for each in self.bus.subscriptions(tx, self.names.jobs)}
        for rule in (self.names.worker(worker_id), self.names.worker(None)):
            if rule.name in there:
                return self._queue(tx, there[rule.name])
        return None

    def listeners(self, tx: Transaction) -> frozenset[str] | None:
        """By the filters of the jobs' subscriptions."""
        return self.bus.listeners(tx, self.names.jobs, WORKER_ID)

    def all(self, tx: Transaction) -> dict[str | None, Queue]:
        """Every subscription of the jobs, by the id in its name."""
        own = self.names.worker("").name
        return {
            each.name.removeprefix(own) if each.name.startswith(own) else None: self._queue(tx, each)
            for each in self.bus.subscriptions(tx, self.names.jobs)
        }

    def _queue(self, tx: Transaction, subscription: Subscription) -> Queue:
        depth = self.bus.depth(tx, subscription)
        return Queue(depth.ready + depth.scheduled, depth.locked, depth.oldest_enqueued_at)
