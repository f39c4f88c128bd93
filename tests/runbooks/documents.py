"""Runbooks to test with, and a way to say where in them a problem is expected."""

from __future__ import annotations

from matoolkit.runbooks import Problem, check_runbook

MARK = "§"

MINIMAL = """\
name: wave
data_source:
  type: sql
  connection: SQL_WAVES
  query: select * from people
  primary_key: Id
  batch_time_column: Starts
phases:
  - name: go
    offset: T-0
    steps:
      - name: one
        worker_id: worker-01
        function: Do-It
"""


def changed(old: str, new: str, document: str = MINIMAL) -> str:
    """The document with one passage replaced; it has to be there, and once."""
    assert document.count(old) == 1, f"{old!r} stands in the document {document.count(old)} times"
    return document.replace(old, new)


def marked(document: str) -> tuple[str, list[tuple[int, int]]]:
    """The document without its marks, and the line and column of each of them."""
    places = []
    lines = []
    for number, line in enumerate(document.split("\n"), start=1):
        rest = line
        while MARK in rest:
            places.append((number, rest.index(MARK) + 1))
            rest = rest.replace(MARK, "", 1)
        lines.append(rest)
    return "\n".join(lines), places


def expect_errors(document: str, *messages: str) -> None:
    """Every mark is the place of an error, and there is no error elsewhere; messages are in order."""
    text, places = marked(document)
    errors = check_runbook(text).errors
    assert [(error.line, error.column) for error in errors] == places, as_lines(errors)
    assert [described(error) for error in errors] == list(messages), as_lines(errors)


def expect_warnings(document: str, *messages: str) -> None:
    """The same for warnings; there may be no errors."""
    text, places = marked(document)
    report = check_runbook(text)
    assert report.errors == (), as_lines(report.errors)
    assert [(warning.line, warning.column) for warning in report.warnings] == places, as_lines(report.warnings)
    assert [described(warning) for warning in report.warnings] == list(messages), as_lines(report.warnings)


def described(problem: Problem) -> str:
    """The problem as text, without its place."""
    return str(problem).split(": ", 1)[1]


def as_lines(problems: tuple[Problem, ...]) -> str:
    """The problems, one in each line, for a failing test."""
    return "\n".join(map(str, problems))
