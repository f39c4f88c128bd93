"""What is committed works anywhere: it names no package registry and no place on somebody's machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

# Each pattern is written so that it does not match itself.
REGISTRIES = re.compile(
    r"pypi[.]org/simple|pythonhosted[.]org|registry[.]npmjs[.]org|registry[.]yarnpkg[.]com|deb[.]debian[.]org"
    r"|--(?:extra-)?index[-]url|--find[-]links|file:/{2}/"
)
# `/home` of containers and of Azure Functions is everybody's.
HOMES = re.compile(r"(?<![\w.{}$~-])/(?:root|Users/[a-z]\w*|home/(?!site\b|app\b|matoolkit\b|nonroot\b)[a-z]\w*)/")


def committed_files() -> list[Path]:
    """What git has or would add; outside a checkout, everything that `make` did not put there."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        made = {".venv", ".git", "__pycache__"}
        return [
            file
            for file in ROOT.rglob("*")
            if file.is_file()
            and not made & set(file.relative_to(ROOT).parts)
            and not any(part.endswith("_cache") for part in file.parts)
        ]
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in committed_files()
        for number, line in enumerate(file.read_text(errors="ignore").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_registry() -> None:
    assert lines_with(REGISTRIES) == []


def test_no_file_names_a_home_folder() -> None:
    assert lines_with(HOMES) == []


def test_no_file_names_the_place_of_this_checkout() -> None:
    # The folder that holds the checkout too, unless everybody has it.
    places = {ROOT, ROOT.parent} - {Path("/"), Path("/tmp")}  # noqa: S108 - compared, not used
    assert lines_with(re.compile("|".join(rf"(?<![\w.]){re.escape(str(place))}(?!\w)" for place in places))) == []


@pytest.mark.parametrize("text", ["see file:" + "///opt/simple", "-" + "-index-url=x", "https://pypi." + "org/simple"])
def test_registries_are_recognised(text: str) -> None:
    assert REGISTRIES.search(text)


@pytest.mark.parametrize("text", ["/ro" + "ot/.cache", "cd /ho" + "me/anna/src", "'/Us" + "ers/anna/src'"])
def test_home_folders_are_recognised(text: str) -> None:
    assert HOMES.search(text)


@pytest.mark.parametrize(
    "text", ["/home/site/wwwroot", "/v1.0/users/1", "https://graph.test/Users/1/", "{base}/users/a/"]
)
def test_other_paths_are_not_taken_for_home_folders(text: str) -> None:
    assert not HOMES.search(text)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_locks_hold_names_versions_and_hashes_only(lock: Path) -> None:
    allowed = re.compile(
        r"[a-z0-9][a-z0-9._-]*(\[[a-z,]+\])?==\S+( ; .+)? \\"  # a name and its version
        r"|    --hash=sha256:[0-9a-f]{64}( \\)?"
        r"|    # via( [\w.-]+| matoolkit \(pyproject\.toml(:\w+)?\))?"  # who asked for it
        r"|    #   ([\w.-]+|-c requirements/(?:base|dev)\.txt|matoolkit \(pyproject\.toml(:\w+)?\))"
    )
    assert [line for line in lock.read_text().splitlines() if not allowed.fullmatch(line)] == []
