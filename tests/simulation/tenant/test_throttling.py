"""Limits of requests a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from matoolkit.simulation.tenant import Api, ThrottleMode
from matoolkit.simulation.tenant.throttling import FixedWindow, TokenBucket, make_throttle
from tests.simulation.tenant.client import EXCHANGE, GRAPH, error_of

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant
    from matoolkit.simulation.tenant.throttling import Throttle
    from tests.simulation.tenant.client import Client


class Moments:
    """Monotonic time that moves when told."""

    def __init__(self) -> None:
        self.now = 100.25

    def __call__(self) -> float:
        return self.now


def passed(throttle: Throttle, times: int) -> int:
    return sum(throttle.wait_seconds() == 0 for _ in range(times))


def test_a_fixed_window_starts_again() -> None:
    moments = Moments()
    throttle = FixedWindow(20, moments)
    assert passed(throttle, 50) == 20
    assert throttle.wait_seconds() == pytest.approx(0.75)
    moments.now = 101.0
    assert passed(throttle, 50) == 20


def test_a_long_window_takes_more() -> None:
    moments = Moments()
    assert passed(FixedWindow(20, moments, window_seconds=10), 500) == 200


def test_a_bucket_fills_at_the_rate_up_to_the_burst() -> None:
    moments = Moments()
    throttle = TokenBucket(20, moments, burst=5)
    assert passed(throttle, 50) == 5
    assert throttle.wait_seconds() == pytest.approx(0.05)
    moments.now += 0.11
    assert passed(throttle, 50) == 2
    moments.now += 1000
    assert passed(throttle, 50) == 5


@pytest.mark.parametrize("mode", ThrottleMode)
def test_no_more_than_the_rate_ever_pass(mode: ThrottleMode) -> None:
    moments = Moments()
    moments.now = 100.0
    throttle = make_throttle(mode, 20, moments, burst=1)
    through = 0
    for _ in range(999):
        moments.now += 0.01
        through += passed(throttle, 3)
    assert 190 <= through <= 201


@pytest.mark.parametrize(("rate", "window"), [(0, 1), (-1, 1), (1, 0)])
def test_limits_that_make_no_sense(rate: float, window: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        make_throttle(ThrottleMode.FIXED_WINDOW, rate, Moments(), window_seconds=window)


def test_a_client_is_told_to_wait(client: Client, server: SimulatedTenant) -> None:
    client.token(GRAPH)
    client.token(EXCHANGE)
    server.tenant.throttle(Api.GRAPH, 1 / 600, ThrottleMode.TOKEN_BUCKET)
    assert client.graph("GET", "/users?$top=1").ok
    answer = client.graph("GET", "/users?$top=1")
    assert error_of(answer) == (429, "TooManyRequests")
    assert 590 <= int(answer.headers["Retry-After"]) <= 600
    # The other service has a limit of its own.
    assert client.command("Get-MailUser", ResultSize=1).ok
    server.tenant.throttle(Api.GRAPH, None)
    assert client.graph("GET", "/users?$top=1").ok
    assert server.tenant.records.statuses(Api.GRAPH) == {200: 2, 429: 1}
