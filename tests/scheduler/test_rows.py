"""Rows as sources give them: what is read, what is passed over and reported, and what stops everything."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.batches.errors import UnusableColumns
from matoolkit.runbooks import load_runbook
from matoolkit.scheduler.batch_times import BatchTimes, bucket, bucket_is_over
from matoolkit.scheduler.gathering import gather
from matoolkit.scheduler.sources import Chunk, NothingToRead, SourceUnavailable
from matoolkit.store import schema
from tests.orchestrator.post import START
from tests.scheduler.town import AT_NOON, AT_TEN, IMMEDIATE, LEAVING, PLAIN, TownSource, with_source

if TYPE_CHECKING:
    from collections.abc import Generator

    from matoolkit.scheduler.gathering import Gathered
    from tests.scheduler.town import Town


def read(rows: list[tuple[Any, ...]], columns: tuple[str, ...] = ("Key", "Start", "Name"), **source: Any) -> Gathered:
    return gather(TownSource(columns, rows), load_runbook(with_source(PLAIN, **source)))


def keys(found: Gathered) -> dict[Any, list[str]]:
    return {start: [key for key, _data in people.values()] for start, people in found.groups.items()}


def test_of_duplicate_keys_the_first_row_wins_and_the_rest_are_reported() -> None:
    found = read([("Ann", AT_TEN, 1), ("Bob", AT_TEN, 2), (" aNN ", AT_NOON, 3), ("ann", AT_TEN, 4)])
    assert keys(found) == {AT_TEN: ["Ann", "Bob"]}
    assert found.problems == [
        "2 rows were passed over: the key occurs more than once, and the first row counts (aNN, ann)"
    ]
    assert '"Name":1' in found.groups[AT_TEN]["ann"][1]


def test_a_row_with_an_unreadable_batch_time_is_reported_and_skipped_not_fatal() -> None:
    found = read([("a", "soon", 1), ("b", AT_TEN, 2), ("c", None, 3), ("d", [1], 4), ("e", 45_000, 5)])
    assert keys(found) == {AT_TEN: ["b"]}
    assert found.problems == ["4 rows were passed over: Start holds no time (a, c, d, …)"]
    assert found.unreadable == {"a", "c", "d", "e"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [(None, "empty"), ("  ", "empty"), ("k" * 600, "longer"), ("a\x00", "control"), (b"a", "bytes")],
)
def test_a_row_whose_key_is_unfit_is_reported_and_skipped(value: Any, reason: str) -> None:
    found = read([("a", AT_TEN, 1), (value, AT_TEN, 2)])
    assert keys(found) == {AT_TEN: ["a"]}
    (problem,) = found.problems
    assert problem.startswith("1 row was passed over: the key")
    assert reason in problem
    assert problem.endswith("(row 2)")


def test_a_cell_that_is_unfit_makes_its_row_unreadable() -> None:
    packed = [{"name": "Name", "format": "json_array"}]
    found = read([("a", AT_TEN, "[1]"), ("b", AT_TEN, "nonsense")], multi_valued_columns=packed)
    assert keys(found) == {AT_TEN: ["a"]}
    assert found.problems == ["1 row was passed over: column Name holds no JSON array (b)"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("Id", "Start"), "there is no column Key"),
        (("Key", "Begin"), "there is no column Start"),
        (("Key", "Start", "Start"), "several columns have the same name: start"),
        (("Key", "KEY", "Start"), "the same name"),
        (("Key", "Start", *["x"] * 10), r"x \(10 times\)"),
    ],
)
def test_columns_that_cannot_be_used_say_nothing_about_anybody(columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(UnusableColumns, match=message):
        read([], columns)


def test_columns_are_found_whatever_their_case() -> None:
    assert keys(read([("a", AT_TEN)], ("KEY", "start"))) == {AT_TEN: ["a"]}


def test_an_empty_result_has_columns_and_nobody() -> None:
    found = read([])
    assert (found.columns, found.rows, found.groups, found.problems) == (("Key", "Start", "Name"), 0, {}, [])


def test_a_source_that_gives_not_even_columns_is_an_error() -> None:
    class Mute(TownSource):
        def read(self) -> Generator[Chunk]:
            yield from ()

    with pytest.raises(NothingToRead):
        gather(Mute(), load_runbook(PLAIN))


def test_the_query_is_ended_when_its_rows_cannot_be_used() -> None:
    ended: list[bool] = []

    class Long(TownSource):
        def read(self) -> Generator[Chunk]:
            try:
                yield from TownSource.read(self)
            finally:
                ended.append(True)

    with pytest.raises(UnusableColumns):
        gather(Long(columns=("Nothing",)), load_runbook(PLAIN))
    assert ended == [True]


def test_columns_that_steps_will_ask_for_and_that_are_not_there_are_reported() -> None:
    runbook = load_runbook(PLAIN.replace("{{Key}}", "{{Phone}} {{name}}"))
    found = gather(TownSource(("Key", "Start", "Name")), runbook)
    assert found.problems == ["steps need columns that the query does not give: Phone"]


# What becomes of them in a tick


def test_a_row_that_cannot_be_read_says_nothing_about_its_member(town: Town) -> None:
    town.found("a", "b", text=LEAVING)
    town.source.rows = [("a", "no time", "new"), ("b", AT_TEN, "new"), ("c", "no time", "new")]
    town.look()
    assert town.members() == {"a": "active", "b": "active"}
    data = [row["data_json"] for row in town.rows(schema.batch_members)]
    assert ['"Name":"new"' in each for each in data] == [False, True]
    assert town.error == "2 rows were passed over: Start holds no time (a, c)"


def test_what_was_reported_is_cleared_by_the_next_success_alone(town: Town) -> None:
    town.found("a")
    town.people("A", "b")
    town.look()
    assert town.error is not None
    town.source.error = SourceUnavailable("gone")
    town.look()
    assert town.error == "the data source was not read: gone"
    town.source.error = None
    town.only("a", "b")
    town.look()
    (published,) = town.rows(schema.runbooks)
    assert (published["last_error"], published["last_error_at"]) == (None, None)


def test_an_immediate_runbook_needs_no_time_column(small_town: Town) -> None:
    small_town.source.columns = ("Key",)
    small_town.source.rows = [("a",)]
    small_town.publish(IMMEDIATE)
    small_town.look()
    assert small_town.members() == {"a": "active"}


# Times


@pytest.mark.parametrize(
    ("value", "zone", "expected"),
    [
        (datetime(2026, 3, 1, 8), None, "2026-03-01T08:00"),  # noqa: DTZ001 - a time without a zone is what is tested
        (datetime(2026, 3, 1, 8), "Europe/Berlin", "2026-03-01T07:00"),  # noqa: DTZ001 - the same
        (datetime(2026, 7, 1, 8), "Europe/Berlin", "2026-07-01T06:00"),  # noqa: DTZ001 - the same
        (datetime(2026, 3, 1, 8, tzinfo=UTC), "Europe/Berlin", "2026-03-01T08:00"),
        (datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=-5))), None, "2026-03-01T13:00"),
        (date(2026, 3, 1), None, "2026-03-01T00:00"),
        (date(2026, 3, 1), "Europe/Berlin", "2026-02-28T23:00"),
        ("2026-03-01", None, "2026-03-01T00:00"),
        (" 2026-03-01 08:00:00 ", "Europe/Berlin", "2026-03-01T07:00"),
        ("2026-03-01T08:00:00Z", "Europe/Berlin", "2026-03-01T08:00"),
        ("2026-03-01T08:00:00.000+02:00", None, "2026-03-01T06:00"),
        # An hour that comes twice is the first one; one that is left out is what it would have been.
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30"),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:30"),
    ],
)
def test_times_without_a_zone_are_utc_unless_the_data_source_says_otherwise(
    value: Any, zone: str | None, expected: str
) -> None:
    assert BatchTimes(zone).of(value) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "2026-13-01",
        5,
        5.0,
        True,
        Decimal("sNaN"),
        [],
        {},
        b"2026-03-01",
        datetime(1, 1, 1),  # noqa: DTZ001 - as sources give it that do not know
        "0001-01-01",
        "9999-12-31",
        date.max,
        date.min,
        "2026-03-01T25:00",
    ],
)
def test_what_is_no_time_a_wave_could_start_at_is_none(value: Any) -> None:
    assert BatchTimes("Europe/Berlin").of(value) is None


def test_one_moment_written_in_several_ways_is_one_group() -> None:
    found = read([("a", "2026-03-01T10:00Z", 1), ("b", "2026-03-01 11:00+01:00", 2), ("c", AT_TEN, 3)])
    assert keys(found) == {AT_TEN: ["a", "b", "c"]}


def test_buckets_are_floored() -> None:
    assert bucket(START + timedelta(minutes=9, seconds=59, microseconds=5)) == START + timedelta(minutes=5)
    assert bucket(START) == START
    assert [bucket_is_over(START, START + timedelta(seconds=each)) for each in (0, 299, 300, -1)] == [
        False,
        False,
        True,
        True,
    ]
