"""`poll-check`: a polling step's interval has passed; the worker is asked again, or the waiting ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from matoolkit.messages import Kind, PollCheck
from matoolkit.orchestrator import batch_init, dispatch, progression, sequences
from matoolkit.orchestrator.checks import concerned
from matoolkit.orchestrator.decisions import poll_deadline
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.states import ExecutionStatus
from matoolkit.telemetry.metrics import STEPS_ENDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.orchestrator.work import Work
    from matoolkit.store.executions import Execution


def handle(work: Work, events: Sequence[PollCheck]) -> None:
    """Ask again for what is polled, has no question under way, and is at the poll the message speaks of."""
    said = {each.execution(): each for each in events}
    found = concerned(work, said)
    work.tracing.note(found.executions, said.__getitem__)
    asking: dict[Kind, list[Execution]] = {}
    over: dict[Kind, list[Execution]] = {}
    for key, execution in found.executions.items():
        if (
            execution.status != ExecutionStatus.POLLING
            or execution.job_out
            or said[key].poll_count not in (UNSET, execution.poll_count)
            or not found.wanted(execution)
        ):
            continue
        late = poll_deadline(execution, work.now) <= work.now
        (over if late else asking).setdefault(execution.kind, []).append(execution)
    for kind, executions in sorted(asking.items()):
        dispatch.send_polls(work, kind, executions, found.batches)
    for kind, executions in sorted(over.items()):
        ended = [(each.id, ExecutionStatus.POLL_TIMEOUT, _timed_out(each)) for each in executions]
        EXECUTIONS[kind].refuse(work.tx, ended, work.now)
        work.count(STEPS_ENDED, len(ended), kind=kind, status=ExecutionStatus.POLL_TIMEOUT)
        match kind:
            case Kind.STEP:
                progression.fail(work, executions, found.batches, found.members)
            case Kind.INIT:
                for execution in executions:
                    batch_init.fail(work, found.batch(execution), execution, _timed_out(execution))
            case Kind.ROLLBACK:
                sequences.fail_rollbacks(work, executions)
            case Kind.REMOVAL:
                sequences.fail_removals(work, executions)


def _timed_out(execution: Execution) -> str:
    return (
        f"the work had not ended after {execution.poll_timeout_sec} seconds of polling ({execution.poll_count} polls)"
    )
