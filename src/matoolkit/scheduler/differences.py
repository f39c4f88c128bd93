"""Who came, went, came back and changed: what was and what is, compared without a database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matoolkit.store.states import MemberStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from matoolkit.scheduler.gathering import Person
    from matoolkit.store.roster import Listed

_AT_LEAST = 5


@dataclass(slots=True)
class Differences:
    """Between the members of a batch and the people a source gives for it; members by id, people by folded key."""

    active: int = 0
    """How many members take part."""
    new: dict[str, Person] = field(default_factory=dict)
    back: dict[str, tuple[int, Person]] = field(default_factory=dict)
    """Removed members who are there again."""
    gone: list[int] = field(default_factory=list)
    """Active members who are not there."""
    missed: list[int] = field(default_factory=list)
    """Those of them whose removal is held already."""
    found_again: list[int] = field(default_factory=list)
    """Members whose removal was held and who are there again."""
    changed: list[tuple[int, str]] = field(default_factory=list)
    """Active members with other data."""

    @property
    def too_many(self) -> bool:
        """Whether so many are gone that more likely the source is wrong than that they all left."""
        return len(self.gone) >= _AT_LEAST and 2 * len(self.gone) > self.active

    @property
    def newly_gone(self) -> list[int]:
        """Who is gone and not held yet."""
        held = set(self.missed)
        return [each for each in self.gone if each not in held] if held else self.gone


def differences(listed: Iterable[Listed], found: Mapping[str, Person], unreadable: AbstractSet[str]) -> Differences:
    """Compare. Who failed or is through stays as they are, in the source or not; nothing is known of the unreadable."""
    active, known = 0, 0
    result = Differences()
    gone, changed = result.gone, result.changed
    keys: set[str] = set()
    remember = keys.add
    for member, folded, status, data, held in listed:
        person = found.get(folded)
        if person is not None:
            known += 1
            remember(folded)
        if status == MemberStatus.ACTIVE:
            active += 1
            if person is None:
                if folded not in unreadable:
                    gone.append(member)
                    if held:
                        result.missed.append(member)
            else:
                if data != person[1]:
                    changed.append((member, person[1]))
                if held:
                    result.found_again.append(member)
        elif person is not None and status == MemberStatus.REMOVED:
            result.back[folded] = (member, person)
    result.active = active
    if known < len(found):
        result.new = {folded: person for folded, person in found.items() if folded not in keys}
    return result
