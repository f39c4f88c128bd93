"""The connection to a namespace, and the links on it: opened when first used, shared, and made anew when they fail.

A link costs half a second to open and must not be used by two threads at once, so each is lent to one at a time.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from azure.core.exceptions import AzureError
from azure.servicebus import ServiceBusClient, ServiceBusReceiver, ServiceBusSender, ServiceBusSubQueue
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    ServiceBusServerBusyError,
)

from matoolkit.bus.errors import BusDenied
from matoolkit.bus.service_bus.translation import translating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from azure.servicebus.management import ServiceBusAdministrationClient

    from matoolkit.bus.port import Subscription
    from matoolkit.bus.service_bus.settings import ServiceBusSettings

log = logging.getLogger(__name__)

_OF_THE_MESSAGE = (MessageLockLostError, MessageNotFoundError, MessageSizeExceededError, ServiceBusServerBusyError)
"""Errors that say nothing against the link."""

End = TypeVar("End", ServiceBusSender, ServiceBusReceiver)


class Link(Generic[End]):
    """One link, lent to one thread at a time."""

    def __init__(self, entity: str | Subscription, make: Callable[[], End]) -> None:
        self._entity = entity
        self._make: Callable[[], End] = make
        self._turn = RLock()
        self._end: End | None = None
        self._counting = Lock()
        self._waiting = 0

    @property
    def wanted(self) -> bool:
        """Whether a thread waits for its turn: who only waits for messages lets it pass."""
        return self._waiting > 0

    @contextmanager
    def lent(self) -> Iterator[End]:
        """The link, open; it is closed and forgotten when what is done with it fails."""
        with self._queueing(), translating(self._entity):
            try:
                yield self._opened()
            except _OF_THE_MESSAGE:
                raise
            except (AzureError, OSError, ValueError):
                self._forget()
                raise

    @contextmanager
    def _queueing(self) -> Iterator[None]:
        with self._counting:
            self._waiting += 1
        with self._turn:
            with self._counting:
                self._waiting -= 1
            yield

    def close(self) -> None:
        """Give back what is locked and close; it is opened again by who uses it."""
        with self._turn:
            self._forget()

    def _opened(self) -> End:
        """Opened on its own, since a receive that had to open it would have no time left to receive."""
        if self._end is None:
            end = self._make()
            end.__enter__()
            self._end = end
        return self._end

    def _forget(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            with suppress(AzureError, OSError, ValueError):
                end.close()


class Links:
    """All links to a namespace."""

    def __init__(
        self, settings: ServiceBusSettings, administration: ServiceBusAdministrationClient | None = None
    ) -> None:
        self.settings = settings
        self._administration = administration
        self._client: ServiceBusClient | None = None
        self._lock = Lock()
        self._senders: dict[str, Link[ServiceBusSender]] = {}
        self._receivers: dict[tuple[Subscription, bool], Link[ServiceBusReceiver]] = {}

    def sender(self, topic: str) -> Link[ServiceBusSender]:
        """The link to a topic."""
        with self._lock:
            link = self._senders.get(topic)
            if link is None:
                link = self._senders[topic] = Link(topic, lambda: self._sender(topic))
            return link

    def receiver(self, subscription: Subscription, *, dead: bool = False) -> Link[ServiceBusReceiver]:
        """The link to a subscription, or to its dead letters."""
        with self._lock:
            link = self._receivers.get((subscription, dead))
            if link is None:
                link = self._receivers[subscription, dead] = Link(
                    subscription, lambda: self._receiver(subscription, dead)
                )
            return link

    def administration(self) -> ServiceBusAdministrationClient:
        """Who makes and lists entities, if it has the right to."""
        if self._administration is None:
            from azure.servicebus.management import ServiceBusAdministrationClient

            settings = self.settings
            if settings.is_emulator:
                raise BusDenied("the SDK cannot manage the entities of an emulator")
            if settings.connection_string:
                self._administration = ServiceBusAdministrationClient.from_connection_string(settings.connection_string)
            else:
                self._administration = ServiceBusAdministrationClient(settings.host or "", _credential())
        return self._administration

    def close(self) -> None:
        """Close all there are."""
        with self._lock:
            links: list[Link[Any]] = [*self._senders.values(), *self._receivers.values()]
            client, self._client = self._client, None
        if links:
            # Each takes up to a second, in which it waits for a thread of its own.
            with ThreadPoolExecutor(len(links)) as threads:
                for closing in [threads.submit(link.close) for link in links]:
                    closing.result()
        if client is not None:
            client.close()

    def _receiver(self, subscription: Subscription, dead: bool) -> ServiceBusReceiver:  # noqa: FBT001 - a lambda's
        return self._connected().get_subscription_receiver(
            subscription.topic,
            subscription.name,
            sub_queue=ServiceBusSubQueue.DEAD_LETTER if dead else None,
            socket_timeout=self.settings.socket_timeout,
        )

    def _sender(self, topic: str) -> ServiceBusSender:
        return self._connected().get_topic_sender(topic, socket_timeout=self.settings.socket_timeout)

    def _connected(self) -> ServiceBusClient:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> ServiceBusClient:
        settings = self.settings
        patience: dict[str, Any] = {
            "retry_total": settings.attempts,
            "retry_backoff_factor": settings.first_pause,
        }
        if settings.connection_string:
            return ServiceBusClient.from_connection_string(settings.connection_string, **patience)
        return ServiceBusClient(settings.host or "", _credential(), **patience)


def _credential() -> Any:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()
