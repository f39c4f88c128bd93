"""What every test stands on: no network beyond this machine, and a PostgreSQL server when a test asks for one."""

from __future__ import annotations

import ipaddress
import shutil
import signal
import socket
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from devtools.postgres import PostgresServer
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate
from matoolkit.store.schema import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matoolkit.store.database import Database

# Two busy cores make single examples slow now and then; how fast something has to be is measured in benchmarks.
settings.register_profile("matoolkit", deadline=None)
settings.load_profile("matoolkit")


class NetworkForbidden(AssertionError):
    """A test tried to reach something beyond this machine."""


def pytest_configure() -> None:
    """Refuse the network from here on, so that collecting the tests cannot reach it either.

    And heed Ctrl-C: who is started in the background of a script ignores it, and so would every process of a test.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("connect", "connect_ex"):
        setattr(socket.socket, name, _local_connections_only(getattr(socket.socket, name)))
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        setattr(socket, name, _local_names_only(getattr(socket, name)))


def _local_connections_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            _refuse_beyond_this_machine(address[0])
        return original(self, address)

    return connect


def _local_names_only(original: Callable[..., Any]) -> Callable[..., Any]:
    def look_up(host: str | bytes | None, *args: Any, **kwargs: Any) -> Any:
        _refuse_beyond_this_machine(host)
        return original(host, *args, **kwargs)

    return look_up


def _refuse_beyond_this_machine(host: str | bytes | None) -> None:
    """Let through loopback addresses, `localhost`, and the empty name, which means this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if not name or name == "localhost":
        return
    try:
        local = ipaddress.ip_address(name).is_loopback or ipaddress.ip_address(name).is_unspecified
    except ValueError:
        local = False
    if not local:
        raise NetworkForbidden(f"tests reach nothing beyond this machine, and this one tried {name}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests of this process; a test that stops or crashes a server starts one of its own."""
    with PostgresServer(fsync=False) as server:
        yield server


_numbers = count(1)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a new, empty database, dropped afterwards."""
    name = f"test_{next(_numbers)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> str:
    """The name of a database that others are copied from."""
    database = open_database(postgres_server.create_database("migrated"))
    migrate(database)
    database.close()
    return "migrated"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database that others are copied from."""
    file = tmp_path_factory.mktemp("migrated") / "matoolkit.db"
    database = open_database(in_file(file))
    migrate(database)
    database.close()
    return file


@pytest.fixture
def sqlite_database(tmp_path: Path, migrated_file: Path) -> Iterator[Database]:
    """A SQLite database with our tables and nothing in them."""
    file = tmp_path / "matoolkit.db"
    shutil.copyfile(migrated_file, file)
    database = open_database(in_file(file))
    yield database
    database.close()


@pytest.fixture
def postgres_database(postgres_server: PostgresServer, migrated_postgres: str) -> Iterator[Database]:
    """A PostgreSQL database with our tables and nothing in them."""
    name = f"test_{next(_numbers)}"
    database = open_database(postgres_server.create_database(name, template=migrated_postgres))
    yield database
    database.close()
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    """A database of each kind with our tables and nothing in them: whoever asks for it is tested on both."""
    fixture = {"sqlite": "sqlite_database", "postgresql": "postgres_database"}[request.param]
    found: Database = request.getfixturevalue(fixture)
    return found


@pytest.fixture(scope="session")
def kept_sqlite(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Database]:
    """One SQLite database for many tests, each of which empties it, so that its statements stay ready."""
    file = tmp_path_factory.mktemp("kept") / "matoolkit.db"
    shutil.copyfile(migrated_file, file)
    database = open_database(in_file(file), durable=False)
    yield database
    database.close()


@pytest.fixture(scope="session")
def kept_postgres(postgres_server: PostgresServer, migrated_postgres: str) -> Iterator[Database]:
    """The same on PostgreSQL."""
    database = open_database(postgres_server.create_database("kept", template=migrated_postgres))
    yield database
    database.close()


@pytest.fixture
def emptied_sqlite(kept_sqlite: Database) -> Iterator[Database]:
    """The kept SQLite database, with nothing in it."""
    yield kept_sqlite
    _empty(kept_sqlite)


@pytest.fixture
def emptied_postgres(kept_postgres: Database) -> Iterator[Database]:
    """The kept PostgreSQL database, with nothing in it."""
    yield kept_postgres
    _empty(kept_postgres)


@pytest.fixture(params=["sqlite", "postgresql"])
def kept_database(request: pytest.FixtureRequest) -> Database:
    """As `database`, where no test changes the schema: many small tests on it are quicker."""
    fixture = {"sqlite": "emptied_sqlite", "postgresql": "emptied_postgres"}[request.param]
    found: Database = request.getfixturevalue(fixture)
    return found


def _empty(database: Database) -> None:
    """Nothing is in any table; ids go on where they were, as they do in life."""
    tables = [table.name for table in reversed(metadata.sorted_tables)]
    with database.transaction() as tx:
        if tx.dialect == "postgresql":
            tx.connection.exec_driver_sql(f"TRUNCATE {', '.join(tables)}")
        else:
            for table in tables:
                tx.connection.exec_driver_sql(f"DELETE FROM {table}")
