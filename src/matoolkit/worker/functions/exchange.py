"""What is done to mail users and groups, through Exchange's commands. All of it can be repeated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID  # noqa: TC003 - looked at when the function is registered

from matoolkit.worker.errors import FunctionError, ValidationError
from matoolkit.worker.functions.comparing import folded, looked_up, matches
from matoolkit.worker.registry import function
from matoolkit.worker.tenant.exchange import added

if TYPE_CHECKING:
    from matoolkit.worker.context import FunctionContext

_ADDRESS: Final = re.compile(r"(?:smtp:)?([^\s@:;,<>]+@[^\s@:;,<>]+)", re.IGNORECASE)
_NAMES: Final = (
    "Guid", "Id", "Identity", "Name", "Alias", "UserPrincipalName", "WindowsLiveID", "ExternalDirectoryObjectId",
    "DistinguishedName", "PrimarySmtpAddress", "LegacyExchangeDN", "ExchangeGuid",
)  # fmt: skip


@function("Add-ExchangeSecondaryEmail")
async def add_exchange_secondary_email(ctx: FunctionContext, *, Identity: str, EmailAddress: str) -> bool:
    """Gives a mail user another address besides the primary one."""
    await _set_mail_user(ctx, Identity, EmailAddresses=added(f"smtp:{_address('EmailAddress', EmailAddress)}"))
    return True


@function("Set-ExchangePrimaryEmail")
async def set_exchange_primary_email(ctx: FunctionContext, *, Identity: str, NewPrimaryEmail: str) -> bool:
    """Makes an address a mail user's primary one; the one before stays, as a secondary one."""
    await _set_mail_user(ctx, Identity, EmailAddresses=added(f"SMTP:{_address('NewPrimaryEmail', NewPrimaryEmail)}"))
    return True


@function("Set-ExchangeExternalAddress")
async def set_exchange_external_address(ctx: FunctionContext, *, Identity: str, ExternalEmailAddress: str) -> bool:
    """Sets where a mail user's mail goes."""
    await _set_mail_user(ctx, Identity, ExternalEmailAddress=_address("ExternalEmailAddress", ExternalEmailAddress))
    return True


@function("Set-ExchangeMailUserGuids")
async def set_exchange_mail_user_guids(
    ctx: FunctionContext, *, Identity: str, ExchangeGuid: UUID, ArchiveGuid: UUID | None = None
) -> bool:
    """Gives a mail user the GUIDs of the mailbox that is to be moved, and of its archive."""
    guids = {"ExchangeGuid": str(ExchangeGuid)}
    if ArchiveGuid is not None:
        guids["ArchiveGuid"] = str(ArchiveGuid)
    await _set_mail_user(ctx, Identity, **guids)
    return True


@function("Test-ExchangeAttributeMatch")
async def compare_mail_user_attribute(
    ctx: FunctionContext,
    *,
    Identity: str,
    AttributeName: str,
    ExpectedValue: Any,
    IsMultiValue: bool = False,
) -> dict[str, Any]:
    """Compares an attribute of a mail user with what it is to be."""
    found = await ctx.exchange.invoke("Get-MailUser", {"Identity": Identity})
    if len(found) != 1:
        raise FunctionError(f"{len(found)} mail users are found under that identity, not one", type="NotOneMailUser")
    there, current = looked_up(found[0], AttributeName)
    if not there:
        raise FunctionError("mail users have no such attribute", type="AttributeNotFound")
    # A single address may carry a prefix, which comparing several of them takes care of.
    match = matches(current, ExpectedValue, is_multi_value=IsMultiValue or not isinstance(current, list))
    return {
        "Match": match,
        "AttributeName": AttributeName,
        "CurrentValue": current,
        "ExpectedValue": ExpectedValue,
        "Identity": Identity,
        "IsMultiValue": IsMultiValue,
        "complete": match,
    }


@function("Test-ExchangeGroupMembership")
async def find_distribution_group_member(
    ctx: FunctionContext, *, GroupIdentity: str, MemberIdentity: str
) -> dict[str, Any]:
    """Finds out whether somebody is directly in a distribution group."""
    members = await ctx.exchange.invoke(
        "Get-DistributionGroupMember", {"Identity": GroupIdentity, "ResultSize": "Unlimited"}
    )
    wanted = folded(MemberIdentity)
    is_member = any(wanted in _names(each) for each in members)
    return {
        "IsMember": is_member,
        "GroupIdentity": GroupIdentity,
        "MemberIdentity": MemberIdentity,
        "complete": is_member,
    }


async def _set_mail_user(ctx: FunctionContext, identity: str, **parameters: Any) -> None:
    await ctx.exchange.invoke("Set-MailUser", {"Identity": identity, **parameters})


def _address(parameter: str, value: str) -> str:
    found = _ADDRESS.fullmatch(value.strip())
    if found is None:
        raise ValidationError(f"{parameter} is not what is wanted: a mail address")
    return found[1]


def _names(member: dict[str, Any]) -> set[str]:
    """Everything a member can be called, in one case."""
    names = {folded(member[name]) for name in _NAMES if member.get(name)}
    addresses = member.get("EmailAddresses")
    if isinstance(addresses, list):
        names |= {folded(each).partition(":")[2] for each in addresses}
    return names - {""}
