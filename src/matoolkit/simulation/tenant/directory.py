"""What the directory holds: users, groups, and who is in them."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from matoolkit.clock import Clock
    from matoolkit.simulation.tenant.archive import Archive

    Properties = dict[str, Any]

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def timestamp(moment: datetime) -> str:
    """A time as Graph writes it: whole seconds."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


class Directory:
    """Users and groups. Reads leave out what is too young, while there is a delay until things are seen everywhere."""

    def __init__(self, archive: Archive, clock: Clock, monotonic: Callable[[], float], domains: list[str]) -> None:
        self._archive = archive
        self._clock = clock
        self._monotonic = monotonic
        self.domains = domains
        self.delay_seconds = 0.0
        """How long after it was made an object or a membership is not seen yet."""
        self.users: dict[str, Properties] = dict(archive.load("user"))
        self.groups: dict[str, Properties] = dict(archive.load("group"))
        self._ids_by_name = {user["userPrincipalName"].casefold(): key for key, user in self.users.items()}
        self._numbers = count(1)
        self._order = {key: next(self._numbers) for key in self.users}
        self._members: dict[str, dict[str, int]] = {key: {} for key in self.groups}
        self._seen_at: dict[str, float] = {}
        for key, _ in archive.load("membership"):
            group, _, member = key.partition("/")
            self._members.setdefault(group, {})[member] = next(self._numbers)

    # Users -----------------------------------------------------------------------------------------------------------

    def user(self, identifier: str) -> Properties | None:
        """A user by id or user principal name, if it can be seen already."""
        key = identifier.lower() if GUID.fullmatch(identifier) else self._ids_by_name.get(identifier.casefold(), "")
        found = self.users.get(key)
        return found if found is not None and self._seen(key) else None

    def is_name_taken(self, user_principal_name: str, besides: str = "") -> bool:
        """Whether another user has it, seen or not."""
        return self._ids_by_name.get(user_principal_name.casefold(), besides) != besides

    def owner_of(self, address: str) -> Properties | None:
        """Who has an e-mail address, as mail or as user principal name."""
        key = self._ids_by_name.get(address.casefold())
        if key:
            return self.users[key]
        folded = address.casefold()
        return next((user for user in self.users.values() if (user.get("mail") or "").casefold() == folded), None)

    def all_users(self) -> Iterator[tuple[int, Properties]]:
        """All users that can be seen, in the order they were made, with a number that grows."""
        return ((self._order[key], user) for key, user in self.users.items() if self._seen(key))

    def add_user(self, properties: Properties) -> Properties:
        """A new user, with an id and the time."""
        user = self._complete(properties)
        self._archive.put("user", user["id"], user)
        self._keep(user)
        self._hide(user["id"])
        return user

    def add_users(self, several: Iterable[Properties]) -> list[Properties]:
        """Many users at once, seen at once; what is taken or missing in one of them refuses all."""
        users = [self._complete(each) for each in several]
        names = [user["userPrincipalName"].casefold() for user in users]
        if len(set(names)) < len(names) or any(name in self._ids_by_name for name in names):
            raise ValueError("two users cannot have the same userPrincipalName")
        self._archive.put_all("user", ((user["id"], user) for user in users))
        for user in users:
            self._keep(user)
        return users

    def change_user(self, user: Properties, changes: Properties) -> None:
        """Set properties."""
        changed = {**user, **changes}
        self._archive.put("user", user["id"], changed)
        del self._ids_by_name[user["userPrincipalName"].casefold()]
        user.update(changes)
        self._ids_by_name[user["userPrincipalName"].casefold()] = user["id"]

    def remove_user(self, user: Properties) -> None:
        """Take a user out, and out of all groups."""
        key = user["id"]
        with self._archive.together():
            self._archive.remove("user", key)
            for group, members in self._members.items():
                if members.pop(key, None) is not None:
                    self._archive.remove("membership", f"{group}/{key}")
        del self.users[key], self._order[key]
        del self._ids_by_name[user["userPrincipalName"].casefold()]

    # Groups ----------------------------------------------------------------------------------------------------------

    def group(self, identifier: str) -> Properties | None:
        """A group by id."""
        return self.groups.get(identifier.lower())

    def add_groups(self, several: Iterable[Properties]) -> list[Properties]:
        """Groups, each with a displayName."""
        groups = [
            {
                "id": str(uuid4()),
                "createdDateTime": timestamp(self._clock.now()),
                "description": None,
                "groupTypes": [],
                "mail": None,
                "mailEnabled": False,
                "mailNickname": re.sub(r"\W", "", each["displayName"]),
                "securityEnabled": True,
                **each,
            }
            for each in several
        ]
        self._archive.put_all("group", ((group["id"], group) for group in groups))
        for group in groups:
            self.groups[group["id"]] = group
            self._members.setdefault(group["id"], {})
        return groups

    def members(self, group: str) -> dict[str, int]:
        """Who is directly in a group, with a number that grows in the order of joining."""
        found = self._members.get(group, {})
        if not self._seen_at:
            return found
        return {member: number for member, number in found.items() if self._seen(f"{group}/{member}")}

    def is_member(self, group: str, member: str) -> bool:
        """Whether it is directly in the group, seen or not."""
        return member in self._members.get(group, {})

    def is_within(self, group: str, member: str) -> bool:
        """Whether it is in the group, or in one that is, as far as can be seen."""
        seen, waiting = set(), [group]
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            members = self.members(current)
            if member in members:
                return True
            waiting.extend(each for each in members if each in self.groups)
        return False

    def join(self, group: str, member: str) -> None:
        """Put a user or a group into a group."""
        self._archive.put("membership", f"{group}/{member}", {})
        self._members[group][member] = next(self._numbers)
        self._hide(f"{group}/{member}")

    def join_all(self, group: str, members: Iterable[str]) -> None:
        """Put many into a group, seen at once."""
        added = list(members)
        self._archive.put_all("membership", ((f"{group}/{member}", {}) for member in added))
        self._members[group].update((member, next(self._numbers)) for member in added)

    def leave(self, group: str, member: str) -> None:
        """Take one out of a group."""
        self._archive.remove("membership", f"{group}/{member}")
        del self._members[group][member]

    # What is seen ----------------------------------------------------------------------------------------------------

    def _complete(self, properties: Properties) -> Properties:
        name = properties["userPrincipalName"]
        return {
            "id": str(uuid4()),
            "createdDateTime": timestamp(self._clock.now()),
            "accountEnabled": True,
            "displayName": name.partition("@")[0],
            "mailNickname": name.partition("@")[0],
            "userType": "Member",
            **properties,
        }

    def _keep(self, user: Properties) -> None:
        self.users[user["id"]] = user
        self._order[user["id"]] = next(self._numbers)
        self._ids_by_name[user["userPrincipalName"].casefold()] = user["id"]

    def _hide(self, key: str) -> None:
        if self.delay_seconds > 0:
            self._seen_at[key] = self._monotonic() + self.delay_seconds

    def _seen(self, key: str) -> bool:
        moment = self._seen_at.get(key)
        if moment is None:
            return True
        if self._monotonic() < moment:
            return False
        del self._seen_at[key]
        return True
