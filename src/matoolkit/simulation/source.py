"""A scripted scheduler: the real rules for batches, phases, polls and versions, over a made-up data source."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from matoolkit.batches import making, membership, versions
from matoolkit.batches.announcing import Announcer
from matoolkit.runbooks import load_runbook
from matoolkit.scheduler.due import ask_due_polls, start_due_phases
from matoolkit.simulation.faults import Fault
from matoolkit.store import batches as batch_store
from matoolkit.store import creation, roster, runbooks
from matoolkit.store.errors import StoreError
from matoolkit.store.states import MemberStatus

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.bus import Bus
    from matoolkit.clock import Clock
    from matoolkit.runbooks import Runbook
    from matoolkit.simulation.faults import Faults
    from matoolkit.simulation.processes import Processes
    from matoolkit.simulation.scenario import Scenario
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Database, Transaction
    from matoolkit.store.roster import Listed
    from matoolkit.store.runbooks import PublishedRunbook

_TICK = timedelta(minutes=5)
_POLL_TICK = timedelta(seconds=100)


@dataclass(slots=True)
class Source:
    """The people a query finds now; it outlives the processes that ask."""

    scenario: Scenario
    epoch: datetime
    changes: int = 0
    gone: set[str] = field(default_factory=set)
    joined: int = 0

    def people(self) -> dict[str, tuple[datetime, str]]:
        """Key to start time and data."""
        found = {}
        for key, index in self.scenario.people.items():
            if key in self.gone:
                continue
            start = self.epoch + timedelta(minutes=self.scenario.starts[index])
            data = {"Key": key, "Name": f"{key} {self.changes}", "Kind": "Thing"}
            if len(key) % 2:
                data["Nickname"] = key[:4]
            found[key] = (start, msgspec.json.encode(data).decode())
        return found


@dataclass(slots=True)
class SimulatedScheduler:
    """The scheduler process."""

    database: Database
    bus: Bus
    clock: Clock
    processes: Processes
    faults: Faults
    source: Source
    parsed: dict[str, Runbook]

    def run(self) -> None:
        """Tick, for ever."""
        announcer = Announcer(self.bus)
        next_tick = self.clock.now()
        while True:
            now = self.clock.now()
            try:
                with self.database.transaction() as tx:
                    start_due_phases(tx, announcer, now)
                with self.database.transaction() as tx:
                    ask_due_polls(tx, announcer, now)
                if now >= next_tick:
                    next_tick = now + _TICK
                    self._detect(announcer)
            except StoreError:
                self.processes.sleep(timedelta(seconds=5))
                continue
            self.processes.sleep(_POLL_TICK)

    def _detect(self, announcer: Announcer) -> None:
        """Find who came and went; each batch in a transaction of its own."""
        self._change_source()
        if self.faults.strikes(Fault.SOURCE_FAILED, self.faults.likelihoods.source_fails):
            return
        people = self.source.people()
        with self.database.reading() as tx:
            active = runbooks.active(tx)
        for published in active:
            runbook = self._parse(published)
            by_start: dict[datetime, dict[str, str]] = {}
            for key, (start, data) in people.items():
                by_start.setdefault(start, {})[key] = data
            for start, members in sorted(by_start.items()):
                self._synchronise(announcer, published, runbook, start, members)
            with self.database.reading() as tx:
                open_batches = batch_store.open_batches(tx)
            for batch in open_batches:
                if batch.batch_start_time not in by_start:
                    with self.database.transaction() as tx:
                        self._difference(tx, announcer, batch, {})
                if batch.runbook_version < published.version:
                    with self.database.transaction() as tx:
                        versions.change_version(
                            tx, announcer, batch.id, published=published, runbook=runbook, now=self.clock.now()
                        )

    def _synchronise(
        self,
        announcer: Announcer,
        published: PublishedRunbook,
        runbook: Runbook,
        start: datetime,
        people: dict[str, str],
    ) -> None:
        with self.database.transaction() as tx:
            existing = roster.batch_at(tx, published.name, start)
            if existing is None:
                making.create_batch(
                    tx,
                    announcer,
                    published,
                    runbook,
                    start_time=start,
                    members=sorted(people.items()),
                    now=self.clock.now(),
                )
                return
            batch = batch_store.read(tx, [existing])[existing]
            if batch.status in ("detected", "init_dispatched", "active"):
                self._difference(tx, announcer, batch, people)

    def _difference(self, tx: Transaction, announcer: Announcer, batch: Batch, people: dict[str, str]) -> None:
        """Who is new, who is gone, who is back, whose data changed."""
        now = self.clock.now()
        listed = {each.member_key_folded: each for each in roster.listed(tx, batch.id)}
        found = {runbooks.folded(key): (key, data) for key, data in people.items()}
        new = sorted(pair for folded, pair in found.items() if folded not in listed)
        back = sorted(
            (listed[folded].id, data)
            for folded, (_key, data) in found.items()
            if folded in listed and listed[folded].status == MemberStatus.REMOVED
        )
        gone = [
            each.id for folded, each in listed.items() if folded not in found and each.status == MemberStatus.ACTIVE
        ]
        membership.add_members(tx, announcer, batch, new, now)
        membership.reactivate_members(tx, announcer, batch, back, now)
        membership.remove_members(tx, announcer, batch, gone, now, by="source")
        self._refresh(tx, listed, found)

    def _refresh(self, tx: Transaction, listed: dict[str, Listed], found: dict[str, tuple[str, str]]) -> None:
        creation.refresh_members(
            tx,
            sorted(
                (listed[folded].id, data)
                for folded, (_key, data) in found.items()
                if folded in listed
                and listed[folded].status == MemberStatus.ACTIVE
                and listed[folded].data_json != data
            ),
        )

    def _change_source(self) -> None:
        """People join, leave, come back, and change, while the wave runs."""
        chances, source, chance = self.faults.likelihoods, self.source, self.faults.chance
        people = source.scenario.people
        if self.faults.strikes(Fault.MEMBER_JOINED, chances.join):
            source.joined += 1
            people[f"Late{source.joined}@contoso.example"] = chance.randrange(len(source.scenario.starts))
        here = sorted(set(people) - source.gone)
        if len(here) > 1 and self.faults.strikes(Fault.MEMBER_LEFT, chances.leave):
            source.gone.add(here[chance.randrange(len(here))])
        if source.gone and self.faults.strikes(Fault.MEMBER_RETURNED, chances.come_back):
            away = sorted(source.gone)
            source.gone.discard(away[chance.randrange(len(away))])
        if self.faults.strikes(Fault.DATA_CHANGED, chances.change_data):
            source.changes += 1

    def _parse(self, published: PublishedRunbook) -> Runbook:
        found = self.parsed.get(published.yaml_content)
        if found is None:
            found = self.parsed[published.yaml_content] = load_runbook(published.yaml_content)
        return found
