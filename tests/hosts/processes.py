"""Parts of the product as processes of their own, to be read, signalled and killed."""

from __future__ import annotations

import os
import subprocess
import sys
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from pathlib import Path

SECONDS = 90
"""Starting a process takes long when all others start theirs."""


class Running:
    """`matoolkit` with a command, and what it says on both of its streams."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.lines: list[str] = []
        self._coming: SimpleQueue[str | None] = SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "matoolkit", *command],
            env={"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", **(environment or {})},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
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

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def exit_code(self, timeout: float = SECONDS) -> int:
        """How it ended; everything it said is in `lines` then."""
        code = self.process.wait(timeout)
        self.read_on()
        return code

    def read_on(self) -> None:
        """Have everything in `lines` that it said before it ended."""
        self._reader.join(SECONDS)
        while (line := self._coming.get(timeout=SECONDS)) is not None:
            self.lines.append(line)

    def kill(self) -> None:
        """At once, without a word."""
        self.process.kill()
        self.process.wait(SECONDS)
        self._reader.join(SECONDS)

    @property
    def said(self) -> str:
        """All of it."""
        return "\n".join(self.lines)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None
