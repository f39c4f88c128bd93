"""The function apps, called as Azure's host calls them: what is completed, what comes again, how the API answers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Event, current_thread
from typing import TYPE_CHECKING, Any

import pytest
import requests
from sqlalchemy import select, update

from matoolkit.api.sign_in import entra_sign_in
from matoolkit.batches.announcing import Announcer
from matoolkit.bus import Names, Outgoing, Topology
from matoolkit.bus.outbox import Outbox
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.clock import SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.hosts import api
from matoolkit.hosts.azure_functions import opening, orchestrating
from matoolkit.hosts.azure_functions.functions import Functions
from matoolkit.hosts.azure_functions.received import received
from matoolkit.hosts.azure_functions.settings import NoServiceBus, every
from matoolkit.orchestrator import Orchestrator
from matoolkit.settings import BadSettings
from matoolkit.simulation.noop import NoopWorker
from matoolkit.store import bus_schema, schema
from matoolkit.store.database import Database
from matoolkit.store.errors import DatabaseUnavailable
from tests.api import entra
from tests.bus.service_bus_line import broken_sockets_closed, links_to
from tests.doubles.service_bus.server import Namespace
from tests.hosts import outcomes
from tests.hosts.functions_host import HOST_JSON, FunctionsHost, converter, period

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 60.0
NAMES = Names()
LOCK = timedelta(seconds=10)
TOPOLOGY = Topology(
    topics=NAMES.topology().topics,
    subscriptions=(*NAMES.topology(LOCK).subscriptions, *(NAMES.worker(each, LOCK) for each in outcomes.WORKERS)),
)
RESULTS = TOPOLOGY.subscriptions[1].subscription


def settings(*parts: str, bus: str = "Endpoint=sb://x", database: str = "postgresql://x/y") -> dict[str, str]:
    return {
        "MATOOLKIT_PARTS": ",".join(parts),
        "MATOOLKIT_DATABASE_URL": database,
        "SERVICE_BUS_CONNECTION_STRING": bus,
        "ServiceBusConnection": bus,
        "Orchestrator__WorkerIds": ",".join(outcomes.WORKERS),
        "Scheduler__PollTick": "1s",
        "AzureAd__TenantId": entra.TENANT,
        "AzureAd__ClientId": entra.CLIENT,
    }


@dataclass
class Place:
    """A database, a namespace, and the settings that lead there."""

    database: Database
    namespace: Namespace
    bus: ServiceBus
    hosts: list[tuple[FunctionsHost, Functions]]

    def settings(self, *parts: str, **more: str) -> dict[str, str]:
        url = self.database.engine.url.render_as_string(hide_password=False)
        return settings(*parts, bus=self.namespace.connection_string, database=url) | more

    def start(self, *parts: str, **more: str) -> FunctionsHost:
        told = self.settings(*parts, **more)
        functions = Functions(told)
        self.hosts.append((FunctionsHost(functions.app, told, timer_scale=0.1), functions))
        return self.hosts[-1][0]

    def stop(self) -> None:
        for host, _ in self.hosts:
            host.stop()
        for _, functions in self.hosts:
            functions.close()
        self.bus.disconnect()

    def rows(self, table: Any) -> list[Any]:
        with self.database.reading() as tx:
            return list(tx.connection.execute(select(table).order_by(table.c.id)))

    def until(self, holds: Callable[[], object]) -> None:
        ends, pause = time.monotonic() + PATIENCE, Event()
        while not holds():
            assert time.monotonic() < ends, self.told()
            pause.wait(0.1)

    def told(self) -> str:
        """Where everything is, for who waits in vain."""
        waiting = [(each.topic, each.message_id, each.sequence) for each in self.rows(bus_schema.outbox)]
        lying = [(each.name, self.namespace.ready(each.topic, each.name)) for each in TOPOLOGY.subscriptions]
        calls = [(host.calls, host.failures) for host, _ in self.hosts]
        steps = [(each.step_name, each.status, each.job_id) for each in self.rows(schema.step_executions)]
        return f"outbox {waiting}, ready {lying}, calls {calls}, steps {steps}"

    def send(self, topic: str, *messages: Outgoing) -> None:
        with self.bus.transaction() as tx:
            self.bus.publish(tx, topic, messages)


@pytest.fixture
def place(postgres_database: Database) -> Iterator[Place]:
    namespace = Namespace(SystemClock()).start()
    namespace.declare(TOPOLOGY)
    with broken_sockets_closed():
        found = Place(postgres_database, namespace, ServiceBus(links_to(namespace), SystemClock()), [])
        yield found
        found.stop()
    namespace.stop()


def working(place: Place) -> Callable[[], int]:
    """A worker for the first worker's jobs."""
    subscription = NAMES.worker(outcomes.WORKERS[0]).subscription
    return NoopWorker(place.bus, subscription, SystemClock(), function=outcomes.function).work


# What is completed and what comes again ------------------------------------------------------------------------------


def test_bad_messages_take_none_of_their_neighbours_along(place: Place) -> None:
    outcomes.begin(place.database, Announcer(Outbox(SystemClock())), SystemClock(), 6)
    place.start("orchestrator")
    work = working(place)
    place.until(lambda: work() >= 0 and place.rows(schema.batches)[0].status == "active")
    place.start("scheduler")
    place.until(lambda: statuses(place, "create").count("dispatched") == 6)
    with place.database.transaction() as tx:
        tx.connection.execute(
            update(schema.batch_members)
            .where(schema.batch_members.c.member_key == "person003")
            .values(worker_data_json="{broken")
        )
    place.send(NAMES.results, Outgoing("{", {"Status": "success"}, "unreadable"), Outgoing("\u00ff", {}, "no json"))
    place.until(lambda: work() >= 0 and statuses(place, "invite").count("succeeded") == 5)
    place.until(lambda: len(place.rows(schema.dead_messages)) == 3)
    aside = [(each.topic, each.reason) for each in place.rows(schema.dead_messages)]
    unreadable, failed = (NAMES.results, "Unreadable"), (NAMES.results, "HandlerFailed")
    assert sorted(aside) == [failed, unreadable, unreadable]
    assert statuses(place, "create").count("dispatched") == 1
    assert all(not host.failures for host, _ in place.hosts), "nothing was abandoned"
    place.until(lambda: place.namespace.ready(RESULTS.topic, RESULTS.name) == 0)
    with place.bus.transaction() as tx:
        assert place.bus.dead_letters(tx, RESULTS, 10) == []


def statuses(place: Place, step: str) -> list[str]:
    return [each.status for each in place.rows(schema.step_executions) if each.step_name == step]


def test_while_the_database_is_away_everything_comes_again_and_nothing_is_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes.begin(place.database, Announcer(Outbox(SystemClock())), SystemClock(), 3)
    monkeypatch.setattr(orchestrating, "patiently", partial(opening.patiently, seconds=0.2))
    away, transaction = [None] * 4, Database.transaction

    def unavailable(database: Database) -> Any:
        if current_thread().name == "orchestrator_results" and away:
            away.pop()
            raise DatabaseUnavailable("the database is away")
        return transaction(database)

    monkeypatch.setattr(Database, "transaction", unavailable)
    host, work = place.start("orchestrator"), working(place)
    place.until(lambda: work() >= 0 and place.rows(schema.batches)[0].status == "active")
    assert len(host.failures) == 4, "each time all messages were given back"
    assert place.rows(schema.dead_messages) == []


def test_a_message_that_processes_may_die_of_keeps_no_neighbour_from_being_handled(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call dies when it comes to that message; the others are handled before, from either end."""
    handle = Orchestrator._take_results

    def deadly(orchestrator: Orchestrator, found: Any, messages: Any) -> None:
        if any('"step-5"' in each.body for each in messages):
            raise DatabaseUnavailable("as good as dead")
        handle(orchestrator, found, messages)

    monkeypatch.setattr(orchestrating, "patiently", partial(opening.patiently, seconds=0))
    monkeypatch.setattr(Orchestrator, "_take_results", deadly)
    outcomes.begin(place.database, Announcer(Outbox(SystemClock())), SystemClock(), 6)
    host, work = place.start("orchestrator"), working(place)
    place.until(lambda: work() >= 0 and place.rows(schema.batches)[0].status == "active")
    place.start("scheduler")
    place.until(lambda: place.namespace.ready(NAMES.jobs, NAMES.worker(outcomes.WORKERS[0]).name) == 6)
    place.until(lambda: work() >= 0 and statuses(place, "invite").count("succeeded") == 5)
    assert statuses(place, "create").count("dispatched") == 1
    assert host.failures


def test_a_schema_that_is_not_up_to_date_yet_costs_no_message(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten deliveries are used up in a moment unless each is waited for."""
    monkeypatch.setattr(orchestrating, "patiently", partial(opening.patiently, seconds=2))
    with place.database.transaction() as tx:
        tx.connection.exec_driver_sql("ALTER TABLE alembic_version RENAME TO hidden")
    host = place.start("orchestrator")
    body = '{"messageType":"unheard-of"}'
    place.send(NAMES.events, Outgoing(body, {"MessageType": "unheard-of"}))
    place.until(lambda: host.failures)
    with place.database.transaction() as tx:
        tx.connection.exec_driver_sql("ALTER TABLE hidden RENAME TO alembic_version")
    place.until(
        lambda: place.namespace.ready(NAMES.events, NAMES.orchestrator) == 0 and host.calls["orchestrator_events"] > 1
    )
    assert "matoolkit migrate" in str(host.failures[0])


# Settings ------------------------------------------------------------------------------------------------------------


def test_which_parts_an_app_is_has_to_be_said() -> None:
    with pytest.raises(BadSettings, match="MATOOLKIT_PARTS is missing: which of scheduler, orchestrator, admin-api"):
        Functions(settings())
    with pytest.raises(BadSettings, match="MATOOLKIT_PARTS must be one or several of"):
        Functions(settings("scheduler", "janitor"))


@pytest.mark.parametrize("part", ["scheduler", "orchestrator", "admin-api"])
def test_without_service_bus_nothing_would_ever_be_called(part: str) -> None:
    with pytest.raises(NoServiceBus, match="__ServiceBusNamespace"):
        Functions({**settings(part), "SERVICE_BUS_CONNECTION_STRING": ""})


def test_the_api_has_entra_s_sign_in_or_none() -> None:
    with pytest.raises(BadSettings, match="AzureAd__TenantId and AzureAd__ClientId are missing"):
        Functions({**settings("admin-api"), "AzureAd__TenantId": "", "AzureAd__ClientId": ""})


@pytest.mark.parametrize(
    ("seconds", "schedule"),
    [(1, "*/1 * * * * *"), (15, "*/15 * * * * *"), (60, "0 */1 * * * *"), (300, "0 */5 * * * *")],
)
def test_schedules(seconds: int, schedule: str) -> None:
    assert every(timedelta(seconds=seconds), "X") == schedule
    assert period(schedule) == seconds


@pytest.mark.parametrize("seconds", [0, 7, 45, 90, 420, 3600])
def test_schedules_that_would_not_be_even(seconds: int) -> None:
    with pytest.raises(MatoolkitError, match="X must divide a minute or an hour evenly"):
        every(timedelta(seconds=seconds), "X")


def test_each_part_has_its_functions() -> None:
    functions = Functions(settings("scheduler", "orchestrator", "admin-api"))
    named: dict[str, Any] = {}
    for each in functions.app.get_functions():
        (named[str(each.get_function_name())], *_) = json.loads(each.get_function_json())["bindings"]
    assert set(named) == {
        "scheduler",
        "orchestrator_events",
        "orchestrator_results",
        "orchestrator_upkeep",
        "admin_api",
    }
    assert {each["connection"] for each in named.values() if "connection" in each} == {"ServiceBusConnection"}
    # Messages are settled by what a call comes to, and there are no more of them than one transaction takes.
    bus = HOST_JSON["extensions"]["serviceBus"]
    assert bus["autoCompleteMessages"] is True
    assert 0 < bus["maxMessageBatchSize"] <= 500
    assert bus["prefetchCount"] == 0, "what is fetched ahead is locked, and its lock runs out while others are handled"


# The API -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def signed_in(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    directory = entra.Directory()
    monkeypatch.setattr(api, "sign_in", lambda *_: entra_sign_in(entra.SETTINGS, SystemClock(), directory.fetch))
    return {"Authorization": f"Bearer {entra.signed()}"}


def test_the_api_answers_over_http_and_what_it_publishes_is_sent(place: Place, signed_in: dict[str, str]) -> None:
    host = place.start("admin-api", "orchestrator")
    url = f"http://127.0.0.1:{host.port}"
    answer = requests.get(f"{url}/api/health", timeout=30)
    assert (answer.status_code, answer.headers["x-frame-options"]) == (200, "DENY")
    assert requests.get(f"{url}/api/batches", timeout=30).status_code == 401
    assert requests.get(f"{url}/api/batches?limit=5", headers=signed_in, timeout=30).json()["batches"] == []
    body = {"name": "wave", "yamlContent": outcomes.RUNBOOK}
    published = requests.post(f"{url}/api/runbooks", json=body, headers=signed_in, timeout=30)
    assert published.status_code == 200, published.text
    people = "Key,Time\nperson001,2026-03-01T12:00:00Z\n"
    made = requests.post(
        f"{url}/api/batches",
        data={"runbookName": "wave"},
        files={"file": ("people.csv", people, "text/csv")},
        headers=signed_in,
        timeout=30,
    )
    assert made.status_code == 200, made.text
    advanced = requests.post(f"{url}/api/batches/{made.json()['batchId']}/advance", headers=signed_in, timeout=30)
    assert advanced.json()["action"] == "init_dispatched", advanced.text
    place.until(lambda: len(place.rows(schema.init_executions)) == 1)
    place.until(lambda: place.namespace.ready(NAMES.jobs, "worker-worker-01") == 1)


def test_a_path_stays_encoded_so_that_it_cannot_break_a_line_of_the_log(
    place: Place, signed_in: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    host = place.start("admin-api")
    with caplog.at_level("INFO", logger="matoolkit.api.edge"):
        requests.get(f"http://127.0.0.1:{host.port}/api/a%0Ab%2520", headers=signed_in, timeout=30)
    assert "GET /api/a%0Ab%2520:" in caplog.text


def test_an_api_that_cannot_work_says_so_and_no_more(place: Place) -> None:
    host = place.start("admin-api", MATOOLKIT_DATABASE_URL="postgresql://user:Planted-9@127.0.0.1:1/x")
    answer = requests.get(f"http://127.0.0.1:{host.port}/api/health", timeout=60)
    assert answer.status_code == 503
    assert answer.json() == {"error": "The service cannot work at the moment; its log says why."}


# Messages ------------------------------------------------------------------------------------------------------------


def test_a_message_without_anything_but_a_body_is_read() -> None:
    from azure.functions import meta

    data = meta.Datum(json.dumps([{"a": 1}]), "json")
    (message,) = converter("serviceBusTrigger").decode(
        data, trigger_metadata={"UserPropertiesArray": meta.Datum("[{}]", "json")}
    )
    found = received(message, RESULTS)
    assert (found.body, found.message_id, found.delivery_count) == ('{"a": 1}', "bus-0", 1)
