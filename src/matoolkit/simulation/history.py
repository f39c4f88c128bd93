"""One history from one seed: set the scene, let everybody live, look at what came of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING

from matoolkit.bus import Subscription
from matoolkit.clock import ManualClock
from matoolkit.orchestrator import Orchestrator, Settings
from matoolkit.scheduler import Scheduler
from matoolkit.simulation import invariants
from matoolkit.simulation.database import CrashPoint, Interference, SimulatedDatabase, plain_rows
from matoolkit.simulation.disturbances import Carrier, Operator
from matoolkit.simulation.faults import CALM, Fault, Faults, Likelihoods
from matoolkit.simulation.hindsight import misdeeds
from matoolkit.simulation.processes import Processes
from matoolkit.simulation.scenario import WORKERS, Shape, draw
from matoolkit.simulation.scheduling import SimulatedScheduler
from matoolkit.simulation.source import People
from matoolkit.simulation.trace import Line, lines, note, transitions
from matoolkit.simulation.workers import SimulatedWorker, Tenant
from matoolkit.store import automation, runbooks
from matoolkit.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.bus import Bus
    from matoolkit.runbooks import Runbook
    from matoolkit.store.database import Transaction

EPOCH = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
SCHEDULERS = ("scheduler-1", "scheduler-2")
_CHECK_EVERY = 60
_RECONCILE = timedelta(minutes=11)
_TURNS_AT_MOST = 40_000


class Mode(StrEnum):
    """What a history is to show."""

    SAFETY = "safety"
    """Faults throughout: nothing forbidden ever happens."""
    LIVENESS = "liveness"
    """Faults stop: everything comes to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a history is to be lived."""

    mode: Mode = Mode.LIVENESS
    likelihoods: Likelihoods = field(default_factory=Likelihoods)
    shape: Shape = field(default_factory=Shape)
    troubled_for: timedelta = timedelta(minutes=75)
    """How long faults strike."""
    horizon: timedelta = timedelta(hours=12)
    """By when everything must have ended."""
    crash_point: CrashPoint | None = None
    orchestrator: Callable[..., Orchestrator] = Orchestrator
    """What runs: a test may plant something else."""
    scheduler: Callable[..., Scheduler] = Scheduler


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a history."""

    seed: int
    violations: tuple[str, ...]
    trace: tuple[Line, ...]
    commits: int
    transitions: Counter[str]
    faults: Counter[Fault]

    @property
    def digest(self) -> str:
        """The trace in short: equal when the histories were."""
        return hashlib.sha256("\n".join(str(line) for line in self.trace).encode()).hexdigest()


class World:
    """Everything that lives in a history."""

    def __init__(self, seed: int, plan: Plan, database: SimulatedDatabase, parsed: dict[str, Runbook]) -> None:
        self.seed, self.plan, self.database, self.parsed = seed, plan, database, parsed
        self.chance = Random(seed)
        self.clock = ManualClock(EPOCH)
        self.scenario = draw(seed, self.chance, plan.shape)
        self.faults = Faults(self.chance, plan.likelihoods)
        self.bus: Bus = database.begin_history(self.clock, WORKERS)
        self.subscriptions = {
            int(row[0]): Subscription(row[1], row[2])
            for row in plain_rows(
                database,
                "SELECT s.id, t.name, s.name FROM bus_subscriptions s JOIN bus_topics t ON t.id = s.topic_id",
            )
        }
        self.processes = Processes(self.clock, self.chance, self._heads, self._reboot)
        self.people = People(self.scenario, EPOCH, self.faults, self._settled)
        self.set_back = False
        """Whether a clock was, so that times say nothing about what came first."""
        self.tenant = Tenant()
        self.violations: list[str] = []
        database.interference = Interference(
            pause=self.processes.pause,
            die=self.processes.doom,
            faults=self.faults,
            committed=self._committed,
        )

    def live(self) -> Outcome:
        """From the first publication to the end."""
        self._publish_first_version()
        self._boot_all()
        calm_at = EPOCH + self.plan.troubled_for
        end_at = calm_at if self.plan.mode is Mode.SAFETY else EPOCH + self.plan.horizon
        turns = 0
        while self.clock.now() < end_at and not self.violations:
            if self.plan.mode is Mode.LIVENESS and self.clock.now() >= calm_at and self.faults.likelihoods != CALM:
                self._calm()
            try:
                self.processes.step()
            except Exception as error:  # noqa: BLE001 - a part that fails is what is looked for
                self.violations.append(f"a part failed: {type(error).__name__}: {error}")
            turns += 1
            if turns > _TURNS_AT_MOST:
                self.violations.append("the history does not end")
            if turns % _CHECK_EVERY == 0 and self._at_rest():
                break
        self._look_back(ended=self.clock.now() < end_at)
        for process in list(self.processes.running):
            self.processes.kill(process.host)
        trace = lines(self.database.raw)
        return Outcome(
            self.seed,
            tuple(self.violations),
            tuple(trace),
            self.database.interference.commits,
            transitions(trace),
            Counter(self.faults.struck),
        )

    def _publish_first_version(self) -> None:
        self.database.interference.faults = None
        with self.database.transaction() as tx:
            runbooks.publish(
                tx,
                name=self.scenario.name,
                yaml_content=self.scenario.versions[0],
                now=EPOCH,
                by="operator",
            )
        self.database.interference.commits = 0
        self.database.interference.faults = self.faults
        self.database.interference.crash_point = self.plan.crash_point

    def _boot_all(self) -> None:
        for host in (*SCHEDULERS, "orchestrator-1", "orchestrator-2", *WORKERS):
            self._boot(host, timedelta(0))
        self.processes.start("carrier", "carrier", Carrier(self.database, self.processes, self.faults).run)
        operator = Operator(self.database, self.clock, self.processes, self.faults, self.scenario, self.bus)
        self.processes.start("operator", "operator", operator.run)

    def _boot(self, host: str, after: timedelta) -> None:
        """Start what runs on a host, with nothing in its memory."""
        if host in SCHEDULERS:
            scheduler = SimulatedScheduler(
                host,
                self.database,
                self.bus,
                self.clock,
                self.processes,
                self.faults,
                self.people,
                self.violations.append,
                self._clock_set_back,
                self.plan.scheduler,
            )
            self.processes.start(host, host, scheduler.run, after=after)
        elif host in WORKERS:
            worker = SimulatedWorker(
                host,
                self.seed,
                self.database,
                self.bus,
                self.clock,
                self.processes,
                self.faults,
                self.tenant,
                self._note,
            )
            self.processes.start(host, host, worker.run, after=after)
        elif host.startswith("orchestrator"):
            size = 1 + self.chance.randrange(12)
            settings = Settings(set_size=size, chunk_size=1 + self.chance.randrange(8))
            orchestrator = self.plan.orchestrator(self.database, self.bus, self.clock, settings)
            events, results = orchestrator.events_subscription, orchestrator.results_subscription
            for name, work, waits_for in (
                ("events", orchestrator.handle_events, events),
                ("results", orchestrator.handle_results, results),
            ):
                self.processes.start(f"{host}/{name}", host, self._consumer(work, waits_for), after=after)
            self.processes.start(f"{host}/timer", host, self._timer(orchestrator), after=after)
        else:
            # What disturbs the others is no part of what is to survive; it comes back as it was.
            self.processes.start(host, host, self._disturber(host), after=after)

    def _disturber(self, host: str) -> Callable[[], None]:
        if host == "carrier":
            return Carrier(self.database, self.processes, self.faults).run
        return Operator(self.database, self.clock, self.processes, self.faults, self.scenario, self.bus).run

    def _consumer(self, work: Callable[[], int], waits_for: Subscription) -> Callable[[], None]:
        def run() -> None:
            while True:
                self.processes.sleep(timedelta(minutes=30), [waits_for])
                try:
                    work()
                except StoreError:
                    self.processes.sleep(timedelta(seconds=3))

        return run

    def _timer(self, orchestrator: Orchestrator) -> Callable[[], None]:
        def run() -> None:
            while True:
                self.processes.sleep(_RECONCILE)
                try:
                    orchestrator.drain()
                    orchestrator.reconcile()
                except StoreError:
                    continue

        return run

    def _reboot(self, host: str) -> None:
        self._note("killed", host)
        self._boot(host, timedelta(seconds=5 + self.chance.randrange(60)))

    def _clock_set_back(self) -> None:
        self.set_back = True

    def _settled(self) -> set[str]:
        query = "SELECT member_key_folded FROM batch_members WHERE status IN ('completed', 'failed')"
        return {row[0] for row in plain_rows(self.database, query)}

    def _committed(self, _tx: Transaction) -> None:
        process = self.processes.current
        if process is not None and process.host in SCHEDULERS:
            holder = plain_rows(self.database, "SELECT holder FROM leases")
            if not holder or not holder[0][0].startswith(process.host):
                self.violations.append(f"{process.host} changed something while {holder} had the lease")
        if self.database.interference.commits % _CHECK_EVERY == 0:
            self._check(invariants.ALWAYS)

    def _check(self, wanted: tuple[invariants.Invariant, ...]) -> None:
        if self.set_back:
            wanted = tuple(each for each in wanted if each not in invariants.BY_TIMES)
        with self.database.reading() as tx:
            self.violations += [str(each) for each in invariants.check(tx, wanted)]

    def _calm(self) -> None:
        likelihoods = self.plan.likelihoods
        self.faults.likelihoods = replace(CALM, worker_error=likelihoods.worker_error, throttled=likelihoods.throttled)
        with self.database.reading() as tx:
            off = automation.switched_off(tx)
        if off:
            self.database.raw.execute("DELETE FROM runbook_automation_settings")

    def _at_rest(self) -> bool:
        """Whether nothing is left that could still happen."""
        if self.plan.mode is Mode.SAFETY or self.faults.likelihoods.duplicate > 0:
            return False
        busy = plain_rows(
            self.database,
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM bus_messages) "
            "OR EXISTS (SELECT 1 FROM batches WHERE status IN ('detected', 'init_dispatched', 'active') OR winding_up) "
            "OR NOT EXISTS (SELECT 1 FROM batches) "
            "OR EXISTS (SELECT 1 FROM removal_executions WHERE status IN ('pending', 'dispatched', 'polling')) "
            "OR EXISTS (SELECT 1 FROM rollback_executions WHERE status IN ('pending', 'dispatched', 'polling'))",
        )
        return not busy

    def _look_back(self, *, ended: bool) -> None:
        self.database.interference = Interference(commits=self.database.interference.commits)
        if self.plan.mode is Mode.LIVENESS:
            if not ended:
                self.violations.append("not everything came to its end")
            self._check((*invariants.ALWAYS, *invariants.AT_REST))
            left = plain_rows(self.database, "SELECT id, subscription_id, available_at, dead_reason FROM bus_messages")
            self.violations += [f"a message was left behind: {row}" for row in left]
        else:
            self._check(invariants.ALWAYS)
        self.violations += misdeeds(lines(self.database.raw), self.tenant.runs)

    def _heads(self) -> dict[Subscription, datetime]:
        rows = plain_rows(
            self.database,
            "SELECT subscription_id, min(available_at) FROM bus_messages WHERE dead_at IS NULL "
            "GROUP BY subscription_id",
        )
        return {
            self.subscriptions[row[0]]: datetime.fromtimestamp(row[1] / 1000, UTC)
            for row in rows
            if row[0] in self.subscriptions
        }

    def _note(self, what: str, text: str) -> None:
        note(self.database.raw, what, text)


class Simulator:
    """Lives histories one after another, keeping what does not belong to any of them."""

    def __init__(self) -> None:
        self._database = SimulatedDatabase()
        self._parsed: dict[str, Runbook] = {}

    def live(self, seed: int, plan: Plan | None = None) -> Outcome:
        """The history of a seed."""
        if len(self._parsed) > 500:  # noqa: PLR2004 - keeps the memory flat
            self._parsed.clear()
        return World(seed, plan or Plan(), self._database, self._parsed).live()
