"""What a query would find, looked at without changing anything."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from matoolkit.runbooks import load_runbook
from matoolkit.scheduler import preview
from matoolkit.scheduler.sources import SourceUnavailable
from tests.orchestrator.post import START
from tests.scheduler.town import AT_NOON, AT_TEN, IMMEDIATE, PLAIN, TownSource, with_source

if TYPE_CHECKING:
    from typing import Any

COLUMNS = ("Key", "Start", "Name")


def look(rows: list[tuple[Any, ...]], columns: tuple[str, ...] = COLUMNS, text: str = PLAIN) -> Any:
    return preview(TownSource(columns, rows), load_runbook(text), START + timedelta(minutes=7))


def test_rows_columns_sample_and_groups() -> None:
    found = look([("a", AT_TEN, "x"), ("b", AT_NOON, None), ("c", AT_TEN, "z")])
    assert (found.row_count, found.columns) == (3, COLUMNS)
    assert found.sample[1] == {"Key": "b", "Start": "2026-03-01T12:00:00Z", "Name": None}
    assert found.batch_groups == [(AT_TEN, 2), (AT_NOON, 1)]
    assert found.problems == []


def test_the_sample_has_at_most_a_hundred_rows() -> None:
    found = look([(f"user{number}", AT_TEN, number) for number in range(250)])
    assert (found.row_count, len(found.sample)) == (250, 100)
    assert [row["Name"] for row in found.sample] == list(range(100))


def test_immediate_people_are_one_group_that_starts_now() -> None:
    found = look([("a", None, "x"), ("b", None, "y")], text=IMMEDIATE)
    assert found.batch_groups == [(START + timedelta(minutes=5), 2)]


def test_problems_are_told_as_a_tick_would() -> None:
    found = look([("a", AT_TEN, "x"), ("A", AT_TEN, "y"), ("b", "soon", "z"), (None, AT_TEN, "")])
    assert len(found.problems) == 3
    assert found.batch_groups == [(AT_TEN, 1)]
    assert len(found.sample) == 4


@pytest.mark.parametrize("columns", [("Key", "Start", "Start"), ("Id", "Start", "Name")])
def test_columns_that_cannot_be_used_are_told_beside_the_number_of_rows(columns: tuple[str, ...]) -> None:
    found = look([("a", AT_TEN, "x"), ("b", AT_TEN, "x"), ("c", AT_TEN, "x")], columns)
    assert (found.row_count, found.columns, found.batch_groups) == (3, columns, [])
    assert len(found.problems) == 1


def test_multi_valued_cells_are_shown_as_lists_and_unfit_ones_as_they_stand() -> None:
    text = with_source(PLAIN, multi_valued_columns=[{"name": "Name", "format": "json_array"}])
    found = look([("a", AT_TEN, "[1, 2]"), ("b", AT_TEN, "nonsense")], text=text)
    assert [row["Name"] for row in found.sample] == [[1, 2], "nonsense"]
    assert found.problems == ["1 row was passed over: column Name holds no JSON array (b)"]


def test_an_empty_result_has_columns() -> None:
    found = look([])
    assert (found.row_count, found.columns, found.sample, found.batch_groups) == (0, COLUMNS, [], [])


def test_a_source_that_cannot_be_read_is_an_error() -> None:
    source = TownSource(COLUMNS, [("a", AT_TEN, "x")], SourceUnavailable("away"))
    with pytest.raises(SourceUnavailable, match="away"):
        preview(source, load_runbook(PLAIN), START)
