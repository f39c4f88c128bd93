"""Who takes part, and with which settings: the fastest durable ones that were found for each.

Where an engine decides after some time that a worker is dead, that time is `DEAD_AFTER`, so that what a crash costs can
be compared and is known within a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from benchmarks.peers.stores import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

DEAD_AFTER = 10
"""Seconds."""
MEMBERS, FEW_MEMBERS, STEPS = 1000, 20, 5


@dataclass(frozen=True)
class Entry:
    """An engine on a store, with its settings."""

    engine: str
    store: Store
    setting: str
    """For people: everything that must be known to take the figure again."""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The same for the engine's file."""
    environment: str | None = ""
    """The lock in `requirements/peers/`; the engine's name unless told otherwise, None for the product's own."""
    members: int = MEMBERS
    durability: str = ""
    """How often Redis syncs."""
    suffix: str = ""
    """Tells two entries of an engine on the same store apart."""

    @property
    def key(self) -> str:
        """Unique among the entries."""
        return "-".join(part for part in (self.engine, self.store, self.suffix) if part)

    @property
    def module(self) -> str:
        """The engine's file."""
        return f"benchmarks.peers.engines.with_{self.engine}"

    @property
    def lock(self) -> str | None:
        """The name of its environment."""
        return self.engine if self.environment == "" else self.environment


_OURS = MappingProxyType({"parallelism": 64, "lock_seconds": DEAD_AFTER})
_DURABLE_SQLITE = "WAL, synchronous=FULL"
_REDIS = "append-only file, synced every second: up to a second is lost with the machine"
_DURABLE_POSTGRESQL = "fsync=on, synchronous_commit=on"

ENTRIES = (
    Entry("matoolkit", Store.SQLITE, f"{_DURABLE_SQLITE}; one process, 64 jobs at a time", _OURS, None),
    Entry("matoolkit", Store.POSTGRESQL, f"{_DURABLE_POSTGRESQL}; one process, 64 jobs at a time", _OURS, None),
    Entry(
        "huey",
        Store.SQLITE,
        f"{_DURABLE_SQLITE} (fsync=True); 4 threads",
        MappingProxyType({"fsync": True, "workers": 4}),
        suffix="fsync",
    ),
    Entry(
        "huey",
        Store.SQLITE,
        "WAL, synchronous=OFF (fsync=False): not durable; 2 threads",
        MappingProxyType({"fsync": False, "workers": 2}),
        suffix="no-fsync",
    ),
    Entry(
        "pgqueuer",
        Store.POSTGRESQL,
        f"{_DURABLE_POSTGRESQL}; one process, batches of 100, uvloop, pool of 20 connections",
        MappingProxyType({"managers": 1, "batch_size": 100, "dequeue_seconds": 0.2, "heartbeat_seconds": DEAD_AFTER}),
    ),
    Entry(
        "procrastinate",
        Store.POSTGRESQL,
        f"{_DURABLE_POSTGRESQL}; 3 workers in one process, 16 jobs at a time each, pool of 20 connections",
        MappingProxyType({"workers": 3, "concurrency": 16, "connections": 20, "heartbeat_seconds": DEAD_AFTER}),
    ),
    Entry(
        "dbos",
        Store.SQLITE,
        f"{_DURABLE_SQLITE} (WAL set beforehand); asynchronous workflows, all started at once",
    ),
    Entry(
        "dbos",
        Store.POSTGRESQL,
        f"{_DURABLE_POSTGRESQL}; asynchronous workflows, all started at once",
    ),
    Entry(
        "celery",
        Store.REDIS,
        f"{_REDIS}; 2 processes, acks_late, prefetch 4, results kept",
        MappingProxyType({"pool": "prefork", "concurrency": 2, "prefetch": 4, "visibility_seconds": DEAD_AFTER}),
        durability="everysec",
    ),
    Entry(
        "dramatiq",
        Store.REDIS,
        f"{_REDIS}; 2 processes of 4 threads",
        MappingProxyType(
            {"processes": 2, "threads": 4, "heartbeat_seconds": DEAD_AFTER, "maintenance_chance": 100_000}
        ),
        durability="everysec",
    ),
    Entry(
        "prefect",
        Store.SQLITE,
        "WAL, synchronous=NORMAL (its own); server beside it, 4 flows at a time",
        MappingProxyType({"concurrency": 4}),
        members=10,
    ),
    Entry(
        "dagster",
        Store.SQLITE,
        "its own SQLite files; runs one after another in one process",
        MappingProxyType({"threads": 1}),
        members=FEW_MEMBERS,
    ),
)
