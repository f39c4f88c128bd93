"""The fourteen functions, each with what it needs and what it does: the tables that tests go through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from matoolkit.simulation.tenant import Api

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.simulation.tenant import Tenant

GUID = "11111111-2222-4333-8444-555555555555"
NOBODY = "99999999-2222-4333-8444-555555555555"
NOT_FOUND = "Request_ResourceNotFound"
EXCHANGE_NOT_FOUND = "Microsoft.Exchange.Configuration.Tasks.ManagementObjectNotFoundException"


@dataclass(frozen=True)
class Case:
    name: str
    operation: str
    """Under which the tenant records it."""
    prepare: Callable[[Tenant, str], dict[str, Any]]
    """Makes what there has to be, and returns the parameters."""
    result: Any
    """True, or the values that have to be in the result; PARAMETER:x stands for what was given."""
    mandatory: tuple[str, ...]
    wrong: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, Any] = field(default_factory=dict)
    """Parameters that name nobody."""
    not_found: str = ""
    """The type of the error then."""
    changes: bool = True
    once: bool = False
    """Not to be repeated."""
    again: bool = True
    """Whether the same job, done before, succeeds when it is repeated."""

    @property
    def api(self) -> Api:
        return Api.EXCHANGE if "Exchange" in self.name else Api.GRAPH


def user(tenant: Tenant, name: str, **fields: Any) -> dict[str, Any]:
    return tenant.add_users([{"userPrincipalName": f"{name}@target.example", "displayName": name, **fields}])[0]


def _new(_: Tenant, name: str) -> dict[str, Any]:
    return {"DisplayName": f"{name} Ünïcode", "UserPrincipalName": f"{name}@target.example"}


def _upn(tenant: Tenant, name: str) -> dict[str, Any]:
    return {"UserId": user(tenant, name)["id"], "NewUserPrincipalName": f"{name}.new@target.example"}


def _group(tenant: Tenant, name: str, *, member: bool) -> dict[str, Any]:
    person = user(tenant, name)["id"]
    group = tenant.add_groups([{"displayName": name, "members": [person] if member else []}])[0]
    return {"GroupId": group["id"], "UserId": person}


def _invite(tenant: Tenant, name: str) -> dict[str, Any]:
    return {"UserId": user(tenant, name)["id"], "InvitedUserEmailAddress": f"{name}@source.example"}


def _guest(tenant: Tenant, name: str) -> dict[str, Any]:
    guest = tenant.add_guests([{"mail": f"{name}@source.example"}])[0]
    return {"UserId": guest["id"], "NewUserPrincipalName": f"{name}@target.example"}


def _attribute(tenant: Tenant, name: str) -> dict[str, Any]:
    return {
        "UserId": user(tenant, name, department="Sales")["id"],
        "AttributeName": "department",
        "ExpectedValue": "SALES",
    }


def _mail_user(tenant: Tenant, name: str, **parameters: Any) -> dict[str, Any]:
    tenant.add_mail_users([{"UserPrincipalName": f"{name}@target.example"}])
    return {"Identity": f"{name}@target.example", **parameters}


def _distribution(tenant: Tenant, name: str) -> dict[str, Any]:
    _mail_user(tenant, name)
    tenant.add_distribution_groups([{"Name": f"{name}-all", "Members": [f"{name}@target.example"]}])
    return {"GroupIdentity": f"{name}-all", "MemberIdentity": f"{name}@TARGET.example"}


CASES = [
    Case("New-EntraUser", "POST /users", _new, {"UserPrincipalName": "PARAMETER:UserPrincipalName",
         "DisplayName": "PARAMETER:DisplayName", "MailNickname": "NAME", "Id": "ANY"},
         ("DisplayName", "UserPrincipalName"), {"AccountEnabled": "perhaps", "UserPrincipalName": "no-at-sign"}),
    Case("Set-EntraUserUPN", "PATCH /users/{id}", _upn, True, ("UserId", "NewUserPrincipalName"),
         {"NewUserPrincipalName": "no-at-sign"}, {"UserId": NOBODY}, NOT_FOUND),
    Case("Add-EntraGroupMember", "POST /groups/{id}/members/$ref", lambda t, n: _group(t, n, member=False), True,
         ("GroupId", "UserId"), {"GroupId": ["a", "b"]}, {"GroupId": NOBODY}, NOT_FOUND),
    Case("Remove-EntraGroupMember", "DELETE /groups/{id}/members/{id}/$ref", lambda t, n: _group(t, n, member=True),
         True, ("GroupId", "UserId"), {"UserId": {"a": 1}}, {"GroupId": NOBODY}, NOT_FOUND),
    Case("New-EntraB2BInvitation", "POST /invitations", _invite,
         {"InvitedUserEmailAddress": "PARAMETER:InvitedUserEmailAddress", "InvitedUserId": "PARAMETER:UserId",
          "Status": "PendingAcceptance", "InviteRedeemUrl": "ANY", "Id": "ANY", "InvitedUserDisplayName": "ANY",
          "InvitedUserType": "ANY"},
         ("UserId", "InvitedUserEmailAddress"), {"SendInvitationMessage": "maybe"}, {"UserId": NOBODY}, NOT_FOUND,
         once=True, again=False),
    Case("Convert-EntraB2BToInternal", "POST /users/{id}/convertExternalToInternalMemberUser", _guest,
         {"UserId": "PARAMETER:UserId", "NewUserPrincipalName": "PARAMETER:NewUserPrincipalName", "DisplayName": "ANY"},
         ("UserId", "NewUserPrincipalName"), {"ForceChangePasswordNextSignIn": "?"}, {"UserId": NOBODY}, NOT_FOUND),
    Case("Test-EntraAttributeMatch", "GET /users/{id}", _attribute,
         {"Match": True, "complete": True, "CurrentValue": "Sales", "ExpectedValue": "SALES", "IsMultiValue": False,
          "AttributeName": "department", "UserId": "PARAMETER:UserId"},
         ("UserId", "AttributeName", "ExpectedValue"), {"IsMultiValue": "some", "AttributeName": "id,mail&$expand=x"},
         {"UserId": NOBODY}, NOT_FOUND, changes=False),
    Case("Test-EntraGroupMembership", "POST /users/{id}/checkMemberGroups", lambda t, n: _group(t, n, member=True),
         {"IsMember": True, "complete": True, "GroupId": "PARAMETER:GroupId", "UserId": "PARAMETER:UserId"},
         ("GroupId", "UserId"), {"GroupId": [1]}, {"UserId": NOBODY}, NOT_FOUND, changes=False),
    Case("Add-ExchangeSecondaryEmail", "Set-MailUser",
         lambda t, n: _mail_user(t, n, EmailAddress=f"{n}.second@target.example"), True, ("Identity", "EmailAddress"),
         {"EmailAddress": "no address"}, {"Identity": "nobody"}, EXCHANGE_NOT_FOUND),
    Case("Set-ExchangePrimaryEmail", "Set-MailUser",
         lambda t, n: _mail_user(t, n, NewPrimaryEmail=f"{n}.first@target.example"), True,
         ("Identity", "NewPrimaryEmail"), {"NewPrimaryEmail": "@"}, {"Identity": "nobody"}, EXCHANGE_NOT_FOUND),
    Case("Set-ExchangeExternalAddress", "Set-MailUser",
         lambda t, n: _mail_user(t, n, ExternalEmailAddress=f"{n}@source.example"), True,
         ("Identity", "ExternalEmailAddress"), {"ExternalEmailAddress": "a b@c"}, {"Identity": "nobody"},
         EXCHANGE_NOT_FOUND),
    Case("Set-ExchangeMailUserGuids", "Set-MailUser",
         lambda t, n: _mail_user(t, n, ExchangeGuid=GUID, ArchiveGuid=NOBODY), True, ("Identity", "ExchangeGuid"),
         {"ExchangeGuid": "not-a-guid"}, {"Identity": "nobody"}, EXCHANGE_NOT_FOUND),
    Case("Test-ExchangeAttributeMatch", "Get-MailUser",
         lambda t, n: _mail_user(t, n, AttributeName="alias", ExpectedValue=n.upper()),
         {"Match": True, "complete": True, "CurrentValue": "NAME", "AttributeName": "alias", "IsMultiValue": False},
         ("Identity", "AttributeName", "ExpectedValue"), {"IsMultiValue": 7}, {"Identity": "nobody"},
         EXCHANGE_NOT_FOUND, changes=False),
    Case("Test-ExchangeGroupMembership", "Get-DistributionGroupMember", _distribution,
         {"IsMember": True, "complete": True, "GroupIdentity": "PARAMETER:GroupIdentity",
          "MemberIdentity": "PARAMETER:MemberIdentity"},
         ("GroupIdentity", "MemberIdentity"), {"GroupIdentity": ["x"]}, {"GroupIdentity": "nothing"},
         EXCHANGE_NOT_FOUND, changes=False),
]  # fmt: skip


def expected(case: Case, parameters: dict[str, Any], name: str, result: dict[str, Any]) -> dict[str, Any]:
    """The values that have to come back; those that cannot be foreseen are taken over, if there is anything."""
    values: dict[str, Any] = {}
    for key, value in case.result.items():
        if isinstance(value, str) and value.startswith("PARAMETER:"):
            values[key] = parameters[value.removeprefix("PARAMETER:")]
        elif value == "NAME":
            values[key] = name
        elif value == "ANY":
            assert result[key]
            values[key] = result[key]
        else:
            values[key] = value
    return values
