"""Which request is for what, and what the token must grant for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matoolkit.simulation.tenant.calls import Refused
from matoolkit.simulation.tenant.graph.groups import Groups
from matoolkit.simulation.tenant.graph.guests import Guests
from matoolkit.simulation.tenant.graph.refusals import denied, method_not_allowed, no_such_segment, unauthorized
from matoolkit.simulation.tenant.graph.users import Users

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.clock import Clock
    from matoolkit.simulation.tenant.access import Access
    from matoolkit.simulation.tenant.calls import Answer, Call
    from matoolkit.simulation.tenant.directory import Directory

_READ_USERS = {"User.Read.All", "User.ReadWrite.All", "Directory.Read.All", "Directory.ReadWrite.All"}
_WRITE_USERS = {"User.ReadWrite.All", "Directory.ReadWrite.All"}
_READ_GROUPS = {
    "GroupMember.Read.All", "GroupMember.ReadWrite.All", "Group.Read.All", "Group.ReadWrite.All",
    "Directory.Read.All", "Directory.ReadWrite.All",
}  # fmt: skip
_WRITE_GROUPS = {"GroupMember.ReadWrite.All", "Group.ReadWrite.All", "Directory.ReadWrite.All"}
_INVITE = {"User.Invite.All", "User.ReadWrite.All", "Directory.ReadWrite.All"}
_CONVERT = {"User-ConvertToInternal.ReadWrite.All", "User.ReadWrite.All"}


class Graph:
    """Answers what clients ask `https://graph.microsoft.com`."""

    def __init__(
        self, directory: Directory, access: Access, clock: Clock, created: Callable[[dict[str, Any]], None]
    ) -> None:
        self._access = access
        self._users = Users(directory, created)
        self._groups = Groups(directory)
        self._guests = Guests(directory, self._users, clock)

    def answer(self, call: Call) -> Answer:
        """Answer a request, or refuse it."""
        claims = self._access.graph(call)
        path = call.segments[1:]
        folded = [part.lower() for part in path]

        def needs(operation: str, roles: set[str], subject: str = "") -> None:
            call.operation, call.subject = operation, subject
            if isinstance(claims, str):
                raise Refused(unauthorized(claims))
            if not roles & set(claims.get("roles", ())):
                raise denied()

        match (call.method, folded):
            case ("POST", ["users"]):
                needs("POST /users", _WRITE_USERS)
                return self._users.create(call)
            case ("GET", ["users"]):
                needs("GET /users", _READ_USERS)
                return self._users.list(call)
            case ("GET", ["users", _]):
                needs("GET /users/{id}", _READ_USERS, path[1])
                return self._users.read(call, path[1])
            case ("PATCH", ["users", _]):
                needs("PATCH /users/{id}", _WRITE_USERS, path[1])
                return self._users.change(call, path[1])
            case ("DELETE", ["users", _]):
                needs("DELETE /users/{id}", _WRITE_USERS, path[1])
                return self._users.remove(path[1])
            case ("POST", ["users", _, "checkmembergroups"]):
                needs("POST /users/{id}/checkMemberGroups", _READ_GROUPS | _READ_USERS, path[1])
                return self._groups.check_members(call, self._users.find(path[1]))
            case ("POST", ["users", _, "convertexternaltointernalmemberuser"]) if call.segments[0].lower() == "beta":
                needs("POST /users/{id}/convertExternalToInternalMemberUser", _CONVERT, path[1])
                return self._guests.convert(call, path[1])
            case ("POST", ["invitations"]):
                needs("POST /invitations", _INVITE)
                return self._guests.invite(call)
            case ("GET", ["groups"]):
                needs("GET /groups", _READ_GROUPS)
                return self._groups.list(call)
            case ("GET", ["groups", _]):
                needs("GET /groups/{id}", _READ_GROUPS, path[1])
                return self._groups.read(call, path[1])
            case ("GET", ["groups", _, "members"]):
                needs("GET /groups/{id}/members", _READ_GROUPS, path[1])
                return self._groups.members(call, path[1])
            case ("POST", ["groups", _, "members", "$ref"]):
                needs("POST /groups/{id}/members/$ref", _WRITE_GROUPS, path[1])
                return self._groups.join(call, path[1])
            case ("DELETE", ["groups", _, "members", _, "$ref"]):
                needs("DELETE /groups/{id}/members/{id}/$ref", _WRITE_GROUPS)
                return self._groups.leave(call, path[1], path[3])
            case (_, ["users" | "groups" | "invitations", *rest]) if len(rest) < 2:  # noqa: PLR2004 - a collection, or one of it
                raise method_not_allowed()
            case _:
                raise no_such_segment(path[-1] if path else "")
