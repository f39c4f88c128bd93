"""The columns that a runbook needs of its members, whether they come from a query or from a CSV file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.runbooks.templates import SPECIAL_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matoolkit.runbooks.model import Runbook, Step


def required_columns(runbook: Runbook) -> tuple[str, ...]:
    """Return the columns in the order they first appear, each once without regard to case.

    A variable that output_params gives a value is no column, wherever among phases and rollbacks the step stands:
    which of them run, and in what order, is known only when they have run. What a removal step puts out is there for
    removal steps only.
    """
    source = runbook.data_source
    member_steps = [
        *(step for phase in runbook.phases for step in phase.steps),
        *(step for steps in runbook.rollbacks.values() for step in steps),
    ]
    outputs = _outputs(member_steps) | set(SPECIAL_VARIABLES)
    removal_outputs = outputs | _outputs(runbook.on_member_removed)
    names = [source.primary_key]
    if source.batch_time_column is not None:
        names.append(source.batch_time_column)
    names += (column.name for column in source.multi_valued_columns)
    names += (name for name in _variables(member_steps) if name.casefold() not in outputs)
    names += (name for name in _variables(runbook.on_member_removed) if name.casefold() not in removal_outputs)
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.casefold(), name)
    return tuple(first.values())


def _outputs(steps: Iterable[Step]) -> set[str]:
    return {name.casefold() for step in steps for name, _ in step.output_params}


def _variables(steps: Iterable[Step]) -> Iterator[str]:
    for step in steps:
        yield from step.function.names
        for _, template in step.params:
            yield from template.names
