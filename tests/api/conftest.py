"""A live server for each module of tests, on each kind of database where that matters."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from tests.api.live import Live

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from devtools.postgres import PostgresServer


@pytest.fixture(scope="module")
def live_sqlite(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    shutil.copyfile(migrated_file, folder / "matoolkit.db")
    database = open_database(in_file(folder / "matoolkit.db"), durable=False)
    live = Live(database, folder)
    yield live
    live.close()
    database.close()


@pytest.fixture(scope="module")
def live_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, migrated_postgres: str
) -> Iterator[Live]:
    database = open_database(postgres_server.create_database("live", template=migrated_postgres))
    live = Live(database, tmp_path_factory.mktemp("live"))
    yield live
    live.close()
    database.close()
    postgres_server.drop_database("live")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def anywhere(request: pytest.FixtureRequest) -> Live:
    """On each kind of database: for what the database has a say in."""
    found: Live = request.getfixturevalue({"sqlite": "live_sqlite", "postgresql": "live_postgres"}[request.param])
    return found


@pytest.fixture
def live(live_sqlite: Live) -> Live:
    """On SQLite, unless a module says otherwise."""
    return live_sqlite
