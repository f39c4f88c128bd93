"""Steps read from the document, wherever they stand: in phases, init, rollbacks and on_member_removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from matoolkit.runbooks.durations import parse_duration
from matoolkit.runbooks.model import DEFAULT_TIMEOUT_SECONDS, Poll, Retry, Step
from matoolkit.runbooks.problems import shown
from matoolkit.runbooks.source import Position
from matoolkit.runbooks.templates import SPECIAL_VARIABLES, Template, TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.runbooks.fields import Fields
    from matoolkit.runbooks.nodes import Node
    from matoolkit.runbooks.problems import Problems

_EMPTY: Final = Template("")


@dataclass(frozen=True, slots=True)
class LocatedTemplate:
    """A template and where it stands."""

    template: Template
    node: Node
    path: str


@dataclass(frozen=True, slots=True)
class LocatedStep:
    """A step, and where it and its templates stand."""

    step: Step
    fields: Fields
    templates: tuple[LocatedTemplate, ...]


def read_steps(items: Iterable[Fields], common_retry: Retry | None, problems: Problems) -> tuple[LocatedStep, ...]:
    """Read steps that stand beside each other, and whose names therefore differ."""
    steps = tuple(_read_step(fields, common_retry, problems) for fields in items)
    check_unique(((located.step.name, located.fields) for located in steps), "step")
    return steps


def check_unique(named: Iterable[tuple[str, Fields]], what: str) -> None:
    """Report every `name` that was given before, without regard to case."""
    first: dict[str, Fields] = {}
    for name, fields in named:
        other = first.setdefault(name.casefold(), fields)
        if name and other is not fields:
            message = f"another {what} is named {shown(name)}"
            fields.error("name", message, f"that is in line {other.place('name').line}")


def read_retry(fields: Fields | None) -> Retry | None:
    """Read how a failed step is tried again."""
    if fields is None:
        return None
    max_retries = fields.integer("max_retries")
    interval = fields.converted("interval", parse_duration)
    if max_retries and not fields.has("interval"):
        fields.error("interval", "'interval' is missing: it is required unless max_retries is 0")
    return Retry(max_retries or 0, interval or 0)


def _read_step(fields: Fields, common_retry: Retry | None, problems: Problems) -> LocatedStep:
    name = fields.text("name")
    worker_id = fields.text("worker_id")
    templates: list[LocatedTemplate] = []
    function = _function(fields, templates, problems)
    params = []
    for entry in fields.texts("params"):
        template = _template(entry.text, entry.node, entry.path, problems)
        templates.append(LocatedTemplate(template, entry.node, entry.path))
        params.append((entry.name, template))
    step = Step(
        name=name,
        worker_id=worker_id,
        function=function,
        params=tuple(params),
        output_params=_output_params(fields, problems),
        on_failure=_optional(fields, "on_failure"),
        poll=_read_poll(fields.block("poll")),
        retry=read_retry(fields.block("retry")) or common_retry,
        timeout_seconds=fields.converted("timeout", parse_duration) or DEFAULT_TIMEOUT_SECONDS,
    )
    return LocatedStep(step, fields, tuple(templates))


def _function(fields: Fields, templates: list[LocatedTemplate], problems: Problems) -> Template:
    node, path = fields.place("function"), fields.path_of("function")
    template = _template(fields.text("function"), node, path, problems)
    if template.secrets:
        fields.error("function", "a function's name cannot hold a secret")
    templates.append(LocatedTemplate(template, node, path))
    return template


def _optional(fields: Fields, name: str) -> str | None:
    """Read a key that this kind of step may not have at all, which was reported where the keys were checked."""
    return fields.text_or_none(name) if fields.allows(name) else None


def _output_params(fields: Fields, problems: Problems) -> tuple[tuple[str, str], ...]:
    if not fields.allows("output_params"):
        return ()
    outputs = []
    for entry in fields.texts("output_params"):
        if entry.name.casefold() in SPECIAL_VARIABLES:
            problems.error(entry.node, entry.path, f"{entry.name} is a special variable and cannot be given a value")
        outputs.append((entry.name, entry.text))
    return tuple(outputs)


def _read_poll(fields: Fields | None) -> Poll | None:
    if fields is None:
        return None
    interval = fields.converted("interval", parse_duration) or 0
    timeout = fields.converted("timeout", parse_duration) or 0
    if interval and timeout and timeout < interval:
        fields.error("timeout", "is shorter than the interval")
    return Poll(interval, timeout)


def _template(text: str, node: Node, path: str, problems: Problems) -> Template:
    try:
        return Template(text)
    except TemplateError as error:
        column = getattr(node, "text_column", 0)
        place = Position(node.line, column + error.index) if column else node
        problems.error(place, path, str(error))
        return _EMPTY
