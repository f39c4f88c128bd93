"""Jobs for a worker nobody runs: a topic would drop them without a word, so they wait where they can be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.bus import Names, Topology
from tests.orchestrator.runbooks import runbook, step

if TYPE_CHECKING:
    import pytest

    from tests.orchestrator.driver import Wave

ELSEWHERE = {**step("move"), "worker_id": "worker-77"}
MOVE = runbook({"move T-0": [ELSEWHERE]})


def test_a_step_for_an_unknown_worker_waits_until_the_worker_is_there(
    wave: Wave, caplog: pytest.LogCaptureFixture
) -> None:
    wave.publish(MOVE)
    wave.batch("anna", minutes=0)
    wave.tick()
    assert wave.step("move anna")["status"] == "pending"
    assert "no worker 'worker-77'" in caplog.text

    with wave.database.transaction() as tx:
        wave.bus.declare(tx, Topology(subscriptions=(Names().worker("worker-77"),)))
    wave.reconcile(minutes=5)
    assert wave.step("move anna")["status"] == "dispatched"
