"""`matoolkit up`: everything in one process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from matoolkit.cli.database import DATA_VARIABLE, DEFAULT_DATA
from matoolkit.cli.options import DURATION

if TYPE_CHECKING:
    from datetime import timedelta


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar=DATA_VARIABLE,
    show_envvar=True,
    default=f"./{DEFAULT_DATA}",
    show_default=True,
    help="The folder that everything is kept in; it is made when it is not there.",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Where the API listens; 0: any that is free.  [default: 8080]"
)
@click.option("--tick", type=DURATION, default="5m", show_default=True, help="How often data sources are asked.")
@click.option(
    "--poll-tick",
    type=DURATION,
    default="5s",
    show_default=True,
    help="How often it looks for phases and polls that are due.",
)
@click.option("--simulated-tenant", is_flag=True, help="Act on a simulated tenant, which is kept in the data folder.")
def up(data: Path, port: int | None, tick: timedelta, poll_tick: timedelta, *, simulated_tenant: bool) -> None:
    """Run scheduler, orchestrator, worker and API in one process.

    Everything is kept in a SQLite file in the data folder, or in the database that MATOOLKIT_DATABASE_URL names.
    Settings of the parts come from environment variables and from the file .env of the current folder. Without those
    of a tenant, only functions of your own can be run.
    """
    from matoolkit.hosts.environment import environment
    from matoolkit.hosts.up import run
    from matoolkit.hosts.up_settings import Wishes

    wishes = Wishes(folder=data, port=port, tick=tick, poll_tick=poll_tick, simulated_tenant=simulated_tenant)
    sys.exit(run(wishes, environment(), _introduce))


def _introduce(lines: list[tuple[str, str]]) -> None:
    click.echo("matoolkit is up; Ctrl-C ends it.")
    for name, said in lines:
        click.echo(f"  {name:<8} {said}")
