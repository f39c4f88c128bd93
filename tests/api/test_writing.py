"""Writes: done once however often they are asked for, with who did it beside them, or not at all."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, select

from matoolkit.api.services import QueryPreview
from matoolkit.store import dead_messages
from matoolkit.store.bus_schema import bus_messages
from matoolkit.store.schema import audit, idempotent_answers, runbooks
from tests.api.live import Live, upload
from tests.api.people import csv, runbook
from tests.api.test_access import ADMIN

if TYPE_CHECKING:
    import requests


@pytest.fixture
def live(anywhere: Live) -> Live:
    return anywhere


def count(live: Live, table: Any, *conditions: Any) -> int:
    with live.database.reading() as tx:
        found = tx.connection.execute(select(func.count()).select_from(table).where(*conditions))
        return int(found.scalar_one())


def publish(live: Live, name: str, key: str | None, **more: Any) -> requests.Response:
    body = {"name": name, "yamlContent": runbook(name), **more}
    headers = {} if key is None else {"Idempotency-Key": key}
    return live.call("POST", "/api/runbooks", json=body, headers=headers)


# Done once ------------------------------------------------------------------------------------------------------------


def test_the_same_request_again_is_answered_alike_and_done_once(live: Live) -> None:
    name = live.name()
    first, second = publish(live, name, f"k-{name}"), publish(live, name, f"k-{name}")
    assert (first.status_code, first.content) == (200, second.content)
    assert [each["version"] for each in live.get(f"/api/runbooks/{name}/versions")["versions"]] == [1]
    assert publish(live, name, None).json()["version"] == 2


def test_a_file_sent_again_makes_one_batch(live: Live) -> None:
    name = live.publish()
    given: dict[str, Any] = {"headers": {"Idempotency-Key": f"file-{name}"}}
    first = live.create(name, "anna", **given)
    assert live.create(name, "anna", **given) == first
    answer = live.call("POST", "/api/batches", data={"runbookName": name}, files=upload(csv("ben")), **given)
    assert answer.status_code == 409
    assert live.get("/api/batches", params={"runbook": name})["total"] == 1


def test_every_write_can_be_repeated(live: Live) -> None:
    """Of each route that changes anything: the second time the same answer, and one entry in the audit."""
    name, batch = live.publish(), live.batch("anna", "ben")
    member = live.get(f"/api/batches/{batch}/members")["members"][0]["id"]
    dead = park(live, '{"messageType":"phase-due"}')
    object.__setattr__(live.services, "preview", lambda _runbook: QueryPreview(0, [], [], []))
    object.__setattr__(live.services, "release", lambda *_, **__: 3)
    bodies: dict[str, Any] = {
        "POST /api/runbooks": {"json": {"name": name, "yamlContent": runbook(name)}},
        "PUT /api/runbooks/x/automation": {"json": {"enabled": False}},
        "POST /api/batches": {"data": {"runbookName": name}, "files": upload(csv("cleo"))},
        "POST /api/batches/1/members": {"files": upload(csv("dora"))},
    }
    last = "POST /api/batches/1/cancel", "DELETE /api/runbooks/x/versions/1"
    writes = sorted((f"{method} {path}" for method, path in ADMIN), key=lambda each: each in last)
    try:
        for number, each in enumerate(writes):
            method, _, path = each.partition(" ")
            path = path.replace("/x", f"/{name}").replace("/members/1", f"/members/{member}")
            path = path.replace("/batches/1", f"/batches/{batch}").replace("/dead-letters/1", f"/dead-letters/{dead}")
            path = path.replace("/versions/1", "/versions/2")
            before, headers = count(live, audit), {"Idempotency-Key": f"every-{name}-{number}"}
            answers = [live.call(method, path, headers=headers, **bodies.get(each, {})) for _ in range(2)]
            assert answers[0].status_code == 200, (each, answers[0].text)
            assert answers[1].content == answers[0].content, each
            # Releases are written down by what does them.
            assert count(live, audit) - before == ("release" not in each), each
    finally:
        object.__setattr__(live.services, "preview", None)
        object.__setattr__(live.services, "release", None)
    live.settle()


def test_the_same_key_for_something_else_is_told(live: Live) -> None:
    name = live.name()
    publish(live, name, f"k-{name}")
    answer = publish(live, name, f"k-{name}", rerunInit=True)
    assert (answer.status_code, "another request" in answer.json()["error"]) == (409, True)
    path = f"/api/runbooks/{name}/versions/1"
    assert live.call("DELETE", path, headers={"Idempotency-Key": f"k-{name}"}).status_code == 409


def test_a_key_is_its_owners(live: Live) -> None:
    name = live.name()
    publish(live, name, f"k-{name}")
    headers = {"Idempotency-Key": f"k-{name}", "Authorization": f"Bearer {live.token('Admin', name='ben')}"}
    body = {"name": name, "yamlContent": runbook(name)}
    assert live.call("POST", "/api/runbooks", role=None, json=body, headers=headers).json()["version"] == 2


def test_what_was_refused_may_be_tried_again(live: Live) -> None:
    batch = live.batch("anna")
    headers = {"Idempotency-Key": f"advance-{batch}"}
    live.post(f"/api/batches/{batch}/advance")
    assert live.call("POST", f"/api/batches/{batch}/advance", headers=headers).status_code == 400
    live.settle()
    answer = live.post(f"/api/batches/{batch}/advance", headers=headers)
    assert answer["phaseName"] == "move"
    assert live.post(f"/api/batches/{batch}/advance", headers=headers) == answer


def test_of_many_at_the_same_time_one_is_done(live: Live) -> None:
    name = live.name()
    answers: list[requests.Response] = []
    barrier = threading.Barrier(6)

    def ask() -> None:
        barrier.wait(10)
        answers.append(publish(live, name, f"k-{name}"))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert {(each.status_code, each.content) for each in answers} == {(200, answers[0].content)}
    assert count(live, runbooks, runbooks.c.name == name) == 1


def test_without_a_key_many_at_the_same_time_are_all_done(live: Live) -> None:
    name = live.name()
    versions: list[int] = []
    threads = [
        threading.Thread(target=lambda: versions.append(publish(live, name, None).json()["version"])) for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert sorted(versions) == [1, 2, 3, 4]


def test_keys_are_forgotten_after_a_day(live: Live) -> None:
    name = live.name()
    publish(live, name, f"k-{name}")
    live.clock.advance(days=1, seconds=1)
    try:
        assert publish(live, name, f"k-{name}").json()["version"] == 2
        for number in range(5):
            publish(live, name, f"more-{name}-{number}")
        old = idempotent_answers.c.created_at < live.clock.now() - timedelta(days=1)
        assert count(live, idempotent_answers, old) == 0
    finally:
        live.clock.advance(days=-1, seconds=-1)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb", "ä"])
def test_a_key_that_is_none(live: Live, key: str) -> None:
    batch = live.batch("anna")
    headers = {"Idempotency-Key": key.encode("utf-8").decode("latin-1")}
    assert "printable" in live.error("POST", f"/api/batches/{batch}/cancel", 400, headers=headers)


# Who did it -----------------------------------------------------------------------------------------------------------


def test_every_write_is_in_the_audit(live: Live) -> None:
    name = live.publish()
    batch = live.create(name, "anna", "ben")["batchId"]
    live.post(f"/api/batches/{batch}/members", files=upload(csv("cleo")))
    member = live.get(f"/api/batches/{batch}/members")["members"][0]["id"]
    live.call("DELETE", f"/api/batches/{batch}/members/{member}")
    live.post(f"/api/batches/{batch}/advance")
    live.post(f"/api/batches/{batch}/cancel")
    live.call("PUT", f"/api/runbooks/{name}/automation", json={"enabled": False})
    live.call("DELETE", f"/api/runbooks/{name}/versions/1")
    entries = live.get("/api/audit?limit=8")["entries"]
    assert [(each["action"], each["target"], each["batchId"], each["detail"]) for each in entries] == [
        ("runbook.version_deleted", f"{name} v1", None, None),
        ("runbook.automation_disabled", name, None, None),
        ("batch.cancelled", f"batch {batch}", batch, {"status": "active"}),
        (
            "batch.advanced",
            f"batch {batch}",
            batch,
            {"action": "phase_dispatched", "phaseName": "prepare", "memberCount": 2},
        ),
        ("member.removed", f"member {member} of batch {batch}", batch, None),
        ("member.added", f"batch {batch}", batch, {"addedCount": 1, "skippedCount": 0}),
        ("batch.created", f"batch {batch}", batch, {"runbook": f"{name} v1", "memberCount": 2}),
        ("runbook.published", f"{name} v1", None, {"overdueBehavior": "rerun", "rerunInit": False}),
    ]
    assert {(each["actor"], each["at"]) for each in entries} == {("anna@example.test", "2026-03-01T12:00:00Z")}


def test_what_is_refused_is_not(live: Live) -> None:
    batch = live.batch("anna")
    live.post(f"/api/batches/{batch}/cancel")
    before = count(live, audit)
    live.error("POST", f"/api/batches/{batch}/cancel", 409)
    live.error("POST", "/api/batches", 400, data={"runbookName": live.get("/api/runbooks")["runbooks"][0]["name"]})
    assert count(live, audit) == before


def test_a_write_that_fails_in_the_middle_leaves_nothing(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    batch = live.batch("anna")
    sent = count(live, bus_messages)
    monkeypatch.setattr("matoolkit.store.audit.record", broken)
    assert live.error("POST", f"/api/batches/{batch}/advance", 500) == "An internal error occurred."
    monkeypatch.undo()
    assert live.get(f"/api/batches/{batch}")["batch"]["status"] == "detected"
    assert count(live, bus_messages) == sent


def test_the_audit_is_looked_up_by_batch_person_and_time(live: Live) -> None:
    batch = live.batch("anna")
    live.clock.advance(hours=1)
    live.post(
        f"/api/batches/{batch}/cancel",
        role=None,
        headers={"Authorization": f"Bearer {live.token('Admin', name='ben')}"},
    )
    live.clock.advance(hours=-1)

    def actions(**params: Any) -> list[str]:
        return [each["action"] for each in live.get("/api/audit", params={"batchId": batch, **params})["entries"]]

    assert actions() == ["batch.cancelled", "batch.created"]
    assert actions(actor="ben") == ["batch.cancelled"]
    assert actions(since="2026-03-01T12:30:00Z") == actions(since="2026-03-01T12:30:00") == ["batch.cancelled"]
    assert actions(since="2026-03-01T12:30:00+01:00") == ["batch.cancelled", "batch.created"]
    first = live.get("/api/audit", params={"batchId": batch, "limit": 1})
    assert actions(limit=1, cursor=first["nextCursor"]) == ["batch.created"]


# Messages put aside ---------------------------------------------------------------------------------------------------


def park(live: Live, body: str, topic: str = "orchestrator-events") -> int:
    with live.database.transaction() as tx:
        dead_messages.park(
            tx,
            topic=topic,
            message_id="old",
            properties={"MessageType": "phase-due"},
            properties_json='{"MessageType":"phase-due"}',
            body=body,
            reason="HandlerFailed",
            error="it did not work",
            now=live.clock.now(),
        )
    return int(live.get("/api/dead-letters?limit=1")["messages"][0]["id"])


def test_a_dead_letter_is_shown_without_what_may_be_about_people(live: Live) -> None:
    correlation = {"stepExecutionId": 4, "who": "anna"}
    body = {"messageType": "member-added", "batchId": 3, "memberKey": "anna@example.test", "x y": 1}
    park(live, json.dumps({**body, "correlationData": correlation}))
    shown = live.get("/api/dead-letters?limit=1")["messages"][0]
    assert shown["body"] == {
        "messageType": "member-added",
        "batchId": 3,
        "memberKey": "***",
        "***": "***",
        "correlationData": {"stepExecutionId": 4, "who": "***"},
    }
    assert (shown["topic"], shown["messageType"], shown["reason"]) == (
        "orchestrator-events",
        "phase-due",
        "HandlerFailed",
    )
    park(live, "anna is not JSON")
    assert live.get("/api/dead-letters?limit=1")["messages"][0]["body"] == "*** (16 characters that are no JSON)"
    park(live, '["anna"]')
    assert live.get("/api/dead-letters?limit=1")["messages"][0]["body"] == "***"


def test_a_dead_letter_is_sent_again_once_under_another_id(live: Live) -> None:
    number = park(
        live, '{"messageType":"phase-due","runbookName":"x","runbookVersion":1,"batchId":1,"phaseExecutionId":1}'
    )
    path = f"/api/dead-letters/{number}/resubmit"
    before = count(live, bus_messages)
    assert live.post(path) == {"message": f"dead letter {number} is on its way again"}
    assert count(live, bus_messages) == before + 1
    assert count(live, bus_messages, bus_messages.c.message_id == "old") == 0
    shown = live.get("/api/dead-letters?limit=1")["messages"][0]
    assert (shown["resubmittedAt"], shown["resubmittedBy"]) == ("2026-03-01T12:00:00Z", "anna@example.test")
    assert "before" in live.error("POST", path, 409)
    assert "no dead letter" in live.error("POST", "/api/dead-letters/999999/resubmit", 404)
    live.settle()


# Held removals --------------------------------------------------------------------------------------------------------


def test_held_removals_are_let_go(live: Live) -> None:
    batch = live.batch("anna", "ben")
    path = f"/api/batches/{batch}/held-removals/release"
    assert "started without" in live.error("POST", path, 503)
    asked: list[Any] = []

    def release(batch_id: int, now: Any, *, by: str) -> int:
        asked.append((batch_id, now, by))
        return 7

    object.__setattr__(live.services, "release", release)
    try:
        assert live.post(path) == {"batchId": batch, "releasedCount": 7}
    finally:
        object.__setattr__(live.services, "release", None)
    assert asked == [(batch, live.clock.now(), "anna@example.test")]
