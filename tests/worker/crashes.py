"""Workers killed at random points until every job has reported; and what has to be true then."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matoolkit.messages import decode_result
from tests.worker.processes import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matoolkit.messages import WorkerJob, WorkerResult
    from tests.worker.workplace import Workplace


@dataclass
class Crashes:
    """A row of workers, each of which is killed but the last."""

    workplace: Workplace
    url: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    seed: int = 1
    longest_life: float = 0.3
    """Seconds."""

    def run(self, jobs: Sequence[WorkerJob], kills: int) -> dict[str, WorkerResult]:
        """Kill so many workers, sending a part of the jobs to each, and let one live; the only result of each job."""
        chance = random.Random(self.seed)
        sent = {job.job_id for job in jobs}
        results: list[WorkerResult] = []
        for life in range(kills):
            self.workplace.send(*jobs[life :: kills + 1])
            worker = WorkerProcess(self.url, self.folder, self.settings)
            self._check_ready(worker)
            # No line holds these words: the time passes, or the process has ended by itself, which must not be.
            worker.says("no such words", within=chance.random() * self.longest_life)
            assert worker.is_running, worker.lines
            worker.kill()
            # As when nobody has been there for as long as a lock lasts.
            self.workplace.expire_locks()
            results += self._taken()
        self.workplace.send(*jobs[kills :: kills + 1])
        worker = WorkerProcess(self.url, self.folder, self.settings)
        self._check_ready(worker)
        try:
            if missing := len(sent) - len(results):
                results += self.workplace.results(missing)
        finally:
            worker.kill()
        results += self._taken()
        counted = Counter(each.job_id for each in results)
        assert set(counted) == sent
        assert [job_id for job_id, count in counted.items() if count > 1] == []
        assert self.workplace.dead() == []
        return {each.job_id: each for each in results}

    def _check_ready(self, worker: WorkerProcess) -> None:
        try:
            worker.ready()
        except BaseException:
            worker.kill()
            raise

    def _taken(self) -> list[WorkerResult]:
        workplace = self.workplace
        with workplace.bus.transaction() as tx:
            received = workplace.bus.receive(tx, workplace.results_at, 5000)
            workplace.bus.complete(tx, received)
        return [decode_result(each.body) for each in received]
