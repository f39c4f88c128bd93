"""Health: healthy, degraded or unhealthy, and why."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus import EmbeddedBus, Names
from matoolkit.clock import SystemClock
from matoolkit.hosts.health_address import HealthAddress, PortTaken
from matoolkit.hosts.worker_host import WorkerHost
from matoolkit.worker.concealing import Concealer
from matoolkit.worker.gauge import Gauge
from matoolkit.worker.health import Status, judged, report
from matoolkit.worker.registry import Registry
from matoolkit.worker.running import Services

if TYPE_CHECKING:
    from matoolkit.store.database import Database


@pytest.fixture
def gauge() -> Gauge:
    made = Gauge(4)
    made.beat(100, 2, 0)
    return made


def test_a_worker_that_works_is_healthy(gauge: Gauge) -> None:
    assert judged(gauge, 101) == (Status.HEALTHY, ())


@pytest.mark.parametrize("known", [None, Gauge(4)])
def test_one_that_starts_is_given_time(known: Gauge | None) -> None:
    health = judged(known, 100)
    assert (health.status, health.http_status) == (Status.DEGRADED, 200)


@pytest.mark.parametrize(("now", "status"), [(111, Status.DEGRADED), (161, Status.UNHEALTHY)])
def test_a_loop_that_does_not_turn_is_told_of(gauge: Gauge, now: float, status: Status) -> None:
    health = judged(gauge, now)
    assert health.status is status
    assert "has held up all others" in health.reasons[0]


@pytest.mark.parametrize(("since", "status"), [(95, Status.DEGRADED), (40, Status.UNHEALTHY)])
def test_a_bus_that_is_away_is_told_of_with_its_error(gauge: Gauge, since: float, status: Status) -> None:
    gauge.bus_failed("no route", since)
    gauge.bus_failed("connection refused", 100)
    health = judged(gauge, 101)
    assert health.status is status
    assert "connection refused" in health.reasons[0]
    gauge.bus_answered()
    assert judged(gauge, 101).status is Status.HEALTHY


@pytest.mark.parametrize(("overdue", "status"), [(1, Status.DEGRADED), (4, Status.UNHEALTHY)])
def test_places_that_are_held_past_their_time_are_told_of(gauge: Gauge, overdue: int, status: Status) -> None:
    gauge.beat(100, 4, overdue)
    assert judged(gauge, 101).status is status


def test_stopping_and_complaints_are_told_of(gauge: Gauge) -> None:
    gauge.stopping = True
    assert judged(gauge, 101, complaints=("Graph throttles",)) == (
        Status.DEGRADED,
        ("the worker is stopping", "Graph throttles"),
    )


def test_what_others_say_is_told_without_secrets(gauge: Gauge, sqlite_database: Database) -> None:
    host = WorkerHost(
        EmbeddedBus(sqlite_database),
        Names().worker("worker-01"),
        Registry(),
        SystemClock(),
        concealer=Concealer(["planted-1234"]),
    )
    gauge.beat(time.monotonic(), 0, 0)
    host._worker = SimpleNamespace(gauge=gauge)  # type: ignore[assignment]  # all that is looked at
    host._services = Services(complaints=lambda: ("not let in with planted-1234",))
    assert host.health().reasons == ("not let in with ***",)
    assert "planted-1234" not in str(host.health_report())


def test_it_is_told_over_http_and_503_means_start_another(gauge: Gauge) -> None:
    now = [101.0]

    def answer() -> tuple[int, dict[str, object]]:
        health = judged(gauge, now[0])
        return health.http_status, report(health, gauge, "worker-01")

    address = HealthAddress(0, answer, host="127.0.0.1")
    url = f"http://127.0.0.1:{address.port}/health"
    try:
        with urllib.request.urlopen(url, timeout=10) as said:
            assert json.load(said)["status"] == "healthy"
        now[0] = 1000
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url, timeout=10)
        assert caught.value.code == 503
        with caught.value as said:
            assert json.load(said)["status"] == "unhealthy"
        with pytest.raises(PortTaken, match=f"HEALTH_CHECK_PORT: nothing can listen on port {address.port}"):
            HealthAddress(address.port, answer, host="127.0.0.1")
    finally:
        address.close()
