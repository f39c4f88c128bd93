"""Parses every Bicep file with two parsers: what one lets pass, the other may not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def flaws(node: Any) -> Iterator[str]:
    """What tree-sitter could not place, or had to make up, below a node."""
    if node.type == "ERROR" or node.is_missing:
        line, column = node.start_point
        yield f"{line + 1}:{column + 1}: cannot be read: {node.text.decode()[:60]!r}"
        return
    for child in node.children:
        yield from flaws(child)


def problems(file: Path) -> Iterator[str]:
    """What either parser says against a file."""
    import pycep

    # Both are in the environment of the checkers only, where types are not checked.
    import tree_sitter_bicep  # type: ignore[import-not-found]
    from tree_sitter import Language, Parser  # type: ignore[import-not-found]

    source = file.read_bytes()
    tree = Parser(Language(tree_sitter_bicep.language())).parse(source)
    yield from (f"{file}:{flaw}" for flaw in flaws(tree.root_node))
    try:
        pycep.BicepParser().parse(text=source.decode())
    except Exception as error:  # noqa: BLE001 - whatever a parser raises is a reason to refuse the file
        yield f"{file}: {' '.join(str(error).split())[:200]}"


def main(arguments: list[str]) -> int:
    """Say what is wrong with the Bicep files below the given folders; 1 when something is."""
    files = sorted(file for folder in arguments for file in Path(folder).rglob("*.bicep"))
    if not files:
        print(f"Error: no Bicep file below {', '.join(arguments)}.", file=sys.stderr)
        return 1
    found = [problem for file in files for problem in problems(file)]
    print("\n".join(found) or f"{len(files)} Bicep files parsed twice.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
