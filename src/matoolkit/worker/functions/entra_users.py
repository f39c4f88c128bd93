"""What is done to users, through Microsoft Graph."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from matoolkit.worker.functions.identifiers import check_name, is_guid, is_there, password_profile, told
from matoolkit.worker.registry import function
from matoolkit.worker.tenant.errors import Refused

if TYPE_CHECKING:
    from matoolkit.worker.context import FunctionContext

_LEEWAY: Final = timedelta(minutes=5)
"""How far the tenant's clock and ours may be apart."""
_LOOKING_AGAIN: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds to wait for a user to be seen: what one server of the tenant's has made, the others know a little later."""
_BAD_REQUEST, _NOT_FOUND, _CONFLICT = 400, 404, 409
_USER: Final = "id,displayName,userPrincipalName,mailNickname,createdDateTime"


@function("New-EntraUser", secrets=("Password",))
async def new_entra_user(
    ctx: FunctionContext,
    *,
    DisplayName: str,
    UserPrincipalName: str,
    MailNickname: str | None = None,
    Password: str | None = None,
    AccountEnabled: bool = True,
    ForceChangePasswordNextSignIn: bool = True,
) -> dict[str, Any]:
    """Makes a user.

    A user of that name that is there already is a failure, unless the job is repeated and that user is what it was to
    make, made since it was first sent.
    """
    check_name("UserPrincipalName", UserPrincipalName)
    nickname = MailNickname or UserPrincipalName.partition("@")[0]
    body = {
        "accountEnabled": AccountEnabled,
        "displayName": DisplayName,
        "mailNickname": nickname,
        "userPrincipalName": UserPrincipalName,
        "passwordProfile": password_profile(ctx, Password, UserPrincipalName, change=ForceChangePasswordNextSignIn),
    }
    try:
        made = told(await ctx.graph.request("POST", ("users",), body=body))
    except Refused as refusal:
        if not _is_taken(refusal) or not (ctx.repeated or refusal.attempts > 1):
            raise
        made = await _made_before(ctx, refusal, DisplayName, UserPrincipalName, nickname)
    return {
        "Id": made.get("id"),
        "DisplayName": made.get("displayName") or DisplayName,
        "UserPrincipalName": made.get("userPrincipalName") or UserPrincipalName,
        # Graph does not tell it of its own accord.
        "MailNickname": made.get("mailNickname") or nickname,
    }


@function("Set-EntraUserUPN")
async def set_entra_user_upn(ctx: FunctionContext, *, UserId: str, NewUserPrincipalName: str) -> bool:
    """Gives a user another user principal name."""
    check_name("NewUserPrincipalName", NewUserPrincipalName)
    try:
        await ctx.graph.request("PATCH", ("users", UserId), body={"userPrincipalName": NewUserPrincipalName})
    except Refused as refusal:
        # Done before, a user that was named by the old name is not found under it any more.
        renamed = (
            refusal.status == _NOT_FOUND
            and (ctx.repeated or refusal.attempts > 1)
            and not is_guid(UserId)
            and await is_there(ctx, ("users", NewUserPrincipalName))
        )
        if not renamed:
            raise
    return True


async def _made_before(
    ctx: FunctionContext, refusal: Refused, display_name: str, user_principal_name: str, nickname: str
) -> dict[str, Any]:
    """The user that is in the way, if this very job made it; else the refusal stands, with the reason."""
    found = await _seen(ctx, user_principal_name)
    if found is None:
        # The name may also be in the way as somebody's alias.
        raise _not_ours(refusal, "no user of that name can be seen") from refusal
    wanted = {"userPrincipalName": user_principal_name, "displayName": display_name, "mailNickname": nickname}
    other = [name for name, value in wanted.items() if str(found.get(name) or "").casefold() != value.casefold()]
    if other:
        raise _not_ours(refusal, f"the user of that name has another {' and '.join(other)}") from refusal
    created = _moment(found.get("createdDateTime"))
    if ctx.first_dispatched_at is None or created is None or created < ctx.first_dispatched_at - _LEEWAY:
        raise _not_ours(refusal, "the user of that name was there before") from refusal
    return found


async def _seen(ctx: FunctionContext, user_principal_name: str) -> dict[str, Any] | None:
    """The user of a name that is taken; one that was made only now cannot be seen for a while."""
    for wait in (*_LOOKING_AGAIN, None):
        try:
            return told(await ctx.graph.request("GET", ("users", user_principal_name), query={"$select": _USER}))
        except Refused as missing:
            if missing.status != _NOT_FOUND:
                raise
        if wait is not None:
            await ctx.sleep(wait)
    return None


def _not_ours(refusal: Refused, reason: str) -> Refused:
    return Refused(
        f"{refusal.said} The job is repeated, but {reason}, so it is not taken for what an earlier attempt made.",
        code=refusal.type,
        status=refusal.status,
        attempts=refusal.attempts,
    )


def _is_taken(refusal: Refused) -> bool:
    return refusal.status in {_BAD_REQUEST, _CONFLICT} and "already exists" in refusal.said


def _moment(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
