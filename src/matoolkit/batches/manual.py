"""Manual batches: made from a list, and taken from phase to phase by an operator.

They have no start time: init and phases begin when an operator says so, in the order of time, and each only when what
came before has ended. Everything else is as in any batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from matoolkit.batches.membership import add_members, reactivate_members, remove_members
from matoolkit.batches.operating import locked, require_manual, require_open
from matoolkit.batches.phases import planned_phases
from matoolkit.batches.places import taken
from matoolkit.batches.refusals import NoSuchMember, NotYet, WrongState
from matoolkit.messages import BatchInit
from matoolkit.store import batches as batch_store
from matoolkit.store import creation, due, manual, places
from matoolkit.store import inits as init_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store.runbooks import folded
from matoolkit.store.states import BatchStatus, MemberStatus, PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.batches.membership import Found
    from matoolkit.runbooks import Runbook
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction
    from matoolkit.store.phases import Phase
    from matoolkit.store.runbooks import PublishedRunbook


class Action(StrEnum):
    """What an advance did."""

    INIT_DISPATCHED = "init_dispatched"
    """The batch began with its init."""
    PHASE_DISPATCHED = "phase_dispatched"
    """Its next phase began."""
    COMPLETED = "completed"
    """There was nothing left to begin: it is over."""


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a batch was taken."""

    action: Action
    phase_name: str | None
    member_count: int
    step_count: int
    """How many steps each member goes through in the phase; of init, how many there are."""
    next_phase: str | None


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of members who were to be in a batch."""

    batch_id: int
    count: int
    skipped: tuple[str, ...]
    """Of each who was not taken, why."""


def create_manual_batch(
    tx: Transaction,
    published: PublishedRunbook,
    runbook: Runbook,
    members: Sequence[Found],
    now: datetime,
    *,
    by: str,
) -> Taken:
    """A batch that waits for its first advance; WrongState when nobody is left for it."""
    elsewhere = taken(tx, published.name, {folded(key) for key, _ in members})
    free = [(key, data) for key, data in members if folded(key) not in elsewhere]
    skipped = [_taken(key, elsewhere[folded(key)]) for key, _ in members if folded(key) in elsewhere]
    if not free:
        raise WrongState(f"nobody is left for a batch: {skipped[0]}, and so are the others, if there are any")
    batch = creation.create_batch(
        tx, published, name_folded=folded(published.name), start_time=None, now=now, is_manual=True, created_by=by
    )
    creation.add_members(tx, batch, [(key, folded(key), data) for key, data in free], now, late=False)
    creation.add_phases(tx, batch, published.version, planned_phases(runbook, None))
    creation.loaded(tx, batch, now)
    return Taken(batch, len(free), tuple(skipped))


def join(tx: Transaction, announcer: Announcer, batch_id: int, members: Sequence[Found], now: datetime) -> Taken:
    """More members for a manual batch: they catch up on what has begun. Who was removed comes back."""
    batch = require_manual(require_open(locked(tx, batch_id)))
    keys = {folded(key) for key, _ in members}
    there = places.of_keys(tx, batch_id, keys)
    elsewhere = taken(tx, batch.runbook_name, keys, batch_id)
    new: list[Found] = []
    back: dict[int, Found] = {}
    skipped = []
    for key, data in members:
        member, status = there.get(folded(key), (None, None))
        if status is not None and status != MemberStatus.REMOVED:
            skipped.append(f"'{key}' is in this batch already ({status})")
        elif folded(key) in elsewhere:
            skipped.append(_taken(key, elsewhere[folded(key)]))
        elif member is None:
            new.append((key, data))
        else:
            back[member] = (key, data)
    add_members(tx, announcer, batch, new, now)
    came = reactivate_members(tx, announcer, batch, [(member, data) for member, (_, data) in back.items()], now)
    skipped += [f"'{key}' is still leaving: add it later" for member, (key, _) in back.items() if member not in came]
    return Taken(batch_id, len(new) + len(came), tuple(skipped))


def leave(tx: Transaction, announcer: Announcer, batch_id: int, member_id: int, now: datetime, *, by: str) -> str:
    """A member is taken out of a manual batch, whose steps of leaving follow; gives the member's key."""
    batch = require_manual(require_open(locked(tx, batch_id)))
    member = member_store.read(tx, [member_id]).get(member_id)
    if member is None or member.batch_id != batch_id:
        raise NoSuchMember(f"batch {batch_id} has no member {member_id}")
    if not member.is_active:
        raise WrongState(f"member {member_id} is {member.status} and cannot be removed any more")
    remove_members(tx, announcer, batch, [member_id], now, by=by)
    return member.member_key


def advance(tx: Transaction, announcer: Announcer, batch_id: int, runbook: Runbook, now: datetime) -> Advance:
    """Begin what comes next: init first, then the phases one by one."""
    batch = require_manual(locked(tx, batch_id))
    members = batch_store.active_members(tx, batch_id)
    if batch.status == BatchStatus.COMPLETED:
        return Advance(Action.COMPLETED, None, members, 0, None)
    require_open(batch)
    phases = phase_store.of_batches(tx, [batch_id])[batch_id]
    pending = [each for each in phases if each.status == PhaseStatus.PENDING]
    if batch.status == BatchStatus.INIT_DISPATCHED:
        step = init_store.next_open(tx, batch_id, batch.runbook_version)
        raise NotYet("init is not finished" + (f": step '{step.step_name}' is {step.status}" if step else ""))
    if batch.status == BatchStatus.DETECTED and runbook.init:
        batch_store.start_init(tx, batch_id, now)
        manual.moved(tx, batch_id, None, now)
        announcer.send(tx, [_init(batch, members, now)])
        return Advance(Action.INIT_DISPATCHED, None, members, len(runbook.init), _name(pending, 0))
    running = next((each for each in phases if each.status == PhaseStatus.DISPATCHED), None)
    if running is not None:
        raise NotYet(f"phase '{running.phase_name}' is not finished")
    if not pending:
        raise NotYet("every phase has ended, and the last steps of members who joined late have not")
    if batch.status == BatchStatus.DETECTED:
        batch_store.activate(tx, batch_id)
        tx.execute(member_store.CLEAR_CATCH_UP, batch=batch_id)
    first = pending[0]
    due.start_phases(tx, [first.id], now)
    manual.moved(tx, batch_id, first.phase_name, now)
    announcer.send_due(tx, [(first, batch)])
    defined = runbook.phase(first.phase_name)
    steps = 0 if defined is None else len(defined.steps)
    return Advance(Action.PHASE_DISPATCHED, first.phase_name, members, steps, _name(pending, 1))


def _taken(key: str, batch: int) -> str:
    return f"'{key}' is in batch {batch} of this runbook, and not through with it"


def _name(phases: Sequence[Phase], place: int) -> str | None:
    return phases[place].phase_name if place < len(phases) else None


def _init(batch: Batch, members: int, now: datetime) -> BatchInit:
    return BatchInit(
        runbook_name=batch.runbook_name,
        runbook_version=batch.runbook_version,
        batch_id=batch.id,
        batch_start_time=batch.started_at or now,
        member_count=members,
    )
