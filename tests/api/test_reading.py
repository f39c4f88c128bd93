"""Lists: their order, pages and filters; and what everything waits for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.bus import Names, Topology
from matoolkit.messages import WorkerError, WorkerResult
from tests.api.live import Live, upload
from tests.api.people import csv, runbook, step
from tests.api.test_runbooks import automatic_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.messages import WorkerJob

KEYS = [f"person-{number:02}" for number in range(25)]


@pytest.fixture
def live(anywhere: Live) -> Iterator[Live]:
    yield anywhere
    anywhere.function = None


def paged(live: Live, path: str, of: str, **params: Any) -> list[Any]:
    """All pages of a list, by cursor."""
    found: list[Any] = []
    cursor = None
    for _ in range(100):
        page = live.get(path, params={**params, "cursor": cursor})
        found += page[of]
        cursor = page["nextCursor"]
        if cursor is None:
            return found
    raise AssertionError("it never ends")


def ids(rows: list[Any]) -> list[int]:
    return [row["id"] for row in rows]


def answering(answers: dict[str, dict[str, Any]]) -> Any:
    """A worker that answers by function; what it has no answer for succeeds."""

    def function(job: WorkerJob) -> WorkerResult:
        answer = answers.get(job.function_name, {"status": "success", "result": True})
        return WorkerResult(job_id=job.job_id, correlation_data=job.correlation_data, **answer)

    return function


FAILURE = {"status": "failure", "error": WorkerError(message="no", type="Nope")}


# Pages ----------------------------------------------------------------------------------------------------------------


def test_batches_are_listed_the_newest_first_with_filters(live: Live) -> None:
    name, other = live.publish(), live.publish()
    made = [live.create(name, f"p{number}")["batchId"] for number in range(5)]
    live.create(other, "p0")
    live.post(f"/api/batches/{made[2]}/cancel")
    listed = live.get("/api/batches", params={"runbook": name.upper(), "limit": 2})
    assert (ids(listed["batches"]), listed["total"], listed["limit"], listed["offset"]) == (made[:2:-1], 5, 2, 0)
    assert ids(paged(live, "/api/batches", "batches", runbook=name, limit=2)) == made[::-1]
    assert ids(live.get("/api/batches", params={"runbook": name, "offset": 3})["batches"]) == made[1::-1]
    assert ids(live.get("/api/batches", params={"runbook": name, "status": "cancelled"})["batches"]) == [made[2]]
    assert live.get("/api/batches", params={"runbook": name, "manual": "false"})["total"] == 0
    assert live.get("/api/batches", params={"runbook": name, "manual": "true"})["total"] == 5
    assert live.get("/api/batches", params={"runbook": "nobody"}) == {
        "batches": [],
        "total": 0,
        "limit": 50,
        "offset": 0,
        "nextCursor": None,
    }
    item = live.get("/api/batches", params={"runbook": name, "limit": 1})["batches"][0]
    assert (item["runbookVersion"], item["isManual"], item["createdBy"]) == (1, True, "anna@example.test")
    assert (item["memberCount"], item["status"], item["detectedAt"]) == (1, "detected", "2026-03-01T12:00:00Z")


def test_members_are_listed_as_they_were_added_with_filters(live: Live) -> None:
    batch = live.batch(*KEYS)
    path = f"/api/batches/{batch}/members"
    everybody = paged(live, path, "members", limit=7)
    assert [each["memberKey"] for each in everybody] == KEYS
    for each in everybody[3:5]:
        live.call("DELETE", f"{path}/{each['id']}")
    assert (live.get(f"{path}?status=active")["total"], live.get(path)["total"]) == (23, 25)
    assert ids(paged(live, path, "members", status="removed", limit=1)) == ids(everybody[3:5])
    assert ids(paged(live, path, "members", status="active", limit=10)) == ids(everybody[:3] + everybody[5:])
    assert ids(live.get(f"{path}?offset=20&limit=2")["members"]) == ids(everybody[20:22])
    assert live.get(f"/api/batches/{batch}")["batch"]["membersByStatus"] == {"active": 23, "removed": 2}
    assert live.get(f"/api/batches/{batch}")["batch"]["memberCount"] == 23


def test_one_member_is_found_by_key_or_by_id(live: Live) -> None:
    batch, other = live.batch("anna", "12", "ben"), live.batch("carl")
    path = f"/api/batches/{batch}/members"
    everybody = {each["memberKey"]: each for each in live.get(path)["members"]}

    def found(**query: Any) -> list[str]:
        page = live.get(path, params=query)
        assert (page["total"], page["nextCursor"]) == (len(page["members"]), None)
        return [each["memberKey"] for each in page["members"]]

    assert found(member="ben") == found(member="BEN") == found(member=everybody["ben"]["id"]) == ["ben"]
    assert found(member="12") == ["12"]
    assert found(member="ben", status="active") == ["ben"]
    assert found(member="ben", status="removed") == []
    assert found(member="nobody") == found(member=10**30) == found(member="") == []
    of_the_other = live.get(f"/api/batches/{other}/members")["members"][0]["id"]
    assert found(member=of_the_other) == []
    assert live.get(path, params={"member": "ben", "offset": 1})["members"] == []
    cursor = live.get(path, params={"limit": 2})["nextCursor"]
    assert [each["memberKey"] for each in live.get(path, params={"member": "ben", "cursor": cursor})["members"]] == [
        "ben"
    ]
    assert live.get(path, params={"member": "anna", "cursor": cursor})["members"] == []
    assert "NUL" in live.error("GET", f"{path}?member=%00", 400)


def test_steps_are_listed_as_they_were_written_with_filters(live: Live) -> None:
    live.function = answering({"Do-tidy": FAILURE})
    batch = live.batch(*KEYS[:4])
    path = f"/api/batches/{batch}/steps"
    assert live.get(path) == {"batchId": batch, "total": 0, "steps": [], "nextCursor": None}
    for _ in range(2):
        live.post(f"/api/batches/{batch}/advance")
        live.settle()
    everything = paged(live, path, "steps", limit=5)
    assert [(each["phaseName"], each["memberKey"], each["stepName"]) for each in everything] == [
        *(("prepare", key, "prepare") for key in KEYS[:4]),
        *(("move", key, name) for key in KEYS[:4] for name in ("move", "tidy")),
    ]
    assert live.get(path)["total"] == 12
    failed = live.get(f"{path}?status=failed")
    assert (failed["total"], {each["errorMessage"] for each in failed["steps"]}) == (4, {"Nope: no"})
    assert ids(paged(live, path, "steps", phase="MOVE", limit=3)) == ids(everything[4:])
    assert live.get(f"{path}?phase=nothing")["total"] == 0
    by_key = live.get(f"{path}?member={KEYS[1].upper()}")
    assert (by_key["total"], {each["memberKey"] for each in by_key["steps"]}) == (3, {KEYS[1]})
    member = by_key["steps"][0]["batchMemberId"]
    assert live.get(f"{path}?member={member}&phase=move&status=succeeded")["steps"][0]["stepName"] == "move"
    assert live.get(f"{path}?member=nobody")["total"] == 0
    step = by_key["steps"][0]
    assert (step["workerId"], step["functionName"], step["jobId"]) == ("worker-1", "Do-prepare", f"step-{step['id']}")
    assert (step["isPollStep"], step["pollCount"], step["retryCount"], step["rollbackStatus"]) == (False, 0, 0, None)
    counts = live.get(f"/api/batches/{batch}/phases?counts=true")["phases"]
    assert [each["stepsByStatus"] for each in counts] == [{"succeeded": 4}, {"succeeded": 4, "failed": 4}]


@pytest.mark.parametrize(
    "path",
    [
        "/api/batches?limit=0",
        "/api/batches?limit=101",
        "/api/batches?limit=x",
        "/api/batches?offset=-1",
        "/api/batches?offset=99999999999999999999",
        "/api/batches?status=lost",
        "/api/batches?manual=perhaps",
        "/api/batches?runbook=%00",
        "/api/batches?cursor=x",
        "/api/batches?cursor=%C3%A4",
        "/api/batches?cursor=bWVtYmVyczox",
        "/api/batches?cursor=YmF0Y2hlczp4",
        "/api/batches?cursor=YmF0Y2hlczo5OTk5OTk5OTk5OTk5OTk5OTk5OTk",
        "/api/batches?cursor=YmF0Y2hlczox&offset=1",
        "/api/batches/0",
        "/api/batches/x",
        "/api/batches/99999999999999999999",
        "/api/batches/1/members?status=lost",
        "/api/batches/1/members?limit=1001",
        "/api/batches/1/steps?member=%00",
        "/api/audit?since=yesterday",
        "/api/audit?since=0001-01-01T00:00:00%2B14:00",
        "/api/audit?actor=%00",
        "/api/audit?batchId=x",
        "/api/dead-letters?limit=501",
    ],
)
def test_what_cannot_be_asked(live: Live, path: str) -> None:
    assert live.error("GET", path, 400)


@pytest.mark.parametrize("path", ["", "/members", "/phases", "/steps"])
def test_a_batch_that_is_not_there(live: Live, path: str) -> None:
    assert live.error("GET", f"/api/batches/9999999{path}", 404) == "there is no batch 9999999"


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "advance"), ("POST", "cancel"), ("POST", "held-removals/release"), ("DELETE", "members/1")],
)
def test_a_batch_that_is_not_there_is_not_changed(live: Live, method: str, path: str) -> None:
    assert "no batch" in live.error(method, f"/api/batches/9999999/{path}", 404)


def test_members_of_no_batch_or_of_another(live: Live) -> None:
    batch, other = live.batch("anna"), live.batch("ben")
    member = live.get(f"/api/batches/{other}/members")["members"][0]["id"]
    assert "no member" in live.error("DELETE", f"/api/batches/{batch}/members/{member}", 404)
    assert "no batch" in live.error("POST", "/api/batches/9999999/members", 404, files=upload(csv("x")))


# What things wait for -------------------------------------------------------------------------------------------------


def waiting(live: Live, batch: int, of: str = "steps", **params: Any) -> list[str | None]:
    return [each["waitingFor"] for each in live.get(f"/api/batches/{batch}/{of}", params=params)[of]]


def test_a_batch_waits_for_an_operator(live: Live) -> None:
    batch = live.batch("anna")
    assert waiting(live, batch, "members") == ["an operator, to advance it"]
    assert waiting(live, batch, "phases") == ["an operator, to advance it"] * 2


def test_init_waits_for_its_worker(live: Live) -> None:
    batch = live.batch("anna", init=True)
    live.post(f"/api/batches/{batch}/advance")
    while live.orchestrator.handle_events():
        pass
    detail = live.get(f"/api/batches/{batch}")
    (init,) = detail["initSteps"]
    job = f"job init-{init['id']}, sent 2026-03-01T12:00:00Z"
    assert init["waitingFor"] == f"worker 'worker-1', with 1 jobs waiting and 0 running ({job})"
    assert detail["batch"]["waitingFor"] == f"init, at step 'open': {init['waitingFor']}"
    assert waiting(live, batch, "members") == [detail["batch"]["waitingFor"]]
    live.settle()


def test_steps_wait_for_the_one_before_and_for_a_silent_worker(live: Live) -> None:
    plan = [{"name": "move", "offset": "T-0", "steps": [step("one"), step("two")]}]
    batch = live.batch("anna", phases=plan)
    live.post(f"/api/batches/{batch}/advance")
    while live.orchestrator.handle_events():
        pass
    live.clock.advance(minutes=6)
    try:
        first, second = waiting(live, batch)
        assert first is not None
        assert first.startswith("worker 'worker-1', which is silent: 1 jobs wait, the first since 2026-03-01T12:00:00Z")
        assert second == "step 'one' before it"
        assert waiting(live, batch, "members") == [f"step 'one': {first}"]
    finally:
        live.clock.advance(minutes=-6)
        live.settle()


def test_a_worker_that_nobody_started(live: Live) -> None:
    batch = live.batch("anna")
    place = Names().worker("other")
    with live.database.transaction() as tx:
        live.bus.declare(tx, Topology(subscriptions=(place,)))
        live.bus.remove(tx, live.worker_place.subscription)
    try:
        live.post(f"/api/batches/{batch}/advance")
        while live.orchestrator.handle_events():
            pass
        (text,) = waiting(live, batch)
        assert text == "worker 'worker-1', which was never started here"
        published = live.post("/api/runbooks", json={"name": "deaf", "yamlContent": runbook("deaf")})
        assert published["warnings"] == ["worker 'worker-1' has never been started here: its steps wait until it is"]
    finally:
        with live.database.transaction() as tx:
            live.bus.remove(tx, place.subscription)
            live.bus.declare(tx, Topology(subscriptions=(live.worker_place,)))


def test_retries_and_polls_wait_for_a_time(live: Live) -> None:
    plan = [
        {"name": "try", "offset": "T-2h", "steps": [step("try", retry={"max_retries": 1, "interval": "10m"})]},
        {"name": "ask", "offset": "T-1h", "steps": [step("ask", poll={"interval": "5m", "timeout": "1h"})]},
    ]
    live.function = answering({"Do-try": FAILURE})
    batch = live.batch("anna", phases=plan)
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    assert waiting(live, batch) == ["another try, at 2026-03-01T12:10:00Z"]
    live.function = answering({"Do-ask": {"status": "success", "result": {"complete": False}}})
    live.clock.advance(minutes=10)
    try:
        live.settle()
        live.post(f"/api/batches/{batch}/advance")
        live.settle()
        assert waiting(live, batch, status="polling") == ["the next question about it, at 2026-03-01T12:15:00Z"]
    finally:
        live.post(f"/api/batches/{batch}/cancel")
        live.clock.advance(minutes=-10)
    assert waiting(live, batch, "phases") == [None, None]


def test_rollbacks_are_waited_for(live: Live) -> None:
    plan = [{"name": "move", "offset": "T-0", "steps": [step("move", on_failure="undo")]}]
    rollbacks = {"undo": [step("back", retry={"max_retries": 1, "interval": "1h"})]}
    live.function = answering({"Do-move": FAILURE, "Do-back": FAILURE})
    batch = live.batch("anna", phases=plan, rollbacks=rollbacks)
    live.post(f"/api/batches/{batch}/advance")
    live.settle()
    (failed,) = live.get(f"/api/batches/{batch}/steps")["steps"]
    assert (failed["status"], failed["rollbackStatus"], failed["waitingFor"]) == (
        "failed",
        "running",
        "its rollback 'undo'",
    )
    assert waiting(live, batch, "members") == ["its rollback, at step 'back'"]


def test_an_automatic_batch_waits_for_its_time(live: Live) -> None:
    name = live.publish()
    batch = automatic_batch(live, name, "anna", hours=48)
    live.settle()
    due = (live.clock.now() + timedelta(hours=24)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert live.get(f"/api/batches/{batch}")["batch"]["waitingFor"] == f"phase 'prepare', due {due}"
    assert waiting(live, batch, "members") == [f"phase 'prepare', due {due}"]
    assert waiting(live, batch, "phases")[0] == f"its time, {due}"
    for method, path in (("POST", "advance"), ("DELETE", "members/1")):
        assert "not a manual one" in live.error(method, f"/api/batches/{batch}/{path}", 409)
    assert "not a manual one" in live.error("POST", f"/api/batches/{batch}/members", 409, files=upload(csv("x")))
    assert live.post(f"/api/batches/{batch}/cancel")["status"] == "cancelled"
