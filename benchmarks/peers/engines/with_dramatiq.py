"""Dramatiq: a member is a pipeline of messages; the workers are those of its command."""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from redis import Redis

from benchmarks.peers.engines.contest import Assignment, Told, compete, named
from benchmarks.peers.engines.serving import Serving, handed_over

_ASSIGNMENT = handed_over()
_MILLISECONDS = 1000
broker = RedisBroker(
    url=_ASSIGNMENT.address,
    heartbeat_timeout=_ASSIGNMENT.options["heartbeat_seconds"] * _MILLISECONDS,
    maintenance_chance=_ASSIGNMENT.options["maintenance_chance"],
)
dramatiq.set_broker(broker)


# An error is only kept with the message that is to be tried again, so there is one retry, at once.
@dramatiq.actor(max_retries=1, min_backoff=1, max_backoff=1)
def step(member: int, number: int) -> None:
    _ASSIGNMENT.note(member, number)


class Piped(Serving):
    package = "dramatiq"

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.redis: Any = Redis.from_url(assignment.address)

    def start(self) -> None:
        processes, threads = self.options["processes"], self.options["threads"]
        counts = ("--processes", str(processes), "--threads", str(threads))
        before = self._workers_seen()
        self.serve("dramatiq", "benchmarks.peers.engines.with_dramatiq", *counts)
        self.wait_until(lambda: self._workers_seen() >= before + processes)

    def submit(self, members: range) -> None:
        for member in members:
            steps = [
                step.message_with_options(args=(member, number), pipe_ignore=True)
                for number in range(self.assignment.steps)
            ]
            dramatiq.pipeline(steps).run()

    def is_settled(self) -> bool:
        self.insist()
        held = sum(self.redis.scard(key) for key in self.redis.keys("dramatiq:__acks__*"))
        waiting = sum(self.redis.llen(f"dramatiq:default{suffix}") for suffix in ("", ".DQ"))
        return not held and not waiting

    def told(self) -> Told:
        # Of what succeeded nothing is kept; what failed for good lies among the dead messages for a week.
        return Told(errors=named(self.redis.hvals("dramatiq:default.XQ.msgs")))

    def _workers_seen(self) -> int:
        return int(self.redis.zcard("dramatiq:__heartbeats__"))


if __name__ == "__main__":
    compete(Piped)
