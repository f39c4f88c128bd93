"""Bugs planted on purpose: each must be found by the simulation, or the simulation is worth nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from matoolkit.orchestrator import completion, sequences, worker_result
from matoolkit.orchestrator.decisions import Stale, TryAgain, on_result
from matoolkit.orchestrator.intake import Intake
from matoolkit.orchestrator.orchestrator import Orchestrator
from matoolkit.orchestrator.work import Closing, Work
from matoolkit.simulation.faults import Likelihoods
from matoolkit.simulation.history import Plan, Simulator
from matoolkit.store import database as store_database
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store import sequences as sequence_store
from matoolkit.store.batches import Batch
from matoolkit.store.states import PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from matoolkit.store.database import Transaction
    from matoolkit.store.phases import Phase

_AT_MOST = 300
"""Histories in which a bug must show."""

Patch = pytest.MonkeyPatch
BUGS: list[Callable[[Patch], None]] = []


def bug(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """A bug to be found."""
    BUGS.append(plant)
    return plant


@bug
def acknowledge_before_commit(patch: Patch) -> None:
    """Messages are gone before what they caused is written."""

    def take_in(self: Any) -> tuple[int, Closing | None]:
        with self._database.transaction() as tx:
            messages = self._bus.take(tx, self._subscription, self._size)
        with self._database.transaction() as tx:
            return len(messages), self._handle(tx, messages) if messages else None

    patch.setattr(Intake, "take_in", take_in)


@bug
def lose_the_outbox(patch: Patch) -> None:
    """What is to be sent is sent after the commit instead of with it."""
    finish = Work.finish

    def finish_later(self: Work) -> Closing:
        events, jobs = self._events, self._jobs
        self._events, self._jobs = [], []

        def send() -> None:
            with self.bus.transaction() as tx:
                later = replace(self, tx=tx)
                later._events, later._jobs = events, jobs
                finish(later)

        if events or jobs:
            self.tx.after_commit(send)
        return finish(self)

    patch.setattr(Work, "finish", finish_later)


@bug
def drop_the_guard_on_results(patch: Patch) -> None:
    """A result is believed whatever state the execution is in."""

    def believe(execution: Any, result: Any, *rest: Any) -> Any:
        believed = msgspec.structs.replace(execution, job_out=True, job_id=result.job_id)
        return on_result(believed, result, *rest)

    patch.setattr(worker_result, "on_result", believe)
    patch.setattr(store_database, "_insist", lambda _found, _expected: None)


@bug
def ignore_the_stale_job_id(patch: Patch) -> None:
    """A result of an earlier attempt counts for the one that is under way."""

    def believe(execution: Any, result: Any, *rest: Any) -> Any:
        return on_result(execution, msgspec.structs.replace(result, job_id=execution.job_id or ""), *rest)

    patch.setattr(worker_result, "on_result", believe)


@bug
def forget_the_lock_when_closing(patch: Patch) -> None:
    """Phases are closed on what was read some transactions ago, without looking again under the lock."""

    def close(self: Any, closing: Closing | None) -> None:
        closing = closing or Closing()
        remembered = self.__dict__.setdefault("remembered", [])
        with self._database.transaction() as tx:
            for phase in remembered:
                phase_store.close(tx, phase, PhaseStatus.COMPLETED, None, self._clock.now())
        with self._database.transaction() as tx:
            remembered[:] = phase_store.closable_among(tx, closing.phases)
            completion.close(tx, self._library, Closing(batches=closing.batches), self._clock.now())

    patch.setattr(Orchestrator, "close", close)


@bug
def call_a_phase_written_after_its_first_chunk(patch: Patch) -> None:
    """A phase may close before all its members have been started."""
    expanded_to = phase_store.expanded_to

    def at_once(tx: Transaction, phase: Phase, after: int, through: int, *, expanded_at: Any, now: datetime) -> None:
        expanded_to(tx, phase, after, through, expanded_at=expanded_at or now, now=now)

    patch.setattr(phase_store, "expanded_to", at_once)


@bug
def do_not_wait_for_hands_to_be_still(patch: Patch) -> None:
    """The steps of leaving begin while a job is out."""

    def nobody(_tx: Transaction, _ids: Iterable[int], *, removals_too: bool = False) -> set[int]:
        return set()

    patch.setattr(sequence_store, "busy_members", nobody)


@bug
def go_on_after_a_cancel(patch: Patch) -> None:
    """A batch is taken for active whatever its status."""
    patch.setattr(Batch, "is_active", property(lambda _self: True))


@bug
def leave_the_steps_of_who_failed(patch: Patch) -> None:
    """What is left of a failed member is not cancelled."""

    def nothing(_tx: Transaction, _members: Iterable[int], _now: datetime) -> set[int]:
        return set()

    patch.setattr(phase_store, "cancel_steps", nothing)


@bug
def forget_to_track_rollbacks(patch: Patch) -> None:
    """Rollbacks are sent into the dark."""
    patch.setattr(sequences, "start_rollbacks", lambda *_args: None)


@bug
def retry_once_too_often(patch: Patch) -> None:
    """The last try is followed by another."""

    def again(execution: Any, result: Any, *rest: Any) -> Any:
        if execution.max_retries and execution.retry_count == execution.max_retries:
            more = msgspec.structs.replace(execution, max_retries=execution.max_retries + 1)
            decision = on_result(more, result, *rest)
            return decision if isinstance(decision, TryAgain | Stale) else on_result(execution, result, *rest)
        return on_result(execution, result, *rest)

    patch.setattr(worker_result, "on_result", again)


@bug
def forget_who_came_back(patch: Patch) -> None:
    """Who comes back while the steps of leaving run is never started."""
    patch.setattr(sequences, "advance_removals", _without_return(sequences.advance_removals))
    patch.setattr(member_store, "owed_catch_up", lambda _tx, _size: [])


def _without_return(advance: Callable[..., None]) -> Callable[..., None]:
    def advanced(work: Work, *args: Any, **kwargs: Any) -> None:
        advance(work, *args, **kwargs)
        work.members_to_return.clear()

    return advanced


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_the_simulation_finds(plant: Callable[[Patch], None], monkeypatch: Patch, simulator: Simulator) -> None:
    plant(monkeypatch)
    plan = Plan(likelihoods=replace(Likelihoods(), join=0.8, leave=0.4, come_back=0.9, cancel=0.02))
    for seed in range(_AT_MOST):
        if simulator.live(seed, plan).violations:
            return
    pytest.fail(f"{_AT_MOST} histories did not find it")


def test_there_are_enough_bugs() -> None:
    assert len(BUGS) >= 10
