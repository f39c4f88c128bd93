"""Workers as processes: signalled, blocked and killed, with nothing lost and nothing told twice."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.worker.crashes import Crashes
from tests.worker.processes import SECRET, WorkerProcess
from tests.worker.workplace import Workplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matoolkit.messages import WorkerJob
    from matoolkit.store.database import Database

PLACES = 64


@pytest.fixture
def url(postgres_database: Database) -> str:
    return postgres_database.engine.url.render_as_string(hide_password=False)


@pytest.fixture
def workplace(postgres_database: Database) -> Iterator[Workplace]:
    made = Workplace(postgres_database)
    yield made
    made.bus.close()


@pytest.fixture
def start(url: str, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """Starts workers, none of which outlives the test."""
    started: list[WorkerProcess] = []

    def begin(**settings: str) -> WorkerProcess:
        started.append(WorkerProcess(url, tmp_path, settings))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


def test_it_starts_in_eight_phases_works_tells_its_health_and_ends(
    workplace: Workplace, start: Callable[..., WorkerProcess]
) -> None:
    workplace.send(
        workplace.job("Make-Thing", {"Name": "one"}), workplace.job("Tell-Secret", {"Password": "Open7Sesame"})
    )
    worker = start(IDLE_TIMEOUT_SECONDS="1")
    port = worker.ready()
    made, told = workplace.results(2)
    assert (made.result, told.result) == ({"Id": "one"}, {"Password": "***"})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        body = json.load(answer)
    assert (body["status"], body["workerId"], body["maxParallelism"]) == ("healthy", "worker-01", PLACES)
    assert worker.exit_code() == 0
    said = "\n".join(worker.lines)
    for phase, name in enumerate(
        (
            "configuration",
            "logging",
            "sign-in identity",
            "certificate",
            "bus",
            "tenant clients",
            "functions",
            "job loop",
        ),
        1,
    ):
        assert f"[{phase}/8] {name}: " in said
    assert "the password is ***" in said
    assert worker.lines[-1].endswith("ended: idle")
    for secret in (SECRET, "Open7Sesame"):
        assert secret not in said


def test_told_to_end_with_every_place_taken_it_loses_nothing_and_tells_nothing_twice(
    workplace: Workplace, start: Callable[..., WorkerProcess]
) -> None:
    grace = 5
    jobs = [workplace.job("Wait-Long", {"Seconds": "1.5" if n % 2 else "60"}) for n in range(PLACES + 10)]
    workplace.send(*jobs)
    worker = start(SHUTDOWN_GRACE_SECONDS=str(grace))
    worker.until("begun", PLACES)
    began = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == 0
    assert time.monotonic() - began <= grace
    reported = {each.job_id for each in workplace.results(PLACES // 2)}
    assert workplace.no_results()
    left = workplace.take()
    assert {each.message_id for each in left} | reported == {each.job_id for each in jobs}
    assert {each.message_id for each in left} & reported == set()
    assert sorted(each.delivery_count for each in left) == [1] * 10 + [2] * (PLACES // 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(
    workplace: Workplace, start: Callable[..., WorkerProcess], number: signal.Signals
) -> None:
    workplace.send(workplace.job("Wait-Long", {"Seconds": "60"}))
    worker = start()
    worker.until("begun")
    worker.signal(number)
    worker.until("no more jobs are taken")
    began = time.monotonic()
    worker.signal(number)
    assert worker.exit_code() == 0
    assert time.monotonic() - began < 3
    assert [each.delivery_count for each in workplace.take()] == [2]


def test_a_worker_that_a_function_blocks_ends_in_time_and_gives_its_jobs_back(
    workplace: Workplace, start: Callable[..., WorkerProcess]
) -> None:
    workplace.send(workplace.job("Block-Everything"))
    worker = start(SHUTDOWN_GRACE_SECONDS="4")
    worker.until("begun")
    began = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == 1
    assert time.monotonic() - began <= 4
    assert "the worker does not end by itself" in "\n".join(worker.lines)
    assert [each.delivery_count for each in workplace.take()] == [2]


def test_it_needs_the_tables_of_the_bus_and_no_others(workplace: Workplace, url: str, tmp_path: Path) -> None:
    with workplace.database.transaction() as tx:
        tables = [
            name
            for (name,) in tx.connection.exec_driver_sql(
                "SELECT tablename FROM pg_tables WHERE tablename LIKE 'bus!_%%' ESCAPE '!'"
            )
        ]
        tx.connection.exec_driver_sql("CREATE ROLE bus_only LOGIN")
        tx.connection.exec_driver_sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(tables)} TO bus_only")
        tx.connection.exec_driver_sql("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO bus_only")
    workplace.send(workplace.job("Make-Thing", {"Name": "one"}))
    worker = WorkerProcess(url.replace("postgres@", "bus_only@"), tmp_path)
    try:
        worker.ready()
        assert workplace.result().status == "success"
    finally:
        worker.kill()
        with workplace.database.transaction() as tx:
            tx.connection.exec_driver_sql("DROP OWNED BY bus_only")
            tx.connection.exec_driver_sql("DROP ROLE bus_only")


def things(workplace: Workplace, count: int, seconds: float) -> list[WorkerJob]:
    """Jobs whose effects are counted; every tenth must not be done twice."""
    return [
        workplace.job(
            "Send-Letter" if n % 10 == 0 else "Make-Thing", {"Name": f"{n}", "Seconds": f"{seconds * (n % 5)}"}
        )
        for n in range(count)
    ]


def killed_at_random(crashes: Crashes, kills: int, count: int, seconds: float) -> None:
    jobs = things(crashes.workplace, count, seconds)
    results = crashes.run(jobs, kills)
    made = {file.name: str(file.readlink()) for file in crashes.folder.iterdir()}
    assert [name for name in made if name.startswith("twice")] == []
    unknown = 0
    for job in jobs:
        result = results[job.job_id]
        name = str(job.parameters["Name"])
        if job.function_name == "Make-Thing":
            assert result.status == "success", result
            assert made[name] == job.job_id
        elif result.status == "failure":
            assert result.error is not None
            assert result.error.type == "OutcomeUnknown"
            unknown += 1
        else:
            assert made[f"letter-{name}"] == job.job_id
    print(f"{count} jobs, {kills} kills: {unknown} of {count // 10} that cannot be repeated have an unknown outcome")


def test_killed_at_random_points_every_job_has_one_result(workplace: Workplace, url: str, tmp_path: Path) -> None:
    killed_at_random(Crashes(workplace, url, tmp_path), kills=5, count=1000, seconds=0.03)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_killed_a_hundred_times_every_job_has_one_result(
    workplace: Workplace, url: str, tmp_path: Path, part: int
) -> None:
    killed_at_random(Crashes(workplace, url, tmp_path, seed=part), kills=25, count=500, seconds=0.025)
