"""What a line of the log is about where it does not say so itself: the job of the task or thread that wrote it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Subject(Protocol):
    """Something that lines are about."""

    def log_fields(self) -> Mapping[str, str | int]:
        """What each of them is to say of it; asked for only when a line is written."""


subject: ContextVar[Subject | None] = ContextVar("subject", default=None)
"""Of the task or thread that is running."""
