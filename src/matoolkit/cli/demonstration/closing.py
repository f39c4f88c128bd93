"""The closing report: who ended where, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from matoolkit.cli.showing.safe import safe
from matoolkit.cli.showing.tables import coloured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from matoolkit.cli.demonstration.stage import Ended

_SHOWN = 3
_WHY = {
    "completed": "went through every phase, and was found right in the tenant",
    "failed": "their new address belongs to somebody else: tried again, failed, taken back",
    "removed": "left the data source in mid-wave; the steps of leaving were run",
}


def report(ended: Ended, on: Console) -> None:
    """Print it."""
    on.print()
    on.print(Text(f"The wave ended after {ended.seconds:.1f} seconds.", "bold"))
    on.print(_states(ended))
    on.print(
        f"{ended.steps:,} steps; tried again: {ended.retries:,}; asked whether they are complete: {ended.polls:,};"
        f" requests that were too many for the tenant: {ended.throttled:,}."
    )
    for line in _failures(ended):
        on.print(line)
    for surprise in ended.surprises:
        on.print(Text(f"Surprise: {safe(surprise)}", "bold red"))
    on.print(Text("As expected.", "bold green") if ended.as_expected else Text("NOT as expected.", "bold red"))


def _states(ended: Ended) -> Table:
    found = Counter(each["status"] for each in ended.members)
    expected = Counter(ended.expected.values())
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("MEMBERS", "", "EXPECTED"):
        table.add_column(title, justify="right")
    table.add_column("WHY", overflow="fold")
    for status in sorted(found | expected):
        table.add_row(str(found[status]), coloured(status), str(expected[status]), _WHY.get(status, ""))
    return table


def _failures(ended: Ended) -> Iterator[Text]:
    for each in ended.failures[:_SHOWN]:
        undone = f"; rollback {each['rollbackStatus']}" if each["rollbackStatus"] else ""
        yield Text(f"  {safe(each['memberKey'])}: {each['stepName']}: {safe(each['errorMessage'])}{undone}", "red")
    if len(ended.failures) > _SHOWN:
        yield Text(f"  and {len(ended.failures) - _SHOWN} more like these")
