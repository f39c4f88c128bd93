"""Images hold the product and what it needs at locked versions, and run as nobody in particular."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from matoolkit.cli.main import SUBCOMMANDS
from matoolkit.hosts import probe
from tests.infra.templates import ROOT

FILES = {
    file.name: file.read_text().replace("\\\n", " ") for file in sorted((ROOT / "containers").glob("*.Dockerfile"))
}
IGNORED = (ROOT / ".dockerignore").read_text().split("\n")


def instructions(name: str, verb: str) -> list[str]:
    return re.findall(rf"^{verb} (.*)$", FILES[name], re.MULTILINE)


def test_the_images_there_are() -> None:
    assert list(FILES) == ["matoolkit.Dockerfile", "worker.Dockerfile"]


@pytest.mark.parametrize("name", FILES)
def test_what_is_installed_is_locked(name: str) -> None:
    (install,) = re.findall(r"pip\b[^&]*install ([^&\n]*)", FILES[name])
    assert "--require-hashes" in install
    assert "--only-binary :all:" in install
    assert not re.search(r"index|find-links|http", install)


@pytest.mark.parametrize("name", FILES)
def test_what_is_copied_is_there_and_not_ignored(name: str) -> None:
    sources = [each.split()[0] for each in instructions(name, "COPY") if not each.startswith("--from")]
    assert sources
    assert [each for each in sources if not (ROOT / each).exists()] == []
    assert IGNORED[1] == "*"
    kept = tuple(line[1:] for line in IGNORED if line.startswith("!"))
    assert [each for each in sources if not each.startswith(kept)] == []


@pytest.mark.parametrize("name", FILES)
def test_nobody_in_particular_runs_it(name: str) -> None:
    assert instructions(name, "USER") == ["10001:10001"]
    last = FILES[name].rpartition("\nFROM ")[2]
    assert "pip" not in last


@pytest.mark.parametrize("name", FILES)
def test_the_python_of_the_image_is_the_one_whose_folder_is_named(name: str) -> None:
    (tag,) = instructions(name, "ARG")
    assert tag == "PYTHON=python:3.12-slim-bookworm"
    assert set(re.findall(r"/lib/python([\d.]+)/", FILES[name])) == {"3.12"}


@pytest.mark.skipif("worker" not in SUBCOMMANDS, reason="the worker has no command yet")
def test_the_worker_s_command_is_there() -> None:
    (entry,) = instructions("worker.Dockerfile", "ENTRYPOINT")
    assert json.loads(entry) == ["python", "-m", "matoolkit", "worker"]


def test_the_other_image_takes_any_command() -> None:
    assert json.loads(instructions("matoolkit.Dockerfile", "ENTRYPOINT")[0]) == ["python", "-m", "matoolkit"]


def answering(status: int, asked: list[str]) -> HTTPServer:
    class Part(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    return HTTPServer(("127.0.0.1", 0), Part)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_health_check_asks_the_worker(status: int, healthy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    (check,) = re.findall(r"HEALTHCHECK .*?CMD (.*)$", FILES["worker.Dockerfile"], re.MULTILINE)
    command = json.loads(check)
    assert command[:2] == ["python", "-c"]
    with answering(status, asked) as server:
        monkeypatch.setenv("HEALTH_CHECK_PORT", str(server.server_port))
        thread = Thread(target=server.handle_request)
        thread.start()
        if healthy:
            exec(command[2])  # noqa: S102 - the line of the image, without the cost of another process
        else:
            with pytest.raises(urllib.request.HTTPError) as caught:
                exec(command[2])  # noqa: S102 - the same
            caught.value.close()
        thread.join(timeout=5)
    assert asked == ["/health"]


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
@pytest.mark.parametrize(("setting", "path"), [("HEALTH_CHECK_PORT", "/health"), ("AdminApi__Port", "/api/health")])
def test_the_other_image_s_asks_whichever_part_runs(setting: str, path: str, status: int, healthy: bool) -> None:
    (check,) = re.findall(r"HEALTHCHECK .*?CMD (.*)$", FILES["matoolkit.Dockerfile"], re.MULTILINE)
    assert json.loads(check) == ["python", "-m", probe.__name__]
    asked: list[str] = []
    with answering(status, asked) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        settings = {"HEALTH_CHECK_PORT": free_port(), "AdminApi__Port": free_port(), setting: str(server.server_port)}
        assert probe.is_well(settings) == healthy
        thread.join(timeout=5)
    assert asked == [path]


def test_a_part_that_listens_nowhere_is_not_well() -> None:
    assert not probe.is_well({"HEALTH_CHECK_PORT": free_port(), "AdminApi__Port": free_port()})
