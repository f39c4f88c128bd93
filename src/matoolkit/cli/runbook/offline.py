"""`runbook validate` and `runbook schema`: what can be said about a runbook without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from matoolkit.cli.options import echo_json, output_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.runbooks import Problem


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@output_option
def validate(file: str, output: str) -> None:
    """Report everything that is wrong with FILE (-: standard input), with its line and column.

    Keys that no runbook has are errors here, as they are usually misspelt; publishing only warns of them.
    """
    from matoolkit.runbooks import check_runbook

    with click.open_file(file, "rb") as stream:
        report = check_runbook(stream.read())
    name = "<stdin>" if file == "-" else file
    errors = report.strict_errors()
    warnings = [problem for problem in report.warnings if problem not in errors]
    if output == "json":
        echo_json({"valid": not errors, "errors": _fields(errors), "warnings": _fields(warnings)})
    else:
        for severity, problems in (("error", errors), ("warning", warnings)):
            for problem in problems:
                click.echo(f"{name}: {severity}: {problem}")
    if errors:
        raise click.ClickException(f"{name} has {len(errors)} {'error' if len(errors) == 1 else 'errors'}")
    if output == "text":
        click.echo(f"{name} is valid")


@click.command()
def schema() -> None:
    """Print the JSON Schema of runbooks, for editors."""
    from matoolkit.runbooks import json_schema

    echo_json(json_schema())


def _fields(problems: Iterable[Problem]) -> list[dict[str, str | int]]:
    return [
        {
            "line": problem.line,
            "column": problem.column,
            "path": problem.path,
            "message": problem.message,
            "hint": problem.hint,
        }
        for problem in problems
    ]
