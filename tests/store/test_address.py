"""Database URLs are read, named without their credentials, and refused without a word of the password."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from sqlalchemy import make_url

from matoolkit.store.address import BadDatabaseUrl, described, in_file, parsed, scrubbed
from matoolkit.store.database import open_database
from matoolkit.store.errors import DatabaseUnavailable


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:////data/matoolkit.db", "the SQLite database /data/matoolkit.db"),
        ("sqlite://", "the SQLite database"),
        ("postgresql://anna:pass@db.test:5433/waves", "the PostgreSQL database waves on db.test:5433"),
        ("postgresql+psycopg://anna:pass@/waves?host=/run/pg&password=x", "the PostgreSQL database waves on /run/pg"),
        ("mssql+mssqlpython://anna:pass@db.test/waves", "the Azure SQL database waves on db.test"),
        ("Server=db.test,5558;Database=waves;UID=anna;PWD=pass", "the Azure SQL database waves on db.test:5558"),
    ],
)
def test_a_database_is_named_without_credentials(url: str, expected: str) -> None:
    assert described(parsed(url)) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mssql+pyodbc://anna:pass@db.test:1433/waves?driver=x", "the SQL Server database waves on db.test:1433"),
        ("mssql+pyodbc:///?odbc_connect=Server%3Dx%3BPwd%3Dpass", "the SQL Server database"),
    ],
)
def test_so_is_one_that_is_only_a_source(url: str, expected: str) -> None:
    assert described(make_url(url)) == expected


@pytest.mark.parametrize(
    "url",
    [
        "swordfish",
        "",
        "postgresql//anna:swordfish@host/db",
        "postgresql://anna:sword@swordfish@host/db",
        "postgresql://anna@host:swordfish/db",
        "mysql://anna:swordfish@host/db",
        "no.such+driver://anna:swordfish@host/db",
        "postgresql+nosuch://anna:swordfish@host/db",
    ],
)
def test_what_is_wrong_with_a_url_is_told_without_quoting_it(url: str) -> None:
    with pytest.raises(BadDatabaseUrl) as caught:
        open_database(url)
    assert "swordfish" not in "".join(traceback.format_exception(caught.value)).replace(repr(url), "")


def test_the_driver_for_postgresql_is_the_one_we_have() -> None:
    assert parsed("postgresql://anna@host/db").drivername == "postgresql+psycopg"


def test_a_password_may_have_any_character() -> None:
    assert parsed("postgresql://anna:%40%2F%25%3A@host/db").password == "@/%:"


@pytest.mark.parametrize("name", ["100%.db", "what?x=1.db", "a#b.db", "a b.db", "ü.db", "%20.db", "a@b:c.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    database = open_database(in_file(tmp_path / name))
    with database.transaction() as tx:
        tx.connection.exec_driver_sql("CREATE TABLE x (id INTEGER)")
    database.close()
    assert (tmp_path / name).is_file()


def test_what_a_driver_says_is_rid_of_the_password() -> None:
    address = make_url("postgresql://anna:s%40ord@host/db?sslpassword=fish")
    said = 'cannot use "s@ord", that is s%40ord, nor fish, as anna'
    assert scrubbed(said, address) == 'cannot use "***", that is ***, nor ***, as anna'


def test_without_a_password_nothing_is_taken_out() -> None:
    assert scrubbed("as it is", make_url("postgresql://@host/db?password=")) == "as it is"


def test_a_refused_connection_names_the_database_and_no_credentials() -> None:
    database = open_database("postgresql://anna:swordfish@127.0.0.1:1/waves?application_name=x")
    with pytest.raises(DatabaseUnavailable, match=r"^the PostgreSQL database waves on 127.0.0.1:1: ") as caught:
        database.reading().__enter__()
    assert "swordfish" not in "".join(traceback.format_exception(caught.value))


def test_a_folder_that_is_not_there_is_named() -> None:
    database = open_database(in_file(Path("/nowhere/at/all.db")))
    with pytest.raises(DatabaseUnavailable, match=r"^the SQLite database /nowhere/at/all.db: unable to open"):
        database.reading().__enter__()
