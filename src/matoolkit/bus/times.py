"""Moments as the bus keeps them: whole milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(moment: datetime) -> int:
    """The moment, cut to the millisecond: what now is."""
    return (moment - _EPOCH) // _MILLISECOND


def milliseconds_at_least(moment: datetime) -> int:
    """The first millisecond that is not before the moment: nothing is delivered early by a fraction of one."""
    return -((_EPOCH - moment) // _MILLISECOND)


def duration(length: timedelta) -> int:
    """How many milliseconds, the last one begun counting as one."""
    return -(-length // _MILLISECOND)


def moment(milliseconds_since: int) -> datetime:
    """The moment that is meant by so many milliseconds."""
    return _EPOCH + timedelta(milliseconds=milliseconds_since)


class Moments(dict[int, datetime]):
    """Moments already made: the messages of one set mostly share theirs."""

    def __missing__(self, milliseconds_since: int) -> datetime:
        """Make the moment, and remember it."""
        made = self[milliseconds_since] = moment(milliseconds_since)
        return made
