"""A wave on each kind of database, held to the invariants when its test has ended.

The databases are emptied after each test and kept, and with them the statements that are ready.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.schema import metadata
from tests.orchestrator.driver import Wave
from tests.orchestrator.rivals import Duel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from devtools.postgres import PostgresServer
    from matoolkit.store.database import Database


@pytest.fixture(scope="session")
def kept_sqlite(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Database]:
    file = tmp_path_factory.mktemp("waves") / "matoolkit.db"
    shutil.copyfile(migrated_file, file)
    database = open_database(in_file(file), durable=False)
    yield database
    database.close()


@pytest.fixture(scope="session")
def kept_postgres(postgres_server: PostgresServer, migrated_postgres: str) -> Iterator[Database]:
    database = open_database(postgres_server.create_database("waves", template=migrated_postgres))
    yield database
    database.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    name = {"sqlite": "kept_sqlite", "postgresql": "kept_postgres"}[request.param]
    database: Database = request.getfixturevalue(name)
    yield database
    empty(database)


@pytest.fixture
def wave(database: Database) -> Iterator[Wave]:
    wave = Wave(database)
    yield wave
    wave.check()
    wave.bus.close()


@pytest.fixture
def duel(wave: Wave) -> Iterator[Duel]:
    duel = Duel(wave)
    yield duel
    duel.close()


def empty(database: Database) -> None:
    """Nothing is in any table; ids go on where they were, as they do in life."""
    tables = [table.name for table in reversed(metadata.sorted_tables)]
    with database.transaction() as tx:
        if tx.dialect == "postgresql":
            tx.connection.exec_driver_sql(f"TRUNCATE {', '.join(tables)}")
        else:
            for table in tables:
                tx.connection.exec_driver_sql(f"DELETE FROM {table}")
