"""`matoolkit up` as a process, and somebody who asks its API."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.cli.client import ApiClient, all_pages
from matoolkit.local_key import load_local_key
from tests.hosts import waves
from tests.hosts.processes import SECONDS, Running

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

OVER = ("completed", "failed", "cancelled")


class UpProcess(Running):
    """`matoolkit up` in a folder, on any port that is free."""

    def __init__(self, folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.data = folder / "data"
        known = {
            "CUSTOM_FUNCTIONS_PATH": str(waves.FUNCTIONS),
            "COUNTED": str(folder / "counted"),
            "SQL_PEOPLE": f"sqlite:///{folder / 'people.db'}",
            "MAX_PARALLELISM": "8",
            "MATOOLKIT_DATA": str(self.data),
        }
        command = ["up", "--port", "0", "--tick", "1s", "--poll-tick", "1s", *options]
        super().__init__(command, folder, {**known, **(environment or {})})

    def ready(self) -> ApiClient:
        """Wait until it works; a client that is signed in."""
        (line,) = self.until("ready: everything works")
        return ApiClient(line.split()[-1], self.token)

    def token(self) -> str:
        """As the command line signs in."""
        return load_local_key(self.data).token("anna", ["Admin"], datetime.now(UTC), timedelta(minutes=5))


def until(found: Callable[[], Any], patience: float = SECONDS) -> Any:
    """What is found, as soon as it is."""
    ends = time.monotonic() + patience
    while not (what := found()):
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.1)
    return what


def only_batch(client: ApiClient) -> Any:
    """The batch, once it is there."""
    return next(iter(client.batches()["batches"]), None)


def over(client: ApiClient) -> Any:
    """The batch, once it has ended."""
    batch = only_batch(client)
    return batch if batch and batch["status"] in OVER else None


def members(client: ApiClient, batch_id: int) -> list[Any]:
    """All of them."""
    pages = all_pages(lambda **page: client.members(batch_id, **page), limit=100)
    return [each for page in pages for each in page["members"]]
