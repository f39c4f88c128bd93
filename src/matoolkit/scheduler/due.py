"""Phases and polls whose time has come, told to the orchestrator in the transaction that notes it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.messages import Kind, PollCheck, execution_fields
from matoolkit.store import batches as batch_store
from matoolkit.store import due as store
from matoolkit.store import phases as phase_store
from matoolkit.store.locking import share_batches

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.store.database import Transaction

POLLS_AT_ONCE = 500
_ASK_AGAIN_AFTER = timedelta(minutes=1)


def any_phases_due(tx: Transaction, now: datetime) -> bool:
    """Whether there is anything to start: mostly there is not, and nobody need be held up to find out."""
    return bool(store.phases_due(tx, now))


def any_polls_due(tx: Transaction, now: datetime) -> bool:
    """Whether there is anything to be asked about."""
    return bool(store.polls_due(tx, now, 1))


def start_due_phases(tx: Transaction, announcer: Announcer, now: datetime) -> int:
    """Start every phase whose time has come, of batches that are active and not running their init again."""
    found = store.phases_due(tx, now)
    if not found:
        return 0
    share_batches(tx, {batch for _phase, batch in found})
    # What was found before the locks were held may have been cancelled while they were waited for.
    ids = [phase for phase, _batch in store.phases_due(tx, now)]
    store.start_phases(tx, ids, now)
    phases = phase_store.read(tx, ids)
    batches = batch_store.read(tx, {each.batch_id for each in phases.values()})
    announcer.send_due(tx, [(each, batches[each.batch_id]) for _id, each in sorted(phases.items())])
    return len(ids)


def ask_due_polls(tx: Transaction, announcer: Announcer, now: datetime) -> int:
    """Have polling steps asked about whose interval has passed, as many as go into one transaction."""
    polls = store.polls_due(tx, now, POLLS_AT_ONCE)
    for kind in Kind:
        chosen = [(each.id, each.poll_count) for each in polls if each.kind is kind]
        store.check_again(tx, kind, chosen, now + _ASK_AGAIN_AFTER)
    announcer.send(
        tx,
        [
            PollCheck(
                runbook_name=each.runbook_name,
                runbook_version=each.runbook_version,
                batch_id=each.batch_id,
                step_name=each.step_name,
                poll_count=each.poll_count,
                **execution_fields(each.kind, each.id),
            )
            for each in polls
        ],
    )
    return len(polls)
