"""Groups of commands whose help shows each command's first sentence whole."""

from __future__ import annotations

import click

_LONGEST = 400


class Group(click.Group):
    """Lists its commands with sentences that are wrapped, where the library would cut them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command is not None]
            )
