"""Dagster: a member is a run of a job, a step is one of its ops, on an instance that keeps its SQLite files."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.peers.engines.contest import Assignment, Contestant, Told, compete, named

_TAG = "member"


class Runs(Contestant):
    package = "dagster"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        logging.disable(logging.CRITICAL)
        home = Path(assignment.folder, "dagster")
        home.mkdir(exist_ok=True)
        home.joinpath("dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        os.environ["DAGSTER_HOME"] = str(home)
        # It looks for its home when imported.
        import dagster

        self.dagster: Any = dagster
        self.instance = dagster.DagsterInstance.get()
        self.job = _job(dagster, assignment)
        self._threads = ThreadPoolExecutor(self.options["threads"])
        self._running: list[Future[Any]] = []

    def start(self) -> None:
        pass

    def submit(self, members: range) -> None:
        self._running = [self._threads.submit(self._run, member) for member in members]

    def is_settled(self) -> bool:
        for each in self._running:
            if each.done():
                each.result()
        status = self.dagster.DagsterRunStatus
        unfinished = self.dagster.RunsFilter(statuses=[status.NOT_STARTED, status.STARTING, status.STARTED])
        return not self.instance.get_runs_count(unfinished)

    def told(self) -> Told:
        told, errors = Told(), []
        for run in self.instance.get_runs():
            told.members += run.is_finished and _TAG in run.tags
            steps = self.instance.get_run_step_stats(run.run_id)
            told.steps += sum(step.status is not None for step in steps)
            told.times += sum(step.end_time is not None for step in steps)
            errors += [
                entry.dagster_event.step_failure_data.error
                for entry in self.instance.all_logs(run.run_id, self.dagster.DagsterEventType.STEP_FAILURE)
            ]
        told.errors = named(errors)
        return told

    def _run(self, member: int) -> None:
        self.job.execute_in_process(instance=self.instance, tags={_TAG: str(member)}, raise_on_error=False)


def _job(dagster: Any, assignment: Assignment) -> Any:
    """Ops in a row: each begins when the one before it has ended."""

    def op_of(number: int) -> Any:
        ins = {"before": dagster.In(dagster.Nothing)} if number else {}

        @dagster.op(name=f"step_{number}", ins=ins, out=dagster.Out(dagster.Nothing))
        def op(context) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Dagster wants its own type here, or none
            assignment.note(int(context.run.tags[_TAG]), number)

        return op

    ops = [op_of(number) for number in range(assignment.steps)]

    @dagster.job(name="move")
    def move() -> None:
        before = ops[0]()
        for op in ops[1:]:
            before = op(before)

    return move


if __name__ == "__main__":
    compete(Runs)
