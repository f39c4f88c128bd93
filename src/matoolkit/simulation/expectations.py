"""What must be true after a tick's comparison, found out beside it: by plain rules, in plain SQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from matoolkit.simulation.database import plain_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.scheduler import Gathered
    from matoolkit.scheduler.gathering import Person
    from matoolkit.simulation.database import SimulatedDatabase

_BELIEVED = 4
"""How many may leave a batch at once, however small it is."""

_ACTIVE = """
SELECT m.id, m.batch_id FROM batch_members m JOIN batches b ON b.id = m.batch_id
WHERE m.status = 'active' AND b.is_manual = 0 AND b.loaded_at IS NOT NULL
"""
_MEMBERS = """
SELECT m.id, m.batch_id, b.batch_start_time, m.member_key_folded, m.status, m.data_json, m.removed_by,
    m.removal_held_at IS NOT NULL
FROM batch_members m JOIN batches b ON b.id = m.batch_id
WHERE b.status IN ('detected', 'init_dispatched', 'active') AND b.loaded_at IS NOT NULL AND b.is_manual = 0
ORDER BY m.id
"""
_SOMEWHERE = "SELECT member_key_folded FROM batch_members WHERE status IN ('active', 'removed', 'failed')"


class Expectations:
    """Looks before a comparison and after it."""

    def __init__(self, database: SimulatedDatabase, violated: Callable[[str], None]) -> None:
        self._database, self._violated = database, violated
        self._active: dict[int, int] = dict(plain_rows(database, _ACTIVE))

    def hold(self, gathered: Gathered, *, immediate: bool) -> None:
        """Whether everybody is where the source has them, and nobody left who should not have."""
        members = plain_rows(self._database, _MEMBERS)
        left: dict[int, int] = {}
        open_at: dict[datetime, set[str]] = {}
        for member, batch, start, key, status, data, removed_by, held in members:
            moment = datetime.fromisoformat(start).replace(tzinfo=UTC)
            open_at.setdefault(moment, set()).add(key)
            people = gathered.everybody if immediate else gathered.groups.get(moment, {})
            if status == "removed" and removed_by == "source" and member in self._active:
                left[batch] = left.get(batch, 0) + 1
                if key in people or key in gathered.unreadable:
                    self._violated(f"member {member} was removed although the source has them there")
            if status == "active" and key in people:
                if data != people[key][1]:
                    self._violated(f"member {member} was left with old data")
                if held:
                    self._violated(f"the removal of member {member} is held, who is there again")
        for batch, number in left.items():
            active = sum(1 for each in self._active.values() if each == batch)
            if number > _BELIEVED and 2 * number > active:
                self._violated(f"a tick removed {number} of {active} members of batch {batch}")
        if not immediate:
            self._everybody_has_a_place(gathered.groups, open_at)

    def _everybody_has_a_place(
        self, groups: Mapping[datetime | None, Mapping[str, Person]], open_at: Mapping[datetime, set[str]]
    ) -> None:
        somewhere: set[str] | None = None
        for start, keys in open_at.items():
            for key in sorted(groups.get(start, {}).keys() - keys):
                if somewhere is None:
                    somewhere = {row[0] for row in plain_rows(self._database, _SOMEWHERE)}
                if key not in somewhere:
                    self._violated(f"nobody took in {key}, who belongs to the batch of {start.isoformat()}")
