"""Which database a command is about: an option, a variable, or the file in the data folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import URL

DATA_VARIABLE = "MATOOLKIT_DATA"
DEFAULT_DATA = "matoolkit-data"


def database_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--database-url`, as every command that opens a database has it."""
    return click.option(
        "--database-url",
        envvar="MATOOLKIT_DATABASE_URL",
        show_envvar=True,
        metavar="URL",
        help="The database, as a SQLAlchemy URL or an Azure SQL connection string."
        f"  [default: the SQLite file matoolkit.db in {DATA_VARIABLE}, or in ./{DEFAULT_DATA}]",
    )(command)


def shared_database_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--database-url`, as the services have it that share a database with others: there is no default."""
    return click.option(
        "--database-url",
        envvar="MATOOLKIT_DATABASE_URL",
        show_envvar=True,
        metavar="URL",
        help="The database, as a SQLAlchemy URL or an Azure SQL connection string."
        "  [default: what the service's own setting says]",
    )(command)


def data_folder() -> Path:
    """The folder that `matoolkit` keeps its state in."""
    return Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)


def address(database_url: str | None) -> URL:
    """The database a command is about."""
    from matoolkit.store.address import in_file, parsed

    return in_file(data_folder() / "matoolkit.db") if database_url is None else parsed(database_url)
