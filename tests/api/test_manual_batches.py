"""A manual batch from CSV to its end, through the API and the real orchestrator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.messages import WorkerError, WorkerResult
from matoolkit.simulation import invariants
from tests.api.live import START, upload
from tests.api.people import csv, step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.messages import WorkerJob
    from tests.api.live import Live


@pytest.fixture
def live(anywhere: Live) -> Iterator[Live]:
    yield anywhere
    anywhere.function = None


def members(live: Live, batch: int) -> dict[str, str]:
    return {each["memberKey"]: each["status"] for each in live.get(f"/api/batches/{batch}/members")["members"]}


def phases(live: Live, batch: int) -> dict[str, str]:
    return {each["phaseName"]: each["status"] for each in live.get(f"/api/batches/{batch}/phases")["phases"]}


def status(live: Live, batch: int) -> str:
    return str(live.get(f"/api/batches/{batch}")["batch"]["status"])


def failing(*functions_or_mails: str) -> Any:
    def function(job: WorkerJob) -> WorkerResult:
        bad = job.function_name in functions_or_mails or job.parameters.get("Mail") in functions_or_mails
        return WorkerResult(
            job_id=job.job_id,
            batch_id=job.batch_id,
            worker_id=job.worker_id,
            function_name=job.function_name,
            status="failure" if bad else "success",
            result_type="Boolean",
            result=None if bad else True,
            error=WorkerError(message="no", type="Nope") if bad else None,
            correlation_data=job.correlation_data,
        )

    return function


def test_from_a_list_to_the_end(live: Live) -> None:
    name = live.publish(init=True)
    made = live.create(name, "anna", "ben")
    batch = made["batchId"]
    assert made == {
        "batchId": batch,
        "status": "detected",
        "memberCount": 2,
        "availablePhases": ["prepare", "move"],
        "warnings": [],
    }
    live.settle()
    assert live.get(f"/api/batches/{batch}")["batch"]["waitingFor"] == "an operator, to advance it"

    advance = f"/api/batches/{batch}/advance"
    assert live.post(advance) == {
        "action": "init_dispatched",
        "phaseName": None,
        "memberCount": 2,
        "stepCount": 1,
        "nextPhase": "prepare",
    }
    assert "init is not finished" in live.error("POST", advance, 400)
    live.settle()
    detail = live.get(f"/api/batches/{batch}")
    assert detail["batch"]["status"] == "active"
    assert detail["batch"]["batchStartTime"] == START.isoformat().replace("+00:00", "Z")
    assert [each["status"] for each in detail["initSteps"]] == ["succeeded"]

    assert live.post(advance) == {
        "action": "phase_dispatched",
        "phaseName": "prepare",
        "memberCount": 2,
        "stepCount": 1,
        "nextPhase": "move",
    }
    assert live.error("POST", advance, 400) == "phase 'prepare' is not finished"
    live.settle()
    assert phases(live, batch) == {"prepare": "completed", "move": "pending"}
    assert members(live, batch) == {"anna": "active", "ben": "active"}
    waiting = {each["waitingFor"] for each in live.get(f"/api/batches/{batch}/members")["members"]}
    assert waiting == {"an operator, to advance it to phase 'move'"}

    assert live.post(advance)["nextPhase"] is None
    assert live.get(f"/api/batches/{batch}")["batch"]["currentPhase"] == "move"
    live.settle()
    assert (status(live, batch), members(live, batch)) == ("completed", {"anna": "completed", "ben": "completed"})
    assert live.post(advance)["action"] == "completed"
    actions = [each["action"] for each in live.get(f"/api/audit?batchId={batch}")["entries"]]
    assert actions == ["batch.advanced", "batch.advanced", "batch.advanced", "batch.created"]


def test_without_init_the_first_advance_starts_the_first_phase(live: Live) -> None:
    batch = live.batch()
    assert live.post(f"/api/batches/{batch}/advance")["phaseName"] == "prepare"
    assert status(live, batch) == "active"
    live.settle()
    assert status(live, batch) == "active"


def test_equal_offsets_go_in_the_order_of_the_runbook(live: Live) -> None:
    plan = [
        {"name": name, "offset": offset, "steps": [step(name)]}
        for name, offset in (("second", "T-1h"), ("third", "T-1h"), ("first", "T-2h"))
    ]
    batch = live.batch(phases=plan)
    seen = []
    for _ in plan:
        seen.append(live.post(f"/api/batches/{batch}/advance")["phaseName"])
        live.settle()
    assert seen == ["first", "second", "third"]
    assert status(live, batch) == "completed"


def test_who_fails_is_left_behind_and_the_others_go_on(live: Live) -> None:
    live.function = failing("ben@example.test")
    batch = live.batch()
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    assert members(live, batch) == {"anna": "active", "ben": "failed"}
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    assert (status(live, batch), phases(live, batch)) == ("completed", {"prepare": "completed", "move": "completed"})
    assert members(live, batch) == {"anna": "completed", "ben": "failed"}


def test_when_all_have_failed_so_has_the_batch(live: Live) -> None:
    live.function = failing("anna@example.test", "ben@example.test")
    batch = live.batch()
    for count in (2, 0):
        assert live.post(f"/api/batches/{batch}/advance")["memberCount"] == count
        live.settle()
    assert (status(live, batch), phases(live, batch)) == ("failed", {"prepare": "failed", "move": "failed"})
    assert "has ended" in live.error("POST", f"/api/batches/{batch}/advance", 409)


def test_init_that_fails_ends_the_batch(live: Live) -> None:
    live.function = failing("Do-open")
    batch = live.batch(init=True)
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    assert status(live, batch) == "failed"
    assert phases(live, batch) == {"prepare": "skipped", "move": "skipped"}


def test_members_are_added_before_the_start_and_on_the_way(live: Live) -> None:
    batch = live.batch("anna")
    add = f"/api/batches/{batch}/members"
    assert live.post(add, files=upload(csv("ben", "ANNA"))) == {
        "batchId": batch,
        "addedCount": 1,
        "skippedCount": 1,
        "warnings": ["left out: 'ANNA' is in this batch already (active)"],
    }
    live.settle()
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    live.post(add, files=upload(csv("cleo")))
    live.settle()
    found = live.get(f"/api/batches/{batch}/steps?member=cleo")["steps"]
    assert [(each["phaseName"], each["status"]) for each in found] == [("prepare", "succeeded")]
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    assert members(live, batch) == dict.fromkeys(("anna", "ben", "cleo"), "completed")


def test_a_member_is_removed_and_comes_back(live: Live) -> None:
    batch = live.batch(on_member_removed=[step("forget")])
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    ben = next(each for each in live.get(f"/api/batches/{batch}/members")["members"] if each["memberKey"] == "ben")
    path = f"/api/batches/{batch}/members/{ben['id']}"
    answer = live.call("DELETE", path).json()
    assert (answer["batchId"], answer["memberId"]) == (batch, ben["id"])
    assert "removed" in live.error("DELETE", path, 409)
    waiting = live.get(f"/api/batches/{batch}/members?status=removed")["members"][0]
    assert waiting["waitingFor"] == "its leaving to begin"
    assert waiting["removedBy"] == "anna@example.test"
    back = live.post(f"/api/batches/{batch}/members", files=upload(csv("ben")))
    assert back["warnings"] == ["left out: 'ben' is still leaving: add it later"]
    live.settle()
    assert live.post(f"/api/batches/{batch}/members", files=upload(csv("ben")))["addedCount"] == 1
    live.settle()
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    found = {each["memberKey"]: each for each in live.get(f"/api/batches/{batch}/members")["members"]}
    assert {key: each["status"] for key, each in found.items()} == {"anna": "completed", "ben": "completed"}
    assert found["ben"]["generation"] == 2


def test_nobody_is_in_two_open_batches_of_a_runbook(live: Live) -> None:
    name = live.publish()
    first = live.create(name, "anna", "ben")["batchId"]
    second = live.create(name, "Anna", "cleo")
    assert second["memberCount"] == 1
    assert second["warnings"] == [f"left out: 'Anna' is in batch {first} of this runbook, and not through with it"]
    answer = live.call("POST", "/api/batches", data={"runbookName": name}, files=upload(csv("ben")))
    assert answer.status_code == 409
    assert "nobody is left" in answer.json()["error"]
    added = live.post(f"/api/batches/{second['batchId']}/members", files=upload(csv("ben")))
    assert (added["addedCount"], added["skippedCount"]) == (0, 1)
    live.post(f"/api/batches/{first}/cancel")
    assert live.create(name, "ben")["memberCount"] == 1
    assert live.create(live.publish(), "anna")["memberCount"] == 1


def test_who_failed_may_go_once_more_in_a_batch_of_their_own(live: Live) -> None:
    live.function = failing("ben@example.test")
    name = live.publish()
    batch = live.create(name, "anna", "ben")["batchId"]
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    assert members(live, batch) == {"anna": "active", "ben": "failed"}
    live.function = None
    again = live.create(name, "anna", "ben")
    assert again["memberCount"] == 1
    assert again["warnings"] == [f"left out: 'anna' is in batch {batch} of this runbook, and not through with it"]
    for each in (again["batchId"], batch, again["batchId"]):
        live.post(f"/api/batches/{each}/advance")
        live.settle()
    assert members(live, again["batchId"]) == {"ben": "completed"}
    assert members(live, batch) == {"anna": "completed", "ben": "failed"}


def test_cancelling_ends_it(live: Live) -> None:
    batch = live.batch()
    live.post(f"/api/batches/{batch}/advance")
    answer = live.post(f"/api/batches/{batch}/cancel")
    assert (answer["batchId"], answer["status"]) == (batch, "cancelled")
    live.settle()
    assert phases(live, batch) == {"prepare": "cancelled", "move": "cancelled"}
    assert set(members(live, batch).values()) == {"removed"}
    assert live.get(f"/api/batches/{batch}")["batch"]["cancelledBy"] == "anna@example.test"
    for path in ("advance", "cancel", "held-removals/release"):
        assert "has ended: it is cancelled" in live.error("POST", f"/api/batches/{batch}/{path}", 409)
    assert "has ended" in live.error("POST", f"/api/batches/{batch}/members", 409, files=upload(csv("dora")))


def test_a_new_version_leaves_it_alone(live: Live) -> None:
    name = live.publish()
    batch = live.create(name, "anna")["batchId"]
    live.publish(name)
    for _ in range(2):
        live.post(f"/api/batches/{batch}/advance")
        live.settle()
    found = live.get(f"/api/batches/{batch}")["batch"]
    assert (found["status"], found["runbookVersion"]) == ("completed", 1)


def test_what_is_left_behind_breaks_no_rule(live: Live) -> None:
    with live.database.reading() as tx:
        assert invariants.check(tx) == []
