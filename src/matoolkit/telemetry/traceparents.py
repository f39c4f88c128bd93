"""W3C's `traceparent`: which trace, which span of it, and whether it is kept."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final, NamedTuple

_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_SAMPLED: Final = 1
_LONGEST: Final = 512


class Place(NamedTuple):
    """A span of a trace."""

    trace: int
    span: int
    is_kept: bool

    def __str__(self) -> str:
        return f"00-{self.trace:032x}-{self.span:016x}-{int(self.is_kept):02x}"


def read(text: str | None) -> Place | None:
    """What it says; None when it says nothing that W3C would understand."""
    found = _FORM.fullmatch(text) if text is not None and len(text) <= _LONGEST else None
    if found is None or found[1] == "ff":
        return None
    place = Place(int(found[2], 16), int(found[3], 16), bool(int(found[4], 16) & _SAMPLED))
    return place if place.trace and place.span else None


def derived(origin: str) -> tuple[int, int]:
    """Trace and span that begin at an origin: whoever knows it knows them, and nobody has to keep them."""
    digest = blake2b(origin.encode(), digest_size=24, person=b"matoolkit-trace").digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:]) or 1
