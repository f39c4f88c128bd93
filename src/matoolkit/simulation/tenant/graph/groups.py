"""Groups: who is in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import msgspec

from matoolkit.simulation.tenant.calls import Answer, json_answer
from matoolkit.simulation.tenant.directory import GUID
from matoolkit.simulation.tenant.graph import odata
from matoolkit.simulation.tenant.graph.properties import Kind, Property, Schema, require
from matoolkit.simulation.tenant.graph.refusals import bad_request, not_found
from matoolkit.simulation.tenant.graph.users import DEFAULT as USER_DEFAULT
from matoolkit.simulation.tenant.graph.users import USER, viewed

if TYPE_CHECKING:
    from matoolkit.simulation.tenant.calls import Call
    from matoolkit.simulation.tenant.directory import Directory

_TEXT = Property(Kind.STRING)
GROUP = Schema(
    "microsoft.graph.group",
    {
        **dict.fromkeys(
            ("id", "createdDateTime", "description", "displayName", "mail", "mailNickname", "membershipRule"), _TEXT
        ),
        "groupTypes": Property(Kind.STRINGS),
        "mailEnabled": Property(Kind.BOOLEAN),
        "securityEnabled": Property(Kind.BOOLEAN),
    },
)
_DEFAULT = tuple(GROUP.properties)
_GROUP_IDS = Schema("checkMemberGroups", {"groupIds": Property(Kind.STRINGS)})
_MOST_GROUPS = 20
_REFERENCE = re.compile(r"/(?:v1\.0|beta)/(?:directoryObjects|users|groups)/([^/]+)")


class Groups:
    """What is asked of `/groups`, and of users about groups."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def find(self, identifier: str) -> dict[str, Any]:
        """A group that exists."""
        if not GUID.fullmatch(identifier):
            raise bad_request(f"Invalid object identifier '{identifier}'.")
        group = self._directory.group(identifier)
        if group is None:
            raise not_found(identifier)
        return group

    def read(self, call: Call, identifier: str) -> Answer:
        """GET /groups/{id}."""
        query = call.query
        odata.check_options(query)
        names = odata.selected(query, GROUP, _DEFAULT)
        group = self.find(identifier)
        context = f"{call.origin}/{call.segments[0]}/$metadata#groups/$entity"
        return json_answer(200, {"@odata.context": context, **{name: group.get(name) for name in names}})

    def list(self, call: Call) -> Answer:
        """GET /groups."""
        query = call.query
        odata.check_options(query)
        names = odata.selected(query, GROUP, _DEFAULT)
        passes = odata.filtered(query, GROUP)
        groups = self._directory.groups.values()
        page = odata.page_of(call, query, ((number, each) for number, each in enumerate(groups, 1) if passes(each)))
        values = [{name: group.get(name) for name in names} for group in page.objects]
        return _collection(call, "groups", values, page.next_link)

    def members(self, call: Call, identifier: str) -> Answer:
        """GET /groups/{id}/members."""
        query = call.query
        odata.check_options(query)
        names = odata.selected(query, USER, USER_DEFAULT)
        group = self.find(identifier)
        numbered = [(number, member) for member, number in self._directory.members(group["id"]).items()]
        page = odata.page_of(call, query, numbered)
        values = []
        for member in page.objects:
            user = self._directory.users.get(member)
            if user is not None:
                values.append({"@odata.type": "#microsoft.graph.user", **viewed(user, names), "id": member})
            else:
                inner = self._directory.groups.get(member, {})
                values.append(
                    {"@odata.type": "#microsoft.graph.group", "id": member, "displayName": inner.get("displayName")}
                )
        return _collection(call, "directoryObjects", values, page.next_link)

    def join(self, call: Call, identifier: str) -> Answer:
        """POST /groups/{id}/members/$ref."""
        body = _reference_body(call)
        found = _REFERENCE.fullmatch(urlsplit(body).path)
        if found is None:
            raise bad_request("Invalid URL format specified in payload.", code="BadRequest")
        member = unquote(found[1])
        call.subject = f"{identifier}/{member}"
        group = self._changeable(identifier)
        user = self._directory.user(member) or self._directory.group(member)
        if user is None:
            raise not_found(member)
        if self._directory.is_member(group["id"], user["id"]):
            raise bad_request(
                "One or more added object references already exist for the following modified properties: 'members'."
            )
        self._directory.join(group["id"], user["id"])
        return Answer(204)

    def leave(self, call: Call, identifier: str, member: str) -> Answer:
        """DELETE /groups/{id}/members/{id}/$ref."""
        call.subject = f"{identifier}/{member}"
        group = self._changeable(identifier)
        if not GUID.fullmatch(member):
            raise bad_request(f"Invalid object identifier '{member}'.")
        if not self._directory.is_member(group["id"], member.lower()):
            raise not_found(member)
        self._directory.leave(group["id"], member.lower())
        return Answer(204)

    def check_members(self, call: Call, user: dict[str, Any]) -> Answer:
        """POST /users/{id}/checkMemberGroups."""
        body = _GROUP_IDS.read(call)
        require(body, ("groupIds",), "DirectoryObject")
        wanted = body["groupIds"]
        if len(wanted) > _MOST_GROUPS:
            raise bad_request(f"The number of values specified for 'groupIds' exceeds the limit of {_MOST_GROUPS}.")
        for each in wanted:
            if not GUID.fullmatch(each):
                raise bad_request(f"Invalid object identifier '{each}'.")
        within = [each for each in wanted if self._directory.is_within(each.lower(), user["id"])]
        return _collection(call, "Collection(Edm.String)", within, None)

    def _changeable(self, identifier: str) -> dict[str, Any]:
        group = self.find(identifier)
        if group["mailEnabled"] and "Unified" not in group["groupTypes"]:
            raise bad_request("Cannot Update a mail-enabled security groups and or distribution list.")
        if "DynamicMembership" in group["groupTypes"]:
            raise bad_request("Insufficient privileges to complete the operation.", code="Request_BadRequest")
        return group


def _reference_body(call: Call) -> str:
    # `@odata.id` is an annotation, which schemas pass over: it is read apart.
    reader = Schema("microsoft.graph.directoryObject", {})
    reader.read(call)
    value = _decoded(call).get("@odata.id")
    if not isinstance(value, str) or not value:
        raise bad_request("The request body must contain '@odata.id'.", code="BadRequest")
    return value


def _decoded(call: Call) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(call.body)
    return decoded


def _collection(call: Call, name: str, values: list[Any], next_link: str | None) -> Answer:
    answer: dict[str, Any] = {"@odata.context": f"{call.origin}/{call.segments[0]}/$metadata#{name}"}
    if next_link:
        answer["@odata.nextLink"] = next_link
    return json_answer(200, {**answer, "value": values})
