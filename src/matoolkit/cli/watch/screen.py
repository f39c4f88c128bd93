"""A batch on a terminal, redrawn in place; what fails scrolls by above it and stays readable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from matoolkit.cli.showing.safe import safe
from matoolkit.cli.showing.tables import coloured, console
from matoolkit.cli.showing.times import moment, span
from matoolkit.cli.watch.pace import done, left
from matoolkit.cli.watch.words import counted, line_of, next_up

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from matoolkit.cli.watch.changes import Change
    from matoolkit.cli.watch.looking import Look

_ABOVE = frozenset({"failure", "advanced", "held-removals"})
"""Changes that are told once and stay; everything else is in the picture."""
_BAR = 24


@dataclass
class Screen:
    """Shows looks as they come."""

    advancing: bool = False
    _live: Live = field(default_factory=lambda: Live(console=console(), auto_refresh=False, transient=False))
    _away: str | None = None

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def change(self, change: Change, now: datetime) -> None:
        """Tell what stays; remember whether the server is there."""
        match change["event"]:
            case "server-away":
                self._away = str(change["error"])
            case "server-back":
                self._away = None
            case event if event in _ABOVE:
                style = "red" if event == "failure" else ""
                self._live.console.print(Text(f"{now:%H:%M:%SZ}  {line_of(change, now)}", style))
            case _:
                pass

    def draw(self, look: Look | None, per_minute: float | None, now: datetime) -> None:
        """Draw everything anew."""
        parts: list[Any] = [] if look is None else picture(look, per_minute, now, advancing=self.advancing)
        if self._away is not None:
            parts.append(Text(f"Trying again: {safe(self._away)}", "bold yellow"))
        self._live.update(Group(*parts), refresh=True)


def picture(look: Look, per_minute: float | None, now: datetime, *, advancing: bool = False) -> list[Any]:
    """The state of a batch, to be looked at from some steps away."""
    batch, following = look.batch, next_up(look, now, advancing=advancing)
    head = Text.assemble(
        (f"Batch {batch['id']}", "bold"),
        f"  {safe(batch['runbookName'])} version {batch['runbookVersion']}  ",
        coloured(batch["status"]),
        f"  {now:%H:%M:%SZ}",
    )
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(Text("Members", "bold"), _coloured_counts(look.members, batch["memberCount"]))
    facts.add_row(Text("Steps", "bold"), _progress(look, per_minute))
    if batch["heldRemovals"]:
        held = f"{batch['heldRemovals']:,}: `matoolkit batch release-removals {batch['id']}` lets them go"
        facts.add_row(Text("Held", "bold yellow"), Text(held))
    facts.add_row(Text("Next", "bold"), Text(safe(following)))
    if batch["waitingFor"] and batch["waitingFor"] not in following and not advancing:
        facts.add_row(Text("Waits for", "bold"), Text(safe(batch["waitingFor"])))
    # What matters most comes first: of a picture that is higher than the terminal the end is not seen.
    return [Text(), head, Text(), facts, Text(), _phases(look)]


def _phases(look: Look) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("PHASE", overflow="fold", min_width=8)
    table.add_column("STATUS", no_wrap=True)
    if any(each["dueAt"] for each in look.phases):
        table.add_column("DUE", overflow="fold")
    table.add_column("STEPS", overflow="fold")

    def row(name: Text, status: Text, due: Text, steps: Text) -> None:
        table.add_row(name, status, *([due] if len(table.columns) > 3 else []), steps)  # noqa: PLR2004 - with times

    if look.init_steps:
        steps: dict[str, int] = {}
        for each in look.init_steps:
            steps[each["status"]] = steps.get(each["status"], 0) + 1
        row(Text("(init)"), Text(), Text(), Text(counted(steps)))
    for phase in look.phases:
        steps_of = Text(safe(counted(phase.get("stepsByStatus") or {})))
        row(Text(safe(phase["phaseName"])), coloured(phase["status"]), Text(moment(phase["dueAt"])), steps_of)
    return table


def _progress(look: Look, per_minute: float | None) -> Text:
    steps = look.steps
    ended, remaining = done(steps), left(steps)
    if not ended + remaining:
        return Text("none yet")
    filled = _BAR * ended // (ended + remaining)
    text = Text.assemble(
        ("━" * filled, "green"), ("━" * (_BAR - filled), "bright_black"), f" {ended:,} of {ended + remaining:,} done"
    )
    if per_minute is not None and remaining:
        text.append(f", {per_minute:,.0f} a minute")
        if per_minute >= 1:
            text.append(f", about {span(remaining * 60 / per_minute)} to go")
    return text


def _coloured_counts(by_status: Mapping[str, int], total: int) -> Text:
    text = Text(f"{total:,}")
    for status, number in by_status.items():
        if number:
            text.append(", " if ":" in text.plain else ": ")
            text.append(f"{number:,} ")
            text.append_text(coloured(status))
    return text
