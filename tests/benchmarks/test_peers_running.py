"""Entries can be run as they stand, and a real engine goes through the real trials: here the product itself."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from benchmarks.peers import environments, running
from benchmarks.peers.engines.contest import Assignment, Task
from benchmarks.peers.entries import ENTRIES, MEMBERS
from benchmarks.peers.environments import Environments, NotInstallable
from benchmarks.peers.running import EngineFailed
from benchmarks.peers.stores import Store, Stores
from benchmarks.peers.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = replace(ENTRIES[0], members=20, options={"parallelism": 8, "lock_seconds": 1})


class _Files:
    """SQLite files, without a server beside them."""

    @contextmanager
    def new(self, store: Store, folder: Path, durability: str) -> Iterator[str]:
        assert store == Store.SQLITE
        yield str(folder / "engine.sqlite")


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(Environments(tmp_path / "environments"), cast("Stores", _Files()), tmp_path)


def test_every_entry_has_a_file_a_lock_and_a_name_of_its_own() -> None:
    assert len({entry.key for entry in ENTRIES}) == len(ENTRIES)
    for entry in ENTRIES:
        assert find_spec(entry.module) is not None
        assert entry.members <= MEMBERS
        if entry.lock is not None:
            assert (environments.LOCKS / f"{entry.lock}.txt").exists()


def test_locks_pin_with_hashes_and_say_nothing_of_an_index() -> None:
    locks = list(environments.LOCKS.glob("*.txt"))
    assert len(locks) == 9
    for lock in locks:
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text


def test_the_product_goes_through_a_wave(trials: Trials) -> None:
    found = trials.wave(_OURS)
    assert found["steps"] == 100
    assert 0 < found["seconds"] < 60
    assert "repeated" not in found


def test_the_product_tells_everything_of_a_story(trials: Trials) -> None:
    assert trials.story(_OURS) == {"members": 20, "steps": 96, "times": 96, "errors": 2}


def test_the_product_loses_nobody_when_it_is_killed_half_way(trials: Trials) -> None:
    found = trials.crash(replace(_OURS, members=100))
    assert found["runs_before"] >= 250
    assert (found["lost"], found["remark"]) == (0, "")


def test_an_engine_that_fails_is_reported_with_what_it_said(tmp_path: Path) -> None:
    assignment = Assignment(Task.WAVE, "/nowhere/at/all", str(tmp_path), str(tmp_path / "journal"), 1, 5, 1.0)
    with pytest.raises(EngineFailed, match="with_matoolkit ended 1:"):
        running.run(Path(sys.executable), _OURS.module, assignment, limit=60)


def test_a_lock_that_cannot_be_installed_is_the_reason_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials
) -> None:
    (tmp_path / "broken.txt").write_text("=== not a requirement\n")
    monkeypatch.setattr(environments, "LOCKS", tmp_path)
    with pytest.raises(NotInstallable, match="Invalid requirement"):
        trials.environments.python("broken")
    assert "Invalid requirement" in trials.wave(replace(_OURS, environment="broken"))["not_installable"]
