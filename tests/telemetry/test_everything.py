"""The whole of it: `matoolkit up` as a process, a wave through the real worker, and somebody who listens."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.hosts import waves
from tests.hosts.ups import UpProcess, over, until
from tests.telemetry.collector import Collector, labels

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEOPLE = 12


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def test_a_wave_is_told_from_its_first_phase_to_its_last_result(collector: Collector, tmp_path: Path) -> None:
    waves.people(tmp_path / "people.db", PEOPLE)
    told = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "MATOOLKIT_LOG_FORMAT": "json",
    }
    up = UpProcess(tmp_path, environment=told)
    try:
        # Of JSON the address is within the line.
        (line,) = up.until("ready: everything works")
        url = json.loads(line)["message"].split()[-1]
        from matoolkit.cli.client import ApiClient

        with ApiClient(url, up.token) as client:
            client.publish_runbook("wave", waves.RUNBOOK)
            until(lambda: over(client))
        up.signal(signal.SIGTERM)
        assert up.exit_code() == 0, up.said
    finally:
        up.kill()
    due = {span.name: span for span in collector.spans if span.name.endswith("is due")}
    assert set(due) == {"phase prepare is due", "phase move is due"}
    runs = [span for span in collector.spans if span.name.startswith("run Count-")]
    spans = {span.span_id: span for span in collector.spans}
    steps_back: dict[str, set[int]] = {}
    for run in runs:
        # From each job back to the beginning of its phase, without a gap.
        above, seen = run, 0
        while above.parent_span_id:
            above, seen = spans[above.parent_span_id], seen + 1
            assert above.trace_id == run.trace_id
        assert above.name in due
        steps_back.setdefault(run.name, set()).add(seen)
        known = set(labels(run))
        assert {"BatchId", "WorkerId", "JobId"} <= known
        assert {"StepExecutionId", "RollbackExecutionId"} & known
    # Behind the phase, the set that its message was handled in, the first job, and the set with that job's result.
    assert steps_back["run Count-Begin"] == {2}
    assert min(steps_back["run Count-Stumble"]) == 4
    by_function = {name: [run for run in runs if run.name == f"run {name}"] for name in ("Count-Begin", "Count-Undo")}
    assert len(by_function["Count-Begin"]) == PEOPLE
    assert {run.trace_id for run in by_function["Count-Begin"]} == {due["phase prepare is due"].trace_id}
    # What undoes a step is in the trace of that step.
    assert {run.trace_id for run in by_function["Count-Undo"]} == {due["phase move is due"].trace_id}
    assert {span.name for span in collector.spans} >= {"handle results", "phase move has ended"}
    assert collector.metrics >= {
        "matoolkit.queue.depth",
        "matoolkit.queue.oldest",
        "matoolkit.members.stuck",
        "matoolkit.tick.duration",
        "matoolkit.steps.ended",
        "matoolkit.jobs.failed",
        "matoolkit.dead_messages",
        "matoolkit.worker.health",
        "matoolkit.request.duration",
    }
    lines = [json.loads(each) for each in up.lines if each.startswith("{")]
    assert [each for each in lines if "stepExecutionId" in each and each["functionName"] == "Count-Refuse"]
    assert [each for each in lines if "requestId" in each]
    assert {each["service"] for each in lines} == {"up"}
