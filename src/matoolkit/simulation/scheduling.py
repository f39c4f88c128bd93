"""The scheduler's process: the real one, with the made-up source, a clock of its own, and somebody who looks on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.scheduler import Gathered, Scheduler, Settings
from matoolkit.simulation.expectations import Expectations
from matoolkit.simulation.faults import Fault
from matoolkit.simulation.source import SimulatedSource
from matoolkit.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from matoolkit.bus import Bus
    from matoolkit.clock import Clock
    from matoolkit.runbooks.model import DataSource
    from matoolkit.simulation.database import SimulatedDatabase
    from matoolkit.simulation.faults import Faults
    from matoolkit.simulation.processes import Processes
    from matoolkit.simulation.source import People

_BEAT = timedelta(seconds=100)
_LEASE = timedelta(seconds=170)


@dataclass(slots=True)
class SkewedClock:
    """A machine's clock, which may be wrong."""

    right: Clock
    ahead: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        """What it shows."""
        return self.right.now() + self.ahead


@dataclass(slots=True)
class SimulatedScheduler:
    """One of the scheduler processes."""

    host: str
    database: SimulatedDatabase
    bus: Bus
    clock: Clock
    processes: Processes
    faults: Faults
    people: People
    violated: Callable[[str], None]
    set_back: Callable[[], None]
    """Told when the clock was: what is known by comparing times no longer holds."""
    make: Callable[..., Scheduler] = Scheduler

    def run(self) -> None:
        """Tick, for ever."""
        chance = self.faults.chance
        clock = SkewedClock(self.clock)
        settings = Settings(lease=_LEASE, chunk_size=(2, 5, 2_000)[chance.randrange(3)])
        scheduler = self.make(
            self.database,
            Announcer(self.bus),
            clock,
            self._open,
            me=self.host,
            settings=settings,
            lease_clock=self.clock,
        )
        while True:
            self._jump(clock)
            try:
                if scheduler.beat():
                    self._tick(scheduler)
            except StoreError:
                self.processes.sleep(timedelta(seconds=5))
                continue
            self.processes.sleep(_BEAT)

    def _tick(self, scheduler: Scheduler) -> None:
        for question in scheduler.begin():
            answer = scheduler.gather(question)
            if self.faults.strikes(Fault.SOURCE_SLOW, self.faults.likelihoods.source_slow):
                self.processes.sleep(timedelta(seconds=30 + self.faults.chance.randrange(600)))
            expectations = Expectations(self.database, self.violated)
            if scheduler.compare(question, answer) and isinstance(answer, Gathered) and scheduler.leads:
                expectations.hold(answer, immediate=self.people.scenario.immediate)

    def _open(self, _data_source: DataSource) -> SimulatedSource:
        return SimulatedSource(self.people)

    def _jump(self, clock: SkewedClock) -> None:
        likelihood = self.faults.likelihoods.clock_jumps
        if likelihood <= 0:
            clock.ahead = timedelta(0)
        elif self.faults.strikes(Fault.CLOCK_FORWARD, likelihood):
            clock.ahead += timedelta(seconds=self.faults.chance.randrange(1200))
        elif self.faults.strikes(Fault.CLOCK_BACK, likelihood):
            clock.ahead -= timedelta(seconds=self.faults.chance.randrange(1200))
            self.set_back()
