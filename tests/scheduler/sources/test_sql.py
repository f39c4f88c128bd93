"""SQLite and PostgreSQL as sources: types, limits, and that nothing but reading is possible."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import tracemalloc
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from threading import Thread
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import make_url

from matoolkit.scheduler.sources import (
    BadConnection,
    ExtraNotInstalled,
    QueryRefused,
    RowCapExceeded,
    SignInRefused,
    SourceError,
    SourceUnavailable,
    TimeLimitExceeded,
    open_source,
)
from matoolkit.store.address import in_file
from tests.scheduler.sources.reading import chunks, described, settings, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from devtools.postgres import PostgresServer
    from matoolkit.scheduler.sources import SourceSettings

FOREVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def on(url: str, **changes: Any) -> SourceSettings:
    return settings({"SQL_PEOPLE": url}, **changes)


def asking(query: str) -> Any:
    return described("sql", "SQL_PEOPLE", query)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people #1?.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (id TEXT, n INTEGER, x REAL, b BLOB, note TEXT)")
        connection.execute("INSERT INTO people VALUES ('0042', 7, 1.5, x'00ff', 'Zoë 🎉 100%')")
        connection.execute("INSERT INTO people VALUES (NULL, NULL, NULL, NULL, NULL)")
        connection.commit()
    return path


@pytest.fixture
def sqlite_url(file: Path) -> str:
    return in_file(file).render_as_string()


# SQLite --------------------------------------------------------------------------------------------------------------


def test_sqlite_gives_what_is_stored(sqlite_url: str) -> None:
    columns, rows = table(asking("SELECT * FROM people WHERE note LIKE '%100%' OR id IS NULL"), on(sqlite_url))
    assert columns == ("id", "n", "x", "b", "note")
    assert rows == [("0042", 7, 1.5, "00ff", "Zoë 🎉 100%"), (None, None, None, None, None)]


def test_an_empty_result_has_columns(sqlite_url: str) -> None:
    found = chunks(asking("SELECT id, n FROM people WHERE 1 = 0"), on(sqlite_url))
    assert [(chunk.columns, list(chunk.rows)) for chunk in found] == [(("id", "n"), [])]


def test_columns_of_the_same_name_stay(sqlite_url: str) -> None:
    query = "SELECT " + ", ".join(f"{n} AS a" for n in range(10))
    assert table(asking(query), on(sqlite_url)) == (("a",) * 10, [tuple(range(10))])


def test_rows_come_in_chunks(sqlite_url: str) -> None:
    query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2500) SELECT x FROM n"
    assert [len(chunk.rows) for chunk in chunks(asking(query), on(sqlite_url))] == [1000, 1000, 500]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM people",
        "INSERT INTO people (id) VALUES ('x')",
        "UPDATE people SET id = 'x' RETURNING id",
        "DROP TABLE people",
        "CREATE TABLE other (id TEXT)",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "ATTACH '/tmp/elsewhere.db' AS elsewhere",
        "VACUUM INTO '/tmp/copy.db'",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT 1; DELETE FROM people",
        "SELECT",
        "SELECT * FROM nowhere",
        "",
    ],
)
def test_sqlite_does_nothing_but_read(sqlite_url: str, file: Path, query: str) -> None:
    before = file.read_bytes()
    with pytest.raises(QueryRefused):
        chunks(asking(query), on(sqlite_url))
    assert file.read_bytes() == before


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    with pytest.raises(SourceUnavailable, match=r"SQLite database .*unable to open") as caught:
        chunks(asking("SELECT 1"), on(f"sqlite:///{missing}"))
    assert caught.value.retryable
    assert not missing.exists()


def test_sqlite_is_interrupted(sqlite_url: str) -> None:
    with pytest.raises(TimeLimitExceeded, match=r"longer than 0\.2 seconds") as caught:
        chunks(asking(FOREVER), on(sqlite_url, time_limit_seconds=0.2))
    assert caught.value.retryable


def test_the_row_cap_ends_the_reading(sqlite_url: str) -> None:
    query = FOREVER.replace("count(*)", "x")
    with pytest.raises(RowCapExceeded, match="more than 2500 rows"):
        chunks(asking(query), on(sqlite_url, row_cap=2500))
    assert table(asking("SELECT 1 UNION SELECT 2"), on(sqlite_url, row_cap=2))[1] == [(1,), (2,)]


def test_rows_do_not_add_up(sqlite_url: str) -> None:
    query = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 40000)"
        " SELECT x, 'user' || x, printf('%.200c', 'y') FROM n"
    )
    tracemalloc.start()
    try:
        with closing(open_source(asking(query), on(sqlite_url)).read()) as found:
            assert sum(len(chunk.rows) for chunk in found) == 40_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


# Addresses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "nonsense", "postgresql://u:p@ss@host/db", "x://h"])
def test_a_bad_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises((BadConnection, ExtraNotInstalled)) as caught:
        chunks(asking("SELECT 1"), on(url))
    assert "p@ss" not in str(caught.value)
    assert not caught.value.retryable


def test_a_driver_that_is_not_installed_is_named() -> None:
    with pytest.raises(ExtraNotInstalled, match="needs the Python package pymysql"):
        chunks(asking("SELECT 1"), on("mysql+pymysql://host/db"))


# PostgreSQL ----------------------------------------------------------------------------------------------------------


def test_postgresql_values_keep_their_types(postgres_url: str) -> None:
    query = """SELECT 7 AS i, 1.50::numeric AS d, 2.5::float8 AS f, true AS b, NULL AS nothing, 'Zoë 🎉 100% :x' AS t,
        date '2026-03-01' AS day, timestamp '2026-03-01 08:00:00.123456' AS local,
        timestamptz '2026-03-01 08:00:00+02' AS zoned, time '23:59' AS at, '[1, "a"]'::jsonb AS list,
        ARRAY['x', NULL] AS many, '\\x00ff'::bytea AS bytes, '6F9619FF-8B86-D011-B42D-00C04FC964FF'::uuid AS uuid,
        interval '1 day' AS span, 'NaN'::float8 AS nan, repeat('é', 100000) AS long"""
    columns, rows = table(asking(query), on(postgres_url))
    row = dict(zip(columns, rows[0], strict=True))
    assert row.pop("long") == "é" * 100_000
    zoned = row.pop("zoned")
    assert zoned == datetime(2026, 3, 1, 6, tzinfo=UTC)
    assert zoned.utcoffset() is not None
    assert row == {
        "i": 7,
        "d": Decimal("1.50"),
        "f": 2.5,
        "b": True,
        "nothing": None,
        "t": "Zoë 🎉 100% :x",
        "day": date(2026, 3, 1),
        "local": datetime(2026, 3, 1, 8, 0, 0, 123456),  # noqa: DTZ001 - it has no zone
        "at": time(23, 59),
        "list": [1, "a"],
        "many": ["x", None],
        "bytes": "00ff",
        "uuid": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
        "span": str(timedelta(days=1)),
        "nan": "nan",
    }


def test_postgresql_streams(postgres_url: str) -> None:
    found = chunks(asking("SELECT n, 'user' || n AS a, 2 AS a FROM generate_series(1, 2500) n"), on(postgres_url))
    assert [len(chunk.rows) for chunk in found] == [1000, 1000, 500]
    assert found[0].columns == ("n", "a", "a")
    empty = chunks(asking("SELECT 1 AS a WHERE false"), on(postgres_url))
    assert [(chunk.columns, list(chunk.rows)) for chunk in empty] == [(("a",), [])]


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM people",
        "WITH gone AS (DELETE FROM people RETURNING id) SELECT * FROM gone",
        "SELECT 1; COMMIT; DELETE FROM people",
        "COMMIT; SET default_transaction_read_only = off; DELETE FROM people",
        "SELECT nextval('numbers')",
        "SELECT * INTO other FROM people",
        "COPY people TO '/tmp/people.csv'",
        "SET statement_timeout = 0",
        "SELECT * FROM nowhere",
        "",
    ],
)
def test_postgresql_does_nothing_but_read(postgres_url: str, query: str) -> None:
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS id")
        connection.execute("CREATE SEQUENCE numbers")
        with pytest.raises(QueryRefused) as caught:
            chunks(asking(query), on(postgres_url))
        assert not caught.value.retryable
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (1,)


@pytest.mark.parametrize("query", ["SELECT pg_sleep(60)", "SELECT n, pg_sleep(0.1) FROM generate_series(1, 999) n"])
def test_postgresql_is_cancelled(postgres_url: str, query: str) -> None:
    with pytest.raises(TimeLimitExceeded):
        chunks(asking(query), on(postgres_url, time_limit_seconds=0.5))
    assert sessions(postgres_url) == 0


def test_a_server_that_hangs_is_left_alone(postgres_url: str) -> None:
    stopped: list[int] = []

    def alarm_once_it_hangs(_seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        def stop_and_ring() -> None:
            stopped.append(stop_backend(postgres_url))
            ring()

        thread = Thread(target=stop_and_ring)
        thread.start()
        return thread.join

    try:
        with pytest.raises(TimeLimitExceeded):
            chunks(asking("SELECT pg_sleep(60)"), on(postgres_url, alarm=alarm_once_it_hangs))
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert len(stopped) == 1


def stop_backend(url: str) -> int:
    """Make the one that sleeps hang, so that it neither answers nor cancels."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        while True:
            found = connection.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchone()
            if found:
                os.kill(found[0], signal.SIGSTOP)
                return int(found[0])
            connection.execute("SELECT 1")


def test_a_server_that_does_not_answer_a_connection_runs_into_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://someone@127.0.0.1:{server.getsockname()[1]}/people"
        with pytest.raises(TimeLimitExceeded):
            chunks(asking("SELECT 1"), on(url, time_limit_seconds=0.5))


@pytest.mark.parametrize("query", ["-- who\nSELECT 1 AS a -- them", "SELECT 1 AS a;", "/* x */ SELECT 1 AS a; -- y"])
def test_comments_and_a_semicolon_do_no_harm(sqlite_url: str, postgres_url: str, query: str) -> None:
    for url in (sqlite_url, postgres_url):
        assert table(asking(query), on(url)) == (("a",), [(1,)])


def test_who_stops_reading_leaves_no_session(postgres_url: str) -> None:
    reading = open_source(asking("SELECT n FROM generate_series(1, 1000000) n"), on(postgres_url)).read()
    assert len(next(reading).rows) == 1000
    assert sessions(postgres_url, 1) == 1
    reading.close()
    assert sessions(postgres_url) == 0


def sessions(url: str, expected: int = 0) -> int:
    """How many others are there; one that has hung up may take a moment to be gone."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        for _ in range(100):
            (count,) = connection.execute(query).fetchone() or (0,)
            if count == expected:
                break
            connection.execute("SELECT pg_sleep(0.02)")
        return int(count)


def test_a_session_that_is_ended_is_unavailable(postgres_url: str, postgres_server: PostgresServer) -> None:
    reading = open_source(asking("SELECT n FROM generate_series(1, 1000000) n"), on(postgres_url)).read()
    next(reading)
    postgres_server.terminate_backends(make_url(postgres_url).database)
    with pytest.raises(SourceUnavailable) as caught:
        list(reading)
    assert caught.value.retryable


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SourceUnavailable) as caught:
        chunks(asking("SELECT 1"), on(f"postgresql://someone:hunter2@127.0.0.1:{port}/people"))
    assert "hunter2" not in str(caught.value)
    assert "PostgreSQL database people on 127.0.0.1" in str(caught.value)


def test_a_server_that_refuses_the_password_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=refuse_password, args=(server,))
        thread.start()
        port = server.getsockname()[1]
        with pytest.raises(SignInRefused) as caught:
            chunks(asking("SELECT 1"), on(f"postgresql://someone:hunter2@127.0.0.1:{port}/people?sslmode=disable"))
        thread.join()
    assert "hunter2" not in str(caught.value)


def refuse_password(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed with hunter2\0\0"
        connection.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)


def test_every_error_is_one_of_ours(postgres_url: str) -> None:
    with pytest.raises(SourceError):
        chunks(asking("SELECT 'infinity'::timestamp"), on(postgres_url))
