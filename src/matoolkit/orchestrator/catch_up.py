"""Members who joined late, or came back: the phases they missed, from the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.orchestrator import progression
from matoolkit.orchestrator.planning import planned
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store import sequences as store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.orchestrator.work import Work


def start(work: Work, member_ids: Iterable[int]) -> None:
    """Write and begin the steps of every phase that was started without them; the caller holds their locks.

    Who still has a job out, or whose removal has not ended, is left for when that is over.
    """
    members = member_store.read(work.tx, member_ids)
    wanted = {each.id: each for each in members.values() if each.is_active and each.catch_up_due}
    if not wanted:
        return
    batches = batch_store.read(work.tx, {each.batch_id for each in wanted.values()})
    busy = store.busy_members(work.tx, wanted, removals_too=True)
    joining = [each for each in wanted.values() if each.id not in busy and batches[each.batch_id].is_active]
    phases = phase_store.of_batches(work.tx, {each.batch_id for each in joining})
    for member in joining:
        rows = []
        for phase in phases[member.batch_id]:
            if phase.can_be_caught_up_on:
                runbook = work.library.runbook(work.tx, batches[member.batch_id].runbook_name, phase.runbook_version)
                defined = runbook.phase(phase.phase_name)
                steps = () if defined is None else defined.steps
                rows += planned(steps, batch_id=phase.batch_id, version=phase.runbook_version, parent_id=phase.id)
        phase_store.write_catch_up(work.tx, member.id, rows)
    member_store.caught_up(work.tx, joining)
    progression.advance(work, {each.id: each for each in joining}, batches)
