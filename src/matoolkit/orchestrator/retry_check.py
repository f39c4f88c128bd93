"""`retry-check`: a failed step's interval has passed; it is sent again, if anybody still wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from matoolkit.messages import Kind, RetryCheck
from matoolkit.orchestrator import batch_init, dispatch, progression, sequences
from matoolkit.orchestrator.checks import concerned
from matoolkit.store.states import ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.orchestrator.checks import Concerned
    from matoolkit.orchestrator.work import Work
    from matoolkit.store.executions import Execution


def handle(work: Work, events: Sequence[RetryCheck]) -> None:
    """Send again what waits for exactly this retry."""
    said = {each.execution(): each for each in events}
    found = concerned(work, said)
    work.tracing.note(found.executions, said.__getitem__)
    due: dict[Kind, list[Execution]] = {}
    for key, execution in found.executions.items():
        if (
            execution.status == ExecutionStatus.PENDING
            and not execution.job_out
            and execution.retry_after is not None
            and said[key].retry_count in (UNSET, execution.retry_count)
            and found.wanted(execution)
        ):
            due.setdefault(execution.kind, []).append(execution)
    resend(work, due, found)


def resend(work: Work, due: dict[Kind, list[Execution]], found: Concerned) -> None:
    """Send executions again; what cannot be sent any more has failed, with all that follows."""
    for kind, executions in sorted(due.items()):
        refused = dispatch.send(work, kind, executions, found.batches, found.members)
        match kind:
            case Kind.STEP:
                progression.fail(work, [each for each, _error in refused], found.batches, found.members)
            case Kind.INIT:
                for execution, error in refused:
                    batch_init.fail(work, found.batch(execution), execution, error)
            case Kind.ROLLBACK:
                sequences.fail_rollbacks(work, [each for each, _error in refused])
            case Kind.REMOVAL:
                sequences.fail_removals(work, [each for each, _error in refused])
