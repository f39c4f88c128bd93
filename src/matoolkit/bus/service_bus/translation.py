"""The SDK's errors in our words: the one place that knows both."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
)
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusServerBusyError,
)

from matoolkit.bus.errors import (
    BusBusy,
    BusDenied,
    BusError,
    BusUnavailable,
    InvalidTopology,
    MessageTooLarge,
    SubscriptionNotFound,
    TopicNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.bus.port import Subscription

_THROTTLED = "50009"
_BAD_REQUEST, _FORBIDDEN, _TOO_MANY = 400, {401, 403}, {429, 503}


@contextmanager
def translating(entity: str | Subscription) -> Iterator[None]:
    """Raise errors of ours for the SDK's; a lost lock stays what it is, as only the caller knows whose it was."""
    try:
        yield
    except (BusError, MessageLockLostError):
        raise
    except AzureError as error:
        raise _translated(error, entity) from error
    except (OSError, ValueError) as error:
        # What a link says that another thread, or a failure, has closed.
        raise BusUnavailable(f"{_named(entity)}: {_first_line(error)}") from error


def _translated(error: AzureError, entity: str | Subscription) -> BusError:
    told = f"{_named(entity)}: {_first_line(error)}"
    match error:
        case MessagingEntityNotFoundError() | ResourceNotFoundError():
            return _missing(entity)
        case MessageSizeExceededError():
            return MessageTooLarge(told)
        case ServiceBusServerBusyError():
            return BusBusy(told)
        case ServiceBusAuthenticationError() | ServiceBusAuthorizationError() | ClientAuthenticationError():
            return BusDenied(told)
        case HttpResponseError(status_code=status):
            return _refused(status, told)
        case _:
            return BusBusy(told) if _THROTTLED in told else BusUnavailable(told)


def _refused(status: int | None, told: str) -> BusError:
    if status == _BAD_REQUEST:
        return InvalidTopology(told)
    if status in _FORBIDDEN:
        return BusDenied(told)
    return BusBusy(told) if status in _TOO_MANY else BusUnavailable(told)


def _missing(entity: str | Subscription) -> BusError:
    if isinstance(entity, str):
        return TopicNotFound(f"there is no topic {entity}")
    return SubscriptionNotFound(f"there is no subscription {entity.name} of topic {entity.topic}")


def _named(entity: str | Subscription) -> str:
    return entity if isinstance(entity, str) else f"{entity.topic}/{entity.name}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
