"""Whether a user is what it is to be, through Microsoft Graph."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from matoolkit.worker.errors import ValidationError
from matoolkit.worker.functions.comparing import looked_up, matches
from matoolkit.worker.functions.identifiers import told
from matoolkit.worker.registry import function

if TYPE_CHECKING:
    from matoolkit.worker.context import FunctionContext

_ATTRIBUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,255}(?:\.[A-Za-z][A-Za-z0-9_]{0,255}){0,3}")
_EXTENSION: Final = re.compile(r"extensionAttribute(?:[1-9]|1[0-5])", re.IGNORECASE)


@function("Test-EntraAttributeMatch")
async def compare_user_attribute(
    ctx: FunctionContext,
    *,
    UserId: str,
    AttributeName: str,
    ExpectedValue: Any,
    IsMultiValue: bool = False,
) -> dict[str, Any]:
    """Compares an attribute of a user with what it is to be."""
    if not _ATTRIBUTE.fullmatch(AttributeName):
        raise ValidationError("AttributeName is not what is wanted: the name of an attribute, as in department")
    path = AttributeName
    if _EXTENSION.fullmatch(AttributeName):
        path = f"onPremisesExtensionAttributes.{AttributeName}"
    user = told(await ctx.graph.request("GET", ("users", UserId), query={"$select": path.partition(".")[0]}))
    _, current = looked_up(user, path)
    match = matches(current, ExpectedValue, is_multi_value=IsMultiValue)
    return {
        "Match": match,
        "AttributeName": AttributeName,
        "CurrentValue": current,
        "ExpectedValue": ExpectedValue,
        "UserId": UserId,
        "IsMultiValue": IsMultiValue,
        "complete": match,
    }
