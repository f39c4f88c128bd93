"""Every route wants a token, and most of what changes anything wants a role: all of them, through real HTTP."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.api.sign_in import entra_sign_in
from matoolkit.clock import SystemClock
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from tests.api.entra import SETTINGS, Directory, claims, signed
from tests.api.live import Live
from tests.api.test_sign_in import WRONG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


ADMIN = [
    ("POST", "/api/runbooks"),
    ("DELETE", "/api/runbooks/x/versions/1"),
    ("PUT", "/api/runbooks/x/automation"),
    ("POST", "/api/runbooks/x/query/preview"),
    ("POST", "/api/batches"),
    ("POST", "/api/batches/1/members"),
    ("DELETE", "/api/batches/1/members/1"),
    ("POST", "/api/batches/1/advance"),
    ("POST", "/api/batches/1/cancel"),
    ("POST", "/api/batches/1/held-removals/release"),
    ("POST", "/api/dead-letters/1/resubmit"),
]
READER = [("GET", "/api/dead-letters"), ("GET", "/api/audit")]
ANYBODY = [
    ("GET", "/api/runbooks"),
    ("GET", "/api/runbooks/x"),
    ("GET", "/api/runbooks/x/versions"),
    ("GET", "/api/runbooks/x/versions/1"),
    ("GET", "/api/runbooks/x/automation"),
    ("GET", "/api/runbooks/x/template"),
    ("GET", "/api/batches"),
    ("GET", "/api/batches/1"),
    ("GET", "/api/batches/1/members"),
    ("GET", "/api/batches/1/phases"),
    ("GET", "/api/batches/1/steps"),
    ("GET", "/api/batches/1/failures"),
    ("GET", "/api/batches/1/members/1"),
    ("GET", "/api/members?key=x"),
    ("GET", "/api/status"),
]


def test_these_are_all_the_routes(live: Live) -> None:
    described = live.get("/openapi.json", role=None)["paths"]
    routes = {(method.upper(), path) for path, methods in described.items() for method in methods}
    named = {("GET", "/api/health")}
    for method, path in (*ADMIN, *READER, *ANYBODY):
        filled = path.partition("?")[0].replace("/x", "/{name}").replace("/versions/1", "/versions/{version}")
        filled = filled.replace("/members/1", "/members/{member_id}").replace("/batches/1", "/batches/{batch_id}")
        named.add((method, filled.replace("/dead-letters/1", "/dead-letters/{message_id}")))
    assert routes == named


def test_every_write_takes_an_idempotency_key_and_every_route_says_its_errors(live: Live) -> None:
    for methods in live.get("/openapi.json", role=None)["paths"].values():
        for method, operation in methods.items():
            taken = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "header"}
            assert ("Idempotency-Key" in taken) == (method != "get"), operation["summary"]
            if operation["summary"] != "Say whether the API works":
                assert {"400", "401", "403", "500", "503"} <= set(operation["responses"]), operation["summary"]


@pytest.mark.parametrize(("method", "path"), [*ADMIN, *READER, *ANYBODY])
def test_without_a_token_there_is_nothing(live: Live, method: str, path: str) -> None:
    for headers in ({}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"}, {"Authorization": "Bearer x"}):
        answer = live.call(method, path, role=None, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(("method", "path"), ADMIN)
@pytest.mark.parametrize("role", ["", "Reader", "admin"])
def test_changes_are_for_admins(live: Live, method: str, path: str, role: str) -> None:
    assert live.error(method, path, 403, role=role) == "this needs the role Admin"


@pytest.mark.parametrize(("method", "path"), READER)
def test_what_may_be_about_people_is_for_readers(live: Live, method: str, path: str) -> None:
    assert live.error(method, path, 403, role="") == "this needs the role Reader or Admin"
    for role in ("Reader", "Admin", "Other Reader"):
        assert live.call(method, path, role=role).status_code == 200


@pytest.mark.parametrize(("method", "path"), ANYBODY)
def test_looking_is_for_anybody_with_a_token(live: Live, method: str, path: str) -> None:
    assert live.call(method, path, role="").status_code in (200, 404)


def test_peoples_data_is_for_readers(live: Live) -> None:
    batch = live.batch("anna")
    path = f"/api/batches/{batch}/members"
    assert live.get(path, role="")["members"][0]["data"] is None
    for role in ("Reader", "Admin"):
        member = live.get(path, role=role)["members"][0]
        assert member["data"]["Mail"] == "anna@example.test"
        assert member["workerData"] is None


def test_health_is_for_everybody(live: Live) -> None:
    answer = live.call("GET", "/api/health", role=None)
    assert (answer.status_code, answer.json()["status"], answer.json()["database"]) == (200, "healthy", "reachable")


def test_who_is_recorded(live: Live) -> None:
    token = live.token("Admin", name="Böb")
    name = live.name()
    live.publish(name)
    headers = {"Authorization": f"bearer {token}"}
    live.call("PUT", f"/api/runbooks/{name}/automation", role=None, headers=headers, json={"enabled": False})
    assert live.get(f"/api/runbooks/{name}/automation")["disabledBy"] == "Böb"
    assert [each["action"] for each in live.get("/api/audit", params={"actor": "Böb"})["entries"]] == [
        "runbook.automation_disabled"
    ]


# With Entra ID --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Iterator[Live]:
    yield from started(tmp_path_factory.mktemp("tenant"), migrated_file, Directory())


@pytest.fixture
def cut_off(tmp_path: Path, migrated_file: Path) -> Iterator[Live]:
    """Entra ID cannot be reached."""
    directory = Directory()
    directory.fails = True
    yield from started(tmp_path, migrated_file, directory)


def started(folder: Path, migrated_file: Path, directory: Directory) -> Iterator[Live]:
    shutil.copyfile(migrated_file, folder / "matoolkit.db")
    database = open_database(in_file(folder / "matoolkit.db"), durable=False)
    live = Live(database, folder, sign_in=entra_sign_in(SETTINGS, SystemClock(), directory.fetch))
    yield live
    live.close()
    database.close()


def status(live: Live, token: str, path: str = "/api/dead-letters") -> int:
    return live.call("GET", path, role=None, headers={"Authorization": f"Bearer {token}"}).status_code


def test_a_tenants_tokens_are_accepted_and_no_others(tenant: Live) -> None:
    assert status(tenant, signed(claims())) == 200
    assert status(tenant, signed(claims(roles=None))) == 403
    assert status(tenant, signed(claims(roles=None)), "/api/batches") == 200
    assert status(tenant, tenant.token("Admin")) == 401
    yesterday = datetime.now(UTC) - timedelta(days=1)
    assert status(tenant, signed(claims(yesterday))) == 401


@pytest.mark.parametrize("name", [each for each in WRONG if each not in ("not base64", "empty parts")])
def test_what_is_refused_is_refused_here_too(tenant: Live, name: str) -> None:
    token = WRONG[name]()
    assert status(tenant, token) == 401


def test_a_token_of_any_length_is_refused(tenant: Live) -> None:
    assert status(tenant, "x" * 17_000) == 401


def test_when_keys_cannot_be_fetched_it_says_so(cut_off: Live) -> None:
    answer: Any = cut_off.call("GET", "/api/batches", role=None, headers={"Authorization": f"Bearer {signed()}"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "keys" in answer.json()["error"]
