"""The API does what its OpenAPI document says, whatever it is asked: nothing makes it fail, no answer is another."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from matoolkit.hosts.api_parts import previews, releases
from tests.api.live import upload
from tests.api.people import csv, runbook, step
from tests.api.test_writing import park

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.live import Live

load_all_checks()
_HELD_TO = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
]
_EXAMPLES = 12
_SOAK_EXAMPLES = 250
_ROLES = ["Admin", "Admin", "Reader", ""]
_OPERATIONS = 29


@contextmanager
def stocked(live: Live, folder: Path) -> Iterator[Live]:
    """With something of everything in it, and everything that a service of its own is handed."""
    people = folder / "people.db"
    with closing(sqlite3.connect(people)) as made:
        made.execute("CREATE TABLE people (Key TEXT)")
    object.__setattr__(live.services, "preview", previews({"SQL_WAVES": f"sqlite:///{people}"}, live.clock))
    object.__setattr__(live.services, "release", releases(live.database, live.services.announcer))
    live.publish("wave")
    batch = live.create("wave", "anna", "ben")["batchId"]
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    live.batch("cleo", init=True, on_member_removed=[step("forget")])
    park(live, '{"messageType":"phase-due"}')
    yield live
    object.__setattr__(live.services, "preview", None)
    object.__setattr__(live.services, "release", None)


@pytest.fixture(scope="module")
def live(live_sqlite: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with stocked(live_sqlite, tmp_path_factory.mktemp("source")) as found:
        yield found


@pytest.fixture(scope="module")
def live_elsewhere(live_postgres: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with stocked(live_postgres, tmp_path_factory.mktemp("source")) as found:
        yield found


@pytest.fixture(scope="module")
def described(live: Live) -> Any:
    return schemathesis.openapi.from_dict(live.get("/openapi.json", role=None))


def test_all_of_it_is_described(described: Any) -> None:
    assert len(list(described.get_all_operations())) == _OPERATIONS


def fuzz(live: Live, operation: Any, mode: GenerationMode, *, examples: int, repeatable: bool) -> None:
    """Ask for all kinds of things: made up, or with what is really there put into them."""
    checks = [CHECKS.get_one(name) for name in _HELD_TO]
    live.publish("wave")
    tokens = {role: live.token(*role.split()) for role in _ROLES}
    batches = [each["id"] for each in live.get("/api/batches?limit=100")["batches"]]
    members = [each["id"] for each in live.get(f"/api/batches/{batches[-1]}/members")["members"]]
    dead = [each["id"] for each in live.get("/api/dead-letters")["messages"]]

    @given(case=operation.as_strategy(generation_mode=mode), choose=st.data())
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=repeatable,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any, choose: Any) -> None:
        def one_of(values: list[Any]) -> Any:
            return choose.draw(st.sampled_from(values))

        there: dict[str, list[Any]] = {
            "name": ["wave", "WAVE"],
            "version": [1, 2],
            "batch_id": batches,
            "member_id": members,
        }
        there["message_id"] = dead
        if one_of([True, False]):
            found = {name: one_of(there[name]) for name in case.path_parameters or {}}
            case.path_parameters = {**(case.path_parameters or {}), **found}
        body = case.body
        if isinstance(body, dict) and one_of([True, False]):
            if "yamlContent" in body:
                case.body = {**body, "name": "wave", "yamlContent": runbook("wave")}
            elif "file" in body:
                case.body = {**body, "file": csv(f"p{one_of(list(range(30)))}"), "runbookName": "wave"}
        token = tokens[one_of(_ROLES)]
        answer = case.call(
            base_url=live.server.url, session=live.session, headers={"Authorization": f"Bearer {token}"}, timeout=30
        )
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=checks)

    statuses: set[int] = set()
    # Of what takes nothing there is nothing that could be wrong.
    with suppress(Unsatisfiable):
        ask()
    if statuses:
        print(operation.label, mode.value, sorted(statuses))


def operation(described: Any, number: int) -> Any:
    return sorted(described.get_all_operations(), key=lambda each: each.ok().label)[number].ok()


every_operation = pytest.mark.parametrize("number", range(_OPERATIONS))
both_ways = pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value
)


@every_operation
@both_ways
def test_it_does_what_it_says(live: Live, described: Any, number: int, mode: GenerationMode) -> None:
    fuzz(live, operation(described, number), mode, examples=_EXAMPLES, repeatable=True)


@pytest.mark.soak
@pytest.mark.parametrize("database", ["live", "live_elsewhere"])
@every_operation
@both_ways
def test_it_does_what_it_says_for_long(
    request: pytest.FixtureRequest, described: Any, number: int, mode: GenerationMode, database: str
) -> None:
    """Other requests each time; a failure prints the one that led to it."""
    fuzz(
        request.getfixturevalue(database), operation(described, number), mode, examples=_SOAK_EXAMPLES, repeatable=False
    )


def test_answers_with_something_in_them_are_as_described(live: Live) -> None:
    document = live.get("/openapi.json", role=None)
    name = live.publish()
    batch = live.create(name, "anna")["batchId"]
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    made = live.post(f"/api/batches/{batch}/members", files=upload(csv("dora")))
    assert made["addedCount"] == 1
    member = live.get(f"/api/batches/{batch}/members")["members"][0]["id"]
    for path, template in (
        ("/api/runbooks", None),
        (f"/api/runbooks/{name}", "/api/runbooks/{name}"),
        (f"/api/runbooks/{name}/versions", "/api/runbooks/{name}/versions"),
        (f"/api/runbooks/{name}/automation", "/api/runbooks/{name}/automation"),
        ("/api/batches", None),
        (f"/api/batches/{batch}", "/api/batches/{batch_id}"),
        (f"/api/batches/{batch}/members", "/api/batches/{batch_id}/members"),
        (f"/api/batches/{batch}/members/{member}", "/api/batches/{batch_id}/members/{member_id}"),
        (f"/api/batches/{batch}/failures", "/api/batches/{batch_id}/failures"),
        ("/api/members?key=anna", "/api/members"),
        ("/api/status", None),
        (f"/api/batches/{batch}/phases?counts=true", "/api/batches/{batch_id}/phases"),
        (f"/api/batches/{batch}/steps", "/api/batches/{batch_id}/steps"),
        ("/api/audit", None),
    ):
        operation = document["paths"][template or path]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(live.get(path), {**schema, "components": document["components"]})
