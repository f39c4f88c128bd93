"""Workers as processes of their own, on PostgreSQL, to be signalled and killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from tests.worker.workplace import WORKER

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping

EFFECTS = Path(__file__).parent / "effects"
SECONDS = 90
"""Starting a process takes long when all others start theirs."""
SECRET = "Planted-Client-Secret-77"


class WorkerProcess:
    """`matoolkit worker`, and what it says."""

    def __init__(self, database_url: str, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.lines: list[str] = []
        self._coming: SimpleQueue[str | None] = SimpleQueue()
        known = {
            "WORKER_ID": WORKER,
            "TARGET_TENANT_ID": "00000000-0000-0000-0000-000000000001",
            "APP_ID": "00000000-0000-0000-0000-000000000002",
            "APP_CLIENT_SECRET": SECRET,
            "MATOOLKIT_DATABASE_URL": database_url,
            "CUSTOM_FUNCTIONS_PATH": str(EFFECTS),
            "HEALTH_CHECK_PORT": "0",
            "IDLE_TIMEOUT_SECONDS": "0",
            "MAX_PARALLELISM": "64",
            "EFFECTS": str(folder),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "matoolkit", "worker"],
            env={"PATH": os.environ["PATH"], **known, **(settings or {})},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                self._coming.put(line.rstrip())
        self._coming.put(None)

    def until(self, words: str, times: int = 1, timeout: float = SECONDS) -> list[str]:
        """Read on until so many lines hold these words; the lines that do."""
        found: list[str] = []
        while len(found) < times:
            try:
                line = self._coming.get(timeout=timeout)
            except Empty:
                raise AssertionError(f"{words!r} was not said: {self.lines}") from None
            if line is None:
                raise AssertionError(f"it ended before it said {words!r}: {self.lines}")
            self.lines.append(line)
            if words in line:
                found.append(line)
        return found

    def says(self, words: str, within: float) -> bool:
        """Whether it says these words in so little time."""
        try:
            self.until(words, timeout=within)
        except AssertionError:
            return False
        return True

    def ready(self) -> int:
        """Wait until it takes jobs; the port of its health address."""
        (line,) = self.until("health is told on port")
        self.until("ready")
        return int(re.findall(r"port (\d+)", line)[0])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def exit_code(self, timeout: float = SECONDS) -> int:
        """How it ended; everything it said is in `lines` then."""
        code = self._process.wait(timeout)
        self._reader.join(SECONDS)
        while (line := self._coming.get(timeout=SECONDS)) is not None:
            self.lines.append(line)
        return code

    def kill(self) -> None:
        """At once, without a word."""
        self._process.kill()
        self._process.wait(SECONDS)
        self._reader.join(SECONDS)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None
