"""Users: what Graph accepts, what it refuses and in which words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.simulation.tenant.client import PASSWORD, error_of, new_user

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant
    from tests.simulation.tenant.client import Client


def test_a_user_is_made_and_read(client: Client, name: str) -> None:
    made = client.graph("POST", "/users", new_user(name))
    assert made.status_code == 201
    assert "createdDateTime" not in made.json()
    assert "password" not in made.text.lower()
    for identifier in (made.json()["id"], f"{name}@TARGET.example"):
        read = client.graph("GET", f"/users/{identifier}?$select=id,displayName,createdDateTime,otherMails,city")
        assert read.status_code == 200
        assert read.json()["id"] == made.json()["id"]
        assert read.json()["displayName"] == f"Person {name}"
        assert read.json()["createdDateTime"].endswith("Z")
        assert (read.json()["otherMails"], read.json()["city"]) == ([], None)


def test_a_name_that_is_taken_is_a_conflict(client: Client, name: str) -> None:
    client.create(name)
    answer = client.graph("POST", "/users", new_user(name.upper()))
    assert error_of(answer) == (400, "Request_BadRequest")
    error = answer.json()["error"]
    assert error["message"] == "Another object with the same value for property userPrincipalName already exists."
    assert error["details"] == [{"code": "ObjectConflict", "message": error["message"], "target": "userPrincipalName"}]
    assert set(error["innerError"]) == {"date", "request-id", "client-request-id"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"favouriteColour": "blue"}, "The property 'favouriteColour' does not exist on type 'microsoft.graph.user'"),
        ({"DisplayName": "x"}, "The property 'DisplayName' does not exist"),
        ({"accountEnabled": "true"}, "Cannot convert the literal 'true' to the expected type 'Edm.Boolean'"),
        ({"accountEnabled": None}, "does not allow null values"),
        ({"displayName": 7}, "Cannot convert a primitive value to the expected type 'Edm.String'"),
        ({"displayName": ["x"]}, "An unexpected 'StartArray' node was found"),
        ({"businessPhones": "1"}, "A 'StartArray' node was expected"),
        ({"otherMails": [1]}, "Edm.String"),
        ({"passwordProfile": PASSWORD}, "A 'StartObject' node was expected"),
        ({"passwordProfile": {"password": PASSWORD, "hint": "x"}}, "does not exist on type 'microsoft.graph.passwordP"),
        ({"passwordProfile": {}}, "A value is required for property 'password'"),
        ({"employeeHireDate": "tomorrow"}, "Edm.DateTimeOffset"),
        ({"id": "1"}, "Property 'id' is read-only"),
        ({"proxyAddresses": []}, "Property 'proxyAddresses' is read-only"),
        ({"mailNickname": "a b"}, "Invalid value specified for property 'mailNickname' of resource 'User'"),
        ({"userType": "Owner"}, "Invalid value specified for property 'userType'"),
        ({"usageLocation": "Germany"}, "Invalid value specified for property 'usageLocation'"),
        ({"userPrincipalName": "a@elsewhere.example"}, "one of the verified domain names in your organization"),
        ({"userPrincipalName": "nobody"}, "Property userPrincipalName is invalid"),
        ({"userPrincipalName": "a b@target.example"}, "Property userPrincipalName is invalid"),
        ({"displayName": "x" * 257}, "Invalid value specified for property 'displayName'"),
    ],
)
def test_what_the_schema_does_not_accept_is_refused(
    client: Client, name: str, changes: dict[str, Any], message: str
) -> None:
    answer = client.graph("POST", "/users", new_user(name, **changes))
    assert error_of(answer) == (400, "Request_BadRequest")
    assert message in answer.json()["error"]["message"]
    assert client.graph("GET", f"/users/{name}@target.example").status_code == 404


@pytest.mark.parametrize(
    "missing", ["accountEnabled", "displayName", "mailNickname", "passwordProfile", "userPrincipalName"]
)
def test_what_is_required_has_to_be_there(client: Client, name: str, missing: str) -> None:
    body = new_user(name)
    del body[missing]
    answer = client.graph("POST", "/users", body)
    assert error_of(answer) == (400, "Request_BadRequest")
    assert f"A value is required for property '{missing}'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("password", ["short1A", "alllowercase1", "ALLUPPER1234", "Xx1-{name}-4711"])
def test_weak_passwords_are_refused_and_never_repeated(client: Client, name: str, password: str) -> None:
    password = password.format(name=name)
    answer = client.graph("POST", "/users", new_user(name, passwordProfile={"password": password}))
    assert "does not comply with password complexity requirements" in answer.json()["error"]["message"]
    assert password not in answer.text


@pytest.mark.parametrize(
    ("body", "media"), [(b"{", "application/json"), (b"[]", "application/json"), (b"{}", "text/plain"), (b"{}", "")]
)
def test_what_is_no_json_object_is_refused(client: Client, body: bytes, media: str) -> None:
    headers = {"Authorization": f"Bearer {client.token('https://graph.microsoft.com')}", "Content-Type": media}
    assert client.ask("POST", "/v1.0/users", data=body, headers=headers).status_code == 400


def test_a_user_is_changed(client: Client, name: str) -> None:
    identifier = client.create(name)
    assert client.graph("PATCH", f"/users/{identifier}", {"userPrincipalName": f"new.{name}@target.example"}).ok
    assert client.graph("GET", f"/users/{name}@target.example").status_code == 404
    assert client.graph("GET", f"/users/new.{name}@target.example").json()["id"] == identifier
    # The old name is free again.
    assert client.create(name) != identifier


def test_a_change_is_checked_like_a_new_user(client: Client, name: str) -> None:
    client.create(f"{name}.other")
    identifier = client.create(name)
    for body in (
        {"userPrincipalName": f"{name}.other@target.example"},
        {"userPrincipalName": ""},
        {"displayName": None},
        {"colour": "x"},
        {"createdDateTime": "2026-01-01T00:00:00Z"},
        {"passwordProfile": {"password": "weak"}},
        {},
    ):
        assert client.graph("PATCH", f"/users/{identifier}", body).status_code == 400, body
    # One's own name is no conflict.
    assert client.graph("PATCH", f"/users/{identifier}", {"userPrincipalName": f"{name}@target.example"}).ok
    assert error_of(client.graph("PATCH", f"/users/{name}.none@target.example", {"city": "x"})) == (
        404,
        "Request_ResourceNotFound",
    )


def test_a_user_is_removed_and_leaves_all_groups(client: Client, server: SimulatedTenant, name: str) -> None:
    identifier = client.create(name)
    [group] = server.tenant.add_groups([{"displayName": name, "members": [identifier]}])
    assert client.graph("DELETE", f"/users/{identifier}").status_code == 204
    assert client.graph("DELETE", f"/users/{identifier}").status_code == 404
    assert client.graph("GET", f"/groups/{group['id']}/members").json()["value"] == []


def test_pages_are_followed_to_the_end(client: Client, server: SimulatedTenant, name: str) -> None:
    server.tenant.add_users({"userPrincipalName": f"{name}.{number}@target.example"} for number in range(7))
    found: list[str] = []
    url = f"/users?$select=userPrincipalName&$top=3&$filter=startswith(userPrincipalName,'{name}.')"
    for _ in range(4):
        page = client.graph("GET", url).json()
        found += [user["userPrincipalName"] for user in page["value"]]
        assert len(page["value"]) <= 3
        url = page.get("@odata.nextLink", "")
        if not url:
            break
        # What comes and goes between two pages makes nobody appear twice.
        client.graph("DELETE", f"/users/{found[0]}")
    assert found == [f"{name}.{number}@target.example" for number in range(7)]


def test_users_are_found_by_filter(client: Client, name: str) -> None:
    client.create(name, displayName=f"O'Hara {name}", accountEnabled=False)
    for text in (
        f"userPrincipalName eq '{name.upper()}@target.example'",
        f"displayName eq 'O''Hara {name}'",
        f"mailNickname eq '{name}' and accountEnabled eq false",
    ):
        [found] = client.graph("GET", f"/users?$filter={quote(text)}").json()["value"]
        assert found["userPrincipalName"] == f"{name}@target.example"
    assert (
        client.graph("GET", f"/users?$filter=mailNickname eq '{name}' and accountEnabled eq true").json()["value"] == []
    )


@pytest.mark.parametrize(
    "query",
    [
        "$select=colour", "$filter=colour eq 'x'", "$filter=displayName", "$filter=city eq 'x'", "$top=0", "$top=1000",
        "$top=x", "$orderby=displayName", "$colour=1", "$skiptoken=%25", "$filter=id eq 'x' or id eq 'y'",
    ],
)  # fmt: skip
def test_queries_that_are_not_understood_are_refused(client: Client, query: str) -> None:
    assert client.graph("GET", f"/users?{query}").status_code == 400


def test_identifiers_are_decoded_one_by_one(client: Client, server: SimulatedTenant, name: str) -> None:
    [guest] = server.tenant.add_guests([{"mail": f"{name}@source.example"}])
    encoded = quote(guest["userPrincipalName"], safe="")
    assert client.graph("GET", f"/users/{encoded}").json()["id"] == guest["id"]
    assert client.graph("GET", f"/users/{quote('a/../' + guest['id'], safe='')}").status_code == 404


def test_paths_and_methods_that_are_not_there(client: Client) -> None:
    assert error_of(client.graph("GET", "/colours")) == (400, "BadRequest")
    assert client.graph("PUT", "/users", {}).status_code == 405
    # The conversion is in beta only.
    assert client.graph("POST", "/v1.0/users/x/convertExternalToInternalMemberUser", {}).status_code == 400


def test_what_is_new_is_not_seen_everywhere_at_once(client: Client, server: SimulatedTenant, name: str) -> None:
    server.tenant.directory.delay_seconds = 3600
    identifier = client.create(name)
    assert client.graph("GET", f"/users/{identifier}").status_code == 404
    # But the name is taken.
    assert error_of(client.graph("POST", "/users", new_user(name))) == (400, "Request_BadRequest")
    # Its time comes.
    server.tenant.directory._seen_at[identifier] = 0
    assert client.graph("GET", f"/users/{identifier}").ok
