"""The text of a runbook before it is YAML: its size, its encoding and the characters that do not belong in it."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matoolkit.runbooks.problems import Problems

MAX_BYTES: Final = 1_048_576

_UTF8_BOM: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
# What YAML does not allow, and with it the characters that YAML takes for a line end and editors do not, so that
# the lines of an error message are those of the editor.
FORBIDDEN: Final = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
)
_MAX_REPORTED: Final = 10
_DIRECTIVES: Final = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n?|\n))*((?:%[^\r\n]*(?:\r\n?|\n|\Z))+)")
_VERSION: Final = re.compile(r"%YAML[ \t]+1\.[0-2][ \t]*(?:\r\n?|\n)")
_LINE_END: Final = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text, counted from 1."""

    line: int
    column: int


START: Final = Position(1, 1)


def position(text: str, index: int) -> Position:
    """Return where the character at this index stands."""
    line, begin = 1, 0
    for match in _LINE_END.finditer(text, 0, index):
        line, begin = line + 1, match.end()
    return Position(line, index - begin + 1)


def readable(source: str | bytes, problems: Problems) -> str | None:
    """Return the text that YAML may read, without its byte order mark, or None with the reasons recorded."""
    size = len(source)
    if isinstance(source, str) and size <= MAX_BYTES:
        size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        problems.error(START, "", f"the document is larger than {MAX_BYTES:,} bytes")
        return None
    text = source if isinstance(source, str) else _decoded(source, problems)
    if text is None:
        return None
    text = text.removeprefix(_UTF8_BOM)
    found = False
    for match, _ in zip(FORBIDDEN.finditer(text), range(_MAX_REPORTED), strict=False):
        found = True
        problems.error(
            position(text, match.start()),
            "",
            f"the character U+{ord(match[0]):04X} is not allowed here",
            'remove it, or write it as "\\u…" in double quotes',
        )
    return None if found or _has_directives(text, problems) else text


def _decoded(source: bytes, problems: Problems) -> str | None:
    if source.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problems.error(START, "", "the document is UTF-16", "save it as UTF-8")
        return None
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        before = source[: error.start].decode("utf-8").removeprefix(_UTF8_BOM)
        message = f"the byte 0x{source[error.start]:02X} is not UTF-8"
        problems.error(position(before, len(before)), "", message, "save the document as UTF-8")
        return None


def _has_directives(text: str, problems: Problems) -> bool:
    """Refuse what stands before `---`, except the YAML version: tag shorthands serve no runbook and cost time."""
    match = _DIRECTIVES.match(text)
    if match is None or _VERSION.fullmatch(match[1]):
        return False
    problems.error(position(text, match.start(1)), "", "YAML directives (%…) are not supported", "remove this line")
    return True
