"""Signing in with a token in place of a key: who is asked for it, for what, and that nothing else is needed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.credentials import AccessToken
from azure.identity import DefaultAzureCredential, ManagedIdentityCredential
from azure.servicebus import ServiceBusClient

from matoolkit.bus.port import Outgoing
from matoolkit.bus.service_bus import ServiceBusSettings, links
from matoolkit.bus.service_bus.bus import ServiceBus
from matoolkit.bus.service_bus.links import Links
from tests.bus.lines import EVENTS, NAMES, TOPOLOGY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bus.service_bus_line import ServiceBusLine


class Plainly(ServiceBusClient):
    """Reaches the double, which has no TLS, by token as well."""

    def __init__(self, host: str, credential: Any, **more: Any) -> None:
        super().__init__(host, credential, **{"use_tls": False, **more})


class Identity:
    """Gives tokens, and notes for what."""

    def __init__(self) -> None:
        self.scopes: set[str] = set()

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        self.scopes |= set(scopes)
        return AccessToken("a.token.of-somebody", int(time.time()) + 3600)


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> Identity:
    identity = Identity()
    monkeypatch.setattr(links, "_credential", lambda: identity)
    monkeypatch.setattr(links, "ServiceBusClient", Plainly)
    return identity


@pytest.fixture
def bus(line: ServiceBusLine, identity: Identity) -> Iterator[ServiceBus]:
    quick: dict[str, Any] = {"patience": 0.05, "slice": 0.1, "socket_timeout": 0.02, "attempts": 1, "first_pause": 0.05}
    settings = ServiceBusSettings(namespace=f"127.0.0.1:{line.namespace.port}", known=TOPOLOGY, **quick)
    bus = ServiceBus(Links(settings), line.clock)
    yield bus
    bus.disconnect()


def test_a_token_for_service_bus_is_enough_to_send_and_receive(
    line: ServiceBusLine, bus: ServiceBus, identity: Identity
) -> None:
    with bus.transaction() as tx:
        bus.publish(tx, NAMES.events, [Outgoing("one"), Outgoing("two")])
    assert line.namespace.ready(NAMES.events, NAMES.orchestrator) == 2
    with bus.transaction() as tx:
        found = bus.receive(tx, EVENTS, 2)
        bus.complete(tx, found)
    assert [each.body for each in found] == ["one", "two"]
    assert identity.scopes == {"https://servicebus.azure.net//.default"}


def test_it_is_the_host_s_identity_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_ID", "11111111-2222-3333-4444-555555555555")
    found = links._credential()
    assert isinstance(found, DefaultAzureCredential)
    assert any(isinstance(each, ManagedIdentityCredential) for each in found.credentials)
    found.close()
