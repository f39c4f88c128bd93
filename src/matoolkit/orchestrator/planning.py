"""From the steps of a runbook to the rows of executions that are to come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.runbooks import Step
    from matoolkit.store.members import Member


def planned(
    steps: Sequence[Step],
    *,
    batch_id: int,
    version: int,
    parent_id: int | None = None,
    member: Member | None = None,
    group: str | None = None,
) -> list[tuple[Any, ...]]:
    """Rows for `Rows` named `PLANNED`: what is settled when an execution is made, its effective retry included."""
    return [
        (
            parent_id,
            None if member is None else member.id,
            None if member is None else member.generation,
            batch_id,
            version,
            group,
            step.name,
            index,
            step.worker_id,
            step.function.text,
            step.timeout_seconds,
            step.on_failure,
            step.poll is not None,
            None if step.poll is None else step.poll.interval_seconds,
            None if step.poll is None else step.poll.timeout_seconds,
            0 if step.retry is None else step.retry.max_retries,
            None if step.retry is None else step.retry.interval_seconds,
        )
        for index, step in enumerate(steps)
    ]
