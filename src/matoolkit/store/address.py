"""Where a database is: its URL read, named in messages without its credentials, and kept out of what drivers say."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from sqlalchemy import URL, exc, make_url

from matoolkit.connection_strings import SQL_PORT
from matoolkit.store.azure_sql import address as azure_sql
from matoolkit.store.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PRODUCTS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mssql": "SQL Server"}


class BadDatabaseUrl(StoreError):
    """The database's URL cannot be used."""


def parsed(url: str | URL) -> URL:
    """A URL, read; what is wrong with it is told without quoting it, since it may hold a password.

    Azure SQL's may be an ADO-style string as well.
    """
    if isinstance(url, str) and azure_sql.is_connection_string(url):
        return _azure_sql(lambda: azure_sql.from_connection_string(url))
    try:
        address = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise BadDatabaseUrl(
            "the database URL cannot be read: it should look like postgresql+psycopg://user:password@host:5432/name"
            " or sqlite:///path/to/file, with special characters of the password percent-encoded (@ is %40, / is %2F)"
        ) from None  # its text quotes a part of the URL
    if "@" in (address.host or ""):
        raise BadDatabaseUrl("the database URL has more than one @: in the password, write %40 for it")
    product = address.get_backend_name()
    if product not in _PRODUCTS:
        raise BadDatabaseUrl(f"{product} is none of the databases matoolkit works with: {', '.join(_PRODUCTS)}")
    if product == "mssql":
        return _azure_sql(lambda: azure_sql.from_url(address))
    if address.drivername == "postgresql":
        return address.set(drivername="postgresql+psycopg")
    return address


def _azure_sql(read: Callable[[], URL]) -> URL:
    try:
        return read()
    except azure_sql.Unreadable as error:
        raise BadDatabaseUrl(f"the connection string of the Azure SQL database cannot be used: {error}") from None


def in_file(path: Path) -> URL:
    """The SQLite database in a file, whatever characters its path has."""
    return URL.create("sqlite", database=str(path))


def described(address: URL) -> str:
    """A database as people know it: no user, no password, no options."""
    product = _PRODUCTS.get(address.get_backend_name(), address.get_backend_name())
    if address.drivername == azure_sql.DRIVER:
        product = "Azure SQL"
    place = address.host or next(iter(address.normalized_query.get("host", ())), None)
    port = f":{address.port}" if address.port and (product, address.port) != ("Azure SQL", SQL_PORT) else ""
    name = f" {address.database}" if address.database else ""
    return f"the {product} database{name}" + (f" on {place}{port}" if place else "")


def scrubbed(text: str, address: URL) -> str:
    """What a driver says, without the password that it may have quoted."""
    secrets = [str(address.password)] if address.password else []
    for name, values in address.normalized_query.items():
        if "password" in name.lower() or name.lower() == "odbc_connect":
            secrets += values
    spelt = {form for secret in secrets for form in (secret, quote(secret, safe=""), quote_plus(secret))}
    for secret in sorted(filter(None, spelt), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
