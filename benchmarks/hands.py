"""One measurement of the worker in a process of its own: `python -m benchmarks.hands '<assignment>'`."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, assert_never

import msgspec
import psutil

# What a worker has imported when it is at work: only what it needs beyond that is its memory.
from azure.identity.aio import CertificateCredential, ClientSecretCredential  # noqa: F401 - as above

from benchmarks import machine
from matoolkit.bus import EmbeddedBus, Names, Outgoing, Topology
from matoolkit.clock import SystemClock
from matoolkit.hosts.tenant import tenant_services
from matoolkit.hosts.worker_host import Manner, WorkerHost
from matoolkit.messages import Correlation, WorkerJob, WorkerResult, encode
from matoolkit.store.database import open_database
from matoolkit.worker.concealing import Concealer
from matoolkit.worker.configuration import WorkerSettings
from matoolkit.worker.credentials import ClientSecret
from matoolkit.worker.loading import gather
from matoolkit.worker.post import Parcel, Post
from matoolkit.worker.registry import Registry, described

if TYPE_CHECKING:
    from matoolkit.bus import Subscription

PARALLELISM = 64
WORKER = "worker-01"
CLIENT_ID = "0a1b2c3d-0000-4000-8000-00000000abcd"
CLIENT_SECRET = "of the benchmark"  # noqa: S105 - of a tenant that is made for the run
_PUBLISH_TOGETHER = 1000
_LONGEST = 600.0


class Task(StrEnum):
    """What is done with the jobs."""

    BUS = "bus"
    """They are taken and answered, 64 at a time, by nobody in particular: what the bus costs."""
    WORKER = "worker"
    """A worker runs a function for each that does nothing."""
    TENANT = "tenant"
    """A worker makes a user for each in a simulated tenant, which is in another process."""


class Assignment(msgspec.Struct, frozen=True):
    """What a process measures, in an empty migrated database."""

    task: Task
    url: str
    jobs: int
    tenant_id: str = ""
    tenant_url: str = ""
    ca_file: str = ""


class Findings(msgspec.Struct):
    """What it found."""

    seconds: float = 0
    cpu: float = 0
    """Seconds of processor time, for all threads."""
    base_mb: float = 0
    """Resident once everything was imported and the jobs were there."""
    peak_mb: float = 0
    """The most that was resident after that."""


def main(assignment: Assignment) -> Findings:
    """Make the jobs, then do what is to be measured."""
    database = open_database(assignment.url)
    bus = EmbeddedBus(database)
    names = Names()
    rule = names.worker(WORKER)
    with bus.transaction() as tx:
        bus.declare(tx, names.topology())
        bus.declare(tx, Topology(subscriptions=(rule,)))
    _publish(bus, names, assignment)
    findings = Findings(base_mb=_resident_mb())
    machine.reset_peak_memory()
    begin, spent = time.perf_counter(), time.process_time()
    match assignment.task:
        case Task.BUS:
            _take(bus, rule.subscription, assignment.jobs)
        case Task.WORKER | Task.TENANT:
            _work(bus, assignment)
        case _:
            assert_never(assignment.task)
    findings.cpu, findings.seconds = time.process_time() - spent, time.perf_counter() - begin
    findings.peak_mb = machine.peak_memory_mb() or 0
    with bus.transaction() as tx:
        left = bus.depth(tx, rule.subscription).ready
        answered = bus.depth(tx, names.topology().subscriptions[1].subscription).ready
    if (left, answered) != (0, assignment.jobs):
        raise AssertionError(f"{left} jobs are left and {answered} of {assignment.jobs} were answered")
    return findings


def _publish(bus: EmbeddedBus, names: Names, assignment: Assignment) -> None:
    function = "New-EntraUser" if assignment.task is Task.TENANT else "Do-Nothing"
    for first in range(0, assignment.jobs, _PUBLISH_TOGETHER):
        outgoing = []
        for number in range(first, min(first + _PUBLISH_TOGETHER, assignment.jobs)):
            job = WorkerJob(
                job_id=f"step-{number}",
                idempotency_key=f"step-{number}",
                batch_id=1,
                worker_id=WORKER,
                function_name=function,
                parameters={"UserPrincipalName": f"p{number}@target.example", "DisplayName": f"Ada Lovelace {number}"},
                first_dispatched_at=datetime.now(UTC),
                correlation_data=Correlation(step_execution_id=number, runbook_name="wave", runbook_version=1),
            )
            properties = {"WorkerId": WORKER, "FunctionName": function}
            outgoing.append(Outgoing(encode(job), properties, job.job_id))
        with bus.transaction() as tx:
            bus.publish(tx, names.jobs, outgoing)


def _take(bus: EmbeddedBus, subscription: Subscription, jobs: int) -> None:
    """As the worker does it, less the worker."""
    post = Post(bus, subscription)
    result = WorkerResult(
        job_id="step-12345",
        batch_id=1,
        worker_id=WORKER,
        function_name="Do-Nothing",
        status="success",
        result_type="Boolean",
        result=True,
        timestamp=datetime.now(UTC),
        correlation_data=Correlation(step_execution_id=12345, runbook_name="wave", runbook_version=1),
    )
    properties = {"WorkerId": WORKER, "JobId": "step-12345", "BatchId": "1", "Status": "success"}
    answer = Outgoing(encode(result), properties)
    parcel, done = Parcel(), 0
    while received := post.exchange(parcel, PARALLELISM):
        parcel = Parcel(answered=[(message, answer) for message in received])
        done += len(received)
    if done != jobs:
        raise AssertionError(f"{done} of {jobs} jobs were there")


def _work(bus: EmbeddedBus, assignment: Assignment) -> None:
    over = Event()
    left = iter(range(assignment.jobs - 1, -1, -1))

    async def do_nothing(UserPrincipalName: str, DisplayName: str) -> bool:  # noqa: N803 - as runbooks write them
        if next(left) == 0:
            over.set()
        return bool(UserPrincipalName and DisplayName)

    with_tenant = assignment.task is Task.TENANT
    registry = gather(None) if with_tenant else Registry()
    registry.add([described("Do-Nothing", do_nothing)], "benchmark")
    host = WorkerHost(
        bus,
        Names().worker(WORKER),
        registry,
        SystemClock(),
        manner=Manner(worker_id=WORKER, parallelism=PARALLELISM, idle_seconds=1 if with_tenant else 0),
        tenant=partial(tenant_services, _settings(assignment), ClientSecret(CLIENT_SECRET), Concealer())
        if with_tenant
        else None,
    )
    thread = Thread(target=host.run, name="worker")
    thread.start()
    if not with_tenant:
        if not over.wait(_LONGEST):
            raise TimeoutError("nothing moves any more")
        host.stop()
    thread.join(_LONGEST)


def _settings(assignment: Assignment) -> WorkerSettings:
    settings: WorkerSettings = WorkerSettings.read(
        {
            "WORKER_ID": WORKER,
            "TARGET_TENANT_ID": assignment.tenant_id,
            "APP_ID": CLIENT_ID,
            "APP_CLIENT_SECRET": CLIENT_SECRET,
            "MATOOLKIT_DATABASE_URL": assignment.url,
            "AUTHORITY_URL": assignment.tenant_url,
            "GRAPH_BASE_URL": assignment.tenant_url,
            "EXCHANGE_BASE_URL": assignment.tenant_url,
            "TENANT_CA_PATH": assignment.ca_file,
        }
    )
    return settings


def _resident_mb() -> float:
    return psutil.Process().memory_info().rss / 2**20


if __name__ == "__main__":
    found = main(msgspec.json.decode(sys.argv[1], type=Assignment))
    print(msgspec.json.encode(found).decode(), flush=True)
    # What still runs has nothing to lose that anybody would miss.
    os._exit(0)
