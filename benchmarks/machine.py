"""What the figures were taken on, without which they mean nothing to the next reader."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psutil
import psycopg

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware, the versions, and how busy it was with other things when the run began."""

    cpu: str
    cores: int
    memory_mb: int
    system: str
    python: str
    sqlite: str
    psycopg: str
    postgresql: str | None
    fsync_ms: float
    """Median time to make 4 KB durable: what every commit pays at least once."""
    load_average: float
    """Of the minute before the run: well above zero means that the figures compete with something else."""


def describe(folder: Path, postgresql_url: str | None) -> Machine:
    """Looks at the machine, taking the fsync latency in `folder`."""
    return Machine(
        cpu=_cpu_model(),
        cores=len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else os.cpu_count() or 1,
        memory_mb=psutil.virtual_memory().total // 2**20,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        psycopg=version("psycopg"),
        postgresql=_postgresql_version(postgresql_url) if postgresql_url else None,
        fsync_ms=fsync_latency(folder) * 1000,
        load_average=psutil.getloadavg()[0],
    )


def fsync_latency(folder: Path, attempts: int = 50) -> float:
    """Median seconds for appending 4 KB to a file in `folder` and waiting until the disk has it."""
    path = folder / "fsync-latency"
    block = b"\0" * 4096
    seconds = []
    with path.open("wb", buffering=0) as file:
        for _ in range(attempts):
            start = time.perf_counter()
            file.write(block)
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(seconds)


def reset_peak_memory() -> None:
    """Starts a new peak for `peak_memory_mb`, where the kernel can (Linux).

    The kernel's own high-water mark costs the measured code nothing, which a sampling thread would.
    """
    if _CLEAR_REFS.exists():
        _CLEAR_REFS.write_text(_RESET_PEAK)


def peak_memory_mb() -> float | None:
    """The most memory this process has held resident since `reset_peak_memory`; None where nothing can tell."""
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return None


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _postgresql_version(url: str) -> str:
    with psycopg.connect(url) as connection:
        number = connection.info.server_version
    return f"{number // 10000}.{number % 10000}"
