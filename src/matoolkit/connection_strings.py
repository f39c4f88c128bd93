"""Connection strings as Microsoft's drivers write them: `Key=value;Key=value`, with quotes where a value needs them."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(
    r"""[\s;]*(?P<key>[^=;]+?)\s*=\s*
    (?P<value>"(?:[^"]|"")*"|'(?:[^']|'')*'|\{(?:[^}]|\}\})*\}|[^;]*?)\s*(?=;|$)""",
    re.VERBOSE,
)
_REST: Final = re.compile(r"[\s;]*")
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE)
_CLOSING: Final = {'"': '"', "'": "'", "{": "}"}
_LAST_PORT: Final = 65_535
SQL_PORT: Final = 1433


def fields(value: str) -> dict[str, str]:
    """What a string says, by its keys in small letters; ValueError, which quotes nothing, when it cannot be read."""
    found: dict[str, str] = {}
    place = 0
    while (part := _PART.match(value, place)) is not None:
        found[" ".join(part["key"].lower().split())] = _bare(part["value"])
        place = part.end()
    rest = _REST.match(value, place)
    if rest is None or rest.end() != len(value):
        raise ValueError("a part has no '='")
    return found


def server_place(server: str) -> tuple[str, int]:
    """Host and port of `tcp:host,port`; ValueError when there is none."""
    host, _, port = server.strip().removeprefix("tcp:").replace(":", ",").partition(",")
    host, port = host.strip(), port.strip() or str(SQL_PORT)
    if not _HOST.fullmatch(host) or not port.isdecimal() or not 0 < int(port) <= _LAST_PORT:
        raise ValueError("no server can be read")
    return host.lower(), int(port)


def _bare(value: str) -> str:
    """A value without its quotes, of which a doubled one stands for itself."""
    closing = _CLOSING.get(value[:1])
    if closing is None or len(value) < len("''") or not value.endswith(closing):
        return value
    return value[1:-1].replace(closing * 2, closing)
