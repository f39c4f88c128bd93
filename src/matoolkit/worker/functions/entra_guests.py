"""Guests: invited, and made internal, through Microsoft Graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matoolkit.worker.errors import OutcomeUnknown
from matoolkit.worker.functions.identifiers import check_name, identifier, password_profile, told
from matoolkit.worker.registry import function
from matoolkit.worker.tenant.errors import Refused, TenantError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.worker.context import FunctionContext

_BAD_REQUEST: Final = 400
_PERSON: Final = "id,displayName,userPrincipalName,mail,userType,externalUserState"


@function("New-EntraB2BInvitation", repeatable=False)
async def new_entra_b2b_invitation(
    ctx: FunctionContext,
    *,
    UserId: str,
    InvitedUserEmailAddress: str,
    InviteRedirectUrl: str = "https://myapps.microsoft.com",
    SendInvitationMessage: bool = True,
    CustomizedMessageBody: str | None = None,
    InvitedUserType: str = "Guest",
) -> dict[str, Any]:
    """Invites a user of the tenant to sign in with an account elsewhere.

    An invitation sends a message and cannot be taken back, so it is never sent twice: where it is not known whether it
    went out, that is what is reported.
    """
    check_name("InvitedUserEmailAddress", InvitedUserEmailAddress)
    body: dict[str, Any] = {
        "invitedUserEmailAddress": InvitedUserEmailAddress,
        "inviteRedirectUrl": InviteRedirectUrl,
        "sendInvitationMessage": SendInvitationMessage,
        "invitedUserType": InvitedUserType,
        "invitedUser": {"id": UserId},
    }
    if CustomizedMessageBody is not None:
        body["invitedUserMessageInfo"] = {"customizedMessageBody": CustomizedMessageBody}
    try:
        made = told(await ctx.graph.request("POST", ("invitations",), body=body, repeatable=False))
    except TenantError as error:
        if not error.uncertain:
            raise
        raise OutcomeUnknown(
            f"the invitation may have been sent, and is not sent twice; look in the tenant: {error}",
            attempts=error.attempts,
        ) from error
    return {
        "Id": made.get("id"),
        "InvitedUserEmailAddress": made.get("invitedUserEmailAddress"),
        "InvitedUserDisplayName": made.get("invitedUserDisplayName"),
        "InviteRedeemUrl": made.get("inviteRedeemUrl"),
        "Status": made.get("status"),
        "InvitedUserId": _invited(made),
        "InvitedUserType": made.get("invitedUserType"),
    }


@function("Convert-EntraB2BToInternal", secrets=("Password",))
async def convert_entra_b2b_to_internal(
    ctx: FunctionContext,
    *,
    UserId: str,
    NewUserPrincipalName: str,
    Mail: str | None = None,
    Password: str | None = None,
    ForceChangePasswordNextSignIn: bool = True,
) -> dict[str, Any]:
    """Makes an internal user of a guest.

    Where a repeated job finds an internal user of the new name under that id, the conversion is done; what was before
    it is not known any more and comes back empty.
    """
    check_name("NewUserPrincipalName", NewUserPrincipalName)
    before = await _before(ctx, UserId, NewUserPrincipalName)
    person = ("users", identifier(before))
    if ctx.repeated and _is_converted(before, NewUserPrincipalName):
        return _converted(before, {})
    body: dict[str, Any] = {
        "userPrincipalName": NewUserPrincipalName,
        "passwordProfile": password_profile(ctx, Password, NewUserPrincipalName, change=ForceChangePasswordNextSignIn),
    }
    if Mail is not None:
        body["mail"] = Mail
    try:
        path = (*person, "convertExternalToInternalMemberUser")
        made = told(await ctx.graph.request("POST", path, version="beta", body=body))
    except Refused as refusal:
        # Asked more than once, the tenant may refuse the second time what it did the first.
        if refusal.status != _BAD_REQUEST or refusal.attempts == 1:
            raise
        made = told(await ctx.graph.request("GET", person, query={"$select": _PERSON}))
        if not _is_converted(made, NewUserPrincipalName):
            raise
    return _converted({**made, "id": before["id"]}, before)


def _invited(made: Mapping[str, Any]) -> Any:
    person = made.get("invitedUser")
    return person.get("id") if isinstance(person, dict) else None


async def _before(ctx: FunctionContext, user_id: str, new_name: str) -> dict[str, Any]:
    """The user as it is; done before, one that was named by its old name is only found under the new one."""
    query = {"$select": _PERSON}
    try:
        found = told(await ctx.graph.request("GET", ("users", user_id), query=query))
    except Refused as refusal:
        if not ctx.repeated or refusal.status != 404 or "@" not in user_id:  # noqa: PLR2004 - not found
            raise
        try:
            found = told(await ctx.graph.request("GET", ("users", new_name), query=query))
        except Refused:
            raise refusal from None
        if not _is_converted(found, new_name):
            raise
    return found


def _is_converted(user: Mapping[str, Any], name: str) -> bool:
    return (
        str(user.get("userPrincipalName") or "").casefold() == name.casefold()
        and user.get("userType") == "Member"
        and not user.get("externalUserState")
    )


def _converted(made: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "UserId": made.get("id"),
        "PreviousUPN": before.get("userPrincipalName"),
        "NewUserPrincipalName": made.get("userPrincipalName"),
        "DisplayName": made.get("displayName"),
        "Mail": made.get("mail"),
        "PreviousUserType": before.get("userType"),
        "ConvertedToInternalUserDateTime": made.get("convertedToInternalUserDateTime"),
    }
