"""The first runbook of the README, done literally: its files written, its commands run, one after another."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

README = (Path(__file__).parents[2] / "README.md").read_text()
_SECONDS = 200
_PIECES = re.compile(r"^```(csv|yaml)\n(.*?)^```$|^    (matoolkit [^\n]*)$", re.MULTILINE | re.DOTALL)


class Piece(NamedTuple):
    """A file to be written, or a command to be run."""

    kind: str
    text: str


def pieces() -> list[Piece]:
    """What the section tells to do, in its order, after everything was started."""
    section = README.partition("## Your first runbook")[2].partition("\n## ")[0]
    start, _, rest = section.partition("**2.")
    assert 'MATOOLKIT_SOURCE_PEOPLE="$PWD" matoolkit up --simulated-tenant' in start
    return [Piece(each[1] or "command", each[2] or each[3]) for each in _PIECES.finditer(rest)]


class Operator:
    """Somebody with a terminal in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        own = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")}
        self.environment = {**own, "MATOOLKIT_SOURCE_PEOPLE": str(folder), "HOME": str(folder)}

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a command whose output is read line by line; what does not end is ended."""
        process = subprocess.Popen(
            [sys.executable, "-m", "matoolkit", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        watchdog = threading.Timer(_SECONDS, process.kill)
        watchdog.daemon = True
        watchdog.start()
        return process

    def run(self, command: str) -> str:
        """Run a command to its end, or a watch until it waits for an operator."""
        process = self.begin(*shlex.split(command)[1:])
        assert process.stdout is not None
        said = []
        with process.stdout as output:
            for line in output:
                said.append(line)
                if "watch" in command and "waits for an operator" in line:
                    process.send_signal(signal.SIGINT)
        code, text = process.wait(), "".join(said)
        left = "watch" in command and "waits for an operator" in text
        assert code == 0 or left, f"{command}: {text}"
        return text


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    found = Operator(tmp_path)
    process = found.begin("up", "--simulated-tenant", "--port", "0")
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if "ready: everything works" in line:
            break
    address = re.search(r"API\s+(http://\S+?),", "".join(lines))
    assert address, "".join(lines)
    found.environment["MATOOLKIT_API_URL"] = address[1]
    rest = threading.Thread(target=process.stdout.read, daemon=True)
    rest.start()
    yield found
    process.send_signal(signal.SIGINT)
    assert process.wait(_SECONDS) == 0
    rest.join(_SECONDS)
    process.stdout.close()


def test_the_first_runbook_goes_as_it_is_told(operator: Operator) -> None:
    names = iter(["people.csv", "first-wave.yaml", "cleo.csv", "people.csv"])
    said: list[tuple[str, str]] = []
    for piece in pieces():
        if piece.kind == "command":
            said.append((piece.text, operator.run(piece.text)))
        else:
            name = next(names)
            assert name.endswith(piece.kind)
            (operator.folder / name).write_text(piece.text)
    assert not list(names)
    commands = [command for command, _ in said]
    told = dict(said)
    assert "first-wave.yaml is valid" in told["matoolkit runbook validate first-wave.yaml"]
    previews = [text for command, text in said if command == "matoolkit query preview first-wave"]
    assert "0 rows" in previews[0]
    assert "1 row" in previews[1]
    assert "2030-01-31 17:00:00Z" in previews[1]
    first, second = [text for command, text in said if command == "matoolkit batch watch 1"]
    assert "phase 'prepare' is completed" in first
    assert "Batch 1 is completed: 2 completed, 1 failed." in second
    assert "UserPrincipalName is not what is wanted" in told["matoolkit batch failures 1"]
    assert "cleo ruiz.waiting@target.example" in told["matoolkit batch member 1 cleo@contoso.example --values"]
    assert "Batch 2 is completed: 1 completed." in told["matoolkit batch advance 2 --auto"]
    assert len(told["matoolkit find cleo@contoso.example"].splitlines()) == 3
    assert commands[0].startswith("matoolkit runbook validate")
