"""Who somebody is, and what they may do, as their token says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_NAME = 256


class Role(StrEnum):
    """What a token may carry; names compare exactly, as Entra ID issues them."""

    ADMIN = "Admin"
    """Everything."""
    READER = "Reader"
    """Everything that changes nothing, people's data included."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose request it is."""

    name: str
    """What is recorded as the one who did it."""
    roles: frozenset[Role]

    def has(self, *wanted: Role) -> bool:
        """Whether any of these roles is theirs."""
        return not self.roles.isdisjoint(wanted)


def identity_of(claims: Mapping[str, Any]) -> Identity:
    """From the claims of a token that has been checked."""
    named = (claims.get(claim) for claim in ("preferred_username", "name", "oid"))
    name = next((each.strip() for each in named if isinstance(each, str) and each.strip()), "system")
    given = claims.get("roles")
    listed = given if isinstance(given, list) else []
    known = {str(role): role for role in Role}
    return Identity(
        name.replace("\0", "\ufffd")[:_LONGEST_NAME],
        frozenset(known[role] for role in listed if isinstance(role, str) and role in known),
    )
