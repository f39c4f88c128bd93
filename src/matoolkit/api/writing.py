"""Writes: one transaction with the change, its audit and, where a key was sent, the answer to be repeated.

A key belongs to who sent it. The same request under it gets the same answer and changes nothing again; another one is
told so. Of two at the same time the second waits for the first. Only what succeeded is kept: what was refused changed
nothing, and may be tried again.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING

from fastapi import Response

from matoolkit.api.errors import BadRequest, Conflict, Unavailable
from matoolkit.store import idempotency
from matoolkit.store.errors import TransactionConflict

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from fastapi import Request
    from pydantic import BaseModel

    from matoolkit.api.services import Services
    from matoolkit.api.sign_in import Identity
    from matoolkit.store.database import Transaction
    from matoolkit.store.idempotency import Kept

HEADER = "Idempotency-Key"
_KEPT_FOR = timedelta(days=1)
_LONGEST_KEY = 200
_TRIES = 5


async def write(
    services: Services,
    request: Request,
    who: Identity,
    digest: str,
    prepare: Callable[[], Callable[[Transaction, datetime], BaseModel]],
    *,
    slowly: bool = False,
) -> Response:
    """Do something and answer; `prepare` is what needs no transaction, and gives what does."""
    key = _key(request)
    asked = hashlib.sha256(f"{request.method} {request.url.path} {digest}".encode()).hexdigest()

    def work() -> tuple[int, str]:
        if key is not None:
            with services.database.reading() as tx:
                earlier = _earlier(services, tx, who, key, asked)
            if earlier is not None:
                return earlier.status_code, earlier.body
        return _in_transaction(services, who, key, asked, prepare())

    status, body = await services.run(work, slowly=slowly)
    return Response(body, status, media_type="application/json")


def _in_transaction(
    services: Services,
    who: Identity,
    key: str | None,
    asked: str,
    action: Callable[[Transaction, datetime], BaseModel],
) -> tuple[int, str]:
    for _ in range(_TRIES):
        try:
            with services.database.transaction() as tx:
                now = services.clock.now()
                if key is not None:
                    earlier = _earlier(services, tx, who, key, asked)
                    if earlier is not None:
                        return earlier.status_code, earlier.body
                    idempotency.claim(tx, who.name, key, asked, now=now, before=now - _KEPT_FOR)
                body = action(tx, now).model_dump_json(by_alias=True)
                if key is not None:
                    idempotency.answer(tx, who.name, key, 200, body)
                    idempotency.forget(tx, now - _KEPT_FOR, 10)
                return 200, body
        except TransactionConflict:
            continue  # somebody else was first: look again at how things are now
    raise Unavailable("others are changing the same things; try again")


def _earlier(services: Services, tx: Transaction, who: Identity, key: str, asked: str) -> Kept | None:
    kept = idempotency.kept(tx, who.name, key)
    if kept is None or kept.created_at < services.clock.now() - _KEPT_FOR:
        return None
    if kept.request_hash != asked:
        raise Conflict(f"the {HEADER} was used for another request; use a new one for each")
    return kept


def _key(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not 0 < len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise BadRequest(f"the {HEADER} must be 1 to {_LONGEST_KEY} printable characters")
    return key
