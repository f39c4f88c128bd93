"""On a terminal: questions before what cannot be undone, a picture that is drawn in place, names that try to harm."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from select import select
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.messages import WorkerError, WorkerResult
from tests.api.people import step
from tests.cli.conftest import good, good_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matoolkit.messages import WorkerJob
    from tests.api.live import Live
    from tests.cli.conftest import Run

_SECONDS = 60
KEY = "an\u202ena/../%2F größe"
HOSTILE = "an\x1b]0;owned\x07\x1b[2Jna\u202e/../%2F größe"


@pytest.fixture
def environment(live: Live, live_folder: Path, nothing_set: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HOME": str(nothing_set),
        "TERM": "xterm-256color",
        "MATOOLKIT_API_URL": live.server.url,
        "MATOOLKIT_DATA": str(live_folder),
    }


def on_a_terminal(
    environment: dict[str, str],
    *arguments: Any,
    says: str = "",
    columns: int = 80,
    meanwhile: Callable[[], Any] = lambda: None,
) -> tuple[int, str]:
    """Calls the command line on a terminal of its own, where somebody answers the first question."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "matoolkit", *(str(each) for each in arguments)]
    with subprocess.Popen(command, env=environment, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        seen = b""
        try:
            while select([master], [], [], _SECONDS)[0]:
                try:
                    more = os.read(master, 65536)
                except OSError as error:
                    # How Linux says that nobody is at the other end any more.
                    if error.errno != errno.EIO:
                        raise
                    break
                if not more:
                    break
                seen += more
                if says and b"Go on? [y/N]: " in seen:
                    os.write(master, says.encode())
                    says = ""
                meanwhile()
            return process.wait(_SECONDS), seen.decode().replace("\r\n", "\n")
        finally:
            os.close(master)
            process.kill()


def test_a_no_does_nothing_and_a_yes_does_it(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch("anna", "ben")
    code, text = on_a_terminal(environment, "batch", "cancel", batch, says="n\n")
    assert code == 1
    assert "for 2 people under way" in " ".join(text.split())
    assert "Error: nothing was done" in text
    assert live.get(f"/api/batches/{batch}")["batch"]["status"] == "detected"
    code, text = on_a_terminal(environment, "batch", "cancel", batch, says="\n")
    assert (code, live.get(f"/api/batches/{batch}")["batch"]["status"]) == (1, "detected")
    code, text = on_a_terminal(environment, "batch", "cancel", batch, says="y\n")
    assert (code, live.get(f"/api/batches/{batch}")["batch"]["status"]) == (0, "cancelled")
    assert text.endswith(f"batch {batch} is cancelled\n")


def test_an_advance_is_asked_for_with_its_phase_and_its_people(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch("anna", "ben")
    code, text = on_a_terminal(environment, "batch", "advance", batch, says="n\n")
    assert code == 1
    assert "phase 'prepare' where there is none, of batch" in " ".join(text.split())
    assert live.get(f"/api/batches/{batch}")["batch"]["status"] == "detected"
    code, text = on_a_terminal(environment, "batch", "advance", batch, "--force")
    assert (code, "has begun for 2 people" in text) == (0, True)
    live.settle()


def test_a_wave_drawn_in_place(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch("anna", "ben", init=True)
    code, text = on_a_terminal(
        environment, "batch", "advance", batch, "--auto", "--every", 0.2, says="y\n", meanwhile=live.settle
    )
    assert code == 0
    assert "2 phases, one after another (prepare, move), of batch" in " ".join(text.split())
    assert "\x1b[1mBatch" in text
    assert "━" in text
    assert f"Batch {batch} is completed: 2 completed." in text


def test_a_terminal_that_cannot_be_drawn_on_is_told_line_by_line(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch("anna")
    live.post(f"/api/batches/{batch}/cancel")
    code, text = on_a_terminal({**environment, "TERM": "dumb"}, "batch", "watch", batch)
    assert code == 1
    assert "\x1b" not in text
    assert f"batch {batch} of " in text
    assert text.endswith(f"Batch {batch} is cancelled: 1 removed.\n")


def test_a_table_is_as_wide_as_the_terminal(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch(*(f"somebody.with.a.long.name.{number}@contoso.example" for number in range(3)))
    code, text = on_a_terminal(environment, "batch", "members", batch, columns=60)
    assert code == 0
    assert "Left out, as the terminal is narrow: " in text


def test_without_colour_when_asked(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch()
    code, text = on_a_terminal({**environment, "NO_COLOR": "1"}, "batch", "list")
    assert code == 0
    assert str(batch) in text
    assert "\x1b[3" not in text


# Names that try to harm ----------------------------------------------------------------------------------------------


def failing_hostilely(job: WorkerJob) -> WorkerResult:
    return WorkerResult(
        job_id=job.job_id,
        batch_id=job.batch_id,
        worker_id=job.worker_id,
        function_name=job.function_name,
        status="failure",
        error=WorkerError(type="Bad\x1b[31m", message=f"no {HOSTILE}"),
        correlation_data=job.correlation_data,
    )


def test_hostile_names_do_nothing_to_a_terminal(live: Live, environment: dict[str, str], run: Run) -> None:
    name = live.publish(phases=[{"name": "mo\u202eve", "offset": "T-0", "steps": [step("move")]}])
    content = f"Key,Start,Mail\r\n{KEY},2030-01-01T00:00:00Z,{HOSTILE}\r\n".encode()
    batch = live.post("/api/batches", data={"runbookName": name}, files={"file": ("p.csv", content)})["batchId"]
    live.function = failing_hostilely
    try:
        live.post(f"/api/batches/{batch}/advance")
        live.settle()
    finally:
        live.function = None
    said = [
        run(*arguments, *more).output
        for more in ([], ["--output", "json"])
        for arguments in (
            ["batch", "get", batch],
            ["batch", "list"],
            ["batch", "members", batch, "--data"],
            ["batch", "member", batch, KEY, "--values"],
            ["batch", "steps", batch],
            ["batch", "failures", batch],
            ["batch", "phases", batch],
            ["batch", "watch", batch],
            ["find", KEY],
            ["runbook", "versions", name],
            ["batch", "remove-member", batch, KEY],
            ["batch", "remove-member", batch, KEY, "--force"],
            ["batch", "member", batch, HOSTILE],
            ["audit"],
            ["status"],
        )
    ]
    said.append(on_a_terminal(environment, "runbook", "get", name, "--yaml")[1])
    said.append(on_a_terminal(environment, "batch", "failures", batch)[1])
    for text in said:
        assert [harm for harm in ("\x1b]0;", "\x1b[2J", "\x07", "\u202e", "\x9b") if harm in text] == [], text
    found = good_json(run("batch", "members", batch, "--output", "json"))
    assert found["members"][0]["memberKey"] == KEY
    assert found["members"][0]["data"]["Mail"] == HOSTILE
    assert r"\x1b[2J" in good(run("batch", "members", batch, "--data"))


@pytest.mark.parametrize("name", ["no/such", "..", "a?b=c#d", "%2e%2e", "\x1b[31mred", "größe 日本", " ", "-x"])
def test_names_that_are_none(run: Run, name: str) -> None:
    for command in (["runbook", "get"], ["runbook", "versions"], ["automation", "status"], ["template", "download"]):
        result = run(*command, "--", name)
        assert result.exit_code == 1, result.output
        assert result.stderr.startswith("Error: ")
        assert "\x1b" not in result.stderr


def test_letters_that_the_other_end_does_not_have(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch("größe", "日本")
    command = [sys.executable, "-m", "matoolkit", "batch", "members", str(batch)]
    narrow = {**environment, "PYTHONIOENCODING": "ascii"}
    text = subprocess.run(command, env=narrow, capture_output=True, text=True, check=True).stdout
    assert r"gr\xf6\xdfe" in text
    found = subprocess.run(
        [*command, "--output", "json"], env=narrow, capture_output=True, text=True, check=True
    ).stdout
    assert [each["memberKey"] for each in json.loads(found)["members"]] == ["größe", "日本"]


def test_a_reader_that_goes_away_is_no_crash(live: Live, environment: dict[str, str]) -> None:
    batch = live.batch(*(f"person{number}" for number in range(2000)))
    command = f"'{sys.executable}' -m matoolkit batch members {batch} --all | head -n 2"
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2
    assert "Traceback" not in done.stderr
