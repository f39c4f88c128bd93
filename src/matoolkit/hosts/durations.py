"""Durations that an operator gives: in settings and options, written as in runbooks."""

from __future__ import annotations

import re
from datetime import timedelta

from matoolkit.runbooks.durations import DURATION_PATTERN, parse_duration
from matoolkit.settings import Unusable

WANTED = "a duration such as 30s, 5m, 1h or 1d"


def duration(value: str) -> timedelta:
    """A duration, as runbooks write it."""
    if not re.fullmatch(DURATION_PATTERN, value):
        raise Unusable(WANTED)
    try:
        return timedelta(seconds=parse_duration(value))
    except ValueError as error:
        raise Unusable(f"{WANTED}, and not one that {error}") from None
