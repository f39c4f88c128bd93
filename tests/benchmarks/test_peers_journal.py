"""What a journal says of a run: who was lost, what ran twice, whether steps came one after another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.peers.engines.contest import LINE, WIDTH, Assignment, StepFailed, Task, named, read, written
from benchmarks.peers.running import runs

if TYPE_CHECKING:
    from pathlib import Path


def _assignment(folder: Path, task: Task = Task.WAVE, members: int = 20) -> Assignment:
    return Assignment(task, "address", str(folder), str(folder / "journal"), members, 5, 1.0, {"workers": 2})


def _journal(folder: Path, *ran: tuple[int, int]) -> Path:
    path = folder / "journal"
    path.write_text("".join(LINE.format(member=member, step=step) for member, step in ran))
    return path


def test_a_step_leaves_one_line_of_the_same_width_whoever_took_it(tmp_path: Path) -> None:
    assignment = _assignment(tmp_path)
    assignment.note(0, 0)
    assignment.note(999_999, 4)
    assert (tmp_path / "journal").stat().st_size == 2 * WIDTH
    assert runs(tmp_path / "journal").times == {(0, 0): 1, (999_999, 4): 1}


def test_members_whose_last_step_never_ran_are_lost(tmp_path: Path) -> None:
    found = runs(_journal(tmp_path, (0, 0), (0, 1), (1, 0)))
    assert found.lost(range(3), steps=2) == 2


def test_a_step_that_ran_three_times_was_repeated_twice(tmp_path: Path) -> None:
    found = runs(_journal(tmp_path, (0, 0), (0, 0), (0, 1), (0, 0)))
    assert (found.repeated, found.in_order) == (2, True)


def test_a_step_before_the_one_it_follows_is_out_of_order(tmp_path: Path) -> None:
    assert not runs(_journal(tmp_path, (0, 0), (1, 1), (1, 0))).in_order


def test_in_a_story_every_tenth_member_fails_at_the_third_step(tmp_path: Path) -> None:
    assignment = _assignment(tmp_path, Task.STORY)
    assert assignment.expected == 18 * 5 + 2 * 3
    assignment.note(9, 1)
    with pytest.raises(StepFailed, match="the mailbox of member 9 is locked"):
        assignment.note(9, 2)


def test_errors_are_counted_by_the_member_they_name() -> None:
    assert named(["the mailbox of member 9 is locked", b"...: the mailbox of member 9 is locked", None]) == 1


def test_an_assignment_travels_on_a_command_line(tmp_path: Path) -> None:
    assignment = _assignment(tmp_path, Task.RESUME)
    assert read(written(assignment)) == assignment
    assert json.loads(written(assignment))["task"] == "resume"
