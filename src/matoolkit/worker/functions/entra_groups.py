"""Who is in which group, through Microsoft Graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matoolkit.worker.functions.comparing import matches
from matoolkit.worker.functions.identifiers import identifier, is_guid, is_there, told
from matoolkit.worker.registry import function
from matoolkit.worker.tenant.errors import Refused

if TYPE_CHECKING:
    from matoolkit.worker.context import FunctionContext

_BAD_REQUEST, _NOT_FOUND = 400, 404


@function("Add-EntraGroupMember")
async def add_entra_group_member(ctx: FunctionContext, *, GroupId: str, UserId: str) -> bool:
    """Adds a user to a group; somebody who is a member already stays one."""
    collection = "directoryObjects" if is_guid(UserId) else "users"
    body = {"@odata.id": ctx.graph.address((collection, UserId))}
    try:
        await ctx.graph.request("POST", ("groups", GroupId, "members", "$ref"), body=body)
    except Refused as refusal:
        if refusal.status != _BAD_REQUEST or "object references already exist" not in refusal.said:
            raise
    return True


@function("Remove-EntraGroupMember")
async def remove_entra_group_member(ctx: FunctionContext, *, GroupId: str, UserId: str) -> bool:
    """Removes a user from a group; somebody who is no member stays none."""
    member = UserId
    if not is_guid(UserId):
        member = identifier(await ctx.graph.request("GET", ("users", UserId), query={"$select": "id"}))
    try:
        await ctx.graph.request("DELETE", ("groups", GroupId, "members", member, "$ref"))
    except Refused as refusal:
        # A group that is not there is answered in the same way as a member who is not.
        if refusal.status != _NOT_FOUND or not await is_there(ctx, ("groups", GroupId)):
            raise
    return True


@function("Test-EntraGroupMembership")
async def find_group_member(ctx: FunctionContext, *, GroupId: str, UserId: str) -> dict[str, Any]:
    """Finds out whether a user is in a group, directly or through another group."""
    path = ("users", UserId, "checkMemberGroups")
    answer = told(await ctx.graph.request("POST", path, body={"groupIds": [GroupId]}))
    is_member = matches(answer.get("value", []), GroupId, is_multi_value=True)
    return {"IsMember": is_member, "GroupId": GroupId, "UserId": UserId, "complete": is_member}
