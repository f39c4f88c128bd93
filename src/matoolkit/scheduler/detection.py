"""New batches: a large one is written in parts that nobody sees until the last, and a later tick finishes what is lost.

What was never seen can be taken back: who has left the source before a batch was shown leaves no trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches import making
from matoolkit.scheduler.joining import not_free
from matoolkit.store import batches as batch_store
from matoolkit.store import creation, roster
from matoolkit.store.locking import lock_batches
from matoolkit.store.states import BatchStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from matoolkit.runbooks import Runbook
    from matoolkit.scheduler.gathering import Person
    from matoolkit.scheduler.working import Working
    from matoolkit.store.database import Transaction
    from matoolkit.store.runbooks import PublishedRunbook

_Folk = tuple[str, "Person"]
"""A person by folded key."""


def make(
    work: Working, published: PublishedRunbook, runbook: Runbook, start: datetime, people: Mapping[str, Person]
) -> None:
    """Make the batch of a start time, of everybody who is free to join it; where nobody is, there is no batch."""
    if len(people) <= work.settings.chunk_size:

        def at_once(tx: Transaction) -> None:
            free = [] if _is_there(tx, published, start) else _free(tx, published.name, None, people.items())
            if free:
                making.create_batch(
                    tx, work.announcer, published, runbook, start_time=start, members=free, now=work.now
                )

        work.change(at_once)
        return

    def begin(tx: Transaction) -> int | None:
        if _is_there(tx, published, start):
            return None
        return making.begin_batch(tx, published, start_time=start, now=work.now)

    batch = work.change(begin)
    if batch is not None:
        complete(work, published, runbook, batch, start=start, people=people)


def complete(
    work: Working,
    published: PublishedRunbook,
    runbook: Runbook,
    batch: int,
    *,
    start: datetime,
    people: Mapping[str, Person],
) -> None:
    """Write what is missing of a batch that nobody has seen yet, and show it; or take it back when nobody is in it."""
    with work.database.reading() as tx:
        listed = {folded: (member, data) for member, folded, _status, data, _held in roster.listed(tx, batch)}
    vanished = sorted(member for folded, (member, _data) in listed.items() if folded not in people)
    changed = [
        (member, people[folded][1])
        for folded, (member, data) in listed.items()
        if folded in people and people[folded][1] != data
    ]
    work.in_chunks(vanished, lambda tx, some: creation.take_back(tx, batch, some))
    work.in_chunks(changed, creation.refresh_members)

    def fill(tx: Transaction, some: list[_Folk]) -> None:
        if _unseen(tx, batch):
            making.fill_batch(tx, batch, _free(tx, published.name, batch, some), work.now)

    def finish(tx: Transaction) -> None:
        if not _unseen(tx, batch):
            return
        if not batch_store.active_members(tx, batch):
            creation.take_back(tx, batch)
            return
        creation.adopt(tx, batch, published.id)
        making.finish_batch(tx, work.announcer, batch, published, runbook, start_time=start, now=work.now)

    missing = ((folded, person) for folded, person in people.items() if folded not in listed)
    work.in_chunks(missing, fill)
    work.change(finish)


def _unseen(tx: Transaction, batch: int) -> bool:
    """Whether a batch is still to be shown, and not cancelled or gone meanwhile; nobody else changes it any more."""
    lock_batches(tx, [batch])
    found = batch_store.read(tx, [batch]).get(batch)
    return found is not None and found.loaded_at is None and found.status == BatchStatus.DETECTED


def _is_there(tx: Transaction, published: PublishedRunbook, start: datetime) -> bool:
    return bool(roster.batches_at(tx, published.name, [start]))


def _free(tx: Transaction, runbook_name: str, batch: int | None, people: Iterable[_Folk]) -> list[Person]:
    some = dict(people)
    waiting = not_free(tx, runbook_name, some.keys(), batch)
    return [person for folded, person in sorted(some.items()) if folded not in waiting]
