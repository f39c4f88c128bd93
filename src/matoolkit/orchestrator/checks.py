"""What poll checks and retry checks share: which executions they speak of, locked and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matoolkit.orchestrator.decisions import still_wanted
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.locking import lock_batches, lock_members, share_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matoolkit.messages import Kind
    from matoolkit.orchestrator.work import Work
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution
    from matoolkit.store.members import Member


@dataclass(frozen=True, slots=True)
class Concerned:
    """Executions, and the batches and members they belong to, as they are under the locks."""

    executions: Mapping[tuple[Kind, int], Execution]
    batches: Mapping[int, Batch]
    members: dict[int, Member]

    def batch(self, execution: Execution) -> Batch:
        """Whose it is."""
        return self.batches[execution.batch_id]

    def member(self, execution: Execution) -> Member | None:
        """For whom it is; nobody, for init."""
        return None if execution.member_id is None else self.members[execution.member_id]

    def wanted(self, execution: Execution) -> bool:
        """Whether anything may still follow from it."""
        return still_wanted(execution, self.batch(execution), self.member(execution))


def concerned(work: Work, wanted: Iterable[tuple[Kind, int]]) -> Concerned:
    """Lock, in order, the batches and members of some executions, and read all of them as they are then."""
    by_kind: dict[Kind, set[int]] = {}
    for kind, execution_id in wanted:
        by_kind.setdefault(kind, set()).add(execution_id)
    found = _read(work, by_kind)
    inits = {each.batch_id for each in found.values() if each.member_id is None}
    lock_batches(work.tx, inits)
    share_batches(work.tx, {each.batch_id for each in found.values()} - inits)
    lock_members(work.tx, {each.member_id for each in found.values() if each.member_id is not None})
    if work.tx.dialect != "sqlite":
        # What was read before the locks were held may have changed while they were waited for.
        found = _read(work, by_kind)
    batches = batch_store.read(work.tx, {each.batch_id for each in found.values()})
    members = member_store.read(work.tx, {each.member_id for each in found.values() if each.member_id is not None})
    return Concerned(found, batches, members)


def _read(work: Work, by_kind: Mapping[Kind, set[int]]) -> dict[tuple[Kind, int], Execution]:
    return {
        (kind, each.id): each
        for kind in sorted(by_kind)
        for each in EXECUTIONS[kind].read(work.tx, sorted(by_kind[kind])).values()
    }
