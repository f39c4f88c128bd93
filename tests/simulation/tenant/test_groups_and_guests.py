"""Groups, invitations and conversions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.simulation.tenant.client import PASSWORD, error_of

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant
    from tests.simulation.tenant.client import Client


def reference(identifier: str) -> dict[str, str]:
    return {"@odata.id": f"https://graph.microsoft.com/v1.0/directoryObjects/{identifier}"}


def invitation(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "invitedUserEmailAddress": f"{name}@source.example",
        "inviteRedirectUrl": "https://myapps.microsoft.com",
        **changes,
    }


@pytest.fixture
def group(server: SimulatedTenant, name: str) -> str:
    [made] = server.tenant.add_groups([{"displayName": f"group of {name}"}])
    return str(made["id"])


def test_joining_and_leaving(client: Client, group: str, name: str) -> None:
    identifier = client.create(name)
    members = f"/groups/{group}/members"
    assert client.graph("POST", f"{members}/$ref", reference(identifier)).status_code == 204
    assert [each["id"] for each in client.graph("GET", members).json()["value"]] == [identifier]
    again = client.graph("POST", f"{members}/$ref", reference(identifier))
    assert error_of(again) == (400, "Request_BadRequest")
    assert again.json()["error"]["message"].startswith("One or more added object references already exist")
    assert client.graph("DELETE", f"{members}/{identifier}/$ref").status_code == 204
    assert error_of(client.graph("DELETE", f"{members}/{identifier}/$ref")) == (404, "Request_ResourceNotFound")


def test_groups_and_members_have_to_exist(client: Client, group: str, name: str) -> None:
    identifier = client.create(name)
    nobody = str(uuid4())
    assert client.graph("POST", f"/groups/{nobody}/members/$ref", reference(identifier)).status_code == 404
    assert client.graph("POST", f"/groups/{group}/members/$ref", reference(nobody)).status_code == 404
    assert error_of(client.graph("POST", "/groups/all/members/$ref", reference(identifier))) == (
        400,
        "Request_BadRequest",
    )
    for body in ({}, {"@odata.id": "x"}, {"@odata.id": 1}, {"id": identifier}, reference(identifier) | {"x": 1}):
        assert client.graph("POST", f"/groups/{group}/members/$ref", body).status_code == 400, body


def test_members_come_in_pages(client: Client, server: SimulatedTenant, group: str, name: str) -> None:
    people = server.tenant.add_users({"userPrincipalName": f"{name}.{n}@target.example"} for n in range(5))
    server.tenant.directory.join_all(group, [each["id"] for each in people])
    first = client.graph("GET", f"/groups/{group}/members?$top=3&$select=id").json()
    second = client.graph("GET", first["@odata.nextLink"]).json()
    assert [each["id"] for each in first["value"] + second["value"]] == [each["id"] for each in people]
    assert "@odata.nextLink" not in second


def test_membership_is_asked_for_and_counts_groups_in_groups(
    client: Client, server: SimulatedTenant, group: str, name: str
) -> None:
    identifier = client.create(name)
    [outer, other] = server.tenant.add_groups([{"displayName": "outer", "members": [group]}, {"displayName": "other"}])
    client.graph("POST", f"/groups/{group}/members/$ref", reference(identifier))
    asked = {"groupIds": [group, outer["id"], other["id"], str(uuid4())]}
    answer = client.graph("POST", f"/users/{identifier}/checkMemberGroups", asked)
    assert answer.json()["value"] == [group, outer["id"]]
    for body in ({}, {"groupIds": "x"}, {"groupIds": ["x"]}, {"groupIds": [group] * 21}):
        assert client.graph("POST", f"/users/{identifier}/checkMemberGroups", body).status_code == 400


def test_a_dynamic_group_and_a_mail_enabled_one_take_nobody(client: Client, server: SimulatedTenant, name: str) -> None:
    identifier = client.create(name)
    for kind in ({"groupTypes": ["DynamicMembership"]}, {"mailEnabled": True}):
        [made] = server.tenant.add_groups([{"displayName": "x", **kind}])
        assert client.graph("POST", f"/groups/{made['id']}/members/$ref", reference(identifier)).status_code == 400


def test_somebody_of_our_own_is_invited_once(client: Client, name: str) -> None:
    identifier = client.create(name, mail=f"{name}@source.example")
    body = invitation(name, invitedUser={"id": identifier}, invitedUserMessageInfo={"customizedMessageBody": "Hello"})
    answer = client.graph("POST", "/invitations", body)
    assert answer.status_code == 201
    made = answer.json()
    assert made["invitedUser"] == {"id": identifier}
    assert (made["status"], made["invitedUserType"]) == ("PendingAcceptance", "Member")
    assert made["invitedUserMessageInfo"]["customizedMessageBody"] == "Hello"
    again = client.graph("POST", "/invitations", body)
    assert error_of(again) == (400, "BadRequest")
    assert identifier in again.json()["error"]["message"]
    assert client.graph("POST", "/invitations", {**body, "resetRedemption": True}).status_code == 201


def test_somebody_new_becomes_a_guest(client: Client, name: str) -> None:
    identifier = client.graph("POST", "/invitations", invitation(name)).json()["invitedUser"]["id"]
    found = client.graph("GET", f"/users/{identifier}?$select=userType,userPrincipalName,externalUserState").json()
    assert found["userType"] == "Guest"
    assert found["userPrincipalName"] == f"{name}_source.example#EXT#@target.example"
    assert found["externalUserState"] == "PendingAcceptance"


@pytest.mark.parametrize(
    "changes",
    [
        {"invitedUserEmailAddress": None}, {"invitedUserEmailAddress": "nobody"}, {"inviteRedirectUrl": None},
        {"inviteRedirectUrl": "nowhere"}, {"sendInvitationMessage": "yes"}, {"invitedUser": "x"}, {"status": "x"},
        {"colour": "x"}, {"invitedUserMessageInfo": {"customizedMessage": "x"}}, {"invitedUserType": "Owner"},
    ],
)  # fmt: skip
def test_invitations_that_are_refused(client: Client, name: str, changes: dict[str, Any]) -> None:
    assert client.graph("POST", "/invitations", invitation(name, **changes)).status_code == 400


def test_a_guest_becomes_one_of_our_own_once(client: Client, server: SimulatedTenant, name: str) -> None:
    [guest] = server.tenant.add_guests([{"mail": f"{name}@source.example"}])
    path = f"/beta/users/{guest['id']}/convertExternalToInternalMemberUser"
    body = {"userPrincipalName": f"{name}@target.example", "passwordProfile": {"password": PASSWORD}}
    for wrong in (
        {},
        {**body, "passwordProfile": {"password": "x"}},
        {**body, "userPrincipalName": "x"},
        {**body, "x": 1},
    ):
        assert client.graph("POST", path, wrong).status_code == 400
    answer = client.graph("POST", path, {**body, "mail": f"{name}@target.example"})
    assert answer.status_code == 200
    assert answer.json()["userPrincipalName"] == f"{name}@target.example"
    assert answer.json()["convertedToInternalUserDateTime"]
    found = client.graph("GET", f"/users/{guest['id']}?$select=userType,mail,externalUserState").json()
    assert (found["userType"], found["mail"], found["externalUserState"]) == ("Member", f"{name}@target.example", None)
    assert client.graph("POST", path, body).status_code == 400


def test_a_conversion_to_a_taken_name_is_a_conflict(client: Client, server: SimulatedTenant, name: str) -> None:
    client.create(name)
    [guest] = server.tenant.add_guests([{"mail": f"{name}@source.example"}])
    body = {"userPrincipalName": f"{name}@target.example", "passwordProfile": {"password": PASSWORD}}
    answer = client.graph("POST", f"/beta/users/{guest['id']}/convertExternalToInternalMemberUser", body)
    assert answer.json()["error"]["details"][0]["code"] == "ObjectConflict"
