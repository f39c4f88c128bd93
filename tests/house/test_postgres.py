"""The PostgreSQL servers that tests and benchmarks use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import create_engine, text

from devtools.postgres import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"log_statement": "all"}) as server:
        yield server


def test_each_test_has_an_empty_database(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE members (id integer)"))
        assert connection.scalar(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")) == 1
    engine.dispose()


@pytest.mark.parametrize("again", [1, 2])
def test_the_next_one_too(postgres_url: str, again: int) -> None:
    test_each_test_has_an_empty_database(postgres_url)


def test_a_database_is_copied_from_a_template(postgres_server: PostgresServer) -> None:
    postgres_server.create_database("original")
    with postgres_server.connect("original") as connection:
        connection.execute("CREATE TABLE members AS SELECT 7 AS id")
    url = postgres_server.create_database("copied", template="original")
    assert url == postgres_server.url("copied")
    with postgres_server.connect("copied") as connection:
        assert connection.execute("SELECT id FROM members").fetchall() == [(7,)]
    postgres_server.drop_database("copied")
    postgres_server.drop_database("original")


def test_letters_beyond_ascii_have_their_case(postgres_server: PostgresServer) -> None:
    with postgres_server.connect() as connection:
        assert connection.execute("SELECT lower('ÄÉØ')").fetchone() == ("äéø",)


def test_speed_is_traded_for_durability_only_where_asked(
    postgres_server: PostgresServer, own_server: PostgresServer
) -> None:
    for server, expected in ((postgres_server, "off"), (own_server, "on")):
        with server.connect() as connection:
            assert connection.execute("SHOW fsync").fetchone() == (expected,)


def test_settings_are_passed_on(own_server: PostgresServer) -> None:
    with own_server.connect() as connection:
        assert connection.execute("SHOW log_statement").fetchone() == ("all",)
    assert "SHOW log_statement" in own_server.log


def test_a_crash_ends_sessions_and_keeps_what_was_committed(own_server: PostgresServer) -> None:
    connection = own_server.connect()
    connection.execute("CREATE TABLE members AS SELECT 7 AS id")
    before = own_server.pid
    own_server.restart("immediate")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()
    assert own_server.pid != before
    assert "was not properly shut down" in own_server.log
    with own_server.connect() as again:
        assert again.execute("SELECT id FROM members").fetchall() == [(7,)]


def test_a_stopped_server_refuses_and_comes_back_under_the_same_url(own_server: PostgresServer) -> None:
    own_server.stop()
    assert own_server.pid is None
    with pytest.raises(psycopg.OperationalError):
        own_server.connect()
    own_server.start()
    own_server.connect().close()


def test_sessions_are_terminated_on_one_database_or_all(own_server: PostgresServer) -> None:
    own_server.create_database("one")
    connections = [own_server.connect("one"), own_server.connect()]
    assert own_server.terminate_backends("one") == 1
    assert own_server.terminate_backends() == 1
    for connection in connections:
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        connection.close()


def test_a_server_that_does_not_start_says_why() -> None:
    server = PostgresServer(settings={"max_connections": "none"})
    with pytest.raises(RuntimeError, match='invalid value for parameter "max_connections"'):
        server.start()
    server.close()


def test_nothing_is_left_behind() -> None:
    with PostgresServer(fsync=False) as server:
        folder = server.folder
    assert server.pid is None
    assert not folder.exists()
