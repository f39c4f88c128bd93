"""The command endpoint: mail users, their addresses, distribution groups, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from matoolkit.simulation.tenant import TENANT_ID, Application, TenantFault
from tests.simulation.tenant.client import EXCHANGE, Client, kind_of

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant


def adding(*addresses: str, remove: list[str] | None = None) -> dict[str, Any]:
    return {"@odata.type": "#Exchange.GenericHashTable", "Add": list(addresses), "Remove": remove or []}


@pytest.fixture
def mail_user(server: SimulatedTenant, name: str) -> str:
    server.tenant.add_mail_users([{"UserPrincipalName": f"{name}@target.example", "DisplayName": f"Person {name}"}])
    return f"{name}@target.example"


def read(client: Client, identity: str) -> dict[str, Any]:
    answer = client.command("Get-MailUser", Identity=identity)
    assert answer.status_code == 200
    [found] = answer.json()["value"]
    return dict(found)


def test_addresses_are_added_promoted_and_removed(client: Client, mail_user: str, name: str) -> None:
    other, third = f"{name}.b@target.example", f"{name}.c@target.example"
    assert (
        client.command("Set-MailUser", Identity=mail_user, EmailAddresses=adding(f"smtp:{other}")).json()["value"] == []
    )
    assert read(client, mail_user)["EmailAddresses"] == [f"SMTP:{mail_user}", f"smtp:{other}"]
    client.command("Set-MailUser", Identity=other, EmailAddresses=adding(f"SMTP:{third}"))
    found = read(client, third)
    assert found["EmailAddresses"] == [f"SMTP:{third}", f"smtp:{mail_user}", f"smtp:{other}"]
    assert found["PrimarySmtpAddress"] == third
    client.command("Set-MailUser", Identity=mail_user, EmailAddresses=adding(remove=[other]))
    assert read(client, mail_user)["EmailAddresses"] == [f"SMTP:{third}", f"smtp:{mail_user}"]
    assert kind_of(client.command("Get-MailUser", Identity=other)) == (404, "ManagementObjectNotFoundException")
    refused = client.command("Set-MailUser", Identity=mail_user, EmailAddresses=adding(remove=[third]))
    assert kind_of(refused) == (400, "DataValidationException")


def test_the_same_again_changes_nothing_and_says_so(client: Client, mail_user: str) -> None:
    guid = str(uuid4())
    assert client.command("Set-MailUser", Identity=mail_user, ExchangeGuid=guid).json()["@adminapi.warnings"] == []
    [warning] = client.command("Set-MailUser", Identity=mail_user, ExchangeGuid=guid).json()["@adminapi.warnings"]
    assert "no settings" in warning


def test_values_are_set(client: Client, mail_user: str, name: str) -> None:
    exchange, archive = str(uuid4()), str(uuid4())
    answer = client.command(
        "set-mailuser",
        Identity=mail_user,
        ExchangeGuid=exchange,
        ArchiveGuid=archive.upper(),
        CustomAttribute3="x",
        ExternalEmailAddress=f"{name}@source.example",
    )
    assert answer.status_code == 200
    found = read(client, exchange)
    assert found["CustomAttribute4"] == ""
    assert (found["ExchangeGuid"], found["ArchiveGuid"], found["CustomAttribute3"]) == (exchange, archive, "x")
    assert found["ExternalEmailAddress"] == f"SMTP:{name}@source.example"


def test_an_address_belongs_to_one_recipient(
    client: Client, server: SimulatedTenant, mail_user: str, name: str
) -> None:
    server.tenant.add_mail_users([{"UserPrincipalName": f"{name}.other@target.example"}])
    answer = client.command(
        "Set-MailUser", Identity=mail_user, EmailAddresses=adding(f"smtp:{name.upper()}.OTHER@target.example")
    )
    assert kind_of(answer) == (400, "ProxyAddressExistsException")
    assert read(client, mail_user)["EmailAddresses"] == [f"SMTP:{mail_user}"]


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"Colour": "x"}, "ParameterBindingException"),
        ({"ExchangeGuid": "x"}, "ParameterBindingException"),
        ({"ExchangeGuid": 1}, "ParameterBindingException"),
        ({"HiddenFromAddressListsEnabled": "yes"}, "ParameterBindingException"),
        ({"EmailAddresses": {"Add": ["smtp:x@target.example"]}}, "ParameterBindingException"),
        ({"EmailAddresses": adding() | {"Replace": []}}, "ParameterBindingException"),
        ({"EmailAddresses": 7}, "ParameterBindingException"),
        ({"EmailAddresses": adding("smtp:x@elsewhere.example")}, "NotAcceptedDomainException"),
        ({"EmailAddresses": adding("smtp:nobody")}, "DataValidationException"),
        ({"EmailAddresses": adding("fax:1")}, "DataValidationException"),
        ({"EmailAddresses": ["smtp:x9@target.example"]}, "DataValidationException"),
        ({"ExternalEmailAddress": "nobody"}, "DataValidationException"),
    ],
)
def test_what_a_command_does_not_take(client: Client, mail_user: str, parameters: dict[str, Any], kind: str) -> None:
    before = read(client, mail_user)
    assert kind_of(client.command("Set-MailUser", Identity=mail_user, **parameters)) == (400, kind)
    assert read(client, mail_user) == before


def test_what_is_not_there(client: Client) -> None:
    assert kind_of(client.command("Set-MailUser", Identity="nobody", Alias="x")) == (
        404,
        "ManagementObjectNotFoundException",
    )
    assert kind_of(client.command("Set-MailUser", Alias="x")) == (400, "ParameterBindingException")
    assert kind_of(client.command("Remove-Mailbox", Identity="x")) == (400, "CommandNotFoundException")
    assert kind_of(client.command("Get-DistributionGroupMember", Identity="none")) == (
        404,
        "ManagementObjectNotFoundException",
    )


def test_members_of_a_distribution_group_come_in_pages(client: Client, server: SimulatedTenant, name: str) -> None:
    people = [f"{name}.{number}@target.example" for number in range(5)]
    server.tenant.add_mail_users({"UserPrincipalName": each} for each in people)
    server.tenant.add_distribution_groups([{"Name": f"List {name}", "Members": people}])
    paged = {"Prefer": "odata.maxpagesize=2"}
    command, wanted = "Get-DistributionGroupMember", {"Identity": f"List {name}", "ResultSize": "Unlimited"}
    page = client.command(command, headers=paged, **wanted).json()
    found = page["value"]
    while "@odata.nextLink" in page:
        assert len(page["value"]) == 2
        page = client.page(page["@odata.nextLink"], command, headers=paged, **wanted).json()
        found += page["value"]
    assert [each["PrimarySmtpAddress"] for each in found] == people
    assert len(client.command(command, Identity=f"List {name}", ResultSize=3).json()["value"]) == 3


@pytest.mark.parametrize(
    "headers",
    [{"X-CmdletName": ""}, {"X-CmdletName": "Get-Mailbox"}, {"X-AnchorMailbox": ""}, {"X-AnchorMailbox": "me"},
     {"X-ResponseFormat": "clixml"}, {"Content-Type": "text/plain"}],
)  # fmt: skip
def test_headers_have_to_be_right(client: Client, mail_user: str, headers: dict[str, str]) -> None:
    assert client.command("Get-MailUser", headers=headers, Identity=mail_user).status_code == 400


def test_a_token_for_something_else_is_refused_without_a_word(client: Client) -> None:
    for token in ("", "x", client.token("https://graph.microsoft.com")):
        answer = client.command("Get-MailUser", headers={"Authorization": f"Bearer {token}"}, Identity="x")
        assert (answer.status_code, answer.content) == (401, b"")


@pytest.mark.parametrize("lacking", [{"exchange_roles": frozenset()}, {"exchange_administrator": False}])
def test_lacking_rights_are_refused_without_a_word(server: SimulatedTenant, lacking: dict[str, Any]) -> None:
    from azure.identity import ClientSecretCredential

    from tests.simulation.tenant.client import how_to_reach

    application = server.tenant.register(Application(client_id=str(uuid4()), secrets={"s"}, **lacking))
    with (
        ClientSecretCredential(TENANT_ID, application.client_id, "s", **how_to_reach(server)) as credential,
        Client(server, credential) as client,
    ):
        answer = client.command("Get-MailUser", Identity="x")
        assert (answer.status_code, answer.content) == (403, b"")


def test_another_tenant_is_refused(client: Client) -> None:
    assert client.page(f"/adminapi/beta/{uuid4()}/InvokeCommand", "Get-MailUser").status_code == 403


def test_a_regional_address_is_told(client: Client, server: SimulatedTenant, mail_user: str) -> None:
    server.tenant.fault(TenantFault.REDIRECTED, path="InvokeCommand", times=1, location="https://eur.localhost:1")
    answer = client.command("Get-MailUser", Identity=mail_user)
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"https://eur.localhost:1/adminapi/beta/{TENANT_ID}/InvokeCommand"
    assert client.command("Get-MailUser", Identity=mail_user).ok


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_token_may_be_for_the_address_itself(
    client: Client, server: SimulatedTenant, mail_user: str, host: str
) -> None:
    token = client.token(f"https://{host}:{server.port}")
    assert token != client.token(EXCHANGE)
    authorization = {"Authorization": f"Bearer {token}"}
    assert client.command("Get-MailUser", headers=authorization, Identity=mail_user).ok
    assert client.graph("GET", "/users?$top=1", token=token).ok
