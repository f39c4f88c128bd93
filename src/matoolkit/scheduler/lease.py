"""The lease: of several schedulers one leads, and every transaction it makes asks whether it still does.

Its time runs on the database's clock where several machines share a database, so that a machine whose clock is wrong
takes it from nobody; on SQLite, which one machine has to itself, on the clock that is handed in. A leader that was too
slow loses nothing while nobody wants the lease. Once somebody has taken it, what the old leader was about to change
fails, whatever it had read before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from matoolkit.scheduler.errors import LeaseLost
from matoolkit.store import leases

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from matoolkit.clock import Clock
    from matoolkit.store.database import Database, Transaction

NAME: Final = leases.SCHEDULER


@dataclass(frozen=True, slots=True)
class Lead:
    """Having the lease, from one taking of it to its loss."""

    holder: str

    def insist(self, tx: Transaction) -> None:
        """Fail unless the lease is still ours; it stays so until the commit."""
        if not leases.is_held(tx, NAME, self.holder):
            raise LeaseLost(f"another scheduler has taken over from {self.holder}")


class Lease:
    """One scheduler's part in the contest."""

    def __init__(self, database: Database, me: str, duration: timedelta, clock: Clock | None) -> None:
        self._database, self._me, self._duration = database, me, duration
        self._clock = clock
        self._lead: Lead | None = None
        self._takings = 0

    def hold(self, now: datetime) -> Lead | None:
        """Keep the lease, or take it when it is free; None while somebody else has it."""
        with self._database.reading() as tx:
            moment, known = self._moment(tx, now), leases.read(tx, NAME)
        if known is not None:
            holder, expires_at = known
            if self._lead is not None and holder == self._lead.holder:
                if expires_at - moment > self._duration / 2:
                    return self._lead
            elif expires_at > moment:
                self._lead = None
                return None
        with self._database.transaction() as tx:
            return self._keep_or_take(tx, self._moment(tx, now))

    def _keep_or_take(self, tx: Transaction, moment: datetime) -> Lead | None:
        if self._lead is not None and leases.keep(tx, NAME, self._lead.holder, moment + self._duration):
            return self._lead
        # Each taking has a name of its own: what was begun under an earlier one does not go on.
        self._takings += 1
        holder = f"{self._me} since {moment.isoformat()}, {self._takings}"
        self._lead = Lead(holder) if leases.take(tx, NAME, holder, moment, self._duration) else None
        return self._lead

    def give_back(self) -> None:
        """Let somebody else take over at once."""
        if self._lead is not None:
            with self._database.transaction() as tx:
                leases.give_back(tx, NAME, self._lead.holder)
            self._lead = None

    def _moment(self, tx: Transaction, now: datetime) -> datetime:
        if self._clock is not None:
            return self._clock.now()
        return now if tx.dialect == "sqlite" else leases.database_time(tx)
