"""`matoolkit worker`: runs jobs; `matoolkit worker functions`: lists what it can run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from matoolkit.cli.options import echo_json, output_option

if TYPE_CHECKING:
    from matoolkit.worker.registry import Function, Parameter, Registry


@click.group(invoke_without_command=True)
@click.pass_context
def worker(context: click.Context) -> None:
    """Run jobs in the target tenant, or list the functions that can be run.

    Settings come from environment variables and from the file .env of the current folder.
    """
    if context.invoked_subcommand is None:
        from matoolkit.hosts.environment import environment
        from matoolkit.hosts.worker import run

        sys.exit(run(environment()))


@worker.command("functions")
@output_option
def functions(output: str) -> None:
    """List the functions a worker can run, the customer's included, with their parameters."""
    from matoolkit.hosts.environment import environment
    from matoolkit.hosts.worker import registered
    from matoolkit.worker.configuration import FunctionSettings

    registry = registered(FunctionSettings.read(environment()))
    if output == "json":
        echo_json([_fields(registry, each) for each in registry])
        return
    for each in registry:
        click.echo(f"{each.name}  ({registry.origin(each.name)}{'' if each.repeatable else ', cannot be repeated'})")
        if each.summary:
            click.echo(f"    {each.summary}")
        for parameter in each.parameters:
            click.echo(f"    {parameter.name}{'*' if parameter.mandatory else ''}: {_words(parameter)}")
    click.echo("* must be given" if any(True for _ in registry) else "There are no functions.")


def _words(parameter: Parameter) -> str:
    default = "" if parameter.mandatory or parameter.default is None else f", default {parameter.default!r}"
    return f"{parameter.words}{default}{', secret' if parameter.secret else ''}"


def _fields(registry: Registry, function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "origin": registry.origin(function.name),
        "summary": function.summary,
        "repeatable": function.repeatable,
        "parameters": [
            {
                "name": each.name,
                "type": each.words,
                "mandatory": each.mandatory,
                "default": None if each.default is None or each.secret else str(each.default),
                "secret": each.secret,
            }
            for each in function.parameters
        ],
    }
