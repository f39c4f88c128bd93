"""Writes docs/cli-reference.md from the commands themselves: `python -m devtools.cli_reference`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from matoolkit.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "cli-reference.md"
_HEAD = """\
# Command line reference

Made from the commands themselves by `make docs`; [commands.md](commands.md) says how to work with them. Every command
also takes `--help`.
"""


class Described(NamedTuple):
    """A command that does something, under its full name."""

    name: str
    command: click.Command


def commands(group: click.Group = main, prefix: str = "") -> Iterator[Described]:
    """All of them, those of a group together, in the order of the alphabet."""
    context = click.Context(group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(f"{prefix}{name} is listed and not there")
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield Described(prefix + name, command)
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")


def reference() -> str:
    """The page."""
    found = list(commands())
    listed = [f"| [`{name}`](#{name.replace(' ', '-')}) | {_cell(_summary(command))} |" for name, command in found]
    table = "\n".join(["| command | does |", "| --- | --- |", *listed])
    return "\n".join([_HEAD, table, *(_section(each) for each in found)]) + "\n"


def _section(described: Described) -> str:
    name, command = described
    context = click.Context(command, info_name=f"matoolkit {name}")
    usage = " ".join(["matoolkit", name, *command.collect_usage_pieces(context)])
    parts = [f"\n## {name}\n", f"    {usage}\n", _help(command)]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        rows = [f"| {_names(each)} | {_default(each)} | {_cell(_words(each))} |" for each in options]
        parts.append("\n" + "\n".join(["| option | default | |", "| --- | --- | --- |", *rows]))
    return "\n".join(parts)


def _help(command: click.Command) -> str:
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    return text.strip()


def _summary(command: click.Command) -> str:
    return command.get_short_help_str(limit=200)


def _names(option: click.Option) -> str:
    value = ""
    if not option.is_flag and not option.count:
        value = f" {option.make_metavar(click.Context(click.Command('x')))}"
    given = [f"`{each}{value if each.startswith('--') else ''}`" for each in (*option.opts, *option.secondary_opts)]
    return _cell(", ".join(sorted(given, key=lambda each: (each.startswith("`--"), given.index(each)))))


def _default(option: click.Option) -> str:
    if inline := _INLINE.search(option.help or ""):
        return _cell(inline[1])
    if option.envvar and option.default is None:
        return f"`{option.envvar}`"
    if option.is_flag or option.default is None or type(option.default).__name__ == "Sentinel":
        return ""
    shown = option.default
    return f"{shown:g}" if isinstance(shown, float) else f"{shown}"


_INLINE = re.compile(r"\s*\[default: (.*)\]$")


def _words(option: click.Option) -> str:
    return _INLINE.sub("", option.help or "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(f"wrote {PAGE}")
