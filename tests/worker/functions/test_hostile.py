"""Identifiers that want to be something else: parts of an address, of a query, of another object."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from matoolkit.simulation.tenant import Api
from tests.worker.functions.cases import CASES, NOBODY, user
from tests.worker.hands import Hands, answering, clients

if TYPE_CHECKING:
    from matoolkit.messages import WorkerResult
    from matoolkit.simulation.tenant import SimulatedTenant

HOSTILE = [
    "../groups",
    "..",
    ".",
    "%2e%2e",
    "../../beta/users",
    "a/b",
    "a?$select=id",
    "a#b",
    "a&$expand=manager",
    "' or 1 eq 1",
    "a'b\"c",
    "Jörg Müller 北京 🙂",
    "a\r\nHost: elsewhere.example",
    "a\x00b",
    "http://elsewhere.example/",
    "@elsewhere.example",
    "a;b=c",
    " ",
    "\ud800",
    "$ref",
    "$count",
    "$value",
    "$batch",
]


async def both(server: SimulatedTenant, *several: tuple[str, dict[str, Any]]) -> list[WorkerResult]:
    async with clients(server) as tenant:
        hands = Hands(tenant)
        return [await hands.run(function, parameters) for function, parameters in several]


@pytest.mark.parametrize("identifier", HOSTILE, ids=ascii)
def test_an_identifier_is_one_segment_and_nothing_else(identifier: str, server: SimulatedTenant) -> None:
    group = server.tenant.add_groups([{"displayName": "x"}])[0]["id"]
    results = asyncio.run(
        both(
            server,
            ("Test-EntraAttributeMatch", {"UserId": identifier, "AttributeName": "id", "ExpectedValue": "x"}),
            ("Set-EntraUserUPN", {"UserId": identifier, "NewUserPrincipalName": "x@target.example"}),
            ("Add-EntraGroupMember", {"GroupId": group, "UserId": identifier}),
            ("Remove-EntraGroupMember", {"GroupId": identifier, "UserId": NOBODY}),
            ("Test-EntraGroupMembership", {"GroupId": group, "UserId": identifier}),
        )
    )
    assert {result.status for result in results} == {"failure"}
    # What came, came as one segment of the very path that was meant.
    meant = {
        "GET /users/{id}",
        "PATCH /users/{id}",
        "POST /groups/{id}/members/$ref",
        "DELETE /groups/{id}/members/{id}/$ref",
        "POST /users/{id}/checkMemberGroups",
        "GET /groups/{id}",
    }
    recorded = [each for each in server.tenant.records.last() if each.api is Api.GRAPH]
    assert {each.operation for each in recorded} <= meant
    for each in recorded:
        if each.operation in {"GET /users/{id}", "PATCH /users/{id}"}:
            assert each.subject == identifier


@pytest.mark.parametrize("identifier", HOSTILE, ids=ascii)
def test_an_identity_is_a_value_and_nothing_else(identifier: str, server: SimulatedTenant) -> None:
    results = asyncio.run(
        both(
            server,
            ("Set-ExchangeExternalAddress", {"Identity": identifier, "ExternalEmailAddress": "a@source.example"}),
            ("Test-ExchangeGroupMembership", {"GroupIdentity": identifier, "MemberIdentity": identifier}),
        )
    )
    assert {result.status for result in results} == {"failure"}
    for each in server.tenant.records.last():
        if each.api is not Api.SIGN_IN:
            assert each.operation in {"Set-MailUser", "Get-DistributionGroupMember"}
            assert each.subject == identifier


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b"7", b'"x"', b"{}", b'{"id": 7, "value": 7}'])
@pytest.mark.parametrize("status", [200, 201, 204])
def test_an_answer_of_another_shape_is_told_as_one(status: int, body: bytes) -> None:
    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, body=None if status == 204 else body)

    async def main() -> dict[str, WorkerResult]:
        async with answering(handler) as tenant:
            hands = Hands(tenant)
            given = {
                "UserId": "ada@target.example", "NewUserPrincipalName": "a@target.example", "GroupId": NOBODY,
                "InvitedUserEmailAddress": "a@source.example", "UserPrincipalName": "a@target.example",
                "DisplayName": "a", "AttributeName": "mail", "ExpectedValue": "x", "Identity": "a",
                "GroupIdentity": "g", "MemberIdentity": "m", "EmailAddress": "a@x.example",
                "NewPrimaryEmail": "a@x.example", "ExternalEmailAddress": "a@x.example", "ExchangeGuid": NOBODY,
            }  # fmt: skip
            return {
                case.name: await hands.run(case.name, {key: given[key] for key in case.mandatory}) for case in CASES
            }

    told = {name: result.error.type for name, result in asyncio.run(main()).items() if result.error is not None}
    assert set(told.values()) <= {"BadAnswer", "OutcomeUnknown", "NotOneMailUser"}
    if body != b"{}" and not body.startswith(b'{"id"'):
        # The tenant says that it did it, and nobody knows what.
        assert told["New-EntraB2BInvitation"] == "OutcomeUnknown"
        assert told["New-EntraUser"] == "BadAnswer"


def test_a_name_with_a_quote_is_a_name(server: SimulatedTenant, name: str) -> None:
    odd = f"{name}.o'brien"
    user(server.tenant, odd)
    (result,) = asyncio.run(
        both(
            server,
            (
                "Test-EntraAttributeMatch",
                {
                    "UserId": f"{odd}@target.example",
                    "AttributeName": "userPrincipalName",
                    "ExpectedValue": f"{odd}@TARGET.EXAMPLE",
                },
            ),
        )
    )
    assert result.result["Match"] is True


@pytest.mark.parametrize("attribute", ["id,mail", "id&$expand=x", "../x", "id eq 1", "a" * 300, "$value", "a..b"])
def test_an_attribute_is_a_name_and_nothing_else(attribute: str, server: SimulatedTenant, name: str) -> None:
    person = user(server.tenant, name)["id"]
    (result,) = asyncio.run(
        both(
            server,
            ("Test-EntraAttributeMatch", {"UserId": person, "AttributeName": attribute, "ExpectedValue": "x"}),
        )
    )
    assert result.error is not None
    assert result.error.type == "ValidationError"
