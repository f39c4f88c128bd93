"""Topics and subscriptions where nobody may manage them, and what is believed of them for a while."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest

from matoolkit.bus import Names, Topology
from matoolkit.bus.errors import BusDenied
from matoolkit.bus.service_bus import ServiceBusNotInstalled, ServiceBusSettings, open_service_bus
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.bus.service_bus.settings import NoNamespace
from matoolkit.clock import ManualClock
from tests.bus.lines import EVENTS, NAMES, RESULTS, START, WORKER_1, WORKER_2, Line, filtered, job
from tests.bus.service_bus_line import ServiceBusLine, Shared, links_to
from tests.doubles.service_bus.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

KNOWN = Topology(subscriptions=(NAMES.worker("1"), NAMES.worker("7")))


@pytest.fixture
def without_rights(line: ServiceBusLine) -> Iterator[Line]:
    bus = ServiceBus(links_to(line.namespace, known=KNOWN), line.clock)
    line.namespace.faults.plan(Fault.DENY_MANAGEMENT, 1000)
    yield Line(bus, line.clock)
    bus.disconnect()


def test_without_the_right_entities_are_taken_as_given(
    without_rights: Line, line: ServiceBusLine, caplog: pytest.LogCaptureFixture
) -> None:
    bus = without_rights.bus
    with caplog.at_level(logging.INFO), bus.transaction() as tx:
        bus.declare(tx, Topology(NAMES.topology().topics, (NAMES.worker("1"), NAMES.worker("2"))))
        assert [each.name for each in bus.subscriptions(tx, NAMES.jobs)] == ["worker-1", "worker-2", "worker-7"]
        assert bus.listeners(tx, NAMES.jobs, "WorkerId") == frozenset({"1", "2", "7"})
        assert bus.listeners(tx, NAMES.events, "WorkerId") is None, "nobody knows"
    assert "as infrastructure made them" in caplog.text
    assert line.namespace.faults.happened[Fault.DENY_MANAGEMENT] == 1, "who was denied does not ask again"
    with pytest.raises(BusDenied), bus.transaction() as tx:
        bus.remove(tx, WORKER_1)
    without_rights.publish(NAMES.jobs, job("a"))
    with bus.transaction() as tx:
        depth = bus.depth(tx, WORKER_1)
    assert (depth.ready, depth.dead) == (1, 0)


def test_what_was_listed_is_believed_for_a_minute(line: ServiceBusLine) -> None:
    with line.bus.transaction() as tx:
        assert line.bus.listeners(tx, NAMES.jobs, "WorkerId") == frozenset({"1", "2"})
        assert line.bus.listeners(tx, RESULTS.topic, "WorkerId") is None, "everything goes through"
        line.namespace.declare(Topology(subscriptions=(NAMES.worker("3"),)))
        assert line.bus.listeners(tx, NAMES.jobs, "WorkerId") == frozenset({"1", "2"})
        line.clock.advance(minutes=1)
        assert line.bus.listeners(tx, NAMES.jobs, "WorkerId") == frozenset({"1", "2", "3"})
        assert line.bus.subscriptions(tx, NAMES.jobs)[:2] == [WORKER_1, WORKER_2]


def test_a_value_with_a_quote_stays_a_value(line: ServiceBusLine) -> None:
    rule = filtered(NAMES.jobs, "worker-quoted", "WorkerId", "o'neil' OR '1'='1")
    line.declare(rule)
    line.publish(NAMES.jobs, job("mine", "o'neil' OR '1'='1"), job("other", "1"))
    assert line.bodies(rule.subscription) == ["mine"]
    with line.bus.transaction() as tx:
        assert "o'neil' OR '1'='1" in (line.bus.listeners(tx, NAMES.jobs, "WorkerId") or ())


def test_declaring_twice_changes_nothing(line: ServiceBusLine, namespace: Shared) -> None:
    other = Line(ServiceBus(namespace.links, line.clock), line.clock)
    for each in (line, other):
        with each.bus.transaction() as tx:
            each.bus.declare(tx, Names().topology())
    line.publish(EVENTS.topic, "a")
    assert line.bodies(EVENTS) == ["a"]


def test_a_namespace_has_to_be_given() -> None:
    with pytest.raises(NoNamespace):
        ServiceBusSettings()
    assert ServiceBusSettings(namespace="contoso").host == "contoso.servicebus.windows.net"
    assert ServiceBusSettings(namespace="contoso.servicebus.usgovcloudapi.net").host == (
        "contoso.servicebus.usgovcloudapi.net"
    )


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ServiceBusSettings(namespace="contoso")
    open_service_bus(settings, ManualClock(START)).close()
    for name in [name for name in sys.modules if name.startswith("matoolkit.bus.service_bus.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "azure.servicebus", None)
    with pytest.raises(ServiceBusNotInstalled, match=r"matoolkit\[azure\]"):
        open_service_bus(settings, ManualClock(START))
