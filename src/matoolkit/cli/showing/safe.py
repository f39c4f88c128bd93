"""Text from anywhere, made harmless for a terminal: what would move the cursor or turn the line round is spelt out."""

from __future__ import annotations

import re

# C0, DEL and C1; marks that change the direction of what follows, or that nobody can see; line and paragraph
# separators; halves of characters, which no terminal can be sent.
_HARMFUL = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
_ANYWHERE = re.compile(f"[{_HARMFUL}]")
_BUT_LINES = re.compile(f"(?![\\n\\t])[{_HARMFUL}]")
_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")


def safe(text: object) -> str:
    """On one line."""
    return _ANYWHERE.sub(_spelt, str(text))


def safe_lines(text: str) -> str:
    """With its line breaks and tabs."""
    return _BUT_LINES.sub(_spelt, text.replace("\r\n", "\n"))


def safe_json(text: str) -> str:
    """The same JSON value, written so that it is harmless as well."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spelt(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
