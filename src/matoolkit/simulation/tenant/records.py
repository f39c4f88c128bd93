"""What was asked and how it was answered: for tests that must know what happened, and how often.

Memory is bounded: the last requests are kept one by one, and for each operation, subject and status a count. Bodies
are never kept, since passwords are in them. Tests read while the server writes: whatever is walked is copied first.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.simulation.tenant.calls import Api, Call

CUT = 0
"""The status of a request whose answer was cut: nobody got one."""


class RecordsForgotten(MatoolkitError):
    """The counts asked for are incomplete: more operations and subjects came than are kept; raise the limit."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request that was answered, or whose answer was cut."""

    api: Api
    method: str
    path: str
    operation: str
    """What it was about, without identifiers: `POST /users`, `Set-MailUser`."""
    subject: str
    """Whom it was about: a user principal name or an identifier as it was sent."""
    status: int
    """As answered; `CUT` when the answer was cut."""
    acted: bool
    """Whether the tenant did what it was asked."""


class Records:
    """What was asked, counted."""

    def __init__(self, *, keep_requests: int = 10_000, keep_counts: int = 500_000) -> None:
        self._requests: deque[Recorded] = deque(maxlen=keep_requests)
        self._keep_counts = keep_counts
        self._by_subject: Counter[tuple[str, str, int, bool]] = Counter()
        self._by_status: Counter[tuple[Api, int]] = Counter()
        self.forgotten = 0
        """How many requests are in no count by subject, for want of room."""

    def add(self, api: Api, call: Call, status: int, *, acted: bool) -> None:
        """Note a request."""
        self._requests.append(Recorded(api, call.method, call.raw_path, call.operation, call.subject, status, acted))
        self._by_status[api, status] += 1
        key = (call.operation, call.subject.casefold(), status, acted)
        if key in self._by_subject or len(self._by_subject) < self._keep_counts:
            self._by_subject[key] += 1
        else:
            self.forgotten += 1

    def clear(self) -> None:
        """Forget everything."""
        self._requests.clear()
        self._by_subject.clear()
        self._by_status.clear()
        self.forgotten = 0

    def last(self, limit: int = 100) -> list[Recorded]:
        """The newest requests, oldest of them first."""
        kept = list(self._requests)
        return kept[max(0, len(kept) - limit) :]

    def count(
        self, operation: str, *, subject: str | None = None, status: int | None = None, acted: bool | None = None
    ) -> int:
        """How many requests there were; `acted` counts what the tenant did, whether or not the answer arrived."""
        return sum(count for _, count in self._matching(operation, subject=subject, status=status, acted=acted))

    def by_subject(self, operation: str, *, status: int | None = None, acted: bool | None = None) -> Counter[str]:
        """How many requests there were about each subject (case-folded): `by_subject("POST /users", acted=True)`."""
        counts: Counter[str] = Counter()
        for subject, count in self._matching(operation, status=status, acted=acted):
            counts[subject] += count
        return counts

    def statuses(self, api: Api | None = None) -> Counter[int]:
        """How often each status was answered."""
        counts: Counter[int] = Counter()
        for (asked, status), count in list(self._by_status.items()):
            if api is None or asked == api:
                counts[status] += count
        return counts

    def table(self) -> list[dict[str, str | int]]:
        """How often each operation ended in each status."""
        counts: Counter[tuple[str, int]] = Counter()
        for (operation, _, status, _), count in list(self._by_subject.items()):
            counts[operation, status] += count
        return [
            {"operation": operation, "status": status, "count": count}
            for (operation, status), count in sorted(counts.items())
        ]

    def _matching(
        self, operation: str, *, subject: str | None = None, status: int | None = None, acted: bool | None = None
    ) -> Iterator[tuple[str, int]]:
        if self.forgotten:
            raise RecordsForgotten
        folded = None if subject is None else subject.casefold()
        for (kind, whom, answered, did), count in list(self._by_subject.items()):
            if (
                kind == operation
                and (folded is None or whom == folded)
                and (status is None or answered == status)
                and (acted is None or did == acted)
            ):
                yield whom, count
