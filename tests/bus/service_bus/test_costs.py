"""What a step costs, and the ceiling that makes; the page says the same."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus.service_bus.costs import (
    STANDARD_CREDITS,
    credits_of_step,
    shortest_wave,
    steps_per_second,
)
from tests.bus.lines import NAMES, RESULTS, WORKER_1, job

if TYPE_CHECKING:
    from tests.bus.service_bus_line import ServiceBusLine

PAGE = (Path(__file__).parents[3] / "docs" / "service-bus.md").read_text()


@pytest.mark.parametrize(("workers", "credits_", "steps"), [(1, 6, 166), (2, 7, 142), (5, 10, 100), (10, 15, 66)])
def test_a_step_costs_more_with_each_worker(workers: int, credits_: int, steps: int) -> None:
    assert credits_of_step(workers) == credits_
    assert int(steps_per_second(workers)) == steps


def test_more_credits_are_more_steps() -> None:
    assert steps_per_second(1, 2 * STANDARD_CREDITS) == 2 * steps_per_second(1)


def test_a_wave_has_a_shortest_time() -> None:
    assert shortest_wave(members=10_000, steps=10, workers=1) == timedelta(minutes=10)
    assert shortest_wave(members=10_000, steps=10, workers=10) == timedelta(minutes=25)


def test_the_page_has_the_same_figures() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) min \|$", PAGE, re.MULTILINE)
    assert len(rows) >= 4
    for workers, credits_, steps, minutes in (tuple(map(int, row)) for row in rows):
        assert (credits_, steps) == (credits_of_step(workers), int(steps_per_second(workers)))
        assert minutes == round(shortest_wave(10_000, 10, workers).total_seconds() / 60)


def test_a_step_on_the_wire_is_what_the_model_counts(line: ServiceBusLine) -> None:
    """Counted where filters are: each worker's looks at each job, and the orchestrator's at each result."""
    looked: list[str] = []
    namespace = line.namespace
    namespace.call(lambda: setattr(namespace.broker, "looked", looked.append))
    line.publish(NAMES.jobs, job("do this"))
    line.complete(*line.receive(WORKER_1))
    line.publish(RESULTS.topic, "done")
    line.complete(*line.receive(RESULTS))
    operations = namespace.broker.accepted + namespace.broker.handed_out
    assert operations + len(looked) == credits_of_step(workers=2)
