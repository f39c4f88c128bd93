"""Draws `docs/pictures/watch.svg`, what `batch watch` shows in the middle of a wave: `python -m devtools.picture`.

Nothing in it is made up. A real `matoolkit up` runs a real batch of sixty people in a temporary folder, with functions
of its own that take their time and refuse two; it is looked at as the command looks, and drawn as the command draws.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.terminal_theme import MONOKAI
from rich.text import Text

from matoolkit.cli.asking import api_client
from matoolkit.cli.watch.following import Following
from matoolkit.cli.watch.screen import picture
from matoolkit.cli.watch.words import line_of
from matoolkit.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from matoolkit.cli.watch.changes import Change
    from matoolkit.cli.watch.looking import Look

TARGET = Path(__file__).parents[1] / "docs/pictures/watch.svg"
PEOPLE = 60
WIDTH = 104
FUNCTIONS = """
import asyncio
from matoolkit.worker import function

@function("Prepare-Person")
async def prepare(Who: str) -> bool:
    await asyncio.sleep(0.05)
    return True

@function("Move-Person")
async def move(Who: str) -> bool:
    await asyncio.sleep(0.4)
    if Who.startswith(("user7@", "user23@")):
        raise ValueError("the mailbox is on hold")
    return True
"""
RUNBOOK = """
name: first-wave
data_source:
  type: files
  connection: MATOOLKIT_SOURCE_PEOPLE
  query: SELECT * FROM 'people.csv' WHERE false
  primary_key: Email
  batch_time: immediate
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: prepare, worker_id: worker-01, function: Prepare-Person, params: {Who: "{{Email}}"}}
  - name: cutover
    offset: T-0
    steps:
      - {name: move, worker_id: worker-01, function: Move-Person, params: {Who: "{{Email}}"}, on_failure: undo}
      - {name: check, worker_id: worker-01, function: Prepare-Person, params: {Who: "{{Email}}"}}
  - name: tidy
    offset: T-0
    steps:
      - {name: tidy, worker_id: worker-01, function: Prepare-Person, params: {Who: "{{Email}}"}}
rollbacks:
  undo:
    - {name: give-back, worker_id: worker-01, function: Prepare-Person, params: {Who: "{{Email}}"}}
"""


class Taken(Exception):
    """The picture has been taken."""


class Camera:
    """Follows a batch as a terminal does, and takes the picture when cutover is half done."""

    def __init__(self, target: Console) -> None:
        self._console = target

    def change(self, change: Change, now: datetime) -> None:
        """What fails stays on the screen."""
        if change["event"] in {"failure", "advanced"}:
            style = "red" if change["event"] == "failure" else ""
            self._console.print(Text(f"{now:%H:%M:%SZ}  {line_of(change, now)}", style))

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        """The moment to wait for."""
        cutover = [each for each in look.phases if each["phaseName"] == "cutover"] if look is not None else []
        steps: Mapping[str, int] = cutover[0].get("stepsByStatus") or {} if cutover else {}
        if look is not None and per_minute and steps.get("succeeded", 0) >= PEOPLE and steps.get("failed"):
            self._console.print(Group(*picture(look, per_minute, now)))
            raise Taken


def main() -> None:
    """Draw it anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "functions").mkdir()
        (folder / "functions/people.py").write_text(FUNCTIONS)
        (folder / "wave.yaml").write_text(RUNBOOK)
        listed = "".join(f"user{number}@contoso.example\n" for number in range(1, PEOPLE + 1))
        (folder / "people.csv").write_text("Email\n" + listed)
        os.environ |= {
            "MATOOLKIT_DATA": f"{folder}/data",
            "MATOOLKIT_SOURCE_PEOPLE": name,
            "CUSTOM_FUNCTIONS_PATH": f"{folder}/functions",
        }
        up = subprocess.Popen(
            [sys.executable, "-m", "matoolkit", "up", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            TARGET.parent.mkdir(exist_ok=True)
            TARGET.write_text(taken(_address(up), folder))
        finally:
            up.send_signal(signal.SIGINT)
            up.communicate(timeout=60)
    print(f"drew {TARGET}")


def taken(url: str, folder: Path) -> str:
    """The picture of a batch that is run for it."""
    target = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, highlight=False)
    with api_client(url) as client:
        client.publish_runbook("first-wave", (folder / "wave.yaml").read_text())
        made = client.create_batch("first-wave", "people.csv", (folder / "people.csv").read_bytes())
        try:
            Following(
                client, made["batchId"], Camera(target), SystemClock(), time.sleep, time.monotonic, 0.5, advancing=True
            ).to_the_end()
        except Taken:
            svg = target.export_svg(title=f"matoolkit batch watch {made['batchId']}", theme=MONOKAI, unique_id="watch")
            # No font from anywhere: the reader's own will do.
            return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    raise SystemExit("the batch was over before its picture was taken")


def _address(up: subprocess.Popen[str]) -> str:
    """Where it listens, once everything works."""
    said = []
    for line in up.stdout or ():
        said.append(line)
        if "ready: everything works, at " in line:
            return line.rpartition(" at ")[2].strip()
    raise SystemExit("it did not start:\n" + "".join(said))


if __name__ == "__main__":
    main()
