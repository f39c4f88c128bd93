"""A worker as a process on Service Bus: started, given jobs, killed, and told where it has no place."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus import Names, Outgoing, Topology
from matoolkit.bus.outgoing import LARGEST_BODY
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.clock import SystemClock
from matoolkit.messages import Correlation, WorkerJob, WorkerResult, decode_result, encode
from matoolkit.worker.post import Parcel, Post
from tests.bus.service_bus_line import broken_sockets_closed, links_to
from tests.doubles.service_bus.server import STANDARD_LARGEST, Namespace
from tests.hosts.processes import SECONDS
from tests.worker.processes import SECRET, WorkerProcess
from tests.worker.workplace import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matoolkit.bus import Received

NAMES = Names()
RULE = NAMES.worker(WORKER, timedelta(seconds=5))
TOPOLOGY = Topology(
    topics=NAMES.topology().topics, subscriptions=(*NAMES.topology(timedelta(seconds=5)).subscriptions, RULE)
)
RESULTS = TOPOLOGY.subscriptions[1].subscription


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    namespace = Namespace(SystemClock()).start()
    namespace.declare(TOPOLOGY)
    with broken_sockets_closed():
        yield namespace
    namespace.stop()


@pytest.fixture
def bus(namespace: Namespace) -> Iterator[ServiceBus]:
    bus = ServiceBus(links_to(namespace), SystemClock())
    yield bus
    bus.disconnect()


@pytest.fixture
def start(namespace: Namespace, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """Starts workers, none of which outlives the test."""
    started: list[WorkerProcess] = []

    def begin(**settings: str) -> WorkerProcess:
        told = {"SERVICE_BUS_CONNECTION_STRING": namespace.connection_string, "MAX_PARALLELISM": "4", **settings}
        started.append(WorkerProcess("", tmp_path, told))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


def send(bus: ServiceBus, number: int, function: str, **parameters: str) -> str:
    job = WorkerJob(
        job_id=f"step-{number}",
        batch_id=1,
        worker_id=WORKER,
        function_name=function,
        parameters=parameters,
        idempotency_key=f"step-{number}",
        first_dispatched_at=datetime.now(UTC),
        not_after=datetime.now(UTC) + timedelta(days=1),
        timeout_seconds=60,
        correlation_data=Correlation(step_execution_id=number),
    )
    outgoing = Outgoing(encode(job), {"WorkerId": WORKER, "FunctionName": function}, job.job_id)
    with bus.transaction() as tx:
        bus.publish(tx, NAMES.jobs, [outgoing])
    return job.job_id


def results(bus: ServiceBus, count: int, known: dict[str, WorkerResult] | None = None) -> dict[str, WorkerResult]:
    """Results as they come, until there are so many with those that are known."""
    found = dict(known or {})
    ends = time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < ends:
        bus.wait([RESULTS], 0.5)
        with bus.transaction() as tx:
            received = bus.receive(tx, RESULTS, 100)
            bus.complete(tx, received)
        found |= {each.job_id: each for each in (decode_result(message.body) for message in received)}
    return found


def test_it_works_and_ends_when_idle(bus: ServiceBus, start: Callable[..., WorkerProcess]) -> None:
    sent = [send(bus, number, "Make-Thing", Name=f"thing-{number}") for number in range(10)]
    worker = start(IDLE_TIMEOUT_SECONDS="1")
    found = results(bus, len(sent))
    assert {job: each.result for job, each in found.items()} == {f"step-{n}": {"Id": f"thing-{n}"} for n in range(10)}
    assert worker.exit_code() == 0
    said = "\n".join(worker.lines)
    assert f"jobs for {WORKER} come from Azure Service Bus" in said
    assert worker.lines[-1].endswith("ended: idle")
    assert SECRET not in said
    assert "c2VjcmV0" not in said, "the key of the connection string"


def test_killed_in_the_middle_its_jobs_are_run_by_the_next_one(
    bus: ServiceBus, start: Callable[..., WorkerProcess]
) -> None:
    sent = [send(bus, number, "Make-Thing", Name=f"thing-{number}", Seconds="1") for number in range(6)]
    first = start()
    first.ready()
    before = results(bus, 1)
    first.kill()
    second = start()
    found = results(bus, len(sent), before)
    assert sorted(found) == sent
    assert all(each.status == "success" for each in found.values())
    second.signal(signal.SIGTERM)
    assert second.exit_code() == 0


def test_without_a_subscription_it_says_what_makes_one(start: Callable[..., WorkerProcess]) -> None:
    worker = start(WORKER_ID="worker-77")
    assert worker.exit_code() == 1
    assert "there is no subscription worker-worker-77 of topic worker-jobs" in "\n".join(worker.lines)


def test_a_result_the_namespace_does_not_take_costs_no_other_result(bus: ServiceBus, namespace: Namespace) -> None:
    """Its body is as large as bodies may be; with its properties it is more than the tier allows."""
    namespace.largest_message = STANDARD_LARGEST
    sent = [send(bus, number, "Make-Thing", Name="x") for number in range(3)]
    post = Post(bus, RULE.subscription)
    bus.wait([RULE.subscription], SECONDS)
    jobs: list[Received] = []
    while len(jobs) < len(sent):
        jobs += post.exchange(Parcel(), 3 - len(jobs))
    answers = [Outgoing("x" * (LARGEST_BODY if each.message_id == "step-1" else 10), {"JobId": "1"}) for each in jobs]
    send(bus, 9, "Make-Thing", Name="y")
    assert [each.message_id for each in post.exchange(Parcel(list(zip(jobs, answers, strict=True))), 5)] == ["step-9"]
    assert namespace.ready(RESULTS.topic, RESULTS.name) >= 2
    with bus.transaction() as tx:
        (dead,) = bus.dead_letters(tx, RULE.subscription, 10)
    assert (dead.message_id, dead.reason) == ("step-1", "ResultTooLarge")
