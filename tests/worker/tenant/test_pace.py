"""The pace that throttling teaches: runs in virtual time against tenants of every kind, and what holds at each step."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.worker.tenant.pace import BEGIN_TOGETHER, UNLIMITED, Pace, Phase
from tests.worker.tenant.virtual_tenant import bucket, fixed_window, run, sliding_window

if TYPE_CHECKING:
    from collections.abc import Callable

TENANTS: dict[str, Callable[[int, random.Random], Callable[[float], bool]]] = {
    "fixed window": lambda limit, chance: fixed_window(limit, chance.random()),
    "sliding window": lambda limit, _: sliding_window(limit),
    "bucket": lambda limit, _: bucket(limit, limit),
    "large bucket": lambda limit, _: bucket(limit, 2 * limit),
}


@pytest.mark.parametrize("limit", [20, 200])
@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("latency", [0.002, 0.005, 0.02])
def test_nearly_all_that_the_tenant_bears(tenant: str, limit: int, latency: float) -> None:
    shares = []
    for seed in range(12 if limit == 20 else 3):
        chance = random.Random(seed)
        outcome = run(TENANTS[tenant](limit, chance), 25 * limit, latency, chance)
        shares.append(25 / outcome.seconds)
        # One that saves up for two seconds is asked too much once more, until that is spent.
        assert outcome.refused <= (0.03 if tenant == "large bucket" else 0.02)
        assert outcome.most_refusals <= 5
    assert sum(shares) / len(shares) >= 0.9


def test_a_tenant_that_never_complains_is_not_spared() -> None:
    # Opening costs some round trips, once.
    outcome = run(lambda _: True, 20_000, 0.05, random.Random(1))
    ideal = 20_000 / 32 * 0.05 * 1.2
    assert outcome.seconds < 1.06 * ideal
    assert outcome.refused == 0


@pytest.mark.parametrize("limit", [20, 200])
def test_a_tenant_that_saves_nothing_up_is_found_in_the_end(limit: int) -> None:
    outcome = run(bucket(limit, 1), 60 * limit, 0.005, random.Random(1))
    assert outcome.refused <= 0.03


def test_a_tenant_that_grows_generous() -> None:
    limits = [fixed_window(20, 0.0), fixed_window(200, 0.0)]
    outcome = run(lambda now: limits[now > 10](now), 4000, 0.005, random.Random(1))
    # Ten seconds at 20, and the rest at anything up to 200: not at 20 for ever.
    assert outcome.seconds < 4000 / 20 * 0.5


def test_a_tenant_that_grows_mean() -> None:
    limits = [fixed_window(200, 0.0), fixed_window(20, 0.0)]
    outcome = run(lambda now: limits[now > 5](now), 1400, 0.005, random.Random(1))
    assert outcome.most_refusals <= 5
    assert outcome.seconds < 5 + 400 / 20 * 1.6


def test_few_at_a_time_in_the_beginning() -> None:
    pace = Pace()
    for _ in range(BEGIN_TOGETHER):
        assert pace.delay(0.0) == 0
        pace.sent(0.0)
    held = pace.is_full, pace.delay(0.0) > 0
    pace.lost(0.0)
    assert [held, (pace.is_full, pace.delay(0.0) > 0)] == [(True, True), (False, False)]


def test_answers_that_take_long_hold_nobody_up_for_ever() -> None:
    pace, now = Pace(), 0.0
    for _ in range(64):
        now += pace.delay(now)
        pace.sent(now)
    assert pace.in_flight == 64
    assert now <= 20


def test_a_tenant_that_complained_when_it_was_quick_and_became_slow() -> None:
    pace, now = Pace(), 0.0
    # A quick one complains at once: few were ever under way.
    for _ in range(20):
        now += pace.delay(now)
        pace.sent(now)
        pace.passed(now + 0.01)
    pace.sent(now)
    pace.complained(now, now, 1.0)
    # From then on each answer takes two seconds, so that forty at a time make its twenty a second.
    under_way: list[float] = []
    sent = 0
    while now < 90:
        answered = under_way[0] if under_way else UNLIMITED
        if (then := now + pace.delay(now)) < answered:
            now = then
            pace.sent(now)
            sent += now > 30
            under_way.append(now + 2.0)
        else:
            now = answered
            pace.passed(under_way.pop(0))
    assert sent / 60 >= 15


def test_all_wait_as_long_as_one_is_told() -> None:
    pace = Pace()
    pace.sent(0.0)
    pace.sent(0.0)
    pace.complained(1.0, 0.0, 30.0)
    assert pace.delay(1.0) == 30.0
    # A second one of the same time says nothing new, and does not shorten the wait.
    pace.complained(2.0, 0.0, 5.0)
    assert pace.delay(2.0) == 29.0
    assert pace.delay(31.0) == 0


def test_several_complaints_at_once_are_one() -> None:
    pace = Pace()
    for _ in range(40):
        pace.sent(0.0)
        pace.passed(0.1)
    for _ in range(4):
        pace.sent(0.2)
    pace.complained(0.3, 0.2, 1.0)
    before = (pace.phase, pace.rate)
    for _ in range(3):
        pace.complained(0.3, 0.2, 1.0)
    assert (pace.phase, pace.rate) == before


@given(st.lists(st.tuples(st.sampled_from("spcl"), st.floats(0, 100), st.floats(0, 1e6)), max_size=200))
def test_whatever_happens_there_is_a_next_time(steps: list[tuple[str, float, float]]) -> None:
    pace, now = Pace(), 0.0
    flying: list[float] = []
    for what, passing, wait in steps:
        now += passing
        match what:
            case "s" if pace.delay(now) == 0:
                pace.sent(now)
                flying.append(now)
            case "p" if flying:
                flying.pop()
                pace.passed(now)
            case "c" if flying:
                pace.complained(now, flying.pop(), wait)
            case "l" if flying:
                flying.pop()
                pace.lost(now)
            case _:
                pass
        assert pace.in_flight == len(flying)
        assert pace.rate > 0
        assert pace.phase in Phase
        if not flying:
            assert 0 <= pace.delay(now) < UNLIMITED
