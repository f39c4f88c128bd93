"""Workers as processes with a tenant: killed and told to end in the middle of it, and what the tenant saw of that."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.simulation.tenant import Api, Application, SimulatedTenant, TenantFault, ThrottleMode
from tests.worker.crashes import Crashes
from tests.worker.functions.cases import CASES
from tests.worker.processes import APP_ID, SECRET, WorkerProcess, tenant_settings
from tests.worker.workplace import Workplace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matoolkit.messages import WorkerJob, WorkerResult
    from matoolkit.store.database import Database

NEW, INVITE = "New-EntraUser", "New-EntraB2BInvitation"
OTHERS = [case for case in CASES if case.name not in {NEW, INVITE}]


@pytest.fixture
def url(postgres_database: Database) -> str:
    return postgres_database.engine.url.render_as_string(hide_password=False)


@pytest.fixture
def workplace(postgres_database: Database) -> Iterator[Workplace]:
    made = Workplace(postgres_database)
    yield made
    made.bus.close()


@pytest.fixture
def server() -> Iterator[SimulatedTenant]:
    with SimulatedTenant(seed=1) as server:
        server.tenant.register(Application(client_id=APP_ID, secrets={SECRET}))
        yield server


def jobs_of_all_kinds(workplace: Workplace, server: SimulatedTenant, count: int) -> list[WorkerJob]:
    """Of ten jobs seven make users, one invites, and two are of the other functions in turn."""
    made: list[WorkerJob] = []
    for number in range(count):
        name = f"person{number}"
        which = NEW if number % 10 < 7 else INVITE if number % 10 == 7 else OTHERS[number // 2 % len(OTHERS)].name
        (case,) = [each for each in CASES if each.name == which]
        parameters: dict[str, Any] = case.prepare(server.tenant, name)
        made.append(workplace.job(which, parameters, first_dispatched_at=datetime.now(UTC)))
    return made


def check_what_the_tenant_saw(
    server: SimulatedTenant, jobs: list[WorkerJob], results: dict[str, WorkerResult]
) -> tuple[int, int]:
    """Everybody made once and everything well; how many users were looked for again, and how many did not know."""
    unknown = 0
    for job in jobs:
        result = results[job.job_id]
        if job.function_name != INVITE or result.status == "success":
            assert result.status == "success", result
        else:
            assert result.error is not None
            assert result.error.type == "OutcomeUnknown"
            unknown += 1
    records = server.tenant.records
    wanted = {str(job.parameters["UserPrincipalName"]) for job in jobs if job.function_name == NEW}
    created = records.by_subject("POST /users", status=201)
    assert set(created) == wanted
    assert set(created.values()) == {1}
    assert records.count("POST /users", acted=True) == len(wanted)
    invited = {
        job.job_id: str(job.parameters["InvitedUserEmailAddress"]) for job in jobs if job.function_name == INVITE
    }
    sent = records.by_subject("POST /invitations", acted=True)
    assert set(sent.values()) <= {1}
    assert {address for job_id, address in invited.items() if results[job_id].status == "success"} <= set(sent)
    return sum(records.by_subject("POST /users", status=400).values()), unknown


def killed_at_random(workplace: Workplace, server: SimulatedTenant, crashes: Crashes, kills: int, count: int) -> None:
    # Some answers are late, and some requests: kills come before and after the tenant has acted.
    jobs = jobs_of_all_kinds(workplace, server, count)
    server.tenant.fault(TenantFault.SLOW_AFTER_ACTING, likelihood=0.3, seconds=0.1)
    server.tenant.fault(TenantFault.SLOW, likelihood=0.3, seconds=0.1)
    results = crashes.run(jobs, kills)
    again, unknown = check_what_the_tenant_saw(server, jobs, results)
    print(
        f"{count} jobs, {kills} kills: every one with one result; {again} users were there when their jobs were run"
        f" again, and of {count // 10} invitations {unknown} have an unknown outcome"
    )


def test_killed_at_random_points_nobody_is_made_twice(
    workplace: Workplace, server: SimulatedTenant, url: str, tmp_path: Path
) -> None:
    crashes = Crashes(workplace, url, tmp_path, tenant_settings(server), longest_life=0.8)
    killed_at_random(workplace, server, crashes, 6, 400)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_killed_a_hundred_times_nobody_is_made_twice(
    workplace: Workplace, server: SimulatedTenant, url: str, tmp_path: Path, *, part: int
) -> None:
    crashes = Crashes(workplace, url, tmp_path, tenant_settings(server), seed=part, longest_life=1.2)
    killed_at_random(workplace, server, crashes, 25, 500)


@pytest.mark.parametrize("places", [16, pytest.param(64, marks=pytest.mark.soak)])
def test_told_to_end_with_every_place_taken_the_next_one_finishes(
    workplace: Workplace, server: SimulatedTenant, url: str, tmp_path: Path, places: int
) -> None:
    # All of it with 64 places in `test_processes.py`; a tenant that answers this slowly is asked by few at first.
    grace = 5
    jobs = jobs_of_all_kinds(workplace, server, places)
    server.tenant.fault(TenantFault.SLOW_AFTER_ACTING, likelihood=0.5, seconds=60)
    server.tenant.fault(TenantFault.SLOW, seconds=1.5)
    workplace.send(*jobs)
    settings = {
        **tenant_settings(server),
        "SHUTDOWN_GRACE_SECONDS": str(grace),
        "MAX_PARALLELISM": str(places),
    }
    first = WorkerProcess(url, tmp_path, settings)
    try:
        first.ready()
        ends = time.monotonic() + 30
        while sum(server.tenant.faults.struck.values()) < places:
            assert time.monotonic() < ends, server.tenant.records.table()
            time.sleep(0.02)
        began = time.monotonic()
        first.signal(signal.SIGTERM)
        assert first.exit_code() == 0
        assert time.monotonic() - began <= grace
    finally:
        first.kill()
    server.tenant.faults.clear()
    done = taken(workplace)
    assert 0 < len(done) < places
    assert workplace.jobs().ready == places - len(done)
    second = WorkerProcess(url, tmp_path, settings)
    try:
        second.ready()
        done |= {each.job_id: each for each in workplace.results(places - len(done))}
    finally:
        second.kill()
    assert len(done) == places
    assert workplace.no_results()
    check_what_the_tenant_saw(server, jobs, done)
    assert server.tenant.records.statuses(Api.GRAPH)[401] == 0


@pytest.mark.soak
@pytest.mark.parametrize("mode", list(ThrottleMode))
@pytest.mark.parametrize("limit", [20, 200])
def test_a_worker_reaches_what_the_tenant_bears(
    workplace: Workplace, server: SimulatedTenant, url: str, tmp_path: Path, *, limit: int, mode: ThrottleMode
) -> None:
    (person,) = server.tenant.add_users([{"userPrincipalName": "busy@target.example"}])
    asking = {"UserId": person["id"], "AttributeName": "id", "ExpectedValue": person["id"]}
    count = 25 * limit
    worker = WorkerProcess(url, tmp_path, {**tenant_settings(server), "MAX_PARALLELISM": "32"})
    try:
        worker.ready()
        server.tenant.throttle(Api.GRAPH, limit, mode)
        began = time.monotonic()
        workplace.send(*(workplace.job("Test-EntraAttributeMatch", asking) for _ in range(count)))
        results = workplace.results(count)
        share = count / (time.monotonic() - began) / limit
    finally:
        worker.kill()
    statuses = server.tenant.records.statuses(Api.GRAPH)
    refused = statuses[429] / sum(statuses.values())
    print(f"{limit} requests a second, {mode}: {share:.1%} of them reached, {refused:.2%} of the requests refused")
    assert {each.status for each in results} == {"success"}
    assert refused <= 0.02
    assert share >= 0.9


def taken(workplace: Workplace) -> dict[str, WorkerResult]:
    found = workplace.results(workplace.results_ready())
    assert len({each.job_id for each in found}) == len(found)
    return {each.job_id: each for each in found}
