"""A step made ready for one member: its function's name and its parameters with every variable filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.runbooks.templates import MISSING, UnresolvedVariables, Values, as_text

if TYPE_CHECKING:
    from matoolkit.runbooks.model import Step


def resolve_step(step: Step, values: Values) -> tuple[str, dict[str, object]]:
    """Return the function's name and the parameters; raise once, with every name that has no value."""
    function = step.function.fill(values)
    missing = function is MISSING
    params: dict[str, object] = {}
    for name, template in step.params:
        value = params[name] = template.fill(values)
        if value is MISSING:
            missing = True
    if missing:
        templates = (step.function, *(template for _, template in step.params))
        names = {name for template in templates for name in template.names if values.find(name) is MISSING}
        raise UnresolvedVariables(tuple(sorted(names)))
    return as_text(function), params
