"""Files: what is read from them, and what they are refused for, all of it at once."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.api.csv_members import MOST_BYTES, read_members, template
from matoolkit.api.errors import InvalidFile
from matoolkit.runbooks import load_runbook
from tests.api.live import upload
from tests.api.people import csv, runbook, step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.runbooks import Runbook
    from tests.api.live import Live

HEADER = b"Key,Start,Mail\r\n"
ROW = b"anna,2030-01-01T00:00:00Z,anna@example.test\r\n"


def wave(**more: Any) -> Runbook:
    return load_runbook(runbook(**more))


def packed(**formats: str) -> Runbook:
    document = json.loads(json.dumps({"name": "wave"}))
    document["data_source"] = {
        "type": "sql",
        "connection": "SQL_WAVES",
        "query": "SELECT 1",
        "primary_key": "Key",
        "batch_time": "immediate",
        "multi_valued_columns": [{"name": name, "format": how} for name, how in formats.items()],
    }
    document["phases"] = [{"name": "move", "offset": "T-0", "steps": [step("move")]}]
    return load_runbook(json.dumps(document))


def read(content: bytes, runbook: Runbook | None = None) -> tuple[dict[str, dict[str, Any]], list[str]]:
    listed = read_members(io.BytesIO(content), runbook or wave())
    return {key: json.loads(data) for key, data in listed.members}, listed.warnings


def problems(content: bytes, runbook: Runbook | None = None) -> list[str]:
    with pytest.raises(InvalidFile) as refused:
        read_members(io.BytesIO(content), runbook or wave())
    return refused.value.errors


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("people.csv", csv("anna"))
    return file.getvalue()


# What is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_plain_file(bom: bytes, end: str, delimiter: str) -> None:
    lines = [["key", "start", "MAIL"], ["Änne", "2030", "ä@example.test"], ["ben", "", ""]]
    found, warnings = read(bom + end.join(delimiter.join(line) for line in lines).encode())
    assert found == {
        "Änne": {"key": "Änne", "start": "2030", "MAIL": "ä@example.test"},
        "ben": {"key": "ben", "start": "", "MAIL": ""},
    }
    assert warnings == []


def test_quotes_delimiters_and_line_breaks_in_cells() -> None:
    content = b'Key,Start,Mail,Note\r\nanna,,a,"says ""no"", and;\r\nthen\n""yes"""\r\n\r\nben,,b,""\r\n'
    found, warnings = read(content)
    assert found["anna"]["Note"] == 'says "no", and;\r\nthen\n"yes"'
    assert found["ben"]["Note"] == ""
    assert warnings == ["the runbook uses no column 'Note'; it is kept"]


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "007", "1e5", "TRUE", " both sides "])
def test_cells_are_text_whatever_they_look_like(cell: str) -> None:
    found, _ = read(HEADER + f"anna,,{cell}\r\n".encode())
    assert found["anna"]["Mail"] == cell


def test_columns_that_hold_several_values() -> None:
    runbook = packed(A="semicolon_delimited", B="comma_delimited", C="json_array")
    found, _ = read(b'Key,A,B,C\r\nanna,x; y,"1,2","[""p"", 3]"\r\nben,,,\r\n', runbook)
    assert found["anna"] == {"Key": "anna", "A": ["x", "y"], "B": ["1", "2"], "C": ["p", 3]}
    assert found["ben"] == {"Key": "ben", "A": [], "B": [], "C": []}


def test_the_template_is_taken_as_it_is() -> None:
    for each in (wave(), packed(A="semicolon_delimited", B="comma_delimited", C="json_array")):
        found, warnings = read(template(each).encode(), each)
        assert (list(found), warnings) == (["user@example.com"], [])


# What is refused ------------------------------------------------------------------------------------------------------


def test_everything_that_is_wrong_is_told_at_once_with_its_row() -> None:
    content = (
        b'Key,Start,key,,Phone\r\nanna,1,2,3,4\r\nben,1\r\nANNA,1,2,3,4\r\n ,1,"a"b,3,4\r\n\xff,1,2,3,4\r\n,1,2,3,4\r\n'
    )
    assert problems(content) == [
        "row 1: columns 1 and 3 are both named 'key'",
        "row 1: column 4 has no name",
        "row 1: there is no column 'Mail', which the runbook needs",
        "row 3: 2 cells, where the header has 5",
        "row 4: the key 'ANNA' is in row 2 already",
        "row 5: after a closing quote there is something else than a delimiter",
        "row 6: not UTF-8 at byte 1 of the line: save the file as CSV (UTF-8)",
        "row 7: the key is empty",
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"\r\n\r\n", "the file is empty"),
        (HEADER, "a header and no rows"),
        (zipped(), "zip archive or an Excel workbook"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 100, "old Excel workbook"),
        (b"%PDF-1.7", "PDF"),
        (b"\x1f\x8b\x08\x00", "compressed"),
        (csv("anna").decode().encode("utf-16"), "UTF-16"),
        (csv("änne").decode().encode("latin-1"), "row 2: not UTF-8 at byte 1"),
        (HEADER + b"anna,\0,x\r\n", "row 2: holds a NUL byte"),
        (HEADER + ROW + b'ben,"open,x\r\ncleo,,\r\n', "row 3: a quote is opened and never closed"),
        (HEADER + b'ben,o"pen,x\r\n', "row 2: a quote stands alone"),
        (HEADER + b"anna,,x\rben,,y\r\n", "row 2: a carriage return stands alone"),
        (b"a," * 1_000_000 + b"b\r\n", "longer than 1,000,000 bytes"),
        (b"," * 999_990 + b"\r\n", "row 1: 999,991 columns, where 1,000 is the limit"),
        (HEADER + b"," * 999_990 + b"\r\n", "row 2: 999,991 cells, where the header has 3"),
        (csv("anna").decode().encode("utf-16-le"), "row 1: holds a NUL byte"),
        (b",".join(b"c%d" % each for each in range(1_001)) + b"\r\n", "1,001 columns, where 1,000 is the limit"),
        (b'Key,Start,"' + b"x\r\n" * 400_000, "row 1: a cell is longer than 131,072 characters, or a quote before it"),
        (HEADER + b'"x\r\n",' * 200_000, "row 2: longer than 1,000,000 bytes, or a quote was never closed"),
        (HEADER + b"anna,," + b"x" * 200_000 + b"\r\n", "row 2: a cell is longer than 131,072"),
        (HEADER + b"a" * 513 + b",,\r\n", "row 2: the key is longer than 512"),
        (HEADER + b'"an\nna",,\r\n', "row 2: the key holds a control character"),
        (HEADER + b"".join(b"p%d,,\r\n" % each for each in range(50_001)), "row 50002: more than 50,000 rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_is_refused(content: bytes, complaint: str) -> None:
    found = problems(content)
    assert any(complaint in each for each in found), found


def test_fifty_thousand_people_are_not_too_many() -> None:
    found, _ = read(HEADER + b"".join(b"p%d,,\r\n" % each for each in range(50_000)))
    assert len(found) == 50_000


def test_a_list_of_problems_ends_somewhere() -> None:
    found = problems(HEADER + b"x\r\n" * 5_000)
    assert (len(found), found[-1]) == (1_001, "and 4,000 more")


def test_json_that_is_no_list_is_told_with_its_row() -> None:
    assert problems(b'Key,C\r\nanna,"{}"\r\nben,[\r\n', packed(C="json_array")) == [
        "row 2: column C holds JSON that is no array",
        "row 3: column C holds no JSON array",
    ]


# Through the API ------------------------------------------------------------------------------------------------------


def create(live: Live, content: bytes, name: str | None = None) -> Any:
    return live.call("POST", "/api/batches", data={"runbookName": name or live.publish()}, files=upload(content))


def test_a_file_with_errors_is_refused_whole(live: Live) -> None:
    answer = create(live, csv("anna", "", "ben", header="Key,Start,Mail").replace(b"ben,", b"ben,,"))
    assert answer.status_code == 400
    assert answer.json() == {
        "error": "the file was not taken: 2 errors",
        "errors": ["row 3: the key is empty", "row 4: 4 cells, where the header has 3"],
        "warnings": [],
    }
    assert live.get("/api/batches?limit=1")["total"] == 0


def test_a_file_of_50_mb_and_one_byte_is_refused_and_its_sender_hears_why(live: Live) -> None:
    name = live.publish()
    largest = HEADER + ROW + b"x" * (MOST_BYTES - len(HEADER + ROW))
    # Of the right size it is read, and found to be nonsense.
    assert "longer than 1,000,000 bytes" in create(live, largest, name).json()["errors"][0]
    for content in (largest + b"x", largest * 2):
        answer = create(live, content, name)
        assert (answer.status_code, answer.json()["errors"]) == (400, ["the file is larger than 50 MB"])


@pytest.mark.parametrize("megabytes", [49, 60])
def test_a_large_file_goes_to_disk_and_not_to_memory(live: Live, megabytes: int) -> None:
    field = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n'
    name = live.publish().encode()

    def sent() -> Iterator[bytes]:
        yield field % (b"runbookName", b"") + name + b"\r\n" + field % (b"file", b'; filename="people.csv"') + HEADER
        piece = b"x" * 100 + b",\r\n"
        for _ in range(megabytes * 16):
            yield piece * (64 * 1024 // len(piece))
        yield b"\r\n--b--\r\n"

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    tracemalloc.start()
    try:
        answer = live.call("POST", "/api/batches", data=sent(), headers=headers)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status_code == 400
    assert ("larger than 50 MB" in answer.text) == (megabytes > 50)
    assert most < 8 * 1024 * 1024


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"json": {}}, "send a form"),
        ({"data": {"runbookName": "x"}}, "send a form"),
        ({"files": {"other": ("a.csv", b"")}}, "no file in its field `file`"),
        ({"data": {"file": "text"}, "files": {"other": ("a.csv", b"")}}, "no file in its field `file`"),
        ({"files": upload(b"")}, "no field `runbookName`"),
        ({"files": [("file", ("a", b"")), ("file", ("b", b""))]}, "the form cannot be read"),
        ({"data": b"x", "headers": {"Content-Type": "multipart/form-data"}}, "the form cannot be read"),
        ({"data": b"--x\r\nno", "headers": {"Content-Type": "multipart/form-data; boundary=x"}}, "no file"),
        ({"data": b"", "headers": {"Content-Type": "multipart/form-data; boundary=x"}}, "no file"),
    ],
)
def test_a_form_that_is_not_right_is_told(live: Live, given: dict[str, Any], complaint: str) -> None:
    assert complaint in live.error("POST", "/api/batches", 400, **given)


def test_a_runbook_that_is_not_there(live: Live) -> None:
    assert "no active runbook" in live.error(
        "POST", "/api/batches", 404, data={"runbookName": "nobody"}, files=upload(csv("anna"))
    )
