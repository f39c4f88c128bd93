"""`matoolkit orchestrator`: the orchestrator as a process of its own."""

from __future__ import annotations

import sys

import click

from matoolkit.cli.database import shared_database_option


@click.command()
@shared_database_option
def orchestrator(database_url: str | None) -> None:
    """Turn what is due into jobs, and their results into what follows.

    Settings come from environment variables and from the file .env of the current folder. Any number may share a
    database.
    """
    from matoolkit.hosts.environment import environment
    from matoolkit.hosts.orchestrator import run

    sys.exit(run(environment(), database_url))
