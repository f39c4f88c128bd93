"""Pages of lists: how many, and from where on. A cursor names the last one seen, and only its own list takes it."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import Query

from matoolkit.api.errors import BadRequest

LARGEST_ID = 2**63 - 1
_LARGEST_OFFSET = 10_000_000
_LONGEST_CURSOR = 1_024

Offset = Annotated[int, Query(ge=0, le=_LARGEST_OFFSET, description="How many to leave out.")]
Cursor = Annotated[
    str | None,
    Query(max_length=_LONGEST_CURSOR, description="`nextCursor` of the page before; not together with an offset."),
]


def cursor_after(kind: str, last: int | str) -> str:
    """The cursor of the page that follows."""
    return base64.urlsafe_b64encode(f"{kind}:{last}".encode()).decode().rstrip("=")


def id_of(kind: str, cursor: str | None, offset: int, start: int) -> int:
    """The id a cursor names, or where its list begins."""
    text = text_of(kind, cursor, offset)
    if text is None:
        return start
    if not (text.isascii() and text.isdigit() and int(text) <= LARGEST_ID):
        raise BadRequest("the cursor is none of this list")
    return int(text)


def text_of(kind: str, cursor: str | None, offset: int) -> str | None:
    """What a cursor names, if there is one."""
    if cursor is None:
        return None
    if offset:
        raise BadRequest("give a cursor or an offset, not both")
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        found, _, text = base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise BadRequest("the cursor is none of this list") from None
    if found != kind or "\0" in text:
        raise BadRequest("the cursor is none of this list")
    return text
