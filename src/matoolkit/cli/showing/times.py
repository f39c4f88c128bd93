"""Moments and spans as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def parsed(text: str) -> datetime:
    """A moment as the API writes it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def moment(text: str | None) -> str:
    """To the second, in UTC and saying so; nothing when there is none."""
    if not text:
        return ""
    try:
        return f"{parsed(text):%Y-%m-%d %H:%M:%SZ}"
    except ValueError:
        return text


def span(seconds: float) -> str:
    """How long, in the two largest units that matter."""
    whole = max(0, round(seconds))
    for size, name, smaller, small_name in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{whole} s"


def until(text: str | None, now: datetime) -> str:
    """How far off a moment is: `in 5 min`, `2 h 3 min ago`."""
    if not text:
        return ""
    seconds = (parsed(text) - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"
