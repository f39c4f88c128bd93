"""What several functions need for users and groups: names, identifiers, passwords, and whether somebody is there."""

from __future__ import annotations

import re
from secrets import SystemRandom
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from matoolkit.worker.errors import ValidationError
from matoolkit.worker.functions.passwords import random_password
from matoolkit.worker.tenant.errors import BadAnswer, Refused

if TYPE_CHECKING:
    from matoolkit.worker.context import FunctionContext

_NOT_FOUND: Final = 404
_NAME: Final = re.compile(r"[^\s@]+@[^\s@]+")
_CHANCE: Final = SystemRandom()


def check_name(parameter: str, value: str) -> None:
    """Refuse what is neither a user principal name nor an address."""
    if not _NAME.fullmatch(value):
        raise ValidationError(f"{parameter} is not what is wanted: a name, an @ and a domain")


def is_guid(text: str) -> bool:
    """Whether an identifier is an object's id, and not its name."""
    try:
        UUID(text)
    except ValueError:
        return False
    return "-" in text


def password_profile(
    ctx: FunctionContext, password: str | None, user_principal_name: str, *, change: bool
) -> dict[str, Any]:
    """A password as Graph takes it: the one that is given, or one that nobody knows."""
    chosen = password or random_password(_CHANCE, user_principal_name)
    ctx.conceal(chosen)
    return {"password": chosen, "forceChangePasswordNextSignIn": change}


def told(answer: Any) -> dict[str, Any]:
    """The object in an answer of Graph's that has to hold one."""
    if not isinstance(answer, dict):
        raise BadAnswer("Graph's answer cannot be understood: there is no object in it")
    return answer


def identifier(answer: Any) -> str:
    """The id of the object in an answer."""
    found = told(answer).get("id")
    if not isinstance(found, str) or not found:
        raise BadAnswer("Graph's answer cannot be understood: the object in it has no id")
    return found


async def is_there(ctx: FunctionContext, path: tuple[str, str]) -> bool:
    """Whether there is such a user or group."""
    try:
        await ctx.graph.request("GET", path, query={"$select": "id"})
    except Refused as refusal:
        if refusal.status != _NOT_FOUND:
            raise
        return False
    return True
