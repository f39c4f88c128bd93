"""For engines whose workers are processes of their own, started by the engine's own command."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.peers.engines.contest import Assignment, Contestant, read, written

if TYPE_CHECKING:
    from collections.abc import Callable

_VARIABLE = "BENCHMARK_ASSIGNMENT"
_LOOK_EVERY = 0.02
_START_TIMEOUT = 60


class Serving(Contestant):
    """A contestant with workers."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self._workers: list[subprocess.Popen[bytes]] = []

    def serve(self, *arguments: str) -> None:
        """Start `python -m` with these arguments; it ends with this process, whose group it is in."""
        self._workers.append(
            subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(self.assignment),
            )
        )

    def wait_until(self, ready: Callable[[], object]) -> None:
        """Return once workers are ready."""
        deadline = time.monotonic() + _START_TIMEOUT
        while not ready():
            self.insist()
            if time.monotonic() > deadline:
                raise TimeoutError("the workers do not start")
            time.sleep(_LOOK_EVERY)

    def insist(self) -> None:
        """Raise when a worker has ended."""
        for worker in self._workers:
            if worker.poll() is not None:
                raise RuntimeError(f"a worker ended with {worker.returncode}")


def handed_over() -> Assignment:
    """In a worker, or where workers are started: what all of them work on."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = sys.argv[1]
    return read(os.environ[_VARIABLE])


def _environment(assignment: Assignment) -> dict[str, str]:
    return {**os.environ, _VARIABLE: written(assignment)}
