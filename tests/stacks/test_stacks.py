"""The same wave on three stacks, and on the third once more while everything goes wrong: one outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from matoolkit.store.migrate import migrate
from tests.bus.service_bus_line import broken_sockets_closed
from tests.hosts.processes import Running
from tests.hosts.ups import UpProcess
from tests.stacks import faults
from tests.stacks.azure import Azure
from tests.stacks.wave import WORKERS, Wave, expected
from tests.worker.processes import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack
    from pathlib import Path

    from matoolkit.store.database import Database


@pytest.fixture
def url(postgres_database: Database) -> str:
    return postgres_database.engine.url.render_as_string(hide_password=False)


@pytest.fixture
def sqlite_home(tmp_path: Path) -> Iterator[Database]:
    """The database that `up` will find in its data folder."""
    (tmp_path / "data").mkdir(mode=0o700)
    database = open_database(in_file(tmp_path / "data" / "matoolkit.db"))
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield stack


def test_sqlite_and_the_embedded_bus_in_one_process(sqlite_home: Database, tmp_path: Path, closing: ExitStack) -> None:
    wave = Wave(sqlite_home, tmp_path)
    up = UpProcess(tmp_path, environment=wave.settings)
    closing.callback(up.kill)
    assert wave.run(lambda: up.lines) == expected()


def test_postgresql_and_the_embedded_bus_with_two_orchestrators_and_two_workers(
    postgres_database: Database, url: str, tmp_path: Path, closing: ExitStack
) -> None:
    wave = Wave(postgres_database, tmp_path)
    settings = {**wave.settings, "MATOOLKIT_DATABASE_URL": url, "Scheduler__Tick": "1s", "Scheduler__PollTick": "1s"}
    settings["Orchestrator__WorkerIds"] = ",".join(WORKERS)
    parts = [Running([each], tmp_path, settings) for each in ("orchestrator", "orchestrator", "scheduler")]
    own = [{**wave.settings, "WORKER_ID": each, "MAX_PARALLELISM": "16"} for each in WORKERS]
    parts += [WorkerProcess(url, tmp_path, each) for each in own]
    for part in parts:
        closing.callback(part.kill)
    assert wave.run(lambda: [each.lines for each in parts]) == expected()


@pytest.mark.parametrize("disturbed", [False, True], ids=["undisturbed", "disturbed"])
def test_postgresql_and_service_bus_with_the_functions_driving(
    postgres_database: Database,
    url: str,
    tmp_path: Path,
    closing: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    *,
    disturbed: bool,
) -> None:
    closing.enter_context(broken_sockets_closed())
    deaths = faults.kill_relays(monkeypatch) if disturbed else None
    wave = Wave(postgres_database, tmp_path)
    azure = Azure(url, tmp_path, wave.settings)
    closing.callback(azure.stop)
    disturbance = faults.Disturbed(azure.namespace) if disturbed else None
    if disturbance is not None:
        closing.callback(disturbance.stop)
    assert wave.run(azure.told) == expected()
    assert any(each.calls.get("orchestrator_results") for each in azure.hosts)
    if disturbance is not None and deaths is not None:
        assert disturbance.kills == 2
        assert (deaths.before, deaths.after) == (3, 3)
