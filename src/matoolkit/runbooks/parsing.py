"""From the text of a runbook to the runbook, or to everything that is wrong with the text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from matoolkit.runbooks.checks import Rollback, check_init, check_rollbacks, check_special_names
from matoolkit.runbooks.definition import RUNBOOK
from matoolkit.runbooks.durations import parse_offset
from matoolkit.runbooks.fields import Fields
from matoolkit.runbooks.model import Phase, Retry, Runbook, Step
from matoolkit.runbooks.nodes import Kind, Mapping, Sequence, compose
from matoolkit.runbooks.problems import Problem, Problems, RunbookErrors, Severity
from matoolkit.runbooks.source import readable
from matoolkit.runbooks.sources import read_data_source
from matoolkit.runbooks.steps import LocatedStep, check_unique, read_retry, read_steps

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found; the runbook is there when there are no errors, warnings or not."""

    runbook: Runbook | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]

    def strict_errors(self) -> tuple[Problem, ...]:
        """Return the errors, unknown keys among them, in the order of the document."""
        unknown = (warning for warning in self.warnings if warning.unknown_key)
        return tuple(sorted((*self.errors, *unknown), key=lambda problem: (problem.line, problem.column)))


def check_runbook(text: str | bytes) -> Report:
    """Read a runbook and report everything that is wrong with it; never raises, whatever the text."""
    problems = Problems()
    runbook = _read(text, problems)
    errors = problems.of(Severity.ERROR)
    return Report(None if errors else runbook, errors, problems.of(Severity.WARNING))


def load_runbook(text: str | bytes) -> Runbook:
    """Read a runbook; raise RunbookErrors with all of its errors. Unknown keys are tolerated."""
    report = check_runbook(text)
    if report.runbook is None:
        raise RunbookErrors(report.errors)
    return report.runbook


def _read(source: str | bytes, problems: Problems) -> Runbook | None:
    text = readable(source, problems)
    root = None if text is None else compose(text, problems)
    if root is None:
        return None
    if isinstance(root, Mapping):
        return _read_runbook(Fields(root, RUNBOOK, "", problems), problems)
    if isinstance(root, Sequence):
        problems.error(root, "", "a runbook is a mapping with keys like name, data_source and phases, not a list")
    elif root.kind is Kind.NOTHING:
        problems.error(root, "", "the document is empty")
    elif root.kind is not Kind.BROKEN:
        problems.error(root, "", "a runbook is a mapping with keys like name, data_source and phases, not a text")
    return None


def _read_runbook(fields: Fields, problems: Problems) -> Runbook:
    retry = read_retry(fields.block("retry"))
    init = read_steps(fields.blocks("init"), retry, problems)
    phases, phase_steps = _read_phases(fields, retry, problems)
    removal = read_steps(fields.blocks("on_member_removed"), retry, problems)
    rollbacks = {
        declared.name.casefold(): Rollback(declared, read_steps(declared.items, retry, problems))
        for declared in fields.named_blocks("rollbacks")
    }
    check_init(init, problems)
    check_rollbacks(init, phase_steps, rollbacks, problems)
    member_steps = [*phase_steps, *removal, *(step for rollback in rollbacks.values() for step in rollback.steps)]
    outputs = frozenset(name.casefold() for located in member_steps for name, _ in located.step.output_params)
    check_special_names(member_steps, outputs, problems)
    return Runbook(
        name=fields.text("name"),
        description=fields.text_or_none("description"),
        data_source=read_data_source(fields.block("data_source"), problems),
        retry=retry,
        init=_declared(init, rollbacks),
        phases=tuple(Phase(name, offset, _declared(steps, rollbacks)) for name, offset, steps in phases),
        on_member_removed=_declared(removal, rollbacks),
        rollbacks=MappingProxyType(
            {rollback.declared.name: _declared(rollback.steps, rollbacks) for rollback in rollbacks.values()}
        ),
    )


def _read_phases(
    fields: Fields, retry: Retry | None, problems: Problems
) -> tuple[list[tuple[str, int, tuple[LocatedStep, ...]]], list[LocatedStep]]:
    items = fields.blocks("phases")
    phases = [
        (
            item.text("name"),
            item.converted("offset", parse_offset) or 0,
            read_steps(item.blocks("steps"), retry, problems),
        )
        for item in items
    ]
    check_unique(((phase[0], item) for phase, item in zip(phases, items, strict=True)), "phase")
    return phases, [step for phase in phases for step in phase[2]]


def _declared(steps: Iterable[LocatedStep], rollbacks: dict[str, Rollback]) -> tuple[Step, ...]:
    """Return the steps with rollbacks named the way they are declared: names compare without regard to case."""
    return tuple(_with_declared_rollback(located.step, rollbacks) for located in steps)


def _with_declared_rollback(step: Step, rollbacks: dict[str, Rollback]) -> Step:
    rollback = rollbacks.get(step.on_failure.casefold()) if step.on_failure else None
    if rollback is None or rollback.declared.name == step.on_failure:
        return step
    return replace(step, on_failure=rollback.declared.name)
