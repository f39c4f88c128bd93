"""When a batch starts, as a row says it: whatever its source makes of times, one moment of UTC comes of it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from datetime import tzinfo

_BUCKET: Final = timedelta(minutes=5)
# Years in which no wave starts are how some sources write that they do not know.
_FIRST_YEAR, _LAST_YEAR = 2000, 2200
_KEPT: Final = 10_000


class BatchTimes(dict[Any, datetime | None]):
    """From what stands in a cell to the moment it means, None when nobody can say; what was read is remembered.

    Times without a zone are UTC unless the data source names another; a day is its midnight. Of an hour that the
    clocks go through twice, the first is meant; in one that they leave out, they are taken not to have been changed.
    """

    def __init__(self, time_zone: str | None) -> None:
        super().__init__()
        self._zone: tzinfo = UTC if time_zone is None else ZoneInfo(time_zone)

    def of(self, value: Any) -> datetime | None:
        """The moment that a cell means."""
        try:
            return self[value]
        except TypeError:
            return None  # a list, or something else that cannot even be remembered

    def __missing__(self, value: Any) -> datetime | None:
        moment = self._read(value)
        if len(self) < _KEPT:
            self[value] = moment
        return moment

    def _read(self, value: Any) -> datetime | None:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.strip())
            except ValueError:
                return None
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if not isinstance(value, datetime) or not _FIRST_YEAR <= value.year < _LAST_YEAR:
            return None
        if value.tzinfo is None:
            value = value.replace(tzinfo=self._zone)
        moment: datetime = value.astimezone(UTC)
        return moment


def bucket(now: datetime) -> datetime:
    """The five minutes that a moment belongs to, by their beginning."""
    return now - timedelta(minutes=now.minute % 5, seconds=now.second, microseconds=now.microsecond)


def bucket_is_over(start: datetime, now: datetime) -> bool:
    """Whether the five minutes that began then have passed."""
    return now >= start + _BUCKET or now < start
