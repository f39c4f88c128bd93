"""What PyYAML says about a text that is not YAML, said so that the author of a runbook can mend it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import yaml

from matoolkit.runbooks.source import START, Position

if TYPE_CHECKING:
    from matoolkit.runbooks.problems import Problems

BARE_TEMPLATE: Final = "a template must stand in quotes"

_BARE_TEMPLATE: Final = re.compile(r"(?:^|[:\-\[,])\s*(\{\{)")
_INDENTATION_TAB: Final = re.compile(r" *(\t)")
_LINE_END: Final = re.compile(r"\r\n?|\n")


def explain(error: Exception, text: str, problems: Problems) -> None:
    """Record the error where the mistake most likely is, which is not always where the parser noticed it."""
    if not isinstance(error, yaml.error.MarkedYAMLError) or error.problem_mark is None:
        problems.error(START, "", "this is not valid YAML", str(error).splitlines()[0])
        return
    mark = error.problem_mark
    lines = _LINE_END.split(text)
    line = lines[mark.line] if mark.line < len(lines) else ""
    place = Position(mark.line + 1, mark.column + 1)
    tab = _INDENTATION_TAB.match(line)
    if tab or line[mark.column : mark.column + 1] == "\t":
        column = tab.start(1) if tab else mark.column
        problems.error(Position(place.line, column + 1), "", "a tab stands here", "use spaces")
        return
    problem, context = error.problem or "", error.context or ""
    if error.context_mark and ("quoted scalar" in context or "flow" in context) and mark.line >= len(lines) - 1:
        # Noticed at the end of the document; to be mended where the quote or bracket was opened.
        mark = error.context_mark
        place = Position(mark.line + 1, mark.column + 1)
    if bare := _BARE_TEMPLATE.search(line):
        problems.error(Position(place.line, bare.start(1) + 1), "", BARE_TEMPLATE, 'write "{{…}}"')
        return
    hint = ""
    if "mapping values are not allowed" in problem:
        hint = "a text that holds ': ' must stand in quotes"
    elif "quoted scalar" in context:
        hint = "the quote that is opened here is not closed"
    elif "flow" in context:
        hint = "a bracket or brace is opened and not closed"
    said = f"{context}, {problem}" if context else problem
    problems.error(place, "", f"this is not valid YAML: {said}", hint)
