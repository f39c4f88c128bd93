"""A database in memory whose transactions others may get in between of, and which dies or refuses on demand."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from matoolkit.bus import EmbeddedBus, Names, Topology
from matoolkit.simulation.faults import Fault
from matoolkit.simulation.processes import Killed
from matoolkit.simulation.trace import TRIGGERS
from matoolkit.store import bus_schema as _bus_schema  # noqa: F401 - its tables belong to the schema
from matoolkit.store.database import Database, Transaction, prepare_sqlite
from matoolkit.store.errors import DatabaseUnavailable, TransactionConflict
from matoolkit.store.schema import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.clock import Clock
    from matoolkit.simulation.faults import Faults


@dataclass(slots=True)
class CrashPoint:
    """Dying at exactly one commit: the one with this number, before or after it."""

    commit: int
    before: bool


@dataclass(slots=True)
class Interference:
    """What gets in between a process and its transactions."""

    pause: Callable[[], None] = lambda: None
    die: Callable[[], None] = lambda: None
    """Called in the process that is to die; raises."""
    faults: Faults | None = None
    crash_point: CrashPoint | None = None
    commits: int = 0
    committed: Callable[[Transaction], None] = field(default=lambda _tx: None)


class SimulatedDatabase(Database):
    """One connection, kept from history to history so that compiled statements are; reset by `begin_history`."""

    def __init__(self) -> None:
        engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"isolation_level": None})
        prepare_sqlite(engine, synchronous="OFF")
        super().__init__(engine)
        metadata.create_all(engine)
        with engine.begin() as connection:
            for trigger in TRIGGERS:
                connection.exec_driver_sql(trigger)
        self.interference = Interference()
        self.raw: sqlite3.Connection = engine.raw_connection().driver_connection  # type: ignore[assignment]
        """The driver's connection, which is always the same one."""
        self._empty = sqlite3.connect(":memory:")
        self.raw.backup(self._empty)

    def begin_history(self, clock: Clock, workers: tuple[str, ...]) -> EmbeddedBus:
        """An empty database with its topics; the bus that lives in it."""
        self.interference = Interference()
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")
        self._empty.backup(self.raw)
        bus = EmbeddedBus(self, clock)
        names = Names()
        with super().transaction() as tx:
            bus.declare(tx, names.topology())
            bus.declare(tx, Topology(subscriptions=tuple(names.worker(worker) for worker in workers)))
        return bus

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction that another process may get in front of, and that may not come to its end."""
        between = self.interference
        between.pause()
        faults = between.faults
        if faults is not None:
            refuse = faults.likelihoods.refuse
            if faults.strikes(Fault.REFUSED_AT_BEGIN, refuse):
                raise TransactionConflict("refused as it began, by the simulation")
            if faults.strikes(Fault.DATABASE_AWAY, refuse / 2):
                raise DatabaseUnavailable("away, by the simulation")
        changed = False
        with super().transaction() as tx:
            before = self.raw.total_changes
            yield tx
            changed = self.raw.total_changes != before
            if changed:
                between.commits += 1
                self._strike(faults, before_commit=True)
        if changed:
            between.committed(tx)
            self._strike(faults, before_commit=False)

    def _strike(self, faults: Faults | None, *, before_commit: bool) -> None:
        between = self.interference
        point = between.crash_point
        if point is not None and point.commit == between.commits and point.before == before_commit:
            between.die()
            raise Killed
        if faults is None:
            return
        kind = Fault.KILL_BEFORE_COMMIT if before_commit else Fault.KILL_AFTER_COMMIT
        if faults.strikes(kind, faults.likelihoods.kill / 2):
            between.die()
            raise Killed
        if before_commit and faults.strikes(Fault.REFUSED_AT_COMMIT, faults.likelihoods.refuse):
            raise TransactionConflict("refused at its commit, by the simulation")


def plain_rows(database: SimulatedDatabase, query: str) -> list[tuple[Any, ...]]:
    """Rows read beside all processes, by the simulation itself."""
    return database.raw.execute(query).fetchall()
