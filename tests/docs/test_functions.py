"""The page on functions says what the registry says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from matoolkit.worker.loading import gather

if TYPE_CHECKING:
    from matoolkit.worker.registry import Function

PAGE = (Path(__file__).parents[2] / "docs" / "functions.md").read_text()
FUNCTIONS = list(gather(None))


def described(name: str) -> str:
    found = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"{name} is not described"
    return found[1]


def shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_there_are_fourteen_and_each_is_described_once() -> None:
    headings = re.findall(r"^### (\S+)$", PAGE, re.MULTILINE)
    assert sorted(headings) == sorted(each.name for each in FUNCTIONS)
    assert len(headings) == 14


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.name)
def test_every_parameter_is_described_as_it_is(function: Function) -> None:
    text = described(function.name)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line][2:]
    assert [row[0].strip("*") for row in rows] == [each.name for each in function.parameters]
    for row, parameter in zip(rows, function.parameters, strict=True):
        assert row[0].startswith("**") == parameter.mandatory
        assert row[1] == parameter.words + (", secret" if parameter.secret else "")
        if not parameter.mandatory and parameter.default is not None:
            assert row[2] == shown(parameter.default)


def test_what_is_not_repeated_is_told() -> None:
    assert [each.name for each in FUNCTIONS if not each.repeatable] == ["New-EntraB2BInvitation"]
    assert "not repeated" in described("New-EntraB2BInvitation")
