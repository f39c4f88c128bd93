"""`matoolkit demo`: a small wave to its end, and what must not pass for one that went well."""

from __future__ import annotations

import copy
import io
import signal
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from matoolkit.cli.demonstration.closing import report
from matoolkit.cli.demonstration.people import People
from matoolkit.cli.demonstration.stage import Ended, surprises
from tests.hosts.processes import Running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MEMBERS = 12


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts it; none outlives the test."""
    started: list[Running] = []

    def begin(*options: str) -> Running:
        started.append(Running(["demo", *options], tmp_path, {"TMPDIR": str(tmp_path)}))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


def test_a_wave_ends_as_expected_and_leaves_nothing(demo: Callable[..., Running], tmp_path: Path) -> None:
    process = demo("--members", str(MEMBERS), "--speed", "300")
    assert process.exit_code() == 0, process.said
    said = process.said
    for phase in ("pre-stage", "mail-flow", "cut-over", "verification"):
        assert f"phase '{phase}' is completed" in said
    for members in ("11  completed", "1     failed", "1    removed"):
        assert members in said
    assert "take-address: Microsoft.Exchange.Management.Common.ProxyAddressExistsException" in said
    assert "; rollback succeeded" in said
    assert "; tried again: 0;" not in said
    assert "complete: 0;" not in said
    assert process.lines[-1] == "As expected."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_can_be_ended_in_the_middle(number: signal.Signals, demo: Callable[..., Running], tmp_path: Path) -> None:
    process = demo("--members", str(MEMBERS))
    process.until("phase 'pre-stage' is")
    process.signal(number)
    assert process.exit_code(timeout=45) == 1
    assert "Ended in the middle of the wave" in process.said
    assert "Traceback" not in process.said
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """As it must be."""
    people = People(MEMBERS, tmp_path / "people.db")
    right = {"AccountIsRight": True, "AddressIsRight": True}
    members = [
        {"memberKey": key, "status": status, "workerData": dict(right)} for key, status in people.expected().items()
    ]
    failure = {
        "memberKey": people.everybody[3].key,
        "stepName": "take-address",
        "errorMessage": "the address is taken",
        "rollbackStatus": "succeeded",
    }
    return Ended(
        expected=people.expected(),
        members=members,
        failures=[failure],
        steps=90,
        retries=5,
        polls=7,
        throttled=1,
        batch={"status": "completed"},
        seconds=20.0,
    )


def changed(ended: Ended, change: Callable[[Any], Any]) -> list[str]:
    doctored = copy.deepcopy(ended)
    change(doctored)
    return surprises(doctored)


def test_what_is_not_as_it_must_be_is_a_surprise(ended: Ended) -> None:
    assert surprises(ended) == []
    assert changed(ended, lambda it: it.members.pop()) != []
    assert changed(ended, lambda it: it.members[0].update(status="failed")) != []
    assert changed(ended, lambda it: it.members.append({"memberKey": "x", "status": "active"})) != []
    assert changed(ended, lambda it: it.members[0]["workerData"].update(AddressIsRight=False)) != []
    assert changed(ended, lambda it: it.failures[0].update(rollbackStatus="failed")) != []
    assert changed(ended, lambda it: it.batch.update(status="failed")) != []
    assert changed(ended, lambda it: setattr(it, "polls", 0)) != []


def test_the_report_says_who_ended_where_and_why(ended: Ended) -> None:
    file = io.StringIO()
    report(ended, Console(file=file, width=100))
    assert "As expected." in file.getvalue()
    ended.surprises.append("person0001@source.example is active, and should be removed")
    report(ended, Console(file=file, width=100))
    said = file.getvalue()
    assert "NOT as expected." in said
    assert "Surprise: person0001@source.example is active" in said
    assert "the address is taken; rollback succeeded" in said
