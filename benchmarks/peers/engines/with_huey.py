"""Huey: tasks of a member chained with `then`, on `SqliteHuey`, by the threads of one consumer."""

from __future__ import annotations

import logging
import threading

from huey import SqliteHuey
from huey.consumer import Consumer

from benchmarks.peers.engines.contest import Assignment, Contestant, Told, compete, named


class _Quiet(Consumer):
    """A consumer beside other threads, which leaves signals to the process."""

    def _set_signal_handlers(self) -> None:
        pass


class Huey(Contestant):
    package = "huey"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        logging.getLogger("huey").setLevel(logging.CRITICAL)
        self.huey = SqliteHuey(filename=assignment.address, fsync=self.options["fsync"])

        @self.huey.task()
        def step(member: int, number: int) -> None:
            assignment.note(member, number)

        self.step = step

    def start(self) -> None:
        consumer = _Quiet(
            self.huey, workers=self.options["workers"], periodic=False, initial_delay=0.001, max_delay=0.01
        )
        threading.Thread(target=consumer.run, daemon=True).start()

    def submit(self, members: range) -> None:
        for member in members:
            task = self.step.s(member, 0)
            for number in range(1, self.assignment.steps):
                task.then(self.step, member, number)
            self.huey.enqueue(task)

    def is_settled(self) -> bool:
        return not self.huey.pending_count()

    def told(self) -> Told:
        # What has run is gone from the queue. The result of what failed is kept under the task's id, and names nobody.
        return Told(errors=named(bytes(value) for value in self.huey.all_results().values()))


if __name__ == "__main__":
    compete(Huey)
