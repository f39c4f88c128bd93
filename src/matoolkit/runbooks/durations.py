"""How long, and how long before: the durations and the phase offsets of a runbook."""

from __future__ import annotations

from typing import Final

_NUMBER: Final = "0*[1-9][0-9]{0,8}"
DURATION_PATTERN: Final = f"{_NUMBER}[dhms]"
OFFSET_PATTERN: Final = f"T-(?:0|{_NUMBER}[dhms])"

# Far beyond any migration, and still within what the 32-bit columns of the database hold in seconds.
MAX_DAYS: Final = 3650

_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parse_duration(text: str) -> int:
    """Return the seconds in a text of DURATION_PATTERN, such as `90s` or `7d`."""
    seconds = int(text[:-1]) * _SECONDS[text[-1]]
    if seconds > MAX_DAYS * _SECONDS["d"]:
        raise ValueError(f"is longer than {MAX_DAYS} days")
    return seconds


def parse_offset(text: str) -> int:
    """Return the minutes before the start in a text of OFFSET_PATTERN; seconds are rounded up to the next minute."""
    amount = text.removeprefix("T-")
    return 0 if amount == "0" else -(-parse_duration(amount) // 60)
