"""Draws `docs/pictures/demo.svg`, what `matoolkit demo` shows: `python -m devtools.demo_picture`.

Nothing in it is made up: the demonstration is run for it, and its screen is drawn once when the cut-over is under way.
"""

from __future__ import annotations

import logging
import re
import tempfile
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.terminal_theme import MONOKAI

from matoolkit.cli.demonstration.closing import report
from matoolkit.cli.demonstration.stage import Stage
from matoolkit.cli.watch.screen import picture

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from matoolkit.cli.watch.changes import Change
    from matoolkit.cli.watch.looking import Look

TARGET = Path(__file__).parents[1] / "docs/pictures/demo.svg"
MEMBERS, SPEED, WIDTH = 200, 150.0, 110


class Camera:
    """Draws the screen once, when a good part of the cut-over is done."""

    def __init__(self, target: Console) -> None:
        self._console = target
        self._taken = False

    def change(self, change: Change, now: datetime) -> None:
        """What fails is in the closing report."""

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        """The moment to wait for."""
        cut_over = [each for each in look.phases if each["phaseName"] == "cut-over"] if look is not None else []
        steps: Mapping[str, int] = cut_over[0].get("stepsByStatus") or {} if cut_over else {}
        if look is not None and not self._taken and steps.get("succeeded", 0) > MEMBERS:
            self._taken = True
            self._console.print(Group(*picture(look, per_minute, now)))


def main() -> None:
    """Draw it anew."""
    target = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        logging.basicConfig(filename=Path(folder) / "demo.log", level=logging.INFO, force=True)
        ended = Stage(Path(folder), MEMBERS, SPEED).play(Camera(target))
    if not ended.as_expected:
        raise SystemExit("not as expected: " + "; ".join(ended.surprises))
    report(ended, target)
    svg = target.export_svg(title="matoolkit demo", theme=MONOKAI, unique_id="demo")
    # No font from anywhere: the reader's own will do.
    TARGET.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))
    print(f"drew {TARGET}")


if __name__ == "__main__":
    main()
