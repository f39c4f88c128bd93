"""Rows become members' data and keys: every kind of value, every format, and what must be refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.batches.errors import UnreadableRow, UnusableColumns
from matoolkit.batches.member_data import MAX_KEY, MemberData, key_reader, member_key
from matoolkit.runbooks.model import MultiValuedColumn, MultiValuedFormat
from matoolkit.store.schema import batch_members

_BERLIN = timezone(timedelta(hours=2))


def _one(value: Any) -> Any:
    """The value as a reader finds it again."""
    return json.loads(MemberData(["Value"]).encode([value]))["Value"]


def _several(packed: MultiValuedFormat, value: Any) -> Any:
    columns = MemberData(["Key", "Values"], [MultiValuedColumn("values", packed)])
    return json.loads(columns.encode(["k", value]))["Values"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", ""),
        (" kept as it is ", " kept as it is "),
        ("Zoë \N{GRINNING FACE}", "Zoë \N{GRINNING FACE}"),
        ("x" * 100_000, "x" * 100_000),
        ("half a \ud800 letter", "half a ? letter"),
        ("zero\x00", "zero\x00"),
        (True, True),
        (0, 0),
        (2**70, 2**70),
        (1.5, 1.5),
        (float("nan"), None),
        (float("-inf"), None),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E+100000"), "1E+100000"),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (date(2026, 3, 1), "2026-03-01"),
        (time(8, 30), "08:30:00"),
        (datetime(2026, 3, 1, 8), "2026-03-01T08:00:00"),  # noqa: DTZ001 - a time without a zone is what is tested
        (datetime(2026, 3, 1, 8, tzinfo=UTC), "2026-03-01T08:00:00Z"),
        (datetime(2026, 3, 1, 8, 0, 0, 5, tzinfo=_BERLIN), "2026-03-01T08:00:00.000005+02:00"),
        (timedelta(hours=1), "PT3600S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\xff\x00", "/wA="),
        (bytearray(b"\xff"), "/w=="),
        (memoryview(b"\xff"), "/w=="),
        ([1, None, Decimal("0.5"), "\udfff"], [1, None, "0.5", "?"]),
        ({"b", "a"}, ["a", "b"]),
        ({1: (b"x",), "n": float("nan")}, {"1": ["eA=="], "n": None}),
        (pytest, str(pytest)),
    ],
)
def test_a_value_keeps_its_kind_or_becomes_text_that_says_the_same(value: Any, expected: Any) -> None:
    assert _one(value) == expected
    assert type(_one(value)) is type(expected)


def test_a_number_of_too_many_digits_makes_the_row_unreadable() -> None:
    with pytest.raises(UnreadableRow, match="too many digits"):
        _one(10**5000)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a;b;c", ["a", "b", "c"]),
        (" a ; ;b;;", ["a", "b"]),
        ("a,b", ["a,b"]),
        ('"a;b"', ['"a', 'b"']),
        ("", []),
        (";", []),
        (None, []),
        (5, ["5"]),
        (Decimal("1.50"), ["1.50"]),
        (["x", "y;z"], ["x", "y;z"]),
        ("half \ud800;b", ["half ?", "b"]),
    ],
)
def test_semicolons_part_the_values_and_nothing_is_quoted(value: Any, expected: list[Any]) -> None:
    assert _several(MultiValuedFormat.SEMICOLON_DELIMITED, value) == expected


def test_commas_part_the_values_too() -> None:
    assert _several(MultiValuedFormat.COMMA_DELIMITED, "smtp:a@x, smtp:b@x,") == ["smtp:a@x", "smtp:b@x"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('["a", "b"]', ["a", "b"]),
        ('[1, 1.5, true, null, {"k": ["v"]}]', [1, 1.5, True, None, {"k": ["v"]}]),
        ("[]", []),
        ("null", []),
        ("  ", []),
        (None, []),
        (("a", Decimal(1)), ["a", "1"]),
    ],
)
def test_a_json_array_becomes_a_list(value: Any, expected: list[Any]) -> None:
    assert _several(MultiValuedFormat.JSON_ARRAY, value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "a;b",
        '["a"',
        '["a"] x',
        "[NaN]",
        "[1e999]",
        '["\ud800"]',
        '"a"',
        '{"a": 1}',
        "5",
        5,
        {"a": 1},
        "[" * 100_000,
        "[" * 60 + "]" * 60,
    ],
)
def test_what_is_no_json_array_makes_the_row_unreadable_and_is_not_quoted(value: Any) -> None:
    with pytest.raises(UnreadableRow, match="column values holds") as refused:
        _several(MultiValuedFormat.JSON_ARRAY, value)
    assert "\ud800" not in str(refused.value)
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize("columns", [["Id"] * 10, ["Id", "ID"], ["", ""], ["straße", "STRASSE"]])
def test_columns_that_cannot_be_told_apart_are_refused(columns: list[str]) -> None:
    with pytest.raises(UnusableColumns, match="the same name"):
        MemberData(columns)


def test_how_often_a_name_occurs_is_told() -> None:
    with pytest.raises(UnusableColumns, match=r"id \(10 times\); give each a name of its own"):
        MemberData(["Id"] * 10)


def test_a_multi_valued_column_that_is_not_there_is_told() -> None:
    with pytest.raises(UnusableColumns, match="no column Proxies; there are: Key, Name"):
        MemberData(["Key", "Name"], [MultiValuedColumn("Proxies", MultiValuedFormat.JSON_ARRAY)])


def test_columns_keep_their_order_and_their_spelling() -> None:
    assert MemberData(["b", "A"]).encode([1, 2]) == '{"b":1,"A":2}'


@given(
    st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.decimals()),
        min_size=3,
        max_size=3,
    )
)
def test_any_row_can_be_read_again_and_reads_the_same_every_time(row: list[Any]) -> None:
    columns = MemberData(["a", "b", "c"])
    text = columns.encode(row)
    assert text == MemberData(["a", "b", "c"]).encode(tuple(row))
    assert list(json.loads(text)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("User@Contoso.example", "User@Contoso.example"),
        (" padded  ", "padded"),
        ("two words", "two words"),
        (1001, "1001"),
        (1001.0, "1001"),
        (1.5, "1.5"),
        (Decimal("1001.00"), "1001"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date(2026, 3, 1), "2026-03-01"),
        ("k" * MAX_KEY, "k" * MAX_KEY),
    ],
)
def test_a_key_is_text_without_blanks_around_it(value: Any, key: str) -> None:
    assert member_key(value) == key


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        ("", "empty"),
        (" \t", "empty"),
        ("k" * (MAX_KEY + 1), "longer than 512"),
        ("ß" * 300, "longer than 512"),
        ("\N{GRINNING FACE}" * 300, "longer than 512"),
        ("a\x00b", "control character"),
        ("a\nb", "control character"),
        ("a\ud800", "control character"),
        (float("nan"), "no number"),
        (Decimal("sNaN"), "no number"),
        (True, "bool"),
        (b"x", "bytes"),
        (["a"], "list"),
    ],
)
def test_what_cannot_be_a_key_makes_the_row_unreadable(value: Any, reason: str) -> None:
    with pytest.raises(UnreadableRow, match=reason):
        member_key(value)


def test_the_key_is_found_whatever_the_case_of_its_column() -> None:
    assert key_reader(["Name", "USERID"], "UserId")(["n", " k "]) == "k"
    with pytest.raises(UnusableColumns, match="no column UserId"):
        key_reader(["Name"], "UserId")


def test_the_longest_key_is_what_the_database_takes() -> None:
    assert {batch_members.c[name].type.length for name in ("member_key", "member_key_folded")} == {MAX_KEY}  # type: ignore[attr-defined]
