"""What a runbook must hold to before it is published, beyond being one; decided without a database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matoolkit.batches.phases import transition
from matoolkit.runbooks import check_runbook
from matoolkit.store.states import PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from matoolkit.runbooks import Runbook, Step
    from matoolkit.store.batches import Batch
    from matoolkit.store.phases import Phase

_NAMED_AT_MOST = 5


@dataclass(frozen=True)
class PublishRules:
    """What is known where the API runs."""

    secret_parameters: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By function: the parameters that take a reference to a secret and nothing else."""
    worker_ids: frozenset[str] | None = None
    """The workers there are, where somebody has said so."""
    connection_is_allowed: Callable[[str], bool] | None = None
    """Whether a runbook may name this environment variable."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check came to; the runbook is there when there are no errors."""

    runbook: Runbook | None
    errors: list[str]
    warnings: list[str]


def check(name: str, yaml_content: str, rules: PublishRules) -> Checked:
    """Everything that is wrong with a runbook, and what may be."""
    report = check_runbook(yaml_content)
    errors = [str(each) for each in report.errors]
    runbook = report.runbook
    if runbook is not None:
        if runbook.name.casefold() != name.strip().casefold():
            errors.append(f"the runbook is named '{runbook.name}' in its text and {name!r} in the request")
        errors += _connections(runbook, rules)
        errors += _workers(runbook, rules)
        errors += _secrets(runbook, rules)
    return Checked(None if errors else runbook, errors, [str(each) for each in report.warnings])


def unheard_workers(runbook: Runbook, listeners: frozenset[str] | None) -> list[str]:
    """Warnings about workers that nobody has made a place for; `None` stands for a worker that hears everything."""
    if listeners is None:
        return []
    missing = sorted({step.worker_id for _, step in steps_of(runbook)} - listeners)
    return [f"worker '{each}' has never been started here: its steps wait until it is" for each in missing]


def choices(runbook: Runbook, open_batches: Sequence[tuple[Batch, Sequence[Phase]]], now: datetime) -> str:
    """What each overdueBehavior would do to the batches that are open."""
    told = []
    for behavior in ("rerun", "ignore"):
        again: set[str] = set()
        left_out: set[str] = set()
        for batch, phases in open_batches:
            change = transition(runbook, phases, batch.start_time, now, ignore_overdue=behavior == "ignore")
            for phase in change.added:
                past = phase["due_at"] is not None and phase["due_at"] <= now
                if phase["status"] == PhaseStatus.SKIPPED:
                    left_out.add(phase["phase_name"])
                elif past:
                    again.add(phase["phase_name"])
        parts = [
            f"{'runs at once' if again else 'runs nothing at once'}{_listed(again)}",
            *([f"leaves out{_listed(left_out)}"] if left_out else []),
        ]
        told.append(f"'{behavior}' {' and '.join(parts)}")
    ids = [str(batch.id) for batch, _ in open_batches[:_NAMED_AT_MOST]]
    more = f" and {len(open_batches) - len(ids)} more" if len(open_batches) > len(ids) else ""
    return (
        f"batches are open and will go over to the new version ({', '.join(ids)}{more}): say with overdueBehavior what"
        f" becomes of phases that are past due. {'; '.join(told)}"
    )


def steps_of(runbook: Runbook) -> Iterator[tuple[str, Step]]:
    """Every step, with where it stands."""
    yield from (("init", step) for step in runbook.init)
    for phase in runbook.phases:
        yield from ((f"phase '{phase.name}'", step) for step in phase.steps)
    yield from (("on_member_removed", step) for step in runbook.on_member_removed)
    for name, steps in runbook.rollbacks.items():
        yield from ((f"rollback '{name}'", step) for step in steps)


def _connections(runbook: Runbook, rules: PublishRules) -> Iterator[str]:
    if rules.connection_is_allowed is None:
        return
    source = runbook.data_source
    for key, name in (("connection", source.connection), ("warehouse_id", source.warehouse_id)):
        if name is not None and not rules.connection_is_allowed(name):
            yield f"data_source: {key} names the variable {name}, which runbooks may not read here"


def _workers(runbook: Runbook, rules: PublishRules) -> Iterator[str]:
    if rules.worker_ids is None:
        return
    for place, step in steps_of(runbook):
        if step.worker_id not in rules.worker_ids:
            known = ", ".join(sorted(rules.worker_ids))
            yield f"{place}, step '{step.name}': there is no worker '{step.worker_id}'; there are: {known}"


def _secrets(runbook: Runbook, rules: PublishRules) -> Iterator[str]:
    """A password written down in a runbook would be stored and sent about; only its name may be."""
    by_function = {
        name.casefold(): {each.casefold() for each in parameters}
        for name, parameters in rules.secret_parameters.items()
    }
    of_any = {each for parameters in by_function.values() for each in parameters}
    for place, step in steps_of(runbook):
        # Which function a template names is known only when it runs: it might be any of them.
        secret = of_any if step.function.names else by_function.get(step.function.text.casefold(), set())
        for name, template in step.params:
            if name.casefold() in secret and not template.is_secret:
                yield (
                    f"{place}, step '{step.name}': parameter '{name}' takes a secret and must be written as"
                    " {{secret:NAME}}, or left out"
                )


def _listed(names: set[str]) -> str:
    return f" {', '.join(sorted(names))}" if names else ""
