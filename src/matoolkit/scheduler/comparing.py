"""What is done with what a source gave: batches made, members joined, removed, brought back and refreshed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from matoolkit.batches import membership
from matoolkit.scheduler import detection, removing
from matoolkit.scheduler.batch_times import bucket, bucket_is_over
from matoolkit.scheduler.differences import Differences, differences
from matoolkit.scheduler.joining import not_free
from matoolkit.store import creation, roster
from matoolkit.store.locking import lock_members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.runbooks import Runbook
    from matoolkit.scheduler.gathering import Gathered, Person
    from matoolkit.scheduler.working import Working
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction
    from matoolkit.store.runbooks import PublishedRunbook

_SHOWN = 5


@dataclass(slots=True)
class Comparison:
    """One runbook's open batches, and the people its source gave."""

    work: Working
    published: PublishedRunbook
    runbook: Runbook
    gathered: Gathered
    makes_batches: bool
    """Whether automation is on."""

    def apply(self) -> list[str]:
        """Change what has to be; gives what is to be reported."""
        with self.work.database.reading() as tx:
            mine = [each for each in roster.open_of_name(tx, self.published.name) if not each.is_manual]
        immediate = self.runbook.data_source.batch_time_column is None
        problems = self._at_once(mine) if immediate else self._by_start(mine)
        return [*self.gathered.problems, *problems, *self._failed_inits(mine)]

    def _by_start(self, mine: list[Batch]) -> list[str]:
        """Everybody belongs to the batch that starts when their row says."""
        groups = {start: people for start, people in self.gathered.groups.items() if start is not None}
        # All removals before the first joining: moving to another date is one, then the other.
        compared = [
            (batch, self._compared(batch, groups.get(_start(batch), {})))
            for batch in mine
            if batch.loaded_at is not None
        ]
        problems = [removing.let_go(self.work, batch, found) for batch, found in compared]
        # Before the joining too: who is taken back from a batch that was half made is free for another.
        for batch in mine:
            if batch.loaded_at is None:
                self._complete(batch, groups.get(_start(batch), {}))
        for batch, found in compared:
            self._take_in(batch, found)
        with self.work.database.reading() as tx:
            there = roster.batches_at(tx, self.published.name, groups)
            late = self._late(tx, groups, there)
        oldest = self.work.now - timedelta(seconds=self.runbook.data_source.max_batch_age_seconds)
        for start in sorted(groups.keys() - there.keys()):
            if start >= oldest and self.makes_batches:
                detection.make(self.work, self.published, self.runbook, start, groups[start])
        return [*filter(None, problems), *late, *self._too_old(sorted(groups.keys() - there.keys()), oldest)]

    def _at_once(self, mine: list[Batch]) -> list[str]:
        """Everybody who is in no open batch joins the one of these five minutes."""
        people, start, now = self.gathered.everybody, bucket(self.work.now), self.work.now
        compared: list[tuple[Batch, Differences]] = []
        new = people
        back_in: set[str] = set()
        # The newest first: who was removed from several comes back to the last one.
        for batch in reversed(mine):
            if batch.loaded_at is None:
                continue
            found = self._compared(batch, people)
            new = {folded: person for folded, person in new.items() if folded in found.new}
            found.new = {}
            found.back = {folded: back for folded, back in found.back.items() if folded not in back_in}
            back_in |= found.back.keys()
            if not bucket_is_over(_start(batch), now):
                found.gone, found.missed = [], []
            compared.append((batch, found))
        problems = [removing.let_go(self.work, batch, found) for batch, found in compared]
        for batch, found in compared:
            if _start(batch) == start:
                found.new, new = new, {}
            self._take_in(batch, found)
        for batch in mine:
            if batch.loaded_at is None:
                self._complete(batch, new)
                new = {}
        if new and self.makes_batches:
            detection.make(self.work, self.published, self.runbook, start, new)
        return [problem for problem in problems if problem]

    def _compared(self, batch: Batch, people: Mapping[str, Person]) -> Differences:
        with self.work.database.reading() as tx:
            return differences(roster.listed(tx, batch.id), people, self.gathered.unreadable)

    def _complete(self, batch: Batch, people: Mapping[str, Person]) -> None:
        detection.complete(self.work, self.published, self.runbook, batch.id, start=_start(batch), people=people)

    def _take_in(self, batch: Batch, found: Differences) -> None:
        """Fresh data first, then those who came back, then those who are new."""

        def refresh(tx: Transaction, some: list[tuple[int, str]]) -> None:
            lock_members(tx, [member for member, _data in some])
            creation.refresh_members(tx, some)

        def bring_back(tx: Transaction, some: list[tuple[str, tuple[int, Person]]]) -> None:
            waiting = not_free(tx, self.published.name, {folded for folded, _back in some}, batch.id)
            back = [(member, person[1]) for folded, (member, person) in some if folded not in waiting]
            membership.reactivate_members(tx, self.work.announcer, batch, sorted(back), self.work.now)

        def add(tx: Transaction, some: list[tuple[str, Person]]) -> None:
            waiting = not_free(tx, self.published.name, {folded for folded, _person in some}, batch.id)
            people = [person for folded, person in some if folded not in waiting]
            membership.add_members(tx, self.work.announcer, batch, people, self.work.now)

        self.work.in_chunks(found.changed, refresh)
        self.work.in_chunks(sorted(found.back.items()), bring_back)
        self.work.in_chunks(sorted(found.new.items()), add)

    def _late(
        self,
        tx: Transaction,
        groups: Mapping[datetime, Mapping[str, Person]],
        there: Mapping[datetime, tuple[int, bool]],
    ) -> list[str]:
        """People whose batch has ended without them: they wait for another date, and somebody has to know."""
        told = []
        for start, (batch, is_open) in sorted(there.items()):
            if is_open:
                continue
            late = groups[start].keys() - roster.keys_of(tx, batch)
            if late:
                keys = [groups[start][folded][0] for folded in sorted(late)]
                told.append(
                    f"batch {batch} of {start.isoformat()} has ended, and never runs again for {_some(keys)}:"
                    " give them another date"
                )
        return told

    def _too_old(self, starts: list[datetime], oldest: datetime) -> list[str]:
        old = [start.isoformat() for start in starts if start < oldest]
        if not old:
            return []
        return [f"these batch times are longer past than max_batch_age, and no batch is made for them: {_some(old)}"]

    def _failed_inits(self, mine: list[Batch]) -> list[str]:
        """An init that failed when a new version had it run again is no end of its batch, but must not be forgotten."""
        with self.work.database.reading() as tx:
            failed = roster.failed_init_reruns(tx, [each.id for each in mine], self.published.version)
        return [
            f"init step '{step}' failed when it was run again for batch {batch}: {error}"
            for batch, step, error in failed
        ]


def _start(batch: Batch) -> datetime:
    if batch.batch_start_time is None:
        raise AssertionError("only a manual batch has no start time")
    return batch.batch_start_time


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
