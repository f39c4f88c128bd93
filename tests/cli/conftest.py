"""A live server for the tests of a module, and a command line that knows nothing but what a test tells it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from matoolkit.cli.main import main
from matoolkit.store.address import in_file
from matoolkit.store.database import open_database
from tests.api.live import Live

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Run = Callable[..., Result]
NOTHING_SET = [
    "MATOOLKIT_API_URL",
    "MATOOLKIT_TENANT_ID",
    "MATOOLKIT_CLIENT_ID",
    "MATOOLKIT_API_SCOPE",
    "MATOOLKIT_AUTHORITY_URL",
    "MATOOLKIT_DATA",
    "MATOOLKIT_DATABASE_URL",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_COLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "LINES",
]


@pytest.fixture(scope="module")
def live_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's data folder."""
    return tmp_path_factory.mktemp("live")


@pytest.fixture(scope="module")
def live(live_folder: Path, migrated_file: Path) -> Iterator[Live]:
    shutil.copyfile(migrated_file, live_folder / "matoolkit.db")
    database = open_database(in_file(live_folder / "matoolkit.db"), durable=False)
    live = Live(database, live_folder)
    yield live
    live.close()
    database.close()


@pytest.fixture
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a current folder with nothing in them, and no variables; gives the home."""
    for name in NOTHING_SET:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture
def run(live: Live, live_folder: Path, nothing_set: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command line of somebody on the server's machine."""
    monkeypatch.setenv("MATOOLKIT_API_URL", live.server.url)
    monkeypatch.setenv("MATOOLKIT_DATA", str(live_folder))

    def call(*arguments: Any, given: str | bytes | None = None) -> Result:
        return CliRunner().invoke(main, [str(each) for each in arguments], input=given)

    return call


def good(result: Result) -> str:
    """What a command that did what it should has printed."""
    assert (result.exit_code, result.exception) == (0, None), result.output
    return result.stdout


def good_json(result: Result) -> Any:
    return json.loads(good(result))


def bad(result: Result, code: int = 1) -> str:
    """What a command that did not do what it should says, on standard error alone."""
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.count("Error: ") == 1
    return result.stderr.partition("Error: ")[2].rstrip("\n")
