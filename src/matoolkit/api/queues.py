"""What lies before a worker: whether it has a place at the jobs, how much waits there, and since when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from matoolkit.bus import Names
from matoolkit.bus.topology import WORKER_ID

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.bus import Bus
    from matoolkit.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Queue:
    """What lies before a worker."""

    waiting: int
    running: int
    oldest: datetime | None


class Queues(Protocol):
    """Knows the workers' queues."""

    def of(self, tx: Transaction, worker_id: str) -> Queue | None:
        """What lies before a worker; nothing when nobody has made a place for it, so that its jobs are lost."""

    def listeners(self, tx: Transaction) -> frozenset[str] | None:
        """The workers that have a place at the jobs; nothing when there is one that serves every id."""


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
                depth = self.bus.depth(tx, there[rule.name])
                return Queue(depth.ready + depth.scheduled, depth.locked, depth.oldest_enqueued_at)
        return None

    def listeners(self, tx: Transaction) -> frozenset[str] | None:
        """By the filters of the jobs' subscriptions."""
        return self.bus.listeners(tx, self.names.jobs, WORKER_ID)
