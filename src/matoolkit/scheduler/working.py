"""What all parts of a tick share: transactions that insist on the lease, and are tried again when they collide."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from matoolkit.store.errors import TransactionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.scheduler.lease import Lead
    from matoolkit.scheduler.settings import Settings
    from matoolkit.store.database import Database, Transaction

Answer = TypeVar("Answer")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Working:
    """One leader at work, at one moment."""

    database: Database
    announcer: Announcer
    settings: Settings
    lead: Lead
    now: datetime

    def change(self, work: Callable[[Transaction], Answer]) -> Answer:
        """Do something in a transaction of its own, as long as we lead."""
        for attempt in range(1, self.settings.attempts + 1):
            try:
                with self.database.transaction() as tx:
                    self.lead.insist(tx)
                    return work(tx)
            except TransactionConflict:
                if attempt == self.settings.attempts:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def in_chunks(self, items: Iterable[Item], work: Callable[[Transaction, list[Item]], object]) -> None:
        """Do something to many, some at a time, each time in a transaction of its own."""
        for chunk in chunks(items, self.settings.chunk_size):
            self.change(lambda tx, chunk=chunk: work(tx, chunk))  # type: ignore[misc]  # the default is what it binds


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Some items at a time."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
