"""Whether a tenant's value is the one that is expected: without regard to case, as the tenant itself compares."""

from __future__ import annotations

import re
from typing import Any, Final

_ADDRESS: Final = re.compile(r"(?:smtp|sip|x500|eum):", re.IGNORECASE)


def folded(value: Any) -> str:
    """A value as text that compares without regard to case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).casefold()


def matches(current: Any, expected: Any, *, is_multi_value: bool) -> bool:
    """Whether it is there: among several values, or as the only one.

    Of several expected values each has to be among the current ones. An expected address without `smtp:` before it
    matches one with it.
    """
    if current is None:
        return False
    values = current if isinstance(current, list) else [current]
    wanted = expected if isinstance(expected, list) else [expected]
    if not is_multi_value and (len(values) != 1 or len(wanted) != 1):
        return [folded(each) for each in values] == [folded(each) for each in wanted]
    present = {folded(each) for each in values}
    present |= {_ADDRESS.sub("", each, count=1) for each in present if _ADDRESS.match(each)}
    return bool(wanted) and all(folded(each) in present for each in wanted)


def looked_up(thing: dict[str, Any], name: str) -> tuple[bool, Any]:
    """Whether there is an attribute of this name, in any case, and what it is; dots lead into objects."""
    value: Any = thing
    for part in name.split("."):
        if not isinstance(value, dict):
            return False, None
        found = [key for key in value if key.casefold() == part.casefold()]
        if not found:
            return False, None
        value = value[part] if part in found else value[found[0]]
    return True, value
