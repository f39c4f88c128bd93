"""Whose request it is, and whether they may."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from matoolkit.api.errors import Forbidden, Unauthenticated
from matoolkit.api.services import Services
from matoolkit.api.sign_in import Identity, Refused, Role

_scheme = HTTPBearer(auto_error=False, bearerFormat="JWT", description="A token of Entra ID, or of this machine's key.")


def services_of(request: Request) -> Services:
    """What was handed in."""
    found: Services = request.app.state.services
    return found


async def anybody(request: Request, _documented: Annotated[Any, Depends(_scheme)] = None) -> Identity:
    """Somebody with a valid token, whatever their roles."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token:
        raise Unauthenticated("this needs a token: send it as `Authorization: Bearer …`")
    services = services_of(request)
    try:
        if services.sign_in.is_ready(token):
            who = services.sign_in.check(token, fetch=False)
        else:
            # With threads of its own: who comes with made-up keys holds up nobody who has signed in.
            check = partial(services.sign_in.check, token)
            who = await anyio.to_thread.run_sync(check, limiter=services.sign_in_threads)
    except Refused as error:
        raise Unauthenticated(str(error)) from error
    request.state.who = who.name
    return who


async def reader(who: Annotated[Identity, Depends(anybody)]) -> Identity:
    """Somebody who may see people's data."""
    if not who.has(Role.ADMIN, Role.READER):
        raise Forbidden("this needs the role Reader or Admin")
    return who


async def admin(who: Annotated[Identity, Depends(anybody)]) -> Identity:
    """Somebody who may change things."""
    if not who.has(Role.ADMIN):
        raise Forbidden("this needs the role Admin")
    return who


Work = Annotated[Services, Depends(services_of)]
Anybody = Annotated[Identity, Depends(anybody)]
Reader = Annotated[Identity, Depends(reader)]
Admin = Annotated[Identity, Depends(admin)]
