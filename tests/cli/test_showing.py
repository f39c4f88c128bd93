"""What people see: harmless text, tables that fit and lose nothing, times."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from matoolkit.cli.options import json_text
from matoolkit.cli.showing.safe import safe, safe_json, safe_lines
from matoolkit.cli.showing.tables import Column, field, print_fields, print_table
from matoolkit.cli.showing.times import moment, span, until

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\n\x00\u202eevil\u200b\u2028\udcff"


def shown(rows: list[dict[str, object]], columns: list[Column], width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_table(rows, columns, on=console)
    found = console.file
    assert isinstance(found, io.StringIO)
    return found.getvalue()


# Text ----------------------------------------------------------------------------------------------------------------


def test_what_would_act_on_a_terminal_is_spelt_out() -> None:
    assert safe("a\x1b[31mb") == r"a\x1b[31mb"
    assert safe("a\r\nb\tc") == r"a\r\nb\tc"
    assert safe("\u202ex\udcff") == r"\u202ex\udcff"
    assert safe_lines("a\r\nb\tc\x1b") == "a\nb\tc\\x1b"


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=50))
def test_no_text_whatever_acts_on_a_terminal(text: str) -> None:
    for spelt in (safe(text), safe_lines(text).replace("\n", "").replace("\t", "")):
        assert not any(ord(each) < 32 or 127 <= ord(each) < 160 or 0xD800 <= ord(each) < 0xE000 for each in spelt)
        assert not set(spelt) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f\u200e\u2028\u2029")
        spelt.encode()


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=50))
def test_json_is_harmless_and_says_the_same(text: str) -> None:
    written = safe_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(written) == text
    assert safe(written) == written


def test_ordinary_names_stay_as_they_are() -> None:
    for name in ("Größe", "日本語", "O'Brien", "naïve", "Ελλάδα", "🙂", "a b"):
        assert safe(name) == name


def test_json_goes_through_a_pipe_that_knows_no_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert json_text({"name": "Größe"}) == '{"name": "Gr\\u00f6\\u00dfe"}'


# Tables --------------------------------------------------------------------------------------------------------------

COLUMNS = [
    field("ID", "id", right=True),
    field("Member", "member", folds=True),
    field("Status", "status"),
    field("Error", "error", folds=True, rank=1),
    field("Ended", "ended", rank=2),
]
ROWS: list[dict[str, object]] = [
    {
        "id": number,
        "member": f"somebody.with.a.long.name.{number}@contoso.example",
        "status": "poll_timeout",
        "error": "it did not end in the time that the step gave it, " * 3,
        "ended": "2026-03-01 12:00:00Z",
    }
    for number in (1, 20, 300)
]


@pytest.mark.parametrize("width", [20, 30, 44, 60, 72, 80, 100, 132, 200, 1000])
def test_a_table_fits(width: int) -> None:
    text = shown(ROWS, COLUMNS, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert not any(line.endswith(" ") for line in text.splitlines())


@given(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=60), min_size=1, max_size=4),
    st.integers(18, 120),
)
def test_nothing_of_a_column_that_has_to_be_there_is_lost(texts: list[str], width: int) -> None:
    rows: list[dict[str, object]] = [{"name": text, "number": 7} for text in texts]
    text = shown(rows, [field("Name", "name", folds=True), field("N", "number")], width)
    for each in texts:
        for letter in safe(each):
            assert letter.isspace() or letter in text
    assert sum(text.count(letter) for letter in "7") >= len(texts)


def test_folded_text_is_all_there() -> None:
    error = "Request_ResourceNotFound: user 'person112@contoso.example' does not exist in the target tenant"
    rows: list[dict[str, object]] = [{"who": "person112@contoso.example", "at": "prestage", "error": error}]
    columns = [
        field("Who", "who", folds=True),
        field("At", "at", folds=True, rank=2),
        field("Error", "error", folds=True, rank=1),
    ]
    for width in range(25, 200):
        lines = shown(rows, columns, width).splitlines()
        if any(line.startswith("Who:") for line in lines):
            letters = "".join("".join(lines).split())
        else:
            begin = lines[0].find("ERROR")
            if begin < 0:
                continue
            letters = "".join("".join(line[begin:] for line in lines[1:]).split())
        assert "".join(error.split()) in letters, width


def test_in_a_pipe_a_row_is_a_line_and_nothing_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS, COLUMNS)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 + len(ROWS)
    assert "\x1b" not in out
    assert all(str(row["error"]).strip() in out for row in ROWS)
    assert err == ""


def test_what_is_left_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    shown(ROWS, COLUMNS, 70)
    assert capsys.readouterr().err == "Left out, as the terminal is narrow: Error, Ended.\n"


def test_columns_without_anything_are_not_shown() -> None:
    rows: list[dict[str, object]] = [{"id": 1, "member": "a", "status": "active"}]
    assert shown(rows, COLUMNS, 80).splitlines() == ["ID  MEMBER  STATUS", " 1  a       active"]


def test_hostile_names_stay_in_their_cell() -> None:
    rows: list[dict[str, object]] = [{"id": 1, "member": HOSTILE, "status": HOSTILE}]
    text = shown(rows, COLUMNS, 400)
    assert len(text.splitlines()) == 2
    assert "\x1b" not in text
    assert r"\x1b[2J" in text


def test_markup_of_the_library_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields([("Name", "[bold red]x[/] :smile: [link=http://e]y[/link]"), ("Empty", None), ("None", "")])
    assert capsys.readouterr().out == "Name: [bold red]x[/] :smile: [link=http://e]y[/link]\n"


# Times ---------------------------------------------------------------------------------------------------------------

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h"),
        (7380, "2 h 3 min"),
        (93600, "1 d 2 h"),
    ],
)
def test_spans(seconds: float, expected: str) -> None:
    assert span(seconds) == expected


def test_moments() -> None:
    assert moment("2026-03-01T14:00:05.123456+02:00") == "2026-03-01 12:00:05Z"
    assert moment(None) == ""
    assert until("2026-03-01T12:05:00Z", NOW) == "in 5 min"
    assert until("2026-03-01T11:00:00Z", NOW) == "1 h ago"
    assert until("2026-03-01T12:00:00.4Z", NOW) == "now"
