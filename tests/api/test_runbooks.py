"""Runbooks through the API: publishing and its rules, versions, automation, preview, template."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import update

from matoolkit.api.publishing import PublishRules, check
from matoolkit.api.services import BatchGroup, QueryPreview
from matoolkit.batches.making import create_batch
from matoolkit.errors import MatoolkitError
from matoolkit.runbooks import load_runbook
from matoolkit.store import runbooks as store
from matoolkit.store.schema import runbooks as rows
from tests.api.live import START, Live, upload
from tests.api.people import csv, runbook, step

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def live(anywhere: Live) -> Live:
    return anywhere


def publish(live: Live, name: str, text: str | None = None, **more: Any) -> Any:
    return live.call("POST", "/api/runbooks", json={"name": name, "yamlContent": text or runbook(name), **more})


def automatic_batch(live: Live, name: str, *keys: str, hours: float = 12) -> int:
    """A batch as the scheduler makes it."""
    with live.database.transaction() as tx:
        found = store.active_version(tx, name)
        assert found is not None
        published = store.read_version(tx, name, found.version)
        assert published is not None
        return create_batch(
            tx,
            live.services.announcer,
            published,
            load_runbook(published.yaml_content),
            start_time=live.clock.now() + timedelta(hours=hours),
            members=[(key, "{}") for key in keys],
            now=live.clock.now(),
        )


# Publishing -----------------------------------------------------------------------------------------------------------


def test_versions_only_grow(live: Live) -> None:
    name = live.name()
    first = publish(live, name).json()
    assert (first["version"], first["warnings"]) == (1, [])
    assert first["dataTableName"] == f"runbook_{name.replace('-', '_')}_v1"
    assert publish(live, name.upper()).json()["version"] == 2
    assert live.call("DELETE", f"/api/runbooks/{name}/versions/2").status_code == 200
    third = publish(live, name).json()
    assert (third["version"], third["runbookId"] > first["runbookId"]) == (3, True)
    versions = live.get(f"/api/runbooks/{name}/versions")["versions"]
    assert [(each["version"], each["isActive"]) for each in versions] == [(3, True), (2, False), (1, False)]


@pytest.mark.parametrize(
    "keys", [("yamlContent", "overdueBehavior", "rerunInit"), ("yaml_content", "overdue_behavior", "rerun_init")]
)
def test_keys_in_either_case(live: Live, keys: tuple[str, str, str]) -> None:
    name = live.name()
    text, overdue, rerun = keys
    body = {"name": name, text: runbook(name), overdue: "ignore", rerun: True}
    assert live.post("/api/runbooks", json=body)["version"] == 1
    found = live.get(f"/api/runbooks/{name}")
    assert (found["overdueBehavior"], found["rerunInit"], found["isActive"]) == ("ignore", True, True)
    assert (found["publishedBy"], found["yamlContent"]) == ("anna@example.test", body[text])


def test_everything_that_is_wrong_is_told_at_once(live: Live) -> None:
    text = "name: other\nphases: []\ncolour: red\n"
    answer = publish(live, "wave", text)
    assert answer.status_code == 400
    errors = answer.json()["errors"]
    assert len(errors) >= 2
    assert any("data_source" in each for each in errors)
    assert list(answer.json()) == ["errors"]


def test_names_must_agree_but_for_case(live: Live) -> None:
    answer = publish(live, "another", runbook("wave"))
    assert answer.json() == {"errors": ["the runbook is named 'wave' in its text and 'another' in the request"]}


def test_unknown_keys_are_warnings(live: Live) -> None:
    name = live.name()
    answer = publish(live, name, runbook(name) + "colour: red\n").json()
    assert len(answer["warnings"]) == 1
    assert "colour" in answer["warnings"][0]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "JSON"),
        (b"[]", "object"),
        (b"{", "JSON"),
        (b'{"name": "x"}', "yamlContent"),
        (b'{"name": 3, "yamlContent": "x"}', "name"),
        (b'{"name": "", "yamlContent": "x"}', "name"),
        (b'{"name": "x\\u0000", "yamlContent": "x"}', "NUL"),
        (b'{"name": "\\ud800", "yamlContent": "x"}', "JSON"),
        (b'{"name": "x", "yamlContent": "x", "overdueBehavior": "maybe"}', "overdueBehavior"),
        (b'{"name": "x", "yamlContent": "x", "overdueBehaviour": "ignore"}', "overdueBehaviour"),
        (b'{"name": "x", "yamlContent": "x", "rerunInit": "yes"}', "rerunInit"),
    ],
)
def test_a_body_that_is_not_right(live: Live, body: bytes, complaint: str) -> None:
    assert complaint in live.error("POST", "/api/runbooks", 400, data=body)


def test_a_body_that_is_too_large(live: Live) -> None:
    assert "larger than" in live.error("POST", "/api/runbooks", 413, data=b"x" * (4 * 1024 * 1024 + 1))


def test_open_batches_demand_to_know_what_becomes_of_them(live: Live) -> None:
    name = live.publish()
    batch = automatic_batch(live, name, "anna")
    live.settle()
    answer = publish(live, name)
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert f"({batch})" in error
    # A day before the start is past, and has been run.
    assert "'rerun' runs at once prepare" in error
    assert "'ignore' runs nothing at once and leaves out prepare" in error
    assert live.get(f"/api/runbooks/{name}")["version"] == 1
    for behavior in ("ignore", "rerun"):
        assert publish(live, name, overdueBehavior=behavior).status_code == 200


def test_manual_batches_demand_nothing(live: Live) -> None:
    name = live.publish()
    live.create(name, "anna")
    assert publish(live, name).status_code == 200


# Rules of the place ---------------------------------------------------------------------------------------------------


def checked(rules: PublishRules, *steps: dict[str, Any], **more: Any) -> list[str]:
    text = runbook(phases=[{"name": "move", "offset": "T-0", "steps": list(steps)}], **more)
    return check("wave", text, rules).errors


SECRETS = PublishRules(secret_parameters={"New-EntraUser": frozenset({"Password"})})


@pytest.mark.parametrize(
    ("function", "value", "allowed"),
    [
        ("New-EntraUser", "hunter2", False),
        ("new-entrauser", "{{Password}}", False),
        ("New-EntraUser", "x{{secret:START}}", False),
        ("New-{{What}}", "hunter2", False),
        ("New-EntraUser", "{{secret:START}}", True),
        ("New-{{What}}", "{{secret:START}}", True),
        ("Send-Something", "hunter2", True),
    ],
)
def test_a_secret_is_named_and_not_written_down(function: str, value: str, *, allowed: bool) -> None:
    errors = checked(SECRETS, step("make", function=function, params={"password": value}))
    complaint = "parameter 'password' takes a secret and must be written as {{secret:NAME}}, or left out"
    assert errors == ([] if allowed else [f"phase 'move', step 'make': {complaint}"])


def test_secrets_are_looked_for_everywhere() -> None:
    bad = {"function": "New-EntraUser", "params": {"Password": "x"}}
    errors = checked(
        SECRETS,
        step("one", on_failure="undo"),
        on_member_removed=[step("gone", **bad)],
        rollbacks={"undo": [step("back", **bad)]},
    )
    assert [each.partition(":")[0] for each in errors] == [
        "on_member_removed, step 'gone'",
        "rollback 'undo', step 'back'",
    ]


def test_workers_that_are_known_are_the_only_ones() -> None:
    rules = PublishRules(worker_ids=frozenset({"worker-1", "exchange"}))
    assert checked(rules, step("one")) == []
    assert checked(rules, step("one", worker_id="typo")) == [
        "phase 'move', step 'one': there is no worker 'typo'; there are: exchange, worker-1"
    ]


def test_variables_that_may_be_read_are_the_only_ones() -> None:
    rules = PublishRules(connection_is_allowed=lambda name: name != "SQL_WAVES")
    assert checked(rules, step("one")) == [
        "data_source: connection names the variable SQL_WAVES, which runbooks may not read here"
    ]


# Versions -------------------------------------------------------------------------------------------------------------


def test_a_version_is_taken_out_of_force(live: Live) -> None:
    name = live.publish()
    path = f"/api/runbooks/{name}/versions/1"
    assert live.call("DELETE", path).json() == {
        "message": f"version 1 of runbook '{name}' is no longer in force",
        "name": name,
        "version": 1,
    }
    assert "not in force" in live.error("DELETE", path, 409)
    assert live.get(path)["isActive"] is False
    live.error("GET", f"/api/runbooks/{name}", 404)
    assert name not in {each["name"] for each in live.get("/api/runbooks")["runbooks"]}


def test_the_list_is_by_name_and_in_pages(live: Live) -> None:
    for name in ("Zoe-list", "adam-list", "Mia-list"):
        live.publish(name)
    names = [each["name"] for each in live.get("/api/runbooks")["runbooks"]]
    assert names == sorted(names, key=str.casefold)
    paged: list[str] = []
    cursor = None
    while True:
        page = live.get("/api/runbooks", params={"limit": 2, "cursor": cursor})
        paged += [each["name"] for each in page["runbooks"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert paged == names
    assert [each["name"] for each in live.get("/api/runbooks?limit=2&offset=1")["runbooks"]] == names[1:3]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/versions"),
        ("GET", "/versions/1"),
        ("DELETE", "/versions/1"),
        ("GET", "/automation"),
        ("PUT", "/automation"),
        ("POST", "/query/preview"),
        ("GET", "/template"),
    ],
)
@pytest.mark.parametrize("name", ["nobody", "%00", "a%0Ab", "'; DROP TABLE runbooks", "ä" * 200])
def test_a_runbook_that_is_not_there(live: Live, method: str, path: str, name: str) -> None:
    body = {"json": {"enabled": True}} if method == "PUT" else {}
    assert live.error(method, f"/api/runbooks/{name}{path}", 404, **body)


# Automation -----------------------------------------------------------------------------------------------------------


def test_automation_is_on_until_somebody_says_otherwise(live: Live) -> None:
    name = live.publish()
    path = f"/api/runbooks/{name.upper()}/automation"
    assert live.get(path) == {
        "runbookName": name,
        "automationEnabled": True,
        "enabledAt": None,
        "enabledBy": None,
        "disabledAt": None,
        "disabledBy": None,
    }
    at = START.isoformat().replace("+00:00", "Z")
    off = live.call("PUT", path, json={"enabled": False}).json()
    assert (off["automationEnabled"], off["disabledAt"], off["disabledBy"]) == (False, at, "anna@example.test")
    listed = {each["name"]: each["automationEnabled"] for each in live.get("/api/runbooks?limit=500")["runbooks"]}
    assert [each for each, enabled in listed.items() if not enabled] == [name]
    on = live.call("PUT", path, json={"enabled": True}).json()
    assert (on["automationEnabled"], on["enabledAt"], on["disabledAt"]) == (True, at, at)
    assert all(each["automationEnabled"] for each in live.get("/api/runbooks?limit=500")["runbooks"])
    assert live.get(path) == on
    for body in ({}, {"enabled": 1}, {"enabled": None}, {"enabled": True, "more": 1}):
        live.error("PUT", path, 400, json=body)


# Preview and template -------------------------------------------------------------------------------------------------


class QueryFailed(MatoolkitError):
    """The query failed."""


@pytest.fixture
def previewing(live: Live) -> Iterator[dict[str, Any]]:
    said: dict[str, Any] = {}

    def preview(asked: Any) -> QueryPreview:
        answer = said[asked.name]
        if isinstance(answer, Exception):
            raise answer
        found: QueryPreview = answer
        return found

    object.__setattr__(live.services, "preview", preview)
    yield said
    object.__setattr__(live.services, "preview", None)


def test_a_preview_tells_what_the_query_gives(live: Live, previewing: dict[str, Any]) -> None:
    name = live.publish()
    rows = [{"Key": f"p{number}", "Groups": ["a"]} for number in range(150)]
    previewing[name] = QueryPreview(150, ["Key", "Groups"], rows, [BatchGroup(START, 150)])
    found = live.post(f"/api/runbooks/{name}/query/preview")
    assert (found["rowCount"], found["columns"], len(found["sample"])) == (150, ["Key", "Groups"], 100)
    assert found["sample"][0] == {"Key": "p0", "Groups": ["a"]}
    assert found["batchGroups"] == [{"batchTime": "2026-03-01T12:00:00Z", "memberCount": 150}]
    assert live.get("/api/audit?limit=1")["entries"][0]["action"] == "query.previewed"


def test_a_query_that_fails_is_told(live: Live, previewing: dict[str, Any]) -> None:
    name = live.publish()
    previewing[name] = QueryFailed("no such table: people")
    error = live.error("POST", f"/api/runbooks/{name}/query/preview", 400)
    assert error == f"the query of runbook '{name}' failed: no such table: people"


def test_a_source_that_hangs_is_given_up_and_holds_nobody_up(live: Live, previewing: dict[str, Any]) -> None:
    name, other, gate = live.publish(), live.publish(), threading.Event()
    previewing[other] = QueryPreview(0, [], [], [])

    class Hanging:
        def __getattr__(self, _name: str) -> Any:
            assert gate.wait(30)
            return 0

    previewing[name] = Hanging()
    object.__setattr__(live.services, "preview_seconds", 0.2)
    try:
        for _ in range(6):
            error = live.error("POST", f"/api/runbooks/{name}/query/preview", 503)
            assert error == "the data source has not answered for 0.2 seconds"
        object.__setattr__(live.services, "preview_seconds", 30.0)
        assert live.post(f"/api/runbooks/{other}/query/preview")["rowCount"] == 0
    finally:
        gate.set()
        object.__setattr__(live.services, "preview_seconds", 180.0)


def test_where_there_are_no_sources_there_is_no_preview(live: Live) -> None:
    assert "data sources" in live.error("POST", f"/api/runbooks/{live.publish()}/query/preview", 503)


def test_a_text_that_this_version_cannot_read_is_told(live: Live, previewing: dict[str, Any]) -> None:
    """As after an upgrade that has become stricter: publishing would not have let it in."""
    name, batch = live.publish(), 0
    batch = live.create(name, "anna")["batchId"]
    with live.database.transaction() as tx:
        old = update(rows).where(rows.c.name == name).values(yaml_content="name: wave\nphases: []\n")
        tx.connection.execute(old)
    assert previewing == {}
    for method, path, given in (
        ("GET", f"/api/runbooks/{name}/template", {}),
        ("POST", f"/api/runbooks/{name}/query/preview", {}),
        ("POST", "/api/batches", {"data": {"runbookName": name}, "files": upload(csv("ben"))}),
        ("POST", f"/api/batches/{batch}/members", {"files": upload(csv("ben"))}),
        ("POST", f"/api/batches/{batch}/advance", {}),
    ):
        error = live.error(method, path, 409, **given)
        assert error.startswith("the runbook cannot be read by this version of the product"), path
        assert "data_source" in error
    assert live.get(f"/api/runbooks/{name}")["version"] == 1
    assert live.post(f"/api/batches/{batch}/cancel")["status"] == "cancelled"
    assert publish(live, name).status_code == 200


def test_the_template(live: Live) -> None:
    name = live.publish("Wave Ä; 1")
    answer = live.call("GET", f"/api/runbooks/{name}/template")
    assert answer.text == "Key,Start,Mail\r\nuser@example.com,2030-01-31T18:00:00Z,sample Mail\r\n"
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"template.csv\"; filename*=UTF-8''Wave%20%C3%84%3B%201-template.csv"
    )
