"""`matoolkit scheduler`: the scheduler as a process of its own."""

from __future__ import annotations

import sys

import click

from matoolkit.cli.database import shared_database_option


@click.command()
@shared_database_option
def scheduler(database_url: str | None) -> None:
    """Find members in data sources, and start phases when they are due.

    Settings come from environment variables and from the file .env of the current folder. Of several on one database
    one leads; when it falls silent another takes over.
    """
    from matoolkit.hosts.environment import environment
    from matoolkit.hosts.scheduler import run

    sys.exit(run(environment(), database_url))
