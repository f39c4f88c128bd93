"""A wave through every part as a process, with secrets planted wherever one is given; then everything is searched."""

from __future__ import annotations

import sqlite3
import urllib.request
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import requests

from matoolkit.local_key import load_local_key
from matoolkit.simulation.tenant import Application, SimulatedTenant, TenantFault, make_client_certificate
from tests.hosts.processes import Running
from tests.hosts.test_services import ended, until_at_rest
from tests.worker.processes import APP_ID, WorkerProcess, tenant_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from devtools.postgres import PostgresServer
    from matoolkit.store.database import Database

PEOPLE = 6
DATABASE, PFX, CLIENT = "planted-database-pw-5150", "planted-pfx-pw-2711", "planted-client-secret-8086"
FIRST, WEAK, KEY = "Planted-First-Passw0rd-1138", "plantedweakpassword", "planted-api-key/42 + ä"
CUSTOM = '''
from matoolkit.worker import FunctionContext, function


@function("Use-Key", secrets=("ApiKey",))
def use_key(ctx: FunctionContext, ApiKey: str, Person: str, Fail: bool = False) -> dict:
    """Does with a key what should not be done with it."""
    ctx.logger.warning("%s goes with %s", Person, ApiKey)
    if Fail:
        raise RuntimeError(f"{Person} is refused, with {ApiKey!r}") from ValueError(ApiKey)
    return {"Person": Person, "Echo": f"<{ApiKey}>"}
'''
RUNBOOK = """
name: wave
data_source:
  type: sql
  connection: SQL_PEOPLE
  query: SELECT Name, MovesAt FROM people
  primary_key: Name
  batch_time_column: MovesAt
retry: {max_retries: 1, interval: 1s}
phases:
  - name: move
    offset: T-0
    steps:
      - {name: make, worker_id: worker-01, function: New-EntraUser, output_params: {UserId: Id},
         params: {DisplayName: "{{Name}}", UserPrincipalName: "{{Name}}@target.example",
                  Password: "{{secret:FIRST}}"}}
      - {name: make-another, worker_id: worker-01, function: New-EntraUser,
         params: {DisplayName: "{{Name}}", UserPrincipalName: "{{Name}}.adm@target.example"}}
      - {name: use, worker_id: worker-01, function: Use-Key, output_params: {Echo: Echo},
         params: {Person: "{{Name}}", ApiKey: "{{secret:KEY}}"}}
      - {name: fail, worker_id: worker-01, function: Use-Key, on_failure: undo,
         params: {Person: "{{Name}}", ApiKey: "{{secret:KEY}}", Fail: "true"}}
rollbacks:
  undo:
    - {name: make-weak, worker_id: worker-01, function: New-EntraUser,
       params: {DisplayName: "{{Echo}}", UserPrincipalName: "{{Name}}.x@target.example", Password: "{{secret:WEAK}}"}}
"""


@pytest.fixture
def known() -> set[str]:
    """What the tenant was shown: passwords that somebody chose or drew, tokens, assertions."""
    return set()


@pytest.fixture
def server(known: set[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedTenant]:
    with SimulatedTenant(seed=1) as server:
        usual = server.tenant.before_acting

        def listen(call: Any) -> Any:
            found = {call.bearer, call.form.get("client_assertion", ""), call.form.get("client_secret", "")}
            # Of a long one the end says enough, and is found also where the beginning was cut off.
            known.update(each[-60:] for each in found if each)
            if b'"password"' in call.body:
                known.add(call.body.partition(b'"password":"')[2].partition(b'"')[0].decode())
            return usual(call)

        monkeypatch.setattr(server.tenant, "before_acting", listen)
        yield server


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts processes, none of which outlives the test."""
    started: list[Running] = []

    def begin(*command: str, **environment: str) -> Running:
        started.append(Running(list(command), tmp_path, {"MATOOLKIT_LOG_LEVEL": "debug", **environment}))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


def people(file: Path) -> str:
    with closing(sqlite3.connect(file)) as source, source:
        source.execute("CREATE TABLE people (Name TEXT, MovesAt TEXT)")
        now = datetime.now(UTC).isoformat()
        source.executemany("INSERT INTO people VALUES (?, ?)", [(f"visible{n}", now) for n in range(PEOPLE)])
    return f"sqlite:///{file}"


def everything_in(database: Database) -> str:
    with database.reading() as tx:
        tables = [
            name
            for (name,) in tx.connection.exec_driver_sql("SELECT tablename FROM pg_tables WHERE schemaname='public'")
        ]
        return "\n".join(
            str(row[0])
            for table in tables
            for row in tx.connection.exec_driver_sql(f'SELECT each::text FROM "{table}" AS each')
        )


def files_of(folder: Path) -> Iterator[bytes]:
    """Everything in the files of a server that runs, and may remove one at any time."""
    for each in folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):
            yield each.read_bytes()


def test_of_a_whole_wave_no_secret_is_found_anywhere(
    postgres_database: Database,
    postgres_server: PostgresServer,
    tmp_path: Path,
    start: Callable[..., Running],
    *,
    server: SimulatedTenant,
    known: set[str],
) -> None:
    certificate = make_client_certificate()
    server.tenant.register(Application(client_id=APP_ID, certificates=[certificate.certificate_pem]))
    (tmp_path / "worker.pfx").write_bytes(certificate.pfx(PFX))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "keys.py").write_text(CUSTOM)
    plain = postgres_database.engine.url
    url = plain.set(password=DATABASE).render_as_string(hide_password=False)
    source = people(tmp_path / "people.db")
    shared = {"MATOOLKIT_DATABASE_URL": url, "SQL_PEOPLE": source}
    scheduler = start("scheduler", MATOOLKIT_SCHEDULER_TICK="1s", Scheduler__PollTick="1s", **shared)
    orchestrator = start("orchestrator", **shared)
    api = start("api", AdminApi__Port="0", MATOOLKIT_DATA=str(tmp_path), **shared)
    server.tenant.fault(TenantFault.UNAUTHORIZED, times=1, skip=2)
    server.tenant.fault(TenantFault.CUT_AFTER_ACTING, times=1, skip=4)
    server.tenant.fault(TenantFault.THROTTLED, times=1, skip=6, retry_after=1)
    worker = WorkerProcess(
        url,
        tmp_path,
        {
            **tenant_settings(server),
            "APP_CERT_PATH": str(tmp_path / "worker.pfx"),
            "APP_CERT_PASSWORD": PFX,
            "APP_CLIENT_SECRET": CLIENT,
            "MATOOLKIT_SECRET_FIRST": FIRST,
            "MATOOLKIT_SECRET_WEAK": WEAK,
            "MATOOLKIT_SECRET_KEY": KEY,
            "CUSTOM_FUNCTIONS_PATH": str(tmp_path / "mine"),
            "MATOOLKIT_LOG_LEVEL": "debug",
        },
    )
    try:
        for each in (scheduler, orchestrator):
            each.until("ready")
        api_url = api.until("listens at")[0].split()[-1]
        port = worker.ready()
        token = load_local_key(tmp_path).token("anna", ["Admin"], datetime.now(UTC), timedelta(minutes=5))
        asked = requests.Session()
        asked.headers["Authorization"] = f"Bearer {token}"
        published = asked.post(f"{api_url}/api/runbooks", json={"name": "wave", "yamlContent": RUNBOOK}, timeout=30)
        assert published.status_code == 200, published.text
        batch = ended(asked, api_url)
        until_at_rest(postgres_database)
        answers = [
            asked.get(f"{api_url}/api/{path}", timeout=30).text
            for path in (f"batches/{batch['id']}/{each}" for each in ("", "members", "steps", "phases"))
        ]
        answers += [
            asked.get(f"{api_url}/api/{path}", timeout=30).text for path in ("audit", "dead-letters", "runbooks")
        ]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            health = answer.read().decode()
    finally:
        worker.kill()
    for each in (scheduler, orchestrator, api):
        each.kill()
    for each in (scheduler, orchestrator, api, worker):
        each.read_on()
    with postgres_database.transaction() as tx:
        rows = everything_in(postgres_database)
        tx.connection.exec_driver_sql("CHECKPOINT")
    files = b"\n".join(files_of(postgres_server.data))
    of_tenant = set(known)
    known |= {DATABASE, PFX, CLIENT, FIRST, WEAK, KEY, token[-60:]}
    known |= {line for line in certificate.pem.decode().splitlines() if len(line) == 64}
    check_found_nowhere(
        {"rows": rows, "worker": worker.said, "scheduler": scheduler.said, "orchestrator": orchestrator.said,
         "api": api.said, "answers": "\n".join(answers), "health": health, "postgresql": postgres_server.log},
        files,
        known,
    )  # fmt: skip
    # What was planted was used, and what is no secret is found: the search can fail.
    assert {FIRST, WEAK} < of_tenant
    # Passwords that were drawn, tokens, assertions.
    assert len(of_tenant) >= 2 + PEOPLE + 2
    for where in (rows, worker.said, answers[2], files.decode(errors="replace")):
        assert "visible3" in where
    assert "visible3 goes with ***" in worker.said
    assert "is refused, with '***'" in rows
    assert server.tenant.records.count("POST /users", acted=True) == 2 * PEOPLE


def check_found_nowhere(texts: dict[str, str], files: bytes, secrets: set[str]) -> None:
    found = [f"{secret!r} in {where}" for where, text in texts.items() for secret in secrets if secret in text]
    found += [f"{secret!r} in a file of the database" for secret in secrets if secret.encode() in files]
    assert found == []
