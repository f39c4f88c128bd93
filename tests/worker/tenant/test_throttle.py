"""Patience: how long a job waits, what `Retry-After` means, and that waiting is shared and fair."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from matoolkit.simulation.tenant import Api, TenantFault, ThrottleMode
from matoolkit.worker.tenant import Patience
from matoolkit.worker.tenant.throttle import Throttle, retry_after
from tests.worker.hands import Hands, Haste, clients
from tests.worker.tenant.run_of_jobs import run_of_jobs

if TYPE_CHECKING:
    from matoolkit.simulation.tenant import SimulatedTenant
    from matoolkit.worker.tenant import TenantClients

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("17", 17.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("inf", None),
        ("nan", None),
        ("Sun, 99 Mar 2026 12:00:30 GMT", None),
    ],
)
def test_what_retry_after_says(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


def test_waits_double_up_to_the_longest_and_chance_adds_a_third_at_most() -> None:
    patience = Patience(retries=5, base_seconds=2, longest_seconds=30)
    assert [patience.wait(attempt, None, 0.0) for attempt in range(1, 7)] == [2, 4, 8, 16, 30, 30]
    assert patience.wait(1, None, 1.0) == pytest.approx(2.6)
    assert patience.wait(2000, None, 0.0) == 30
    assert patience.wait(3, 7.0, 1.0) == 7.0


def test_a_job_waits_as_it_is_told_and_else_ever_longer(server: SimulatedTenant) -> None:
    async def main(haste: Haste) -> None:
        async with clients(server, haste) as tenant:
            await Hands(tenant).run("Test-EntraGroupMembership", {"GroupId": "x", "UserId": "nobody"})

    told = Haste()
    server.tenant.fault(TenantFault.THROTTLED, api=Api.GRAPH, times=2, retry_after=7)
    asyncio.run(main(told))
    assert sum(told.slept) == pytest.approx(14, abs=0.5)


def test_when_one_is_told_to_wait_all_do(server: SimulatedTenant) -> None:
    async def main() -> list[float]:
        haste = Haste()
        async with clients(server, haste) as tenant:
            hands = Hands(tenant)
            await hands.run("Test-EntraGroupMembership", {"GroupId": "x", "UserId": "nobody"})
            server.tenant.fault(TenantFault.THROTTLED, api=Api.GRAPH, times=1, retry_after=60)
            throttled = asyncio.ensure_future(
                hands.run("Test-EntraGroupMembership", {"GroupId": "x", "UserId": "nobody"})
            )
            while not haste.slept:  # noqa: ASYNC110 - time passes only when it is waited for
                await asyncio.sleep(0)
            began = haste.monotonic() - haste.slept[0]
            await hands.run("Test-EntraGroupMembership", {"GroupId": "x", "UserId": "nobody"})
            await throttled
            return [began, haste.monotonic()]

    began, ended = asyncio.run(main())
    assert ended - began >= 60


def test_a_long_wait_is_told(server: SimulatedTenant) -> None:
    told: list[tuple[str, ...]] = []
    opened: list[TenantClients] = []

    class Looking(Haste):
        async def sleep(self, seconds: float) -> None:
            told.append(opened[0].complaints())
            await super().sleep(seconds)

    async def main() -> None:
        async with clients(server, Looking()) as tenant:
            opened.append(tenant)
            assert tenant.complaints() == ()
            server.tenant.fault(TenantFault.THROTTLED, api=Api.GRAPH, times=1, retry_after=60)
            await Hands(tenant).run("Test-EntraGroupMembership", {"GroupId": "x", "UserId": "nobody"})
            assert tenant.complaints() == ()

    asyncio.run(main())
    assert told[0][0].startswith("Microsoft Graph is throttled, and asked again in ")


def test_exchange_does_not_wait_for_graph(server: SimulatedTenant) -> None:
    async def main() -> Haste:
        haste = Haste()
        async with clients(server, haste) as tenant:
            server.tenant.fault(TenantFault.THROTTLED, api=Api.GRAPH, retry_after=60)
            hands = Hands(tenant)
            result = await hands.run("Test-EntraGroupMembership", {"GroupId": "x", "UserId": "nobody"})
            assert result.error is not None
            assert result.error.is_throttled
            haste.slept.clear()
            await tenant.exchange.invoke("Get-MailUser", {"ResultSize": 1})
        return haste

    assert asyncio.run(main()).slept == []


def test_who_came_first_goes_first_and_who_left_is_not_waited_for() -> None:
    async def main() -> list[int]:
        haste, order = Haste(), list[int]()
        throttle = Throttle(haste.monotonic, haste.sleep)
        taken = [await throttle.enter() for _ in range(4)]

        async def wait(number: int) -> None:
            await throttle.enter()
            order.append(number)

        waiting = [asyncio.ensure_future(wait(number)) for number in range(4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[2].cancel()
        await asyncio.sleep(0)
        for _ in taken:
            throttle.passed()
            await asyncio.sleep(0)
        await asyncio.gather(*waiting, return_exceptions=True)
        return order

    assert asyncio.run(main()) == [1, 3]


@pytest.mark.parametrize("mode", list(ThrottleMode))
def test_a_run_against_a_tenant_that_throttles(server: SimulatedTenant, mode: ThrottleMode) -> None:
    # Short, for every day; how near it comes to the limit is measured by the long one.
    outcome = asyncio.run(run_of_jobs(server, 100, mode, jobs=300))
    assert outcome.failures == 0
    assert outcome.refused <= 0.08


@pytest.mark.soak
@pytest.mark.parametrize("limit", [20, 200])
@pytest.mark.parametrize("mode", list(ThrottleMode))
def test_a_long_run_reaches_what_the_tenant_bears(server: SimulatedTenant, mode: ThrottleMode, limit: int) -> None:
    outcome = asyncio.run(run_of_jobs(server, limit, mode, jobs=25 * limit))
    print(limit, mode, outcome)
    assert outcome.failures == 0
    assert outcome.refused <= 0.02
    assert outcome.share_of_limit >= 0.9
