"""A process that is ready spares the collector of cycles what it has made by then."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: what is kept is kept for good, and the other tests' garbage is not to be.
_PROGRAM = """
import gc
import matoolkit.hosts.up
from matoolkit.hosts.garbage import keep_what_is_there

before = len(gc.get_objects())
keep_what_is_there()
looked_at, kept = len(gc.get_objects()), gc.get_freeze_count()
assert kept > before / 2, (before, kept)
assert looked_at < before / 10, (before, looked_at)
"""


def test_what_is_there_when_a_process_is_ready_is_not_looked_at_again() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
