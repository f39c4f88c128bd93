"""What befalls messages on their way, and what operators do meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.batches.announcing import Announcer
from matoolkit.scheduler import release_held_removals
from matoolkit.simulation.database import plain_rows
from matoolkit.simulation.faults import Fault
from matoolkit.store import automation, runbooks
from matoolkit.store import batches as batch_store
from matoolkit.store.errors import StoreError
from matoolkit.store.locking import lock_batches
from matoolkit.store.winding_up import cancel_batch

if TYPE_CHECKING:
    from matoolkit.bus import Bus
    from matoolkit.clock import Clock
    from matoolkit.simulation.database import SimulatedDatabase
    from matoolkit.simulation.faults import Faults
    from matoolkit.simulation.processes import Processes
    from matoolkit.simulation.scenario import Scenario

_COLUMNS = "subscription_id, available_at, enqueued_at, expires_at, properties, body"


@dataclass(slots=True)
class Carrier:
    """Duplicates, delays and gives up messages; works on the tables of the bus, beneath its interface."""

    database: SimulatedDatabase
    processes: Processes
    faults: Faults

    def run(self) -> None:
        """Disturb, for ever."""
        while True:
            self.processes.sleep(timedelta(seconds=45))
            chances = self.faults.likelihoods
            if chances.duplicate <= 0:
                continue
            raw, chance = self.database.raw, self.faults.chance
            waiting = [row[0] for row in raw.execute("SELECT id FROM bus_messages WHERE dead_at IS NULL ORDER BY id")]
            for message in waiting:
                if self.faults.strikes(Fault.DUPLICATED, chances.duplicate):
                    later = chance.randrange(120_000)
                    raw.execute(
                        f"INSERT INTO bus_messages ({_COLUMNS}, delivery_count) "  # noqa: S608 - names of ours
                        "SELECT subscription_id, available_at + ?, enqueued_at, expires_at, properties, body, 0 "
                        "FROM bus_messages WHERE id = ?",
                        (later, message),
                    )
                if self.faults.strikes(Fault.DELAYED, chances.delay):
                    raw.execute(
                        "UPDATE bus_messages SET available_at = available_at + ? WHERE id = ?",
                        (chance.randrange(200_000), message),
                    )
            jobs = [
                row[0]
                for row in raw.execute(
                    "SELECT m.id FROM bus_messages m JOIN bus_subscriptions s ON s.id = m.subscription_id "
                    "WHERE m.dead_at IS NULL AND s.name LIKE 'worker-%' ORDER BY m.id"
                )
            ]
            for job in jobs:
                if self.faults.strikes(Fault.GIVEN_UP, chances.give_up):
                    raw.execute(
                        "UPDATE bus_messages SET dead_at = available_at, dead_reason = 'MaxDeliveryCountExceeded', "
                        "dead_description = 'given up by the simulation' WHERE id = ?",
                        (job,),
                    )


@dataclass(slots=True)
class Operator:
    """Publishes new versions, cancels batches, switches automation and releases removals while they run."""

    database: SimulatedDatabase
    clock: Clock
    processes: Processes
    faults: Faults
    scenario: Scenario
    bus: Bus

    def run(self) -> None:
        """Interfere, for ever."""
        published = 1
        while True:
            chances, chance = self.faults.likelihoods, self.faults.chance
            self.processes.sleep(timedelta(seconds=10 + chance.randrange(140)))
            chances = self.faults.likelihoods
            try:
                if published < len(self.scenario.versions) and self.faults.strikes(Fault.PUBLISHED, chances.publish):
                    self._publish(published)
                    published += 1
                if self.faults.strikes(Fault.CANCELLED, chances.cancel):
                    self._cancel(chance.random())
                if self.faults.strikes(Fault.AUTOMATION_SWITCHED, chances.switch):
                    self._switch()
                self._release(chances.release)
            except StoreError:
                continue

    def _publish(self, index: int) -> None:
        chance = self.faults.chance
        ignore, rerun = chance.random() < 1 / 2, chance.random() < 1 / 2
        with self.database.transaction() as tx:
            runbooks.publish(
                tx,
                name=self.scenario.name,
                yaml_content=self.scenario.versions[index],
                now=self.clock.now(),
                by="operator",
                overdue_behavior="ignore" if ignore else "rerun",
                rerun_init=rerun,
            )

    def _switch(self) -> None:
        with self.database.transaction() as tx:
            enabled = automation.read(tx, self.scenario.name).automation_enabled
            automation.switch(tx, self.scenario.name, enabled=not enabled, now=self.clock.now(), by="operator")

    def _release(self, likelihood: float) -> None:
        held = "SELECT DISTINCT batch_id FROM batch_members WHERE removal_held_at IS NOT NULL AND status = 'active'"
        for (batch,) in plain_rows(self.database, held):
            if self.faults.strikes(Fault.RELEASED, likelihood):
                release_held_removals(self.database, Announcer(self.bus), batch, by="operator", now=self.clock.now())

    def _cancel(self, drawn: float) -> None:
        with self.database.transaction() as tx:
            # Those that are half made nobody sees.
            batches = [each for each in batch_store.open_batches(tx) if each.loaded_at is not None]
            if batches:
                batch = batches[int(drawn * len(batches))]
                lock_batches(tx, [batch.id])
                cancel_batch(tx, batch.id, self.clock.now(), by="operator", size=1 + int(drawn * 20))
