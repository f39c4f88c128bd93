"""A connection to a TDS server on which every byte counts towards one time limit.

`pytds` gives each wait its own time and tries to connect again by itself, sleeping in between. What is here stands in
for its socket, so that all waits together stay within the limit and nothing is tried twice.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, TypeVar

from matoolkit.scheduler.sources.errors import SourceUnavailable, TimeLimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.scheduler.sources.watch import Watch

T = TypeVar("T")
_CONNECT_SECONDS = 15.0


class WatchedSocket:
    """A socket whose every wait is part of one time limit."""

    def __init__(self, host: str, port: int, watch: Watch) -> None:
        self._watch = watch
        self._place = f"{host}:{port}"
        self.left: Callable[[], float] = watch.remaining
        """How many seconds are left; it is an error when there are none."""
        self.may_cancel = False
        """Whether `pytds` is to hear of a wait that was too long, so that it tells the server."""
        try:
            self._socket = socket.create_connection((host, port), min(_CONNECT_SECONDS, watch.remaining()))
        except OSError as error:
            raise self._gone("cannot be reached") from error

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Up to so many bytes."""
        buffer = bytearray(size)
        return bytes(buffer[: self.recv_into(buffer, size, flags)])

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0, flags: int = 0) -> int:
        """Up to so many bytes, into a buffer."""
        received = self._within_limit(lambda: self._socket.recv_into(buffer, size, flags))
        if received == 0:
            raise self._gone("hung up")
        return received

    def sendall(self, data: bytes | bytearray | memoryview, flags: int = 0) -> None:
        """All of this."""
        self._within_limit(lambda: self._socket.sendall(data, flags))

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def setsockopt(self, *arguments: Any) -> None:
        """What `pytds` wants the socket to be like."""
        self._socket.setsockopt(*arguments)

    def gettimeout(self) -> float | None:
        """What is left."""
        return self._socket.gettimeout()

    def settimeout(self, _seconds: float | None) -> None:
        """Nothing: there is one limit for all."""

    def _within_limit(self, action: Callable[[], T]) -> T:
        try:
            self._socket.settimeout(self.left())
            return action()
        except (TimeoutError, TimeLimitExceeded) as error:
            if self.may_cancel:
                raise TimeoutError from error
            raise self._watch.too_long() from error
        except OSError as error:
            raise self._gone("broke off") from error

    def _gone(self, how: str) -> SourceUnavailable:
        return SourceUnavailable(f"{self._watch.place}: {self._place} {how}")
