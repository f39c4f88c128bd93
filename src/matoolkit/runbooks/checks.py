"""What no single key can tell: whether the parts of a runbook fit together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matoolkit.runbooks.problems import shown
from matoolkit.runbooks.templates import SPECIAL_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matoolkit.runbooks.fields import NamedList
    from matoolkit.runbooks.problems import Problems
    from matoolkit.runbooks.steps import LocatedStep, LocatedTemplate


@dataclass(frozen=True, slots=True)
class Rollback:
    """A rollback, and where it is declared."""

    declared: NamedList
    steps: tuple[LocatedStep, ...]


def check_rollbacks(
    init: Iterable[LocatedStep],
    phase_steps: Iterable[LocatedStep],
    rollbacks: Mapping[str, Rollback],
    problems: Problems,
) -> None:
    """Report rollbacks that are named and do not exist, that exist and are not named, and that init cannot use."""
    used = set()
    for located, for_init in [*((step, True) for step in init), *((step, False) for step in phase_steps)]:
        name = located.step.on_failure
        if name is None:
            continue
        rollback = rollbacks.get(name.casefold())
        if rollback is None:
            hint = problems.nearest(name, (other.declared.name for other in rollbacks.values()))
            located.fields.error("on_failure", f"no rollback is named {shown(name)}", hint)
            continue
        used.add(name.casefold())
        if for_init:
            _check_rollback_of_init(located, rollback)
    for key, rollback in rollbacks.items():
        if key not in used:
            declared = rollback.declared
            problems.warning(declared.key, declared.path, "no step names this rollback in its on_failure")


def check_init(steps: Iterable[LocatedStep], problems: Problems) -> None:
    """Report what init steps use that only a member has."""
    for located in steps:
        for template in located.templates:
            names = member_variables(template)
            if names:
                message = f"an init step runs for no member and cannot use {_listed(names)}"
                problems.error(template.node, template.path, message, f"it can use {' and '.join(SPECIAL_VARIABLES)}")


def check_special_names(steps: Iterable[LocatedStep], outputs: frozenset[str], problems: Problems) -> None:
    """Warn of variables that look like a misspelt special one."""
    for located in steps:
        for template in located.templates:
            for name in member_variables(template):
                hint = problems.nearest(name, SPECIAL_VARIABLES) if name.startswith("_") else ""
                if hint and name.casefold() not in outputs:
                    problems.warning(template.node, template.path, f"{shown(name)} is taken for a column", hint)


def member_variables(located: LocatedTemplate) -> tuple[str, ...]:
    """Return the variables of a template that are not special."""
    return tuple(name for name in located.template.names if name.casefold() not in SPECIAL_VARIABLES)


def _check_rollback_of_init(located: LocatedStep, rollback: Rollback) -> None:
    templates = (template for step in rollback.steps for template in step.templates)
    names = tuple(dict.fromkeys(name for template in templates for name in member_variables(template)))
    name = shown(rollback.declared.name)
    if names:
        message = f"an init step runs for no member, and the rollback {name} uses {_listed(names)}"
        located.fields.error("on_failure", message, "give init a rollback of its own")
    if any(step.step.output_params for step in rollback.steps):
        message = f"an init step runs for no member, and the rollback {name} has output_params"
        located.fields.error("on_failure", message, "give init a rollback of its own")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(shown(name) for name in names)
