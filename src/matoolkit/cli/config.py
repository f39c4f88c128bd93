"""`matoolkit config`: where the admin API is, and how to sign in."""

from __future__ import annotations

import os

import click

from matoolkit.cli.asking import api_url_option
from matoolkit.cli.configuration import KEYS, SETTINGS, config_file, read_configuration, set_value
from matoolkit.cli.groups import Group
from matoolkit.cli.options import echo_json, output_option


@click.group(cls=Group)
def config() -> None:
    """See and change where the admin API is and how to sign in."""


@config.command()
@api_url_option
@output_option
def show(api_url: str | None, output: str) -> None:
    """Show every setting, and whether an option, a variable or the configuration file gives it."""
    found = read_configuration(api_url, os.environ).found
    if output == "json":
        echo_json({key: {"value": each.value, "source": each.source} for key, each in found.items()})
        return
    from matoolkit.cli.showing.tables import field, print_table

    print_table(
        [{"key": key, "value": each.value, "source": each.source} for key, each in found.items()],
        [field("Setting", "key"), field("Value", "value", folds=True), field("From", "source", folds=True)],
    )


@config.command("set")
@click.argument("key", type=click.Choice(KEYS))
@click.argument("value")
@output_option
def set_setting(key: str, value: str, output: str) -> None:
    """Write the setting KEY into the configuration file; an empty VALUE takes it out."""
    file = config_file()
    set_value(file, key, value)
    variable = next(each.variable for each in SETTINGS if each.key == key)
    if os.environ.get(variable, "").strip():
        click.echo(f"Warning: {variable} is set, and counts for more than the file.", err=True)
    if output == "json":
        echo_json({"key": key, "value": value or None, "file": str(file)})
    else:
        click.echo(f"Wrote {key} into {file}." if value else f"Took {key} out of {file}.")


@config.command()
@output_option
def path(output: str) -> None:
    """Print where the configuration file is, whether it is there or not."""
    if output == "json":
        echo_json({"file": str(config_file())})
    else:
        click.echo(config_file())
