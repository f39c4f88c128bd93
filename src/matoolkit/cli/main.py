"""The `matoolkit` command: lists every subcommand at once, and imports one only when it is called."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from matoolkit import __version__
from matoolkit.cli.showing.safe import safe_lines
from matoolkit.errors import MatoolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem


class Subcommand(NamedTuple):
    """Where a subcommand is defined, and the line that `--help` shows for it."""

    target: str
    """Module and attribute, as in `matoolkit.cli.runbook:runbook`."""
    summary: str
    """The first sentence of the command's own help; a test keeps the two the same."""


SUBCOMMANDS: Mapping[str, Subcommand] = {
    "api": Subcommand("matoolkit.cli.api:api", "Serve the admin API."),
    "audit": Subcommand("matoolkit.cli.audit:audit", "Show who did what, the newest first."),
    "auth": Subcommand("matoolkit.cli.auth:auth", "Sign in and out, and see who is."),
    "automation": Subcommand("matoolkit.cli.automation:automation", "Say whether runbooks make batches by themselves."),
    "batch": Subcommand("matoolkit.cli.batch:batch", "Look at batches, make them by hand, take them on, end them."),
    "completion": Subcommand(
        "matoolkit.cli.completion:completion", "Print what makes a shell complete commands and options."
    ),
    "config": Subcommand("matoolkit.cli.config:config", "See and change where the admin API is and how to sign in."),
    "dead-letter": Subcommand(
        "matoolkit.cli.dead_letter:dead_letter", "Look after messages that could not be handled."
    ),
    "demo": Subcommand("matoolkit.cli.demo:demo", "Run a whole wave on a simulated tenant, in a temporary folder."),
    "doctor": Subcommand(
        "matoolkit.cli.doctor:doctor",
        "Check that a live database holds nothing that must not be; it is read, and nothing is changed.",
    ),
    "find": Subcommand("matoolkit.cli.find:find", "Say in which batches the person KEY is or was, and where there."),
    "migrate": Subcommand("matoolkit.cli.migrate:migrate", "Bring a database's schema up to date."),
    "orchestrator": Subcommand(
        "matoolkit.cli.orchestrator:orchestrator",
        "Turn what is due into jobs, and their results into what follows.",
    ),
    "scheduler": Subcommand(
        "matoolkit.cli.scheduler:scheduler", "Find members in data sources, and start phases when they are due."
    ),
    "simulate": Subcommand(
        "matoolkit.cli.simulate:simulate",
        "Live whole waves under a virtual clock, with faults drawn from seeds, and check that nothing is lost.",
    ),
    "query": Subcommand("matoolkit.cli.query:query", "Look at what runbooks' queries find."),
    "runbook": Subcommand("matoolkit.cli.runbook:runbook", "Check, publish and look at runbooks."),
    "status": Subcommand(
        "matoolkit.cli.status:status", "Show how all of it is: what needs a person, what is open, what comes next."
    ),
    "template": Subcommand("matoolkit.cli.template:template", "Get CSV templates for manual batches."),
    "up": Subcommand("matoolkit.cli.up:up", "Run scheduler, orchestrator, worker and API in one process."),
    "worker": Subcommand(
        "matoolkit.cli.worker:worker",
        "Run jobs in the target tenant, or list the functions that can be run.",
    ),
}


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are called, and whose failures are told in one line."""

    def __init__(self, *args: Any, subcommands: Mapping[str, Subcommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._subcommands = subcommands

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all subcommands, in the order of the alphabet."""
        return sorted(self._subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a subcommand."""
        if cmd_name not in self._subcommands:
            return None
        module, _, attribute = self._subcommands[cmd_name].target.partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{attribute} is not a command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What a shell may complete, again without importing any: somebody is waiting with a finger on the key."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self._subcommands[name].summary) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand that was asked for, or name the one that was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self._subcommands, ctx=ctx
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing any."""
        if rows := [(name, self._subcommands[name].summary) for name in self.list_commands(ctx)]:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; an error the product knows by name becomes `Error: …` and exit code 1."""
        try:
            return super().invoke(ctx)
        except MatoolkitError as error:
            # What it quotes may come from anywhere.
            raise click.ClickException(safe_lines(str(error))) from error


@click.command(cls=LazyGroup, subcommands=SUBCOMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="matoolkit")
def main() -> None:
    """Move people from one Microsoft 365 tenant to another, in waves.

    Exit codes: 0 done, 1 failed (the reason is on standard error), 2 called the wrong way.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a terminal or a pipe has no letters for is spelt out; nobody's name ends a command halfway.
        sys.stdout.reconfigure(errors="backslashreplace")
