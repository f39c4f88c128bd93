"""`matoolkit up` as a process: started, a second one, ended, killed, and everything it must refuse."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from matoolkit.cli.main import main
from matoolkit.simulation.invariants import ALWAYS, AT_REST, check
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from tests.hosts import waves
from tests.hosts.ups import UpProcess, members, over, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matoolkit.store.database import Database

PEOPLE = 40
STANDARD = """
name: wave
data_source: {type: sql, connection: SQL_PEOPLE, query: "SELECT Number, MovesAt FROM people", primary_key: Number,
  batch_time_column: MovesAt}
phases:
  - name: move
    offset: T-0
    steps:
      - {name: make, worker_id: worker-01, function: New-EntraUser, output_params: {Made: Id},
         params: {DisplayName: "Person {{Number}}", UserPrincipalName: "person{{Number}}@target.example"}}
      - {name: address, worker_id: worker-02, function: Set-ExchangePrimaryEmail,
         params: {Identity: "person{{Number}}@target.example", NewPrimaryEmail: "p{{Number}}@target.example"}}
"""
LONG = """
name: wave
data_source: {type: sql, connection: SQL_PEOPLE, query: "SELECT Number, MovesAt FROM people", primary_key: Number,
  batch_time_column: MovesAt}
phases:
  - name: move
    offset: T-0
    steps:
      - {name: make, worker_id: worker-01, function: Count-Begin, params: {Number: "{{Number}}", Seconds: "60"}}
"""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., UpProcess]]:
    """Starts it; none outlives the test."""
    started: list[UpProcess] = []

    def begin(*options: str, **environment: str) -> UpProcess:
        started.append(UpProcess(tmp_path, *options, environment=environment))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


def test_it_starts_refuses_a_second_one_ends_and_goes_on_where_it_was(
    up: Callable[..., UpProcess], tmp_path: Path
) -> None:
    waves.people(tmp_path / "people.db", PEOPLE)
    first = up()
    with first.ready() as client:
        client.publish_runbook("wave", waves.RUNBOOK)
        until((tmp_path / "counted").exists)
        second = up()
        assert second.exit_code() == 1
        assert f"process {first.process.pid}, {client.url}" in second.said
        first.signal(signal.SIGTERM)
        assert first.exit_code() == 0, first.said
    assert "signs in by itself" in first.said
    assert "14 standard functions, 5 of your own" in first.said
    third = up()
    with third.ready() as client:
        batch = until(lambda: over(client))
        found = Counter(each["status"] for each in members(client, batch["id"]))
    assert (batch["status"], found) == ("completed", waves.expected(PEOPLE))
    third.signal(signal.SIGINT)
    assert third.exit_code() == 0
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "data").iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
    assert_sound(tmp_path)


def test_without_a_tenant_a_standard_function_says_what_is_not_configured(
    up: Callable[..., UpProcess], tmp_path: Path
) -> None:
    waves.people(tmp_path / "people.db", 1)
    with up().ready() as client:
        client.publish_runbook("wave", STANDARD)
        batch = until(lambda: over(client))
        (step,) = client.steps(batch["id"], status="failed")["steps"]
    assert batch["status"] == "failed"
    for name in ("TARGET_TENANT_ID", "APP_ID", "CERT_NAME"):
        assert name in step["errorMessage"]


def test_the_simulated_tenant_survives_a_kill_as_everything_else_does(
    up: Callable[..., UpProcess], tmp_path: Path
) -> None:
    waves.people(tmp_path / "people.db", PEOPLE)
    process = up("--simulated-tenant")
    with process.ready() as client:
        client.publish_runbook("wave", STANDARD)
        until(lambda: succeeded(client) >= 3)
    process.kill()
    process = up("--simulated-tenant")
    with process.ready() as client:
        batch = until(lambda: over(client))
        found = members(client, batch["id"])
    assert Counter(each["status"] for each in found) == {"completed": PEOPLE}
    # Each was made once, and is still what was made then.
    assert len({each["workerData"]["Made"] for each in found}) == PEOPLE
    assert_sound(tmp_path)


def succeeded(client: Any) -> int:
    batch = next(iter(client.batches()["batches"]), None)
    return 0 if batch is None else int(client.steps(batch["id"], status="succeeded", limit=1)["total"])


def test_a_second_signal_ends_it_at_once(up: Callable[..., UpProcess], tmp_path: Path) -> None:
    waves.people(tmp_path / "people.db", 3)
    process = up()
    with process.ready() as client:
        client.publish_runbook("wave", LONG)
        until((tmp_path / "counted").exists)
        process.signal(signal.SIGTERM)
        process.until("a second signal ends at once")
        process.signal(signal.SIGTERM)
        assert process.exit_code(timeout=10) == 1


def test_what_does_not_end_in_its_grace_period_is_given_up(up: Callable[..., UpProcess], tmp_path: Path) -> None:
    waves.people(tmp_path / "people.db", 3)
    process = up(SHUTDOWN_GRACE_SECONDS="1")
    with process.ready() as client:
        client.publish_runbook("wave", LONG)
        until((tmp_path / "counted").exists)
    process.signal(signal.SIGTERM)
    # The function is in a thread, which cannot be ended; its job has been given back.
    assert process.exit_code(timeout=30) == 0, process.said
    assert locked(tmp_path) == 0


def test_it_works_on_another_database(
    up: Callable[..., UpProcess], postgres_database: Database, tmp_path: Path
) -> None:
    waves.people(tmp_path / "people.db", 7)
    url = postgres_database.engine.url.render_as_string(hide_password=False)
    process = up(MATOOLKIT_DATABASE_URL=url, WORKER_ID="worker-01")
    with process.ready() as client:
        client.publish_runbook("wave", waves.RUNBOOK)
        batch = until(lambda: over(client))
    assert batch["status"] == "completed"
    assert not (tmp_path / "data" / "matoolkit.db").exists()
    assert postgres_database.engine.url.password is None or postgres_database.engine.url.password not in process.said


def test_who_cannot_sign_in_to_the_tenant_does_not_start(tmp_path: Path) -> None:
    told = refused(
        tmp_path,
        TARGET_TENANT_ID="contoso.example",
        APP_ID="66666666-7777-8888-9999-000000000000",
        APP_CLIENT_SECRET="Planted-Client-Secret-79",
        AUTHORITY_URL="https://localhost:9",
    )
    assert "the tenant (contoso.example, with client secret" in told
    assert "cannot be signed in to" in told
    assert "Planted" not in told


def test_a_file_elsewhere_is_held_as_the_folder_is(up: Callable[..., UpProcess], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    with up(MATOOLKIT_DATABASE_URL=url).ready():
        told = refused(tmp_path / "another", MATOOLKIT_DATABASE_URL=url)
    assert f"works on the database {tmp_path / 'elsewhere.db'}" in told


def test_a_database_without_topics_is_refused(tmp_path: Path) -> None:
    told = refused(tmp_path, MATOOLKIT_DATABASE_URL="mssql+mssqlpython://user:word@server.example/waves")
    assert "server.example" in told
    assert "PostgreSQL" in told


def test_a_port_that_is_taken_is_named(up: Callable[..., UpProcess]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = up("--port", str(port))
        assert process.exit_code() == 1
    assert f"cannot listen at 127.0.0.1:{port}" in process.said


def test_settings_that_are_wrong_are_all_named_at_once(tmp_path: Path) -> None:
    told = refused(
        tmp_path,
        MAX_PARALLELISM="many",
        AdminApi__Port="x",
        TARGET_TENANT_ID="contoso.example",
        MAX_RETRY_COUNT="few",
        WORKER_ID="no spaces here",
    )
    for name in ("MAX_PARALLELISM", "AdminApi__Port", "APP_ID is missing", "MAX_RETRY_COUNT", "WORKER_ID"):
        assert told.count(name) == 1, (name, told)
    assert not (tmp_path / "data").exists()


def test_two_tenants_are_refused(tmp_path: Path) -> None:
    assert "TARGET_TENANT_ID" in refused(tmp_path, "--simulated-tenant", TARGET_TENANT_ID="contoso.example")


def test_a_folder_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = refused(tmp_path, "--data", str(tmp_path / "file" / "data"))
    assert f"the data folder {tmp_path / 'file' / 'data'} cannot be made" in told


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_is_read_only_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    assert f"the folder {tmp_path / 'data'} cannot be written to" in refused(tmp_path)


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, "-m", "matoolkit", "up", "--port", "0", "--data", str(tmp_path / "data")])
    limited = f"trap '' XFSZ; ulimit -f 40; exec {command}"
    ended = subprocess.run(
        ["bash", "-c", limited], capture_output=True, text=True, timeout=90, check=False, cwd=tmp_path
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "Error: " in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize("option", ["--tick", "--poll-tick"])
def test_durations_are_written_as_in_runbooks(option: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["up", "--data", str(tmp_path / "data"), option, "5 minutes"])
    assert result.exit_code == 2
    assert "30s, 5m, 1h or 1d" in result.stderr


def refused(folder: Path, *options: str, **environment: str) -> str:
    result = CliRunner().invoke(main, ["up", "--data", str(folder / "data"), "--port", "0", *options], env=environment)
    assert result.exit_code == 1, result.output
    return result.stderr


def assert_sound(folder: Path) -> None:
    database = open_database(in_file(folder / "data" / "matoolkit.db"))
    with database.reading() as tx:
        assert check(tx, (*ALWAYS, *AT_REST)) == []
    database.close()


def locked(folder: Path) -> int:
    database = open_database(in_file(folder / "data" / "matoolkit.db"))
    with database.transaction() as tx:
        now = "(julianday('now') - 2440587.5) * 86400000"
        found = tx.connection.exec_driver_sql(
            f"SELECT count(*) FROM bus_messages WHERE delivery_count > 0 AND available_at > {now}"
        ).scalar_one()
    database.close()
    return int(found)
