"""One look at a batch: its state, its phases with their steps counted, and what has failed since the last look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from matoolkit.cli.client import all_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matoolkit.cli.client import Answer, ApiClient

_FAILED = ("failed", "poll_timeout")
_PAGE = 1000
ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True)
class Look:
    """How things were at one moment, in the API's own fields."""

    batch: Answer
    phases: list[Answer]
    init_steps: list[Answer]
    failures: list[Answer] = field(default_factory=list)
    """Steps, of members or of init, that were not known to have failed, or whose rollback has come to an end."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.batch["status"] in ENDED

    @property
    def members(self) -> Mapping[str, int]:
        """How many members are in which state."""
        found: Mapping[str, int] = self.batch["membersByStatus"]
        return found

    @property
    def steps(self) -> dict[str, int]:
        """How many steps are in which state, over all phases."""
        found: dict[str, int] = {}
        for phase in self.phases:
            for status, number in (phase.get("stepsByStatus") or {}).items():
                found[status] = found.get(status, 0) + number
        return found

    @property
    def is_waiting_for_an_advance(self) -> bool:
        """Whether a batch made by hand stands still until somebody takes it on."""
        if not self.batch["isManual"] or self.is_over:
            return False
        if self.batch["status"] == "detected":
            return not self.batch["initDispatchedAt"]
        states = {each["status"] for each in self.phases}
        return self.batch["status"] == "active" and "pending" in states and "dispatched" not in states


@dataclass
class Observer:
    """Looks again and again, and asks for as little as it can."""

    client: ApiClient
    batch_id: int
    _known: dict[tuple[int | None, int], str | None] = field(default_factory=dict)
    """Of every step that is known to have failed, how its rollback went."""
    _counts: dict[str, int] = field(default_factory=dict)
    _skipped: int = 0
    _pages: int = 0
    """How many the failures took when they were last asked for."""

    def look(self) -> Look:
        """How things are now."""
        found = self.client.batch(self.batch_id)
        phases = self.client.phases(self.batch_id, counts=True)["phases"]
        look = Look(found["batch"], phases, found["initSteps"])
        look.failures.extend(self._new(step for step in look.init_steps if step["status"] in _FAILED))
        counts = {status: look.steps.get(status, 0) for status in _FAILED}
        rolling_back = any(status == "running" for status in self._known.values())
        if any(counts.values()) and (look.is_over or ((counts != self._counts or rolling_back) and self._is_time())):
            self._skipped = self._pages = 0
            for status in _FAILED:
                if counts[status]:
                    look.failures.extend(self._new(self._failed(status)))
            self._counts = counts
        return look

    def _is_time(self) -> bool:
        """Thousands of failures are not asked for at every look, but the less often the more there are."""
        self._skipped += 1
        return self._skipped >= self._pages

    def _failed(self, status: str) -> Iterator[Answer]:
        for page in all_pages(lambda **query: self.client.steps(self.batch_id, **query), status=status, limit=_PAGE):
            self._pages += 1
            yield from page["steps"]

    def _new(self, steps: Iterator[Answer] | Any) -> Iterator[Answer]:
        for step in steps:
            key = (step["phaseExecutionId"], step["id"])
            if key not in self._known or self._known[key] != step["rollbackStatus"]:
                self._known[key] = step["rollbackStatus"]
                yield step
