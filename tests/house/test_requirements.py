"""The locks hold what `pyproject.toml` asks for: all of it, and the same version everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("base.txt", PROJECT["project"]["dependencies"]),
        ("dev.txt", PROJECT["project"]["dependencies"]),
        ("dev.txt", PROJECT["dependency-groups"]["dev"]),
        ("dev.txt", PROJECT["build-system"]["requires"]),
        ("azure.txt", PROJECT["project"]["optional-dependencies"]["azure"]),
        *[
            ("all.txt", wanted)
            for extra, wanted in PROJECT["project"]["optional-dependencies"].items()
            if extra != "all"
        ],
        ("infra.txt", PROJECT["dependency-groups"]["infra"]),
        ("lock.txt", PROJECT["dependency-groups"]["lock"]),
    ],
)
def test_locks_hold_what_the_project_asks_for(lock: str, wanted: list[str]) -> None:
    versions = locked(lock)
    requirements = [Requirement(text) for text in wanted]
    unmet = [
        str(requirement)
        for requirement in requirements
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "0"))
    ]
    assert unmet == [], "run `make lock`"


def test_development_uses_the_versions_that_run() -> None:
    dev = locked("dev.txt")
    for lock in ("base.txt", "azure.txt", "all.txt"):
        assert locked(lock).items() <= dev.items(), lock


def test_without_extras_nothing_of_azure_is_installed_but_sign_in() -> None:
    of_azure = {name for name in locked("base.txt") if name.startswith(("azure", "msal", "msrest"))}
    assert of_azure == {"azure-core", "azure-identity", "msal", "msal-extensions"}
    assert {"azure-functions", "azure-keyvault-secrets", "azure-servicebus"} <= set(locked("azure.txt"))
