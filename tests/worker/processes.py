"""Workers as processes of their own, on PostgreSQL, to be signalled and killed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hosts.processes import Running
from tests.worker.workplace import WORKER

if TYPE_CHECKING:
    from collections.abc import Mapping

EFFECTS = Path(__file__).parent / "effects"
SECRET = "Planted-Client-Secret-77"


class WorkerProcess(Running):
    """`matoolkit worker`, and what it says."""

    def __init__(self, database_url: str, folder: Path, settings: Mapping[str, str] | None = None) -> None:
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
        super().__init__(["worker"], folder, {**known, **(settings or {})})

    def ready(self) -> int:
        """Wait until it takes jobs; the port of its health address."""
        (line,) = self.until("health is told on port")
        self.until("ready")
        return int(re.findall(r"port (\d+)", line)[0])
