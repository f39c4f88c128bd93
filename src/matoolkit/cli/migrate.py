"""`matoolkit migrate`: the database's schema, brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from matoolkit.cli.database import address, data_folder, database_option
from matoolkit.cli.options import echo_json, output_option
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate as bring_up_to_date

if TYPE_CHECKING:
    from sqlalchemy import URL


@click.command()
@database_option
@output_option
def migrate(database_url: str | None, output: str) -> None:
    """Bring a database's schema up to date.

    Safe to repeat, and safe while another one migrates: the second waits and finds nothing to do. There is no way back,
    so back up what matters first.
    """
    database = open_database(_in_data_folder() if database_url is None else address(database_url))
    try:
        report = bring_up_to_date(database)
    finally:
        database.close()
    if output == "json":
        echo_json(msgspec.to_builtins(report))
    elif report.applied:
        click.echo(
            f"{_capitalized(report.database)} is now at revision {report.after} (it was {report.before or 'empty'})"
        )
    else:
        click.echo(f"{_capitalized(report.database)} is up to date, at revision {report.after}")


def _in_data_folder() -> URL:
    """The database of `matoolkit up`, in its folder, which is made when it is not there."""
    folder = data_folder()
    try:
        # Keys will be there too, so it is nobody else's.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"the data folder {folder} cannot be made: {error.strerror}") from error
    return address(None)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
