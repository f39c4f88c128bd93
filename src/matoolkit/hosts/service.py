"""A service as a process of its own: what it shares opened, its threads started, and ended when it is told to."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from matoolkit.hosts.ending import told_to_end
from matoolkit.hosts.garbage import keep_what_is_there
from matoolkit.hosts.health_address import HealthAddress
from matoolkit.hosts.loops import Loops
from matoolkit.hosts.shared import shared
from matoolkit.hosts.telling import watch_shared
from matoolkit.settings import optional, whole_number
from matoolkit.telemetry import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.hosts.shared import Shared, Whereabouts
    from matoolkit.telemetry import Telemetry

log = logging.getLogger(__name__)

_GRACE_SECONDS = 30.0

health_port = optional("HEALTH_CHECK_PORT", whole_number(0, 65_535))
"""The setting, as scheduler and orchestrator have it; without it they listen nowhere."""


class Part(Protocol):
    """What the process is there for."""

    def start(self, loops: Loops) -> None:
        """Begin, in threads of its own."""

    def stopped(self) -> None:
        """What is to be done when its threads have ended."""


def serve(
    where: Whereabouts,
    make: Callable[[Shared], Part],
    telemetry: Telemetry = SILENT,
    health_port: int | None = None,
) -> int:
    """Work until told to end; the process's exit code. Who asks at the port is told how it is."""
    with told_to_end() as ending, ExitStack() as closing:
        found = closing.enter_context(shared(where))
        loops = Loops(telemetry=telemetry)
        found.start(loops)
        watch_shared(telemetry, found, where.names)
        part = make(found)
        part.start(loops)
        if health_port is not None:
            address = HealthAddress(health_port, lambda: health(loops))
            closing.callback(address.close)
            log.info("health is told on port %d", address.port)
        keep_what_is_there()
        log.info("ready: %s works on %s", where.service, found.described)
        said = ending.wait()
        log.info("%s: %s ends after what it is doing", said, where.service)
        stopped = loops.stop(_GRACE_SECONDS)
        part.stopped()
    if not stopped:
        log.critical("%s did not end within %g seconds", where.service, _GRACE_SECONDS)
        return 1
    log.info("ended")
    return 0


def health(loops: Loops) -> tuple[int, dict[str, object]]:
    """What the health address answers. Who waits for the database is degraded, and not to be killed for it."""
    dead, failing = loops.dead, loops.failing
    status = "unhealthy" if dead else "degraded" if failing else "healthy"
    return (503 if dead else 200), {"status": status, "failing": sorted(dead | failing)}
