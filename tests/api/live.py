"""The API on a real server, with an orchestrator and a worker behind it that move when they are told to."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import requests

from matoolkit.api.publishing import PublishRules
from matoolkit.api.sign_in import local_sign_in
from matoolkit.bus import EmbeddedBus, Names, Topology
from matoolkit.clock import ManualClock, SystemClock
from matoolkit.hosts import api as host
from matoolkit.local_key import make_local_key
from matoolkit.orchestrator import Orchestrator
from matoolkit.scheduler.due import ask_due_polls, start_due_phases
from matoolkit.simulation.noop import NoopWorker
from tests.api.people import csv, runbook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matoolkit.messages import WorkerJob, WorkerResult
    from matoolkit.store.database import Database

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_numbers = itertools.count(1)


class Live:
    """A server, and what stands behind it."""

    def __init__(self, database: Database, folder: Path, **services: Any) -> None:
        self.database = database
        self.clock = ManualClock(START)
        self.key = make_local_key(folder)
        self.bus = EmbeddedBus(database, self.clock)
        self.worker_place = Names().worker(None)
        with database.transaction() as tx:
            self.bus.declare(tx, Names().topology())
            self.bus.declare(tx, Topology(subscriptions=(self.worker_place,)))
        self.orchestrator = Orchestrator(database, self.bus, self.clock)
        self.function: Callable[[WorkerJob], WorkerResult] | None = None
        self.services = host.services(
            database,
            self.bus,
            self.clock,
            services.pop("sign_in", None) or local_sign_in(self.key, SystemClock()),
            services.pop("rules", PublishRules()),
            **services,
        )
        self.server = host.server(self.services, "127.0.0.1", 0)
        self.server.start()
        self.session = requests.Session()

    def close(self) -> None:
        self.session.close()
        assert self.server.stop()
        self.bus.close()

    def token(self, *roles: str, name: str = "anna@example.test") -> str:
        return self.key.token(name, roles, datetime.now(UTC), timedelta(minutes=10))

    def call(self, method: str, path: str, *, role: str | None = "Admin", **given: Any) -> requests.Response:
        headers = dict(given.pop("headers", {}))
        if role is not None:
            headers.setdefault("Authorization", f"Bearer {self.token(*role.split())}")
        return self.session.request(method, self.server.url + path, headers=headers, timeout=30, **given)

    def get(self, path: str, **given: Any) -> Any:
        answer = self.call("GET", path, **given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, **given: Any) -> Any:
        answer = self.call("POST", path, **given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def error(self, method: str, path: str, status: int, **given: Any) -> str:
        answer = self.call(method, path, **given)
        assert answer.status_code == status, answer.text
        return str(answer.json()["error"])

    # What tests arrange ----------------------------------------------------------------------------------------------

    def name(self) -> str:
        """A runbook's name that no other test uses."""
        return f"wave-{next(_numbers)}"

    def publish(self, name: str | None = None, **more: Any) -> str:
        name = name or self.name()
        self.post("/api/runbooks", json={"name": name, "yamlContent": runbook(name, **more)})
        return name

    def create(self, name: str, *keys: str, **more: Any) -> dict[str, Any]:
        made: dict[str, Any] = self.post("/api/batches", data={"runbookName": name}, files=upload(csv(*keys)), **more)
        return made

    def batch(self, *keys: str, **more: Any) -> int:
        """A manual batch of a runbook of its own."""
        return int(self.create(self.publish(**more), *(keys or ("anna", "ben")))["batchId"])

    def settle(self) -> None:
        """Everything that is said is done, until nobody has anything more to say."""
        worker = NoopWorker(self.bus, self.worker_place.subscription, self.clock, function=self.function)
        while True:
            with self.database.transaction() as tx:
                started = start_due_phases(tx, self.services.announcer, self.clock.now())
                started += ask_due_polls(tx, self.services.announcer, self.clock.now())
            handled = self.orchestrator.handle_events() + worker.work() + self.orchestrator.handle_results()
            if not started and not handled:
                return


def upload(content: bytes, name: str = "people.csv") -> dict[str, Any]:
    return {"file": (name, content, "text/csv")}
