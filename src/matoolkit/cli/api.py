"""`matoolkit api`: the admin API as a process of its own."""

from __future__ import annotations

import sys

import click

from matoolkit.cli.database import data_folder, shared_database_option


@click.command()
@shared_database_option
def api(database_url: str | None) -> None:
    """Serve the admin API.

    Settings come from environment variables and from the file .env of the current folder. With AzureAd__TenantId and
    AzureAd__ClientId it accepts the tokens of that tenant; without them only those of the key in the data folder, and
    it listens at an address of this machine's own.
    """
    from matoolkit.hosts.api import run
    from matoolkit.hosts.environment import environment

    sys.exit(run(environment(), database_url, data_folder()))
