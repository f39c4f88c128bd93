"""Hears what other processes publish on PostgreSQL: one thread, one connection of its own, for ever.

Whatever ends the connection, the thread makes a new one, listens again and then tells everybody to look: what was
announced in between has been missed.
"""

from __future__ import annotations

import logging
import socket
from selectors import EVENT_READ, DefaultSelector
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import psycopg

from matoolkit.bus.postgresql import CHANNEL

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from matoolkit.bus.signals import Signals

_log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_CONNECT_TIMEOUT = 5
_PROBE_AFTER = 30.0
"""Seconds of silence after which the server is asked whether it is still there: a cut cable says nothing."""
_KEEPALIVE = {"keepalives_idle": 20, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}


class Listener:
    """The thread that listens. It starts when first asked to, and does not keep the process alive."""

    def __init__(self, engine: Engine, signals: Signals) -> None:
        self._engine = engine
        self._signals = signals
        self._stopping = Event()
        self._stop_here, self._stop_there = socket.socketpair()
        self._thread = Thread(target=self._run, name="matoolkit-bus-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and wait for the thread."""
        self._stopping.set()
        self._stop_there.send(b"!")
        self._thread.join()
        self._stop_here.close()
        self._stop_there.close()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                with self._connected() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._signals.signal_everything()
                    pause = _FIRST_PAUSE
                    self._listen(connection)
            # Whatever it is, a thread that has died hears nothing: the next attempt will show whether it is over.
            except Exception as error:  # noqa: BLE001
                _log.warning("listening for messages was interrupted, trying again in %.2f s: %s", pause, error)
                self._stopping.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _connected(self) -> psycopg.Connection[Any]:
        arguments, parameters = self._engine.dialect.create_connect_args(self._engine.url)
        settings = {"connect_timeout": _CONNECT_TIMEOUT, **_KEEPALIVE, **parameters, "autocommit": True}
        return psycopg.connect(*arguments, **settings)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        with DefaultSelector() as selector:
            selector.register(connection, EVENT_READ)
            selector.register(self._stop_here, EVENT_READ)
            while not self._stopping.is_set():
                if not selector.select(_PROBE_AFTER):
                    connection.execute("SELECT 1")
                # Also after a probe, whose answer may have brought announcements along.
                reached = {int(heard.payload) for heard in connection.notifies(timeout=0)}
                if reached:
                    self._signals.signal(reached)
