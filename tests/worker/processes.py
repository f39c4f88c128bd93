"""Workers as processes of their own, on PostgreSQL and with a simulated tenant, to be signalled and killed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from matoolkit.simulation.tenant import TENANT_ID, Application, SimulatedTenant
from tests.hosts.processes import Running
from tests.worker.workplace import WORKER

if TYPE_CHECKING:
    from collections.abc import Mapping

EFFECTS = Path(__file__).parent / "effects"
SECRET = "Planted-Client-Secret-77"
APP_ID = "00000000-0000-0000-0000-000000000002"


@cache
def shared_tenant() -> SimulatedTenant:
    """A tenant for all who only need one to sign in to; its thread ends with the process."""
    server = SimulatedTenant()
    server.start()
    server.tenant.register(Application(client_id=APP_ID, secrets={SECRET}))
    return server


def tenant_settings(server: SimulatedTenant) -> dict[str, str]:
    """What a worker is told so that this is its tenant."""
    return {
        "TARGET_TENANT_ID": TENANT_ID,
        "APP_ID": APP_ID,
        "APP_CLIENT_SECRET": SECRET,
        "AUTHORITY_URL": server.url,
        "GRAPH_BASE_URL": server.url,
        "EXCHANGE_BASE_URL": server.url,
        "TENANT_CA_PATH": str(server.ca_file),
    }


class WorkerProcess(Running):
    """`matoolkit worker`, and what it says."""

    def __init__(self, database_url: str, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        given = dict(settings or {})
        known = {
            "WORKER_ID": WORKER,
            "MATOOLKIT_DATABASE_URL": database_url,
            "CUSTOM_FUNCTIONS_PATH": str(EFFECTS),
            "HEALTH_CHECK_PORT": "0",
            "IDLE_TIMEOUT_SECONDS": "0",
            "MAX_PARALLELISM": "64",
            "EFFECTS": str(folder),
            **({} if "AUTHORITY_URL" in given else tenant_settings(shared_tenant())),
        }
        super().__init__(["worker"], folder, {**known, **given})

    def ready(self) -> int:
        """Wait until it takes jobs; the port of its health address."""
        (line,) = self.until("health is told on port")
        self.until("ready")
        return int(re.findall(r"port (\d+)", line)[0])
