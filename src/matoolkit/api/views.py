"""From rows to answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.api.answers import (
    BatchDetail,
    BatchSummary,
    ListedRunbook,
    MemberAnswer,
    PhaseAnswer,
    RunbookDetail,
    StepAnswer,
    VersionSummary,
)
from matoolkit.api.overview_answers import ExecutionAnswer, WorkerAnswer
from matoolkit.store.batch_lists import member_count
from matoolkit.store.states import PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pydantic import BaseModel

    from matoolkit.api.queues import Queue
    from matoolkit.store.batch_lists import BatchItem, PhaseItem
    from matoolkit.store.member_lists import MemberItem, StepItem
    from matoolkit.store.runbooks import RunbookItem
    from matoolkit.store.whereabouts import Execution


def _same_fields(kind: type[BaseModel], row: msgspec.Struct, **others: Any) -> dict[str, Any]:
    """The fields that the row has under the same name, and others."""
    there = row.__struct_fields__
    return {name: getattr(row, name) for name in kind.model_fields if name in there} | others


def listed_runbook(row: RunbookItem, *, automation_enabled: bool) -> ListedRunbook:
    """A runbook in a list."""
    return ListedRunbook(**_same_fields(ListedRunbook, row, automation_enabled=automation_enabled))


def runbook_detail(row: RunbookItem) -> RunbookDetail:
    """A version with its text."""
    return RunbookDetail(**_same_fields(RunbookDetail, row))


def version_summary(row: RunbookItem) -> VersionSummary:
    """A version in a list."""
    return VersionSummary(**_same_fields(VersionSummary, row))


def batch_summary(row: BatchItem, by_status: dict[str, int]) -> BatchSummary:
    """A batch in a list."""
    return BatchSummary(**_same_fields(BatchSummary, row, member_count=member_count(by_status)))


def batch_detail(
    row: BatchItem,
    by_status: dict[str, int],
    phases: Sequence[PhaseItem],
    *,
    held: int,
    waiting_for: str | None,
) -> BatchDetail:
    """A batch with what it is about to do."""
    return BatchDetail(
        **_same_fields(
            BatchDetail,
            row,
            member_count=member_count(by_status),
            members_by_status=by_status,
            held_removals=held,
            available_phases=available(phases),
            waiting_for=waiting_for,
        )
    )


def available(phases: Sequence[PhaseItem]) -> list[str]:
    """The phases of the version that runs, in the order of time."""
    return [each.phase_name for each in phases if each.status != PhaseStatus.SUPERSEDED]


def phase(row: PhaseItem, waiting: Mapping[int, str], counts: Mapping[int, dict[str, int]] | None) -> PhaseAnswer:
    """A phase."""
    steps = None if counts is None else counts.get(row.id, {})
    return PhaseAnswer(**_same_fields(PhaseAnswer, row, waiting_for=waiting.get(row.id), steps_by_status=steps))


def step(row: StepItem, waiting: Mapping[int, str]) -> StepAnswer:
    """A step."""
    return StepAnswer(**_same_fields(StepAnswer, row, waiting_for=waiting.get(row.id)))


def member(row: MemberItem, waiting: Mapping[int, str], *, with_data: bool) -> MemberAnswer:
    """A member, with their data only for who may see it."""
    data = worker_data = None
    if with_data:
        data = _fields(row.data_json)
        worker_data = _fields(row.worker_data_json)
    given = _same_fields(MemberAnswer, row, waiting_for=waiting.get(row.id), data=data, worker_data=worker_data)
    return MemberAnswer(**given)


def _fields(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    decoded = msgspec.json.decode(text)
    return decoded if isinstance(decoded, dict) else None


def execution(row: Execution, waiting: Mapping[int, str], *, with_data: bool) -> ExecutionAnswer:
    """A step closely; parameters and results only for who may see people's data."""
    parameters = _fields(row.params_json) if with_data else None
    result = msgspec.json.decode(row.result_json) if with_data and row.result_json is not None else None
    own = _same_fields(ExecutionAnswer, row.step, waiting_for=waiting.get(row.step.id))
    return ExecutionAnswer(
        **own,
        generation=row.generation,
        undoes=row.undoes,
        rollback_name=row.rollback_name,
        parameters=parameters,
        result=result,
    )


def worker(worker_id: str | None, queue: Queue, now: datetime) -> WorkerAnswer:
    """What lies before a worker."""
    return WorkerAnswer(
        worker_id=worker_id,
        waiting=queue.waiting,
        running=queue.running,
        oldest_since=queue.oldest,
        is_silent=queue.is_silent(now),
    )
