"""Names and texts as SQL spells them, for tables that are made of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    """A name in SQL."""
    return '"' + text.replace('"', '""') + '"'


def column_names(head: Iterable[str]) -> list[str]:
    """Names that a table can have: an empty one is called after its place, one that was there before gets a number."""
    names: list[str] = []
    taken: set[str] = set()
    for place, cell in enumerate(head, 1):
        name = base = cell.strip() or f"column{place}"
        number = 0
        while name.casefold() in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name.casefold())
        names.append(name)
    return names
