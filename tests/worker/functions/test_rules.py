"""What each function settles besides going well or not: what counts as done, what compares equal, what is refused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.simulation.tenant import TenantFault
from tests.worker.functions.cases import GUID, NOBODY, user
from tests.worker.hands import Hands, clients, repeated

if TYPE_CHECKING:
    from matoolkit.messages import WorkerResult
    from matoolkit.simulation.tenant import SimulatedTenant

OBJECT_EXISTS = "Request_BadRequest"


def run(server: SimulatedTenant, function: str, parameters: dict[str, Any], **fields: Any) -> WorkerResult:
    async def main() -> WorkerResult:
        async with clients(server) as tenant:
            return await Hands(tenant).run(function, parameters, **fields)

    return asyncio.run(main())


def kind(result: WorkerResult) -> str:
    assert result.error is not None
    return result.error.type


def message(result: WorkerResult) -> str:
    assert result.error is not None
    return result.error.message


# A user that is there already ----------------------------------------------------------------------------------------


def new(name: str, **parameters: Any) -> dict[str, Any]:
    return {"DisplayName": name, "UserPrincipalName": f"{name}@target.example", **parameters}


def made(server: SimulatedTenant, name: str, age: timedelta, **fields: Any) -> dict[str, Any]:
    created = f"{datetime.now(UTC) - age:%Y-%m-%dT%H:%M:%SZ}"
    return user(server.tenant, name, mailNickname=name, createdDateTime=created, **fields)


def test_a_user_of_that_name_is_a_failure_for_a_first_job(server: SimulatedTenant, name: str) -> None:
    made(server, name, timedelta(0))
    assert kind(run(server, "New-EntraUser", new(name))) == OBJECT_EXISTS


@pytest.mark.parametrize("minutes", [-1, 0, 4])
def test_a_user_made_since_the_first_dispatch_is_this_jobs(server: SimulatedTenant, name: str, minutes: int) -> None:
    there = made(server, name, timedelta(minutes=minutes))
    result = run(server, "New-EntraUser", new(name), **repeated())
    assert result.status == "success"
    assert result.result["Id"] == there["id"]


def test_a_user_that_was_there_before_is_not(server: SimulatedTenant, name: str) -> None:
    made(server, name, timedelta(minutes=6))
    result = run(server, "New-EntraUser", new(name), **repeated())
    assert kind(result) == OBJECT_EXISTS
    assert "was there before" in message(result)


@pytest.mark.parametrize(
    ("other", "said"), [({"DisplayName": "Somebody else"}, "displayName"), ({"MailNickname": "else"}, "mailNickname")]
)
def test_a_user_that_is_otherwise_is_not(server: SimulatedTenant, name: str, other: dict[str, str], said: str) -> None:
    made(server, name, timedelta(0))
    result = run(server, "New-EntraUser", new(name, **other), **repeated())
    assert kind(result) == OBJECT_EXISTS
    assert said in message(result)


def test_a_user_is_not_this_jobs_when_nobody_knows_when_it_was_sent(server: SimulatedTenant, name: str) -> None:
    made(server, name, timedelta(0))
    assert kind(run(server, "New-EntraUser", new(name), first_dispatched_at=None, **repeated())) == OBJECT_EXISTS


def test_a_user_that_cannot_be_seen_yet(server: SimulatedTenant, name: str) -> None:
    assert run(server, "New-EntraUser", new(name)).status == "success"
    server.tenant.directory.delay_seconds = 3600
    other = f"{name}x"
    assert run(server, "New-EntraUser", new(other)).status == "success"
    result = run(server, "New-EntraUser", new(other), **repeated())
    assert kind(result) == OBJECT_EXISTS
    assert "can be seen" in message(result)


def test_a_user_that_is_seen_a_little_later(server: SimulatedTenant, name: str) -> None:
    server.tenant.directory.delay_seconds = 3600
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            server.tenant.directory._seen_at.clear()

    async def main() -> WorkerResult:
        async with clients(server) as tenant:
            hands = Hands(tenant, sleep=sleep)
            assert (await hands.run("New-EntraUser", new(name))).status == "success"
            return await hands.run("New-EntraUser", new(name), **repeated())

    assert asyncio.run(main()).status == "success"
    assert waits == [1, 2, 4]


def test_a_service_that_fails_after_it_made_the_user(server: SimulatedTenant, name: str) -> None:
    server.tenant.fault(TenantFault.UNAVAILABLE_AFTER_ACTING, path="/users$", times=1, retry_after=1)
    assert run(server, "New-EntraUser", new(name)).status == "success"
    assert server.tenant.records.count("POST /users", acted=True) == 1


def test_a_service_that_fails_without_saying_when_to_come_back(server: SimulatedTenant, name: str) -> None:
    server.tenant.fault(TenantFault.UNAVAILABLE_AFTER_ACTING, path="/users$", times=1)
    assert kind(run(server, "New-EntraUser", new(name))) == "ServiceUnavailable"
    assert run(server, "New-EntraUser", new(name), **repeated()).status == "success"


# Names that change ---------------------------------------------------------------------------------------------------


def test_another_user_has_the_name(server: SimulatedTenant, name: str) -> None:
    user(server.tenant, f"{name}.taken")
    person = user(server.tenant, name)["id"]
    parameters = {"UserId": person, "NewUserPrincipalName": f"{name}.taken@target.example"}
    assert kind(run(server, "Set-EntraUserUPN", parameters)) == OBJECT_EXISTS
    assert kind(run(server, "Set-EntraUserUPN", parameters, **repeated())) == OBJECT_EXISTS


def test_a_renamed_user_is_not_found_by_the_old_name(server: SimulatedTenant, name: str) -> None:
    user(server.tenant, name)
    parameters = {"UserId": f"{name}@target.example", "NewUserPrincipalName": f"{name}.new@target.example"}
    assert run(server, "Set-EntraUserUPN", parameters).result is True
    assert kind(run(server, "Set-EntraUserUPN", parameters)) == "Request_ResourceNotFound"
    assert run(server, "Set-EntraUserUPN", parameters, **repeated()).result is True


def test_nobody_of_either_name(server: SimulatedTenant, name: str) -> None:
    parameters = {"UserId": f"{name}@target.example", "NewUserPrincipalName": f"{name}.new@target.example"}
    assert kind(run(server, "Set-EntraUserUPN", parameters, **repeated())) == "Request_ResourceNotFound"


# Groups --------------------------------------------------------------------------------------------------------------


def group_of(server: SimulatedTenant, name: str) -> tuple[str, str]:
    return server.tenant.add_groups([{"displayName": name}])[0]["id"], user(server.tenant, name)["id"]


def test_joining_and_leaving_twice(server: SimulatedTenant, name: str) -> None:
    group, person = group_of(server, name)
    parameters = {"GroupId": group, "UserId": person}
    steps = ["Add-EntraGroupMember", "Add-EntraGroupMember", "Test-EntraGroupMembership"]
    steps += ["Remove-EntraGroupMember", "Remove-EntraGroupMember", "Test-EntraGroupMembership"]
    verdicts = [run(server, function, parameters).result for function in steps]
    assert verdicts[:2] == [True, True]
    assert verdicts[3:5] == [True, True]
    assert [verdicts[2]["IsMember"], verdicts[2]["complete"]] == [True, True]
    assert [verdicts[5]["IsMember"], verdicts[5]["complete"]] == [False, False]


def test_leaving_by_name(server: SimulatedTenant, name: str) -> None:
    group, person = group_of(server, name)
    server.tenant.directory.join(group, person)
    parameters = {"GroupId": group, "UserId": f"{name}@target.example"}
    assert run(server, "Remove-EntraGroupMember", parameters).result is True
    assert not server.tenant.directory.is_member(group, person)


def test_leaving_a_group_that_is_not_there(server: SimulatedTenant, name: str) -> None:
    _, person = group_of(server, name)
    result = run(server, "Remove-EntraGroupMember", {"GroupId": NOBODY, "UserId": person})
    assert kind(result) == "Request_ResourceNotFound"


# Guests --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [repeated(), {"deliveries": 2}])
def test_an_invitation_is_never_sent_twice(server: SimulatedTenant, name: str, fields: dict[str, Any]) -> None:
    person = user(server.tenant, name)["id"]
    result = run(
        server, "New-EntraB2BInvitation", {"UserId": person, "InvitedUserEmailAddress": f"{name}@s.example"}, **fields
    )
    assert kind(result) == "OutcomeUnknown"
    assert server.tenant.records.count("POST /invitations") == 0


@pytest.mark.parametrize(
    "fault", [TenantFault.UNAVAILABLE_AFTER_ACTING, TenantFault.CUT_AFTER_ACTING, TenantFault.CUT_HALFWAY]
)
def test_an_invitation_whose_outcome_nobody_knows(server: SimulatedTenant, name: str, fault: TenantFault) -> None:
    person = user(server.tenant, name)["id"]
    server.tenant.fault(fault, path="/invitations", retry_after=1)
    parameters = {"UserId": person, "InvitedUserEmailAddress": f"{name}@s.example"}
    assert kind(run(server, "New-EntraB2BInvitation", parameters)) == "OutcomeUnknown"
    assert server.tenant.records.count("POST /invitations", acted=True) == 1


def test_a_message_goes_with_the_invitation(server: SimulatedTenant, name: str) -> None:
    person = user(server.tenant, name)["id"]
    parameters = {
        "UserId": person,
        "InvitedUserEmailAddress": f"{name}@s.example",
        "CustomizedMessageBody": "Welcome, “friend” \\ \n",
        "InvitedUserType": "Member",
        "SendInvitationMessage": "false",
    }
    assert run(server, "New-EntraB2BInvitation", parameters).status == "success"


def test_a_user_who_was_never_a_guest_is_not_converted(server: SimulatedTenant, name: str) -> None:
    person = user(server.tenant, name)["id"]
    parameters = {"UserId": person, "NewUserPrincipalName": f"{name}.new@target.example"}
    assert kind(run(server, "Convert-EntraB2BToInternal", parameters)) == OBJECT_EXISTS
    assert kind(run(server, "Convert-EntraB2BToInternal", parameters, **repeated())) == OBJECT_EXISTS


def test_a_name_that_somebody_else_has_is_not_given_to_a_guest(server: SimulatedTenant, name: str) -> None:
    user(server.tenant, f"{name}.taken")
    guest = server.tenant.add_guests([{"mail": f"{name}@s.example"}])[0]
    parameters = {"UserId": guest["id"], "NewUserPrincipalName": f"{name}.taken@target.example"}
    assert kind(run(server, "Convert-EntraB2BToInternal", parameters)) == OBJECT_EXISTS
    assert kind(run(server, "Convert-EntraB2BToInternal", parameters, **repeated())) == OBJECT_EXISTS


def test_who_is_invited_already_is_a_failure_and_not_in_doubt(server: SimulatedTenant, name: str) -> None:
    person = user(server.tenant, name)["id"]
    parameters = {"UserId": person, "InvitedUserEmailAddress": f"{name}@s.example"}
    assert run(server, "New-EntraB2BInvitation", parameters).status == "success"
    assert kind(run(server, "New-EntraB2BInvitation", parameters)) == "BadRequest"


def test_a_conversion_done_by_an_attempt_that_failed(server: SimulatedTenant, name: str) -> None:
    guest = server.tenant.add_guests([{"mail": f"{name}@s.example"}])[0]
    before = guest["userPrincipalName"]
    server.tenant.fault(TenantFault.UNAVAILABLE_AFTER_ACTING, path="convertExternal", times=1, retry_after=1)
    parameters = {"UserId": guest["id"], "NewUserPrincipalName": f"{name}@target.example"}
    result = run(server, "Convert-EntraB2BToInternal", parameters)
    assert result.result["PreviousUPN"] == before
    assert result.result["NewUserPrincipalName"] == f"{name}@target.example"


def test_a_conversion_named_by_the_old_name_and_repeated(server: SimulatedTenant, name: str) -> None:
    guest = server.tenant.add_guests([{"mail": f"{name}@s.example"}])[0]
    parameters = {"UserId": guest["userPrincipalName"], "NewUserPrincipalName": f"{name}@target.example"}
    assert run(server, "Convert-EntraB2BToInternal", parameters).result["PreviousUserType"] == "Guest"
    assert run(server, "Convert-EntraB2BToInternal", parameters, **repeated()).result["PreviousUPN"] is None


# Comparing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "wanted", "several", "match"),
    [
        ("Department", "sales", False, True),
        ("department", "Marketing", False, False),
        ("accountEnabled", "TRUE", False, True),
        ("businessPhones", "222", True, True),
        ("businessPhones", ["222", "111"], True, True),
        ("businessPhones", ["222", "999"], True, False),
        ("businessPhones", "111", False, False),
        ("jobTitle", "x", False, False),
        ("extensionAttribute7", "SEVEN", False, True),
        ("onPremisesExtensionAttributes.extensionAttribute7", "seven", False, True),
    ],
)
def test_an_attribute_of_a_user(
    server: SimulatedTenant, name: str, *, attribute: str, wanted: Any, several: bool, match: bool
) -> None:
    person = user(
        server.tenant,
        name,
        department="Sales",
        businessPhones=["111", "222"],
        onPremisesExtensionAttributes={"extensionAttribute7": "Seven"},
    )
    parameters = {"UserId": person["id"], "AttributeName": attribute, "ExpectedValue": wanted, "IsMultiValue": several}
    result = run(server, "Test-EntraAttributeMatch", parameters).result
    assert (result["Match"], result["complete"]) == (match, match)


def test_an_attribute_that_users_do_not_have(server: SimulatedTenant, name: str) -> None:
    parameters = {"UserId": user(server.tenant, name)["id"], "AttributeName": "shoeSize", "ExpectedValue": "43"}
    assert run(server, "Test-EntraAttributeMatch", parameters).status == "failure"


@pytest.mark.parametrize(
    ("attribute", "wanted", "several", "match"),
    [
        ("EmailAddresses", "smtp:{name}@TARGET.example", True, True),
        ("EmailAddresses", "{name}@target.example", True, True),
        ("EmailAddresses", "other@target.example", True, False),
        ("PrimarySmtpAddress", "{name}@target.example", False, True),
        ("ExchangeGuid", GUID.upper(), False, True),
    ],
)
def test_an_attribute_of_a_mail_user(
    server: SimulatedTenant, name: str, *, attribute: str, wanted: str, several: bool, match: bool
) -> None:
    server.tenant.add_mail_users([{"UserPrincipalName": f"{name}@target.example", "ExchangeGuid": GUID}])
    parameters = {
        "Identity": f"{name}@target.example",
        "AttributeName": attribute,
        "ExpectedValue": wanted.format(name=name),
        "IsMultiValue": several,
    }
    result = run(server, "Test-ExchangeAttributeMatch", parameters).result
    assert (result["Match"], result["complete"]) == (match, match)


def test_an_attribute_that_mail_users_do_not_have(server: SimulatedTenant, name: str) -> None:
    server.tenant.add_mail_users([{"UserPrincipalName": f"{name}@target.example"}])
    parameters = {"Identity": f"{name}@target.example", "AttributeName": "ShoeSize", "ExpectedValue": "43"}
    assert kind(run(server, "Test-ExchangeAttributeMatch", parameters)) == "AttributeNotFound"


# Mail addresses ------------------------------------------------------------------------------------------------------


def test_addresses_of_a_mail_user(server: SimulatedTenant, name: str) -> None:
    server.tenant.add_mail_users([{"UserPrincipalName": f"{name}@target.example"}])
    identity = f"{name}@target.example"
    second, first = f"{name}.o'brien@target.example", f"{name}.first@target.example"
    for _ in range(2):
        assert run(server, "Add-ExchangeSecondaryEmail", {"Identity": identity, "EmailAddress": second}).result is True
        assert run(server, "Set-ExchangePrimaryEmail", {"Identity": identity, "NewPrimaryEmail": first}).result is True
    person = server.tenant.recipients.mail_user(identity)
    assert person is not None
    assert person["PrimarySmtpAddress"] == first
    assert sorted(person["EmailAddresses"]) == sorted([f"SMTP:{first}", f"smtp:{second}", f"smtp:{identity}"])


def test_an_address_that_somebody_else_has(server: SimulatedTenant, name: str) -> None:
    server.tenant.add_mail_users([{"UserPrincipalName": f"{name}{each}@target.example"} for each in "ab"])
    parameters = {"Identity": f"{name}a@target.example", "EmailAddress": f"{name}b@target.example"}
    result = run(server, "Add-ExchangeSecondaryEmail", parameters)
    assert kind(result) == "Microsoft.Exchange.Management.Common.ProxyAddressExistsException"
    assert "|" not in message(result)
    parameters["NewPrimaryEmail"] = parameters.pop("EmailAddress")
    assert kind(run(server, "Set-ExchangePrimaryEmail", parameters)) == kind(result)


def test_a_group_of_many_pages(server: SimulatedTenant, name: str) -> None:
    people = [f"{name}.{number}@target.example" for number in range(1005)]
    server.tenant.add_mail_users([{"UserPrincipalName": each} for each in people])
    server.tenant.add_distribution_groups([{"Name": f"{name}-many", "Members": people}])
    parameters = {"GroupIdentity": f"{name}-many", "MemberIdentity": people[-1].upper()}
    assert run(server, "Test-ExchangeGroupMembership", parameters).result["IsMember"] is True
    parameters["MemberIdentity"] = "nobody@target.example"
    assert run(server, "Test-ExchangeGroupMembership", parameters).result["complete"] is False
