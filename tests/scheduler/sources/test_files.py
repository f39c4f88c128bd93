"""CSV, Parquet and Excel files as sources: what comes out of them, and everything a query may not reach."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import openpyxl
import pytest

from matoolkit.scheduler.sources import (
    BadConnection,
    QueryRefused,
    RowCapExceeded,
    SourceUnavailable,
    TimeLimitExceeded,
    open_source,
)
from tests.scheduler.sources.reading import chunks, described, settings, table

if TYPE_CHECKING:
    from matoolkit.scheduler.sources import SourceSettings

FOREVER = "SELECT count(*) FROM range(1000000000000) a, range(1000000) b WHERE a.range % 7 = b.range % 5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "it's a folder"
    (path / "waves").mkdir(parents=True)
    (path / "people.csv").write_bytes(
        '\ufeffid,when,note\r\n0042,2026-03-01,"x, ""y"""\r\n007,,\r\n1e5,01/02/03,"two\nlines Zoë 🎉"\r\n'.encode()
    )
    (tmp_path / "outside.csv").write_text("id\nsecret\n")
    return path


def on(folder: Path, **changes: Any) -> SourceSettings:
    return settings({"MATOOLKIT_SOURCE_PEOPLE": str(folder)}, **changes)


def asking(query: str) -> Any:
    return described("files", "MATOOLKIT_SOURCE_PEOPLE", query)


def parquet(path: Path, query: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"COPY ({query}) TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")


# CSV -----------------------------------------------------------------------------------------------------------------


def test_csv_cells_are_text_as_they_stand(folder: Path) -> None:
    assert table(asking("SELECT * FROM 'people.csv'"), on(folder)) == (
        ("id", "when", "note"),
        [("0042", "2026-03-01", 'x, "y"'), ("007", None, None), ("1e5", "01/02/03", "two\nlines Zoë 🎉")],
    )


def test_sql_works_on_them(folder: Path) -> None:
    query = """SELECT upper(note) AS "Note", CAST("when" AS date) AS day FROM "people.csv" WHERE id = '0042'"""
    assert table(asking(query), on(folder)) == (("Note", "day"), [('X, "Y"', date(2026, 3, 1))])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_other_delimiters_are_recognised(folder: Path, delimiter: str) -> None:
    cells = ["id", '"name; in, full | or\tnot"', "third"]
    (folder / "other.csv").write_text(delimiter.join(cells) + "\n" + delimiter.join(["1", "2", "3"]) + "\n")
    assert table(asking("FROM 'other.csv'"), on(folder)) == (
        ("id", "name; in, full | or\tnot", "third"),
        [("1", "2", "3")],
    )


def test_one_column_packed_and_in_a_folder_below(folder: Path) -> None:
    (folder / "waves" / "a b.csv.gz").write_bytes(gzip.compress(b"id\n01\n02\n"))
    assert table(asking("SELECT * FROM 'waves/a b.csv.gz'"), on(folder)) == (("id",), [("01",), ("02",)])


def test_several_files_are_one_table_in_the_order_of_their_names(folder: Path) -> None:
    (folder / "waves" / "2.csv").write_text("id,b\n2,y\n")
    (folder / "waves" / "1.csv").write_text("id,a\n1,x\n")
    found = table(asking("SELECT id, a, b FROM 'waves/*.csv'"), on(folder))
    assert found[1] == [("1", "x", None), ("2", None, "y")]


def test_a_file_with_a_head_only_is_empty_and_has_columns(folder: Path) -> None:
    (folder / "none.csv").write_text("id,when\n")
    found = chunks(asking("FROM 'none.csv'"), on(folder))
    assert [(chunk.columns, list(chunk.rows)) for chunk in found] == [(("id", "when"), [])]


def test_columns_of_the_same_name_in_the_query_stay(folder: Path) -> None:
    query = "SELECT " + ", ".join(["id AS a"] * 10) + " FROM 'people.csv' LIMIT 1"
    assert table(asking(query), on(folder)) == (("a",) * 10, [("0042",) * 10])


def test_columns_of_the_same_name_in_a_file_get_numbers(folder: Path) -> None:
    (folder / "same.csv").write_text("a,a,A\n1,2,3\n")
    assert table(asking("FROM 'same.csv'"), on(folder)) == (("a", "a_1", "A_2"), [("1", "2", "3")])


def test_long_text_passes(folder: Path) -> None:
    (folder / "long.csv").write_text("id,text\n1," + "é" * 100_000 + "\n")
    assert table(asking("FROM 'long.csv'"), on(folder))[1] == [("1", "é" * 100_000)]


@pytest.mark.parametrize(
    "content",
    [
        b"id,name\n1,\xff\xfe\n",
        b"id,name\n1,2\n1,2,3\n",
        b"id,name\n1,2,3,4\n",
        b'id,name\n1,"open\n',
        b"id,name\n1\n",
        b"",
        b"\x00\xff",
    ],
)
def test_a_damaged_file_is_refused(folder: Path, content: bytes) -> None:
    (folder / "bad.csv").write_bytes(content)
    with pytest.raises(QueryRefused, match=r"MATOOLKIT_SOURCE_PEOPLE|bad\.csv") as caught:
        chunks(asking("SELECT * FROM 'bad.csv'"), on(folder))
    assert str(folder) not in str(caught.value)


def test_one_file_may_be_named_instead_of_a_folder(folder: Path) -> None:
    given = on(folder / "people.csv")
    assert len(table(asking("FROM 'people.csv'"), given)[1]) == 3
    with pytest.raises(QueryRefused):
        chunks(asking("FROM 'other.csv'"), given)


# Parquet -------------------------------------------------------------------------------------------------------------


def test_parquet_keeps_its_types(folder: Path) -> None:
    parquet(
        folder / "people.parquet",
        "SELECT '0042' AS id, 7::BIGINT AS n, 1.50::DECIMAL(9, 2) AS d, 2.5::DOUBLE AS f, true AS b, NULL AS nothing,"
        " DATE '2026-03-01' AS day, TIMESTAMP '2026-03-01 08:00:00.123456' AS local,"
        " TIMESTAMPTZ '2026-03-01 08:00:00+02' AS zoned, TIME '23:59' AS at, ['x', NULL] AS many,"
        " {'a': 1} AS record, 'é🎉' AS text, '\\x00\\xFF'::BLOB AS bytes, 'nan'::DOUBLE AS nan",
    )
    columns, rows = table(asking("SELECT * FROM 'people.parquet'"), on(folder))
    row = dict(zip(columns, rows[0], strict=True))
    assert row["zoned"].utcoffset() is not None
    assert row == {
        "id": "0042",
        "n": 7,
        "d": Decimal("1.50"),
        "f": 2.5,
        "b": True,
        "nothing": None,
        "day": date(2026, 3, 1),
        "local": datetime(2026, 3, 1, 8, 0, 0, 123456),  # noqa: DTZ001 - it has no zone
        "zoned": datetime(2026, 3, 1, 6, tzinfo=UTC),
        "at": time(23, 59),
        "many": ["x", None],
        "record": {"a": 1},
        "text": "é🎉",
        "bytes": "00ff",
        "nan": "nan",
    }
    assert type(row["d"]) is Decimal


def test_parquet_and_csv_are_joined(folder: Path) -> None:
    parquet(folder / "p.parquet", "SELECT '007' AS id, 1 AS wave")
    query = "SELECT wave FROM 'people.csv' JOIN 'p.parquet' USING (id)"
    assert table(asking(query), on(folder)) == (("wave",), [(1,)])


def test_a_hundred_thousand_rows_do_not_add_up(folder: Path) -> None:
    parquet(folder / "many.parquet", "SELECT range AS id, repeat('y', 200) AS text FROM range(100000)")
    tracemalloc.start()
    try:
        with closing(open_source(asking("FROM 'many.parquet'"), on(folder)).read()) as found:
            assert sum(len(chunk.rows) for chunk in found) == 100_000
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


# Excel ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def workbook(folder: Path) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "People"
    sheet.append(["id", "n", "x", "when", "at", "yes", "mixed", "none", "id"])
    sheet.append(["0042", 7, 1.5, datetime(2026, 3, 1, 8, 30), time(9, 5), True, 12, None, "a"])  # noqa: DTZ001
    sheet.append([])
    sheet.append(["Zoë 🎉", 8, 2, datetime(2026, 3, 2, 8, 30), time(9, 6), False, "text", None, "b"])  # noqa: DTZ001
    other = book.create_sheet("Second sheet")
    other.append(["id", "day"])
    other.append(["s", date(2026, 3, 1)])
    book.create_sheet("Empty")
    path = folder / "people.xlsx"
    book.save(path)
    return path


def test_excel_cells_have_the_type_of_their_column(folder: Path, workbook: Path) -> None:
    columns, rows = table(asking("SELECT * FROM 'people.xlsx'"), on(folder))
    assert columns == ("id", "n", "x", "when", "at", "yes", "mixed", "none", "id_1")
    assert rows == [
        ("0042", 7, 1.5, datetime(2026, 3, 1, 8, 30), time(9, 5), True, "12", None, "a"),  # noqa: DTZ001
        ("Zoë 🎉", 8, 2.0, datetime(2026, 3, 2, 8, 30), time(9, 6), False, "text", None, "b"),  # noqa: DTZ001
    ]


def test_another_sheet_is_named_behind_a_hash(folder: Path, workbook: Path) -> None:
    query = "SELECT * FROM 'people.xlsx#second SHEET' UNION ALL SELECT id, NULL FROM 'people.xlsx' WHERE n > 7"
    assert table(asking(query), on(folder)) == (("id", "day"), [("s", date(2026, 3, 1)), ("Zoë 🎉", None)])


def test_a_sheet_that_is_not_there_is_told_with_those_that_are(folder: Path, workbook: Path) -> None:
    with pytest.raises(QueryRefused, match="no sheet Third: it has People, Second sheet, Empty"):
        chunks(asking("FROM 'people.xlsx#Third'"), on(folder))
    with pytest.raises(QueryRefused, match="is empty"):
        chunks(asking("FROM 'people.xlsx#Empty'"), on(folder))


def test_what_is_no_workbook_is_refused(folder: Path) -> None:
    (folder / "fake.xlsx").write_text("id\n1\n")
    with pytest.raises(QueryRefused, match=r"fake\.xlsx cannot be read as a workbook"):
        chunks(asking("FROM 'fake.xlsx'"), on(folder))


def test_a_large_sheet_is_read(folder: Path) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("all")
    sheet.append(["id", "name"])
    for number in range(5_001):
        sheet.append([f"{number:05}", number])
    book.save(folder / "large.xlsx")
    found = chunks(asking("FROM 'large.xlsx'"), on(folder))
    assert [len(chunk.rows) for chunk in found] == [1000] * 5 + [1]
    assert found[-1].rows == [("05000", 5000)]


# What a query may not reach ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM '../outside.csv'",
        "SELECT * FROM 'waves/../../outside.csv'",
        "SELECT * FROM '{folder}/../outside.csv'",
        "SELECT * FROM '{folder}/people.csv'",
        "SELECT * FROM 'people.csv' UNION ALL SELECT content, '', '' FROM read_text('/etc/passwd')",
        "SELECT * FROM read_text('../outside.csv')",
        "SELECT * FROM read_text('{folder}/hidden.txt')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM read_csv('/etc/pass' || 'wd')",
        "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
        "SELECT * FROM query_table('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM 'link.csv'",
        "SELECT * FROM 'linked/outside.csv'",
        "SELECT * FROM 'lin?.csv'",
        "SELECT * FROM 'https://127.0.0.1:1/people.csv'",
        "SELECT * FROM 's3://bucket/people.parquet'",
        "SELECT * FROM sqlite_scan('/tmp/x.db', 'people')",
        "SELECT * FROM enable_logging(storage = 'file', storage_config = {{'path': '{folder}/log'}})",
        "SELECT * FROM missing",
        "SELECT * FROM 'missing.csv'",
        "SELECT getenv('HOME')",
        "SELECT * FROM given",
        "ATTACH '{folder}/new.db'",
        "ATTACH '/tmp/new.db' AS other",
        "COPY (SELECT 1) TO '{folder}/written.csv'",
        "COPY (SELECT 1) TO '{folder}/people.csv'",
        "EXPORT DATABASE '{folder}/all'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "CREATE TABLE people AS SELECT 1",
        "CREATE SECRET s (TYPE s3)",
        "CALL enable_logging()",
        "EXPLAIN ANALYZE SELECT 1",
        'DROP VIEW "people.csv"',
        "SELECT 1; COPY (SELECT 1) TO '{folder}/written.csv'",
        "SELECT * FROM 'people.csv' WHERE",
        "SELECT 'ö\x00'; SELECT 1",
        "",
        ";",
    ],
    ids=str,
)
def test_a_query_reads_the_files_of_its_folder_and_does_nothing_else(folder: Path, tmp_path: Path, query: str) -> None:
    given = on(folder)
    (folder / "hidden.txt").write_text("not named")
    (folder / "link.csv").symlink_to("/etc/passwd")
    (folder / "linked").symlink_to(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(QueryRefused, match="MATOOLKIT_SOURCE_PEOPLE") as caught:
        chunks(asking(query.format(folder=str(folder).replace("'", "''"))), given)
    assert "root:" not in str(caught.value)
    assert not caught.value.retryable
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    paths = [Path(where) / name for where, _, names in os.walk(folder) for name in names]
    return {path: b"" if path.is_symlink() else path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    "query", ["-- who's\nFROM 'people.csv' -- them", "FROM 'people.csv';", "FROM 'people.csv'; -- y"]
)
def test_comments_and_a_semicolon_do_no_harm(folder: Path, query: str) -> None:
    assert len(table(asking(query), on(folder))[1]) == 3


def test_links_within_the_folder_are_followed(folder: Path) -> None:
    (folder / "latest.csv").symlink_to(folder / "people.csv")
    assert len(table(asking("FROM 'latest.csv'"), on(folder))[1]) == 3


def test_a_name_that_only_looks_like_a_file_is_text(folder: Path) -> None:
    query = "SELECT '../outside.csv' AS a, '/etc/passwd.csv' AS b, 'it''s' AS c FROM 'people.csv' LIMIT 1"
    assert table(asking(query), on(folder))[1] == [("../outside.csv", "/etc/passwd.csv", "it's")]


# Limits --------------------------------------------------------------------------------------------------------------


def test_a_query_that_computes_for_ever_is_interrupted(folder: Path) -> None:
    with pytest.raises(TimeLimitExceeded, match=r"longer than 0\.3 seconds") as caught:
        chunks(asking(FOREVER), on(folder, time_limit_seconds=0.3))
    assert caught.value.retryable


def test_a_query_that_takes_too_much_memory_is_refused(folder: Path) -> None:
    query = "SELECT range, list(repeat('x', 1000) || b.b) FROM range(1000), range(100000) b(b) GROUP BY 1 ORDER BY 2"
    with pytest.raises(QueryRefused, match=r"(?i)memory"):
        chunks(asking(query), on(folder))


def test_the_row_cap_ends_the_reading(folder: Path) -> None:
    with pytest.raises(RowCapExceeded, match="more than 1500 rows"):
        chunks(asking("SELECT * FROM range(1000000)"), on(folder, row_cap=1500))


def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="MATOOLKIT_SOURCE_PEOPLE names is not there") as caught:
        chunks(asking("SELECT 1"), on(tmp_path / "missing"))
    assert caught.value.retryable


def test_a_relative_folder_is_refused() -> None:
    with pytest.raises(BadConnection, match="full path"):
        chunks(asking("SELECT 1"), settings({"MATOOLKIT_SOURCE_PEOPLE": "people"}))
