"""Lines of the log: as text for people, or each as a JSON object for machines, with what the line is about."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from matoolkit.telemetry.subjects import subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FIELDS: Final = (
    "RequestId",
    "WorkerId",
    "BatchId",
    "StepExecutionId",
    "InitExecutionId",
    "RollbackExecutionId",
    "RemovalExecutionId",
    "JobId",
    "MessageId",
    "Topic",
    "FunctionName",
    "PhaseName",
    "RunbookName",
    "RunbookVersion",
    "TraceId",
)
"""What a line may say of what it is about. A record has them as `extra`, or its task has a subject that does."""


def fields_of(record: logging.LogRecord) -> dict[str, str | int]:
    """What a line is about: what it says itself goes before what its task is about."""
    about = subject.get()
    found = {} if about is None else dict(about.log_fields())
    own = {name: value for name in FIELDS if isinstance(value := record.__dict__.get(name), str | int)}
    return {name: value for name, value in (found | own).items() if value not in ("", "-")}


def told_by(record: logging.LogRecord) -> tuple[str, str]:
    """The message, and the exception that goes with it, as text."""
    exception = ""
    if record.exc_info and record.exc_info[1] is not None:
        exception = "".join(traceback.format_exception(record.exc_info[1])).rstrip()
    elif record.exc_text:
        exception = record.exc_text
    if record.stack_info:
        exception = f"{exception}\n{record.stack_info}".strip()
    return record.getMessage(), exception


class TextLines(logging.Formatter):
    """For people, in UTC; exceptions below the line."""

    def __init__(self, layout: str, conceal: Callable[[str], str] = str) -> None:
        super().__init__(layout)
        self._conceal = conceal

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - the base's
        """As ISO 8601 has it, to the millisecond."""
        return _moment(record)

    def format(self, record: logging.LogRecord) -> str:
        """As any formatter, and then concealed."""
        return self._conceal(super().format(record))


class JsonLines(logging.Formatter):
    """For machines: an object on a line, whatever is in it."""

    def __init__(self, fixed: Mapping[str, str], conceal: Callable[[str], str] = str) -> None:
        super().__init__()
        self._fixed = fixed
        self._conceal = conceal

    def format(self, record: logging.LogRecord) -> str:
        """Each text is concealed by itself, so that what is blanked out never breaks the object."""
        message, exception = told_by(record)
        fields: dict[str, str | int] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._fixed,
            "message": self._conceal(message),
        }
        for name, value in fields_of(record).items():
            key = name[:1].lower() + name[1:]
            fields[key] = self._conceal(value) if isinstance(value, str) else value
        if exception:
            fields["exception"] = self._conceal(exception)
        return json.dumps(fields, ensure_ascii=False)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(record.msecs):03d}Z"
