"""Scheduler, orchestrator, worker and API as processes of their own on one PostgreSQL."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import requests
from click.testing import CliRunner

from matoolkit.cli.main import main
from matoolkit.local_key import load_local_key
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from tests.hosts import waves
from tests.hosts.processes import SECONDS, Running
from tests.worker.processes import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matoolkit.store.database import Database

PEOPLE = 30


@pytest.fixture
def url(postgres_database: Database) -> str:
    return postgres_database.engine.url.render_as_string(hide_password=False)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts processes, none of which outlives the test."""
    started: list[Running] = []

    def begin(*command: str, **environment: str) -> Running:
        started.append(Running(list(command), tmp_path, environment))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


def test_parts_apart_take_a_wave_from_its_source_to_its_end(
    postgres_database: Database, url: str, tmp_path: Path, start: Callable[..., Running]
) -> None:
    source = waves.people(tmp_path / "people.db", PEOPLE)
    scheduler = start(
        "scheduler",
        Scheduler__SqlConnectionString=url,
        MATOOLKIT_SCHEDULER_TICK="1s",
        Scheduler__PollTick="1s",
        SQL_PEOPLE=source,
    )
    orchestrators = [
        start("orchestrator", Orchestrator__SqlConnectionString=url, Orchestrator__WorkerIds="worker-01, worker-02"),
        start("orchestrator", "--database-url", url),
    ]
    api = start("api", MATOOLKIT_DATABASE_URL=url, AdminApi__Port="0", MATOOLKIT_DATA=str(tmp_path), SQL_PEOPLE=source)
    worker = WorkerProcess(
        url, tmp_path, {"CUSTOM_FUNCTIONS_PATH": str(waves.FUNCTIONS), "COUNTED": str(tmp_path / "counted")}
    )
    try:
        for each in (scheduler, *orchestrators):
            each.until("ready")
        api_url = api.until("listens at")[0].split()[-1]
        worker.ready()
        token = load_local_key(tmp_path).token("anna", ["Admin"], datetime.now(UTC), timedelta(minutes=5))
        asked = requests.Session()
        asked.headers["Authorization"] = f"Bearer {token}"
        published = asked.post(
            f"{api_url}/api/runbooks", json={"name": "wave", "yamlContent": waves.RUNBOOK}, timeout=30
        )
        assert published.status_code == 200, published.text
        batch = ended(asked, api_url)
        members = asked.get(f"{api_url}/api/batches/{batch['id']}/members?limit=100", timeout=30).json()["members"]
        found = waves.expected(0)
        found.update(each["status"] for each in members)
        assert (batch["status"], found) == ("completed", waves.expected(PEOPLE))
        until_at_rest(postgres_database)
        parts = (scheduler, *orchestrators, api, worker)
        for each in parts:
            each.signal(signal.SIGTERM)
        assert [each.exit_code() for each in parts] == [0] * len(parts), [each.said for each in parts]
    finally:
        worker.kill()


def ended(asked: requests.Session, url: str) -> dict[str, Any]:
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        (batch,) = asked.get(f"{url}/api/batches", timeout=30).json()["batches"] or [{"status": "nothing yet"}]
        if batch["status"] in ("completed", "failed", "cancelled"):
            return dict(batch)
        time.sleep(0.2)
    raise AssertionError("the wave did not end")


def until_at_rest(database: Database) -> None:
    ends = time.monotonic() + SECONDS
    while True:
        with database.reading() as tx:
            violations = check(tx, (*ALWAYS, *AT_REST))
        if not violations:
            return
        assert time.monotonic() < ends, violations
        time.sleep(0.2)


def test_ctrl_c_is_as_good_as_being_told(url: str, start: Callable[..., Running]) -> None:
    scheduler = start("scheduler", MATOOLKIT_DATABASE_URL=url)
    scheduler.until("ready")
    scheduler.signal(signal.SIGINT)
    assert scheduler.exit_code() == 0
    assert "SIGINT" in scheduler.said


@pytest.mark.parametrize("service", ["scheduler", "orchestrator"])
def test_what_cannot_be_shared_is_refused(service: str, tmp_path: Path, postgres_url: str) -> None:
    setting = f"{service.capitalize()}__SqlConnectionString"
    assert f"set {setting} or MATOOLKIT_DATABASE_URL" in refused(service)
    assert "`matoolkit up`" in refused(service, MATOOLKIT_DATABASE_URL=f"sqlite:///{tmp_path}/x.db")
    assert "`matoolkit migrate`" in refused(service, **{setting: postgres_url})


@pytest.mark.parametrize(
    ("service", "settings"),
    [
        ("scheduler", {"Scheduler__Tick": "often", "Scheduler__OrchestratorTopicName": "a b"}),
        ("orchestrator", {"Orchestrator__WorkerIds": "a b", "Orchestrator__WorkerJobsTopicName": "*"}),
    ],
)
def test_settings_that_are_wrong_are_all_named(service: str, settings: dict[str, str]) -> None:
    told = refused(service, **settings, MATOOLKIT_LOG_LEVEL="loud")
    for name in (*settings, "MATOOLKIT_LOG_LEVEL"):
        assert name in told
    for value in settings.values():
        assert f"{value}\n" not in told


def refused(service: str, **environment: str) -> str:
    result = CliRunner().invoke(main, [service], env=environment)
    assert result.exit_code == 1, result.output
    return result.stderr
