"""The tick, in parts that a host calls: the beat, which is short, and what belongs to data sources, which may not be.

    beat      holds the lease, starts what is due and has polls asked about; every few seconds
    begin     takes batches over to new versions and says which sources are to be asked; every tick
    gather    asks one source, without the database, on whatever thread
    compare   applies what one source gave, or notes that it gave nothing

A host that does them one after another has the whole tick. One that gives each source a thread of its own has none of
them wait for another.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matoolkit.batches.versions import change_version
from matoolkit.errors import MatoolkitError
from matoolkit.runbooks import RunbookErrors
from matoolkit.scheduler.comparing import Comparison
from matoolkit.scheduler.due import POLLS_AT_ONCE, any_phases_due, any_polls_due, ask_due_polls, start_due_phases
from matoolkit.scheduler.errors import LeaseLost
from matoolkit.scheduler.gathering import Gathered, gather
from matoolkit.scheduler.lease import Lease
from matoolkit.scheduler.library import Library
from matoolkit.scheduler.settings import Settings
from matoolkit.scheduler.working import Working
from matoolkit.store import automation, roster, runbooks
from matoolkit.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.clock import Clock
    from matoolkit.runbooks import Runbook
    from matoolkit.runbooks.model import DataSource
    from matoolkit.scheduler.lease import Lead
    from matoolkit.scheduler.sources.port import Source
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Database
    from matoolkit.store.runbooks import PublishedRunbook

log = logging.getLogger(__name__)

_LONGEST_ERROR = 8_000


@dataclass(frozen=True, slots=True)
class Question:
    """A source that is to be asked."""

    published: PublishedRunbook
    runbook: Runbook
    lead: Lead
    """Under which it was asked: what comes back later is worth nothing under another."""
    asked_at: datetime


class Scheduler:
    """One scheduler; of several on the same database one leads, the others wait."""

    def __init__(
        self,
        database: Database,
        announcer: Announcer,
        clock: Clock,
        open_source: Callable[[DataSource], Source],
        *,
        me: str,
        settings: Settings | None = None,
        lease_clock: Clock | None = None,
    ) -> None:
        """Take what it works with; `lease_clock` is for those who have the lease's time from elsewhere."""
        self._database, self._announcer, self._clock, self._open_source = database, announcer, clock, open_source
        self._settings = settings or Settings()
        self._lease = Lease(database, me, self._settings.lease, lease_clock)
        self._lead: Lead | None = None
        self._ticked_at: datetime | None = None
        self._library = Library()

    @property
    def leads(self) -> bool:
        """Whether it is the one, as far as it knows."""
        return self._lead is not None

    def beat(self) -> bool:
        """Hold the lease, start what is due, ask about what is polled; whether it is time for a tick."""
        now = self._clock.now()
        self._lead, before = self._lease.hold(now), self._lead
        if self._lead is None:
            return False
        if self._lead != before:
            # Whoever takes over does not know when the last tick was.
            self._ticked_at = None
        work = self._working(self._lead, now)
        try:
            with self._database.reading() as tx:
                phases, polls = any_phases_due(tx, now), any_polls_due(tx, now)
            if phases:
                work.change(lambda tx: start_due_phases(tx, self._announcer, now))
            while polls:
                polls = work.change(lambda tx: ask_due_polls(tx, self._announcer, now)) == POLLS_AT_ONCE
        except LeaseLost:
            self._lead = None
            return False
        # A clock that was set back must not keep it waiting for a time that has been.
        return self._ticked_at is None or not self._ticked_at <= now < self._ticked_at + self._settings.tick

    def begin(self, busy: frozenset[str] = frozenset()) -> Sequence[Question]:
        """Take open batches over to new versions; gives the sources to ask, but for `busy` names, asked already."""
        lead, now = self._lead, self._clock.now()
        if lead is None:
            return ()
        with self._database.reading() as tx:
            active = runbooks.active(tx)
            off = automation.switched_off(tx)
            batches = {each.name: roster.open_of_name(tx, each.name) for each in active}
        self._ticked_at = now
        questions = []
        for published, runbook in zip(active, self._library.read(active).values(), strict=True):
            work = self._working(lead, now)
            try:
                if isinstance(runbook, RunbookErrors):
                    self._report(work, published, [f"the runbook cannot be read: {runbook}"])
                    continue
                self._change_versions(work, published, runbook, batches[published.name])
            except LeaseLost:
                self._lead = None
                return ()
            except Exception as error:  # noqa: BLE001 - one broken runbook must not disturb another
                self._failed(work, published, error)
                continue
            followed = any(not each.is_manual for each in batches[published.name])
            makes_batches = runbooks.folded(published.name) not in off
            if (makes_batches or followed) and runbooks.folded(published.name) not in busy:
                questions.append(Question(published, runbook, lead, now))
        return questions

    def gather(self, question: Question) -> Gathered | MatoolkitError:
        """Ask one source. What is wrong with it is an answer as well."""
        try:
            return gather(self._open_source(question.runbook.data_source), question.runbook)
        except MatoolkitError as error:
            return error
        except Exception as error:
            log.exception("%s: the data source failed in a way nobody foresaw", question.published.name)
            return MatoolkitError(f"the data source failed: {type(error).__name__}")

    def compare(self, question: Question, answer: Gathered | MatoolkitError) -> bool:
        """Apply what a source gave; where it gave nothing, nobody's membership changes. Whether all was applied."""
        work = self._working(question.lead, self._clock.now())
        try:
            if isinstance(answer, MatoolkitError):
                self._report(work, question.published, [f"the data source was not read: {answer}"])
                return False
            with self._database.reading() as tx:
                # Read now, not when the question was asked: somebody may have thrown the switch meanwhile.
                makes_batches = automation.read(tx, question.published.name).automation_enabled
                current = runbooks.read_version(tx, question.published.name, question.published.version)
            if current is None or not current.is_active:
                return False  # another version is; it is asked about at the next tick
            problems = Comparison(work, current, question.runbook, answer, makes_batches).apply()
            self._report(work, current, problems)
        except LeaseLost:
            self._lead = None
        except Exception as error:  # noqa: BLE001 - one broken runbook must not disturb another
            self._failed(work, question.published, error)
        else:
            return True
        return False

    def tick(self) -> None:
        """A whole tick, one thing after another: for those who have no threads."""
        for question in self.begin():
            self.compare(question, self.gather(question))

    def step_down(self) -> None:
        """Let another one lead at once."""
        self._lead = None
        self._lease.give_back()

    def _working(self, lead: Lead, now: datetime) -> Working:
        return Working(self._database, self._announcer, self._settings, lead, now)

    def _change_versions(
        self, work: Working, published: PublishedRunbook, runbook: Runbook, batches: Sequence[Batch]
    ) -> None:
        for batch in batches:
            if batch.is_active and not batch.is_manual and batch.runbook_version < published.version:
                work.change(
                    lambda tx, batch=batch: change_version(  # type: ignore[misc]  # the default is what it binds
                        tx, self._announcer, batch.id, published=published, runbook=runbook, now=work.now
                    )
                )

    def _failed(self, work: Working, published: PublishedRunbook, error: Exception) -> None:
        """Keep going with the others; what the database refused is tried again, and no fault of the runbook."""
        if isinstance(error, StoreError):
            log.warning("%s: %s; it goes on at the next tick", published.name, error)
            return
        log.error("%s: failed", published.name, exc_info=error)
        told = str(error) if isinstance(error, MatoolkitError) else f"it failed unexpectedly: {type(error).__name__}"
        try:
            self._report(work, published, [told])
        except (LeaseLost, StoreError) as also:
            log.warning("%s: this could not be noted either: %s", published.name, also)

    def _report(self, work: Working, published: PublishedRunbook, problems: Sequence[str]) -> None:
        """Note what is wrong with a runbook; only when nothing is, what was noted before is cleared."""
        if problems:
            told = "\n".join(problems)[:_LONGEST_ERROR]
            work.change(lambda tx: runbooks.report_error(tx, published.name, published.version, told, work.now))
        elif published.has_error:
            work.change(lambda tx: runbooks.clear_error(tx, published.id))
