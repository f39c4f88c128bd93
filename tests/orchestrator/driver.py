"""A wave as a story: who is in it, what comes in, what a worker is asked to do, and where everybody is afterwards.

Jobs are spoken of as `"step member"`: `"move anna"`; those of init, which has no member, as `"open"`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.batches import making, membership, versions
from matoolkit.batches.announcing import Announcer
from matoolkit.runbooks import load_runbook
from matoolkit.scheduler.due import ask_due_polls, start_due_phases
from matoolkit.simulation import invariants
from matoolkit.store import batches as batch_store
from matoolkit.store import runbooks as runbook_store
from matoolkit.store import schema
from matoolkit.store.locking import lock_batches
from matoolkit.store.states import OPEN_BATCH
from matoolkit.store.winding_up import cancel_batch
from tests.orchestrator.post import TURNS
from tests.orchestrator.worker import WorkerSide

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction


class Wave(WorkerSide):
    """A batch under a runbook, with everybody who acts on it."""

    def publish(self, text: str, *, ignore: bool = False, rerun_init: bool = False) -> int:
        """Make a runbook the active version."""
        load_runbook(text)
        with self.database.transaction() as tx:
            return runbook_store.publish(
                tx,
                name="wave",
                yaml_content=text,
                now=self.now,
                by="anna",
                overdue_behavior="ignore" if ignore else "rerun",
                rerun_init=rerun_init,
            )

    def batch(self, *keys: str, minutes: int = 60, data: Mapping[str, Mapping[str, Any]] | None = None) -> int:
        """A batch of the active version that starts in so many minutes."""
        published, runbook = self._active()
        start = self.now + timedelta(minutes=minutes)
        people = [self._person(key, data) for key in keys]
        with self.database.transaction() as tx:
            self.batch_id = making.create_batch(
                tx, self._announcer, published, runbook, start_time=start, members=people, now=self.now
            )
        return self.batch_id

    def join(self, *keys: str, data: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Members appear in the source: new ones are added, removed ones come back."""
        people = [self._person(key, data) for key in keys]
        known = {row["member_key"]: row["id"] for row in self.rows(schema.batch_members, batch_id=self.batch_id)}
        with self.database.transaction() as tx:
            batch = self._batch(tx)
            new = [person for person in people if person[0] not in known]
            back = [(known[key], text) for key, text in people if key in known]
            membership.add_members(tx, self._announcer, batch, new, self.now)
            membership.reactivate_members(tx, self._announcer, batch, back, self.now)

    def leave(self, *keys: str) -> None:
        """Members disappear from the source."""
        ids = [self.member(key)["id"] for key in keys]
        with self.database.transaction() as tx:
            membership.remove_members(tx, self._announcer, self._batch(tx), ids, self.now, by="source")

    def succeed_and_leave(self, key: str) -> None:
        """A member disappears; the jobs it has come to their end, which is too late to count."""
        self.leave(key)
        self.succeed(*(label for label in self.jobs() if label.endswith(f" {key}")))

    def change_version(self) -> bool:
        """Take the batch over to the active version."""
        published, runbook = self._active()
        with self.database.transaction() as tx:
            return versions.change_version(
                tx, self._announcer, self.batch_id, published=published, runbook=runbook, now=self.now
            )

    def cancel(self, size: int = 1000) -> bool:
        """An operator cancels the batch."""
        with self.database.transaction() as tx:
            lock_batches(tx, [self.batch_id])
            return cancel_batch(tx, self.batch_id, self.now, by="anna", size=size)

    def tick(self, **later: float) -> None:
        """Some time passes, the scheduler ticks, and what it says is handled."""
        self.announce(**later)
        self.pump()

    def announce(self, **later: float) -> None:
        """Some time passes and the scheduler ticks; its messages wait."""
        self.clock.advance(**later)
        with self.database.transaction() as tx:
            start_due_phases(tx, self._announcer, self.now)
        with self.database.transaction() as tx:
            ask_due_polls(tx, self._announcer, self.now)

    def reconcile(self, **later: float) -> None:
        """Some time passes, and the timer of one orchestrator fires; what it sends is handled."""
        self.clock.advance(**later)
        self.orchestrators[0].drain()
        self.orchestrators[0].reconcile()
        self.pump()

    def finish(self) -> str:
        """Every job succeeds and time passes until the batch has ended; how it ended."""
        for _ in range(TURNS):
            if self.jobs():
                self.succeed(*self.jobs())
            elif self.batch_status in OPEN_BATCH or self._busy():
                self.tick(minutes=1)
            else:
                break
        return self.ended()

    def ended(self, *, put_aside: int = 0) -> str:
        """How the batch ended; nothing may be left over of it, nor messages put aside but so many."""
        self.pump()
        assert self.held == {}
        self.check()
        with self.database.reading() as tx:
            broken = invariants.check(tx, invariants.AT_REST)
            waiting = self.bus.depth(tx, self.orchestrators[0].events_subscription)
        expected = [each for each in broken if each.invariant == "no message was put aside"]
        assert [str(each) for each in broken if each not in expected] == []
        assert len(expected) == put_aside, [str(each) for each in expected]
        assert (waiting.ready, waiting.locked) == (0, 0)
        return self.batch_status

    @property
    def _announcer(self) -> Announcer:
        return Announcer(self.bus)

    def _active(self) -> tuple[Any, Any]:
        with self.database.reading() as tx:
            published = runbook_store.active(tx)[0]
        return published, load_runbook(published.yaml_content)

    def _batch(self, tx: Transaction) -> Batch:
        return batch_store.read(tx, [self.batch_id])[self.batch_id]

    def _person(self, key: str, data: Mapping[str, Mapping[str, Any]] | None) -> tuple[str, str]:
        return key, msgspec.json.encode({"Key": key, **(data or {}).get(key, {})}).decode()

    def _busy(self) -> bool:
        with self.database.reading() as tx:
            return any(each.invariant.startswith("no ") for each in invariants.check(tx, invariants.AT_REST))
