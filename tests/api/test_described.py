"""The API does what its OpenAPI document says, whatever it is asked: nothing makes it fail, no answer is another."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from tests.api.live import upload
from tests.api.people import csv, step

if TYPE_CHECKING:
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
_OPERATIONS = 25


@pytest.fixture(scope="module")
def live(live_sqlite: Live) -> Live:
    """With something of everything in it."""
    live_sqlite.publish("wave")
    batch = live_sqlite.create("wave", "anna", "ben")["batchId"]
    live_sqlite.post(f"/api/batches/{batch}/advance")
    live_sqlite.settle()
    live_sqlite.batch("cleo", init=True, on_member_removed=[step("forget")])
    return live_sqlite


@pytest.fixture(scope="module")
def described(live: Live) -> Any:
    return schemathesis.openapi.from_dict(live.get("/openapi.json", role=None))


def test_all_of_it_is_described(described: Any) -> None:
    assert len(list(described.get_all_operations())) == _OPERATIONS


@pytest.mark.parametrize("number", range(_OPERATIONS))
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_it_does_what_it_says(live: Live, described: Any, number: int, mode: GenerationMode) -> None:
    operation = sorted(described.get_all_operations(), key=lambda each: each.ok().label)[number].ok()
    checks = [CHECKS.get_one(name) for name in _HELD_TO]
    token = live.token("Admin")

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        answer = case.call(
            base_url=live.server.url, session=live.session, headers={"Authorization": f"Bearer {token}"}, timeout=30
        )
        case.validate_response(answer, checks=checks)

    # Of what takes nothing there is nothing that could be wrong.
    with suppress(Unsatisfiable):
        ask()


def test_answers_with_something_in_them_are_as_described(live: Live) -> None:
    document = live.get("/openapi.json", role=None)
    name = live.publish()
    batch = live.create(name, "anna")["batchId"]
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    made = live.post(f"/api/batches/{batch}/members", files=upload(csv("dora")))
    assert made["addedCount"] == 1
    for path, template in (
        ("/api/runbooks", None),
        (f"/api/runbooks/{name}", "/api/runbooks/{name}"),
        (f"/api/runbooks/{name}/versions", "/api/runbooks/{name}/versions"),
        (f"/api/runbooks/{name}/automation", "/api/runbooks/{name}/automation"),
        ("/api/batches", None),
        (f"/api/batches/{batch}", "/api/batches/{batch_id}"),
        (f"/api/batches/{batch}/members", "/api/batches/{batch_id}/members"),
        (f"/api/batches/{batch}/phases?counts=true", "/api/batches/{batch_id}/phases"),
        (f"/api/batches/{batch}/steps", "/api/batches/{batch_id}/steps"),
        ("/api/audit", None),
    ):
        operation = document["paths"][template or path]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(live.get(path), {**schema, "components": document["components"]})
