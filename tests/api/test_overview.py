"""What an operator asks at night: how is all of it, what failed, where is this person, what was done to them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, update

from matoolkit.bus import Names, Topology
from matoolkit.store import leases
from matoolkit.store.schema import batch_members, runbooks
from matoolkit.store.schema import leases as lease_rows
from tests.api.live import START, Live, upload
from tests.api.people import csv, step
from tests.api.test_reading import FAILURE, answering
from tests.api.test_runbooks import automatic_batch
from tests.api.test_writing import park

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def live(anywhere: Live) -> Iterator[Live]:
    yield anywhere
    anywhere.function = None


def attention(live: Live) -> list[str]:
    found: list[str] = live.get("/api/status")["attention"]
    return found


def about(live: Live, word: str) -> list[str]:
    return [each for each in attention(live) if word in each]


# A person -------------------------------------------------------------------------------------------------------------


def test_a_person_is_found_in_every_batch_they_are_or_were_in(live: Live) -> None:
    key = f"{live.name()}@Example.test"
    first = live.batch(key, "ben")
    live.post(f"/api/batches/{first}/cancel")
    second = live.batch(key)
    places = live.get("/api/members", params={"key": f" {key.upper()} "})["places"]
    assert [(each["batch"]["id"], each["member"]["status"]) for each in places] == [
        (second, "active"),
        (first, "removed"),
    ]
    assert places[0]["member"]["memberKey"] == key
    assert places[0]["member"]["waitingFor"] == "an operator, to advance it"
    assert places[0]["member"]["data"]["Mail"] == f"{key}@example.test"
    assert live.get("/api/members", params={"key": key}, role="")["places"][0]["member"]["data"] is None
    page = live.get("/api/members", params={"key": key, "limit": 1})
    rest = live.get("/api/members", params={"key": key, "limit": 1, "cursor": page["nextCursor"]})
    assert [page["places"][0]["batch"]["id"], rest["places"][0]["batch"]["id"]] == [second, first]
    assert rest["nextCursor"] is None
    assert live.get("/api/members?key=nobody")["places"] == []


@pytest.mark.parametrize("path", ["", "?key=", "?key=%00", "?key=" + "x" * 513, "?key=x&limit=51", "?key=x&cursor=x"])
def test_who_is_not_asked_for_rightly(live: Live, path: str) -> None:
    assert live.error("GET", f"/api/members{path}", 400)


def history(live: Live, batch: int, key: str, **more: Any) -> Any:
    place = live.get("/api/members", params={"key": key})["places"][0]
    assert place["batch"]["id"] == batch
    return live.get(f"/api/batches/{batch}/members/{place['member']['id']}", **more)


def test_a_member_is_shown_with_what_was_done_and_undone(live: Live) -> None:
    plan = [{"name": "move", "offset": "T-0", "steps": [step("move"), step("tidy", on_failure="undo"), step("end")]}]
    rollbacks = {"undo": [step("back"), step("close")]}
    live.function = answering(
        {"Do-tidy": FAILURE, "Do-move": {"status": "success", "result_type": "Object", "result": {"Id": "4711"}}}
    )
    key = live.name()
    batch = live.batch(key, phases=plan, rollbacks=rollbacks)
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    found = history(live, batch, key)
    assert [(each["stepName"], each["status"], each["phaseName"]) for each in found["steps"]] == [
        ("move", "succeeded", "move"),
        ("tidy", "failed", "move"),
        ("end", "cancelled", "move"),
    ]
    move, tidy, _ = found["steps"]
    assert (move["parameters"], move["result"], move["generation"]) == ({"Who": key}, {"Id": "4711"}, 1)
    assert (tidy["errorMessage"], tidy["rollbackStatus"]) == ("Nope: no", "succeeded")
    assert [
        (each["stepName"], each["status"], each["undoes"], each["rollbackName"]) for each in found["rollbacks"]
    ] == [
        ("back", "succeeded", tidy["id"], "undo"),
        ("close", "succeeded", tidy["id"], "undo"),
    ]
    assert found["removals"] == []
    plain = history(live, batch, key, role="")
    assert {(each["parameters"], each["result"]) for each in (*plain["steps"], *plain["rollbacks"])} == {(None, None)}
    assert plain["member"]["data"] is None


def test_rollbacks_and_leavings_wait_one_step_for_the_other(live: Live) -> None:
    leaving = [step("forget", retry={"max_retries": 1, "interval": "1h"}), step("report")]
    live.function = answering({"Do-forget": FAILURE})
    key = live.name()
    batch = live.batch(key, "ben", on_member_removed=leaving)
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    live.call("DELETE", f"/api/batches/{batch}/members/{history(live, batch, key)['member']['id']}")
    live.settle()
    found = history(live, batch, key)
    assert [(each["stepName"], each["waitingFor"]) for each in found["removals"]] == [
        ("forget", "another try, at 2026-03-01T13:00:00Z"),
        ("report", "step 'forget' before it"),
    ]
    assert found["member"]["waitingFor"] == "the steps of its leaving, at 'forget'"


def test_a_member_that_is_not_there(live: Live) -> None:
    batch, other = live.batch("anna"), live.batch("ben")
    member = live.get(f"/api/batches/{other}/members")["members"][0]["id"]
    assert live.error("GET", f"/api/batches/{batch}/members/{member}", 404) == f"batch {batch} has no member {member}"
    assert "no batch" in live.error("GET", "/api/batches/9999999/members/1", 404)


# Failures -------------------------------------------------------------------------------------------------------------


def test_failures_alike_are_counted_together(live: Live) -> None:
    plan = [
        {"name": "one", "offset": "T-2h", "steps": [step("one", on_failure="undo")]},
        {"name": "two", "offset": "T-1h", "steps": [step("two")]},
    ]
    live.function = answering({"Do-two": FAILURE, "Do-gone": FAILURE})
    batch = live.batch(
        "anna", "ben", "cleo", phases=plan, rollbacks={"undo": [step("back")]}, on_member_removed=[step("gone")]
    )
    path = f"/api/batches/{batch}/failures"
    assert live.get(path) == {"batchId": batch, "failures": []}
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    member = live.get(f"/api/batches/{batch}/members")["members"][0]["id"]
    live.call("DELETE", f"/api/batches/{batch}/members/{member}")
    live.settle()
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    found = live.get(path)["failures"]
    assert [(each["kind"], each["phaseName"], each["stepName"], each["count"]) for each in found] == [
        ("step", "two", "two", 2),
        ("removal", None, "gone", 1),
    ]
    assert found[0] == {
        "kind": "step",
        "phaseName": "two",
        "stepName": "two",
        "workerId": "worker-1",
        "functionName": "Do-two",
        "errorMessage": "Nope: no",
        "count": 2,
        "lastAt": "2026-03-01T12:00:00Z",
    }
    assert len(live.get(f"{path}?limit=1")["failures"]) == 1
    assert "no batch" in live.error("GET", "/api/batches/9999999/failures", 404)


def test_failures_of_init_and_rollbacks_are_among_them(live: Live) -> None:
    plan = [{"name": "one", "offset": "T-2h", "steps": [step("one", on_failure="undo")]}]
    live.function = answering({"Do-one": FAILURE, "Do-back": FAILURE})
    batch = live.batch("anna", phases=plan, rollbacks={"undo": [step("back")]})
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    kinds = {each["kind"] for each in live.get(f"/api/batches/{batch}/failures")["failures"]}
    assert kinds == {"step", "rollback"}
    live.function = answering({"Do-open": FAILURE})
    batch = live.batch("anna", init=True)
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    (failure,) = live.get(f"/api/batches/{batch}/failures")["failures"]
    assert (failure["kind"], failure["stepName"], failure["phaseName"]) == ("init", "open", None)


# All of it ------------------------------------------------------------------------------------------------------------


def lead(live: Live, seconds: float) -> None:
    """A scheduler that leads, or led, until then."""
    with live.database.transaction() as tx:
        now = live.clock.now() if tx.dialect == "sqlite" else leases.database_time(tx)
        tx.connection.execute(lease_rows.delete())
        until = now + timedelta(seconds=seconds)
        tx.connection.execute(insert(lease_rows), {"name": "scheduler", "holder": "host-a", "expires_at": until})


def test_a_scheduler_that_does_not_run_is_told(live: Live) -> None:
    live.publish()
    assert "no scheduler is running: nothing that is due starts" in about(live, "scheduler")[0]
    lead(live, 20)
    try:
        found = live.get("/api/status")["scheduler"]
        assert (found["isRunning"], found["holder"], about(live, "no scheduler")) == (True, "host-a", [])
        lead(live, -1)
        assert "the last one was host-a" in about(live, "no scheduler")[0]
        assert live.get("/api/status")["scheduler"]["isRunning"] is False
    finally:
        with live.database.transaction() as tx:
            tx.connection.execute(lease_rows.delete())


def test_what_comes_next_and_what_is_late(live: Live) -> None:
    batch = automatic_batch(live, live.publish(), "anna", hours=48)
    live.settle()
    found = live.get("/api/status")
    assert batch in {each["id"] for each in found["openBatches"]}
    assert found["batchesByStatus"]["active"] >= 1
    (first, second) = [each for each in found["nextPhases"] if each["batchId"] == batch]
    assert (first["phaseName"], first["dueAt"]) == ("prepare", "2026-03-02T12:00:00Z")
    assert second["phaseName"] == "move"
    assert about(live, "has not begun") == []
    live.clock.advance(hours=25)
    try:
        (line,) = about(live, f"of batch {batch}")
        assert line.startswith("phase 'prepare' of batch")
        assert line.endswith("was due at 2026-03-02T12:00:00Z and has not begun: the scheduler does not start it")
    finally:
        live.clock.advance(hours=-25)
        live.post(f"/api/batches/{batch}/cancel")


def test_workers_that_are_silent_or_were_never_started(live: Live) -> None:
    batch = live.batch("anna", "ben")
    live.post(f"/api/batches/{batch}/advance")
    while live.orchestrator.handle_events():
        pass
    assert live.get("/api/status")["workers"] == [
        {
            "workerId": None,
            "waiting": 2,
            "running": 0,
            "oldestSince": START.isoformat().replace("+00:00", "Z"),
            "isSilent": False,
        }
    ]
    live.clock.advance(minutes=6)
    try:
        assert "the worker of every id is silent: 2 jobs wait, the first since" in about(live, "silent")[0]
    finally:
        live.clock.advance(minutes=-6)
    live.settle()
    place = Names().worker("other")
    with live.database.transaction() as tx:
        live.bus.declare(tx, Topology(subscriptions=(place,)))
        live.bus.remove(tx, live.worker_place.subscription)
    try:
        batch = live.batch("cleo")
        live.post(f"/api/batches/{batch}/advance")
        while live.orchestrator.handle_events():
            pass
        assert [each["workerId"] for each in live.get("/api/status")["workers"]] == ["other"]
        assert about(live, "never started") == [
            "worker 'worker-1' was never started here, and one step waits for it. Start it"
        ]
    finally:
        live.post(f"/api/batches/{batch}/cancel")
        with live.database.transaction() as tx:
            live.bus.remove(tx, place.subscription)
            live.bus.declare(tx, Topology(subscriptions=(live.worker_place,)))


def test_what_is_held_put_aside_wrong_or_failed(live: Live) -> None:
    live.function = answering({"Do-prepare": FAILURE})
    name = live.publish()
    batch = live.create(name, "anna", "ben")["batchId"]
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    assert about(live, "failed") == [f"batch {batch} ({name}): 2 members failed. Look at its failures"]
    added = live.post(f"/api/batches/{batch}/members", files=upload(csv("cleo")))
    assert added["addedCount"] == 1
    dead = live.get("/api/status")["deadLetters"]
    number = park(live, '{"messageType":"phase-due"}')
    with live.database.transaction() as tx:
        own, held = batch_members.c, {"removal_held_at": live.clock.now()}
        tx.connection.execute(update(batch_members).where(own.batch_id == batch, own.member_key == "cleo").values(held))
        error = {"last_error": "the data source\nwas not read: " + "x" * 400, "last_error_at": live.clock.now()}
        tx.connection.execute(update(runbooks).where(runbooks.c.name == name).values(error))
    found = live.get("/api/status")
    assert {"batchId": batch, "runbookName": name, "count": 1, "since": "2026-03-01T12:00:00Z"} in found["heldRemovals"]
    assert found["deadLetters"] == dead + 1
    assert [each["version"] for each in found["runbookErrors"] if each["name"] == name] == [1]
    assert any(
        "one member missing from the data source since 2026-03-01T12:00:00Z is kept" in each
        for each in found["attention"]
    )
    assert f"messages that could not be handled: {dead + 1}. Look at the dead letters" in found["attention"]
    (line,) = [each for each in found["attention"] if each.startswith(f"runbook '{name}' v1: the data source was not")]
    assert len(line) < 350
    live.post(f"/api/dead-letters/{number}/resubmit")
    assert live.get("/api/status")["deadLetters"] == dead
    live.settle()
    live.post(f"/api/batches/{batch}/cancel")
    assert about(live, f"batch {batch} ") == []
