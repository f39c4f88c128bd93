"""Scheduler, orchestrator and workers as processes of their own on PostgreSQL and Service Bus."""

from __future__ import annotations

import json
import re
import signal
import urllib.request
from typing import TYPE_CHECKING

import pytest

from matoolkit.hosts.loops import Loop, Loops
from matoolkit.hosts.service import health
from tests.bus.service_bus_line import broken_sockets_closed
from tests.hosts.processes import Running
from tests.stacks.azure import namespace_of_a_wave
from tests.stacks.wave import WORKERS, Wave
from tests.worker.processes import WorkerProcess

if TYPE_CHECKING:
    from pathlib import Path

    from matoolkit.store.database import Database


def test_a_wave_gets_to_its_gate_and_every_part_ends_when_it_is_told(
    postgres_database: Database, tmp_path: Path
) -> None:
    wave, namespace = Wave(postgres_database, tmp_path), namespace_of_a_wave()
    bus = {"SERVICE_BUS_CONNECTION_STRING": namespace.connection_string, **wave.settings}
    settings = {
        **bus,
        "MATOOLKIT_DATABASE_URL": postgres_database.engine.url.render_as_string(hide_password=False),
        "Orchestrator__WorkerIds": ",".join(WORKERS),
        "Scheduler__Tick": "1s",
        "Scheduler__PollTick": "1s",
        "HEALTH_CHECK_PORT": "0",
    }
    parts = [Running([each], tmp_path, settings) for each in ("scheduler", "orchestrator")]
    parts += [WorkerProcess("", tmp_path, {**bus, "WORKER_ID": each}) for each in WORKERS]
    try:
        wave.until_everybody_is_at_the_gate(lambda: [each.lines for each in parts])
        for part in parts[:2]:
            (line,) = part.until("health is told on port")
            part.until("works on Azure Service Bus")
            with urllib.request.urlopen(
                f"http://127.0.0.1:{re.findall('port ([0-9]+)', line)[0]}/", timeout=10
            ) as found:
                assert json.load(found) == {"status": "healthy", "failing": []}
        for part in parts:
            part.signal(signal.SIGTERM)
        assert [part.exit_code() for part in parts] == [0] * len(parts), [part.said for part in parts]
        assert "c2VjcmV0" not in "".join(part.said for part in parts), "the key of the connection string"
    finally:
        for part in parts:
            part.kill()
        with broken_sockets_closed():
            namespace.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_health_names_what_fails_and_tells_dead_from_failing() -> None:
    loops, failed = Loops(), []

    def fail() -> int:
        failed.append(1)
        raise OSError("secret detail")

    def die() -> int:
        raise SystemExit

    assert health(loops) == (200, {"status": "healthy", "failing": []})
    loops.start(Loop("events", fail, lambda: None))
    while not loops.failing:
        pass
    assert health(loops) == (200, {"status": "degraded", "failing": ["events"]})
    loops.start(Loop("relay", die, lambda: None))
    while not loops.dead:
        pass
    assert health(loops) == (503, {"status": "unhealthy", "failing": ["events", "relay"]})
    assert loops.stop()
