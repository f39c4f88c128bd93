"""Workflows sign in without stored secrets, may do little, and run only code that is known."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.infra.templates import ROOT, table

FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXTS = {file.name: file.read_text() for file in FILES}
DEPLOYING = ["deploy-apps.yml", "deploy-infra.yml"]


def jobs(name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(TEXTS[name])["jobs"]
    return found


def test_the_workflows_there_are() -> None:
    assert list(TEXTS) == ["ci.yml", *DEPLOYING]


@pytest.mark.parametrize("name", TEXTS)
def test_actions_are_pinned_to_a_commit_whose_version_is_said(name: str) -> None:
    uses = re.findall(r"uses: (.*)", TEXTS[name])
    assert uses
    assert [each for each in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []


def test_an_action_is_the_same_everywhere() -> None:
    uses = set(re.findall(r"uses: (.*)", "\n".join(TEXTS.values())))
    assert len(uses) == len({each.partition("@")[0] for each in uses})


@pytest.mark.parametrize("name", TEXTS)
def test_no_secret_is_stored(name: str) -> None:
    assert "secrets." not in TEXTS[name]
    assert not re.search(r"creds:|publish-profile|client-secret", TEXTS[name])


@pytest.mark.parametrize("name", TEXTS)
def test_permissions_are_given_to_jobs_and_are_few(name: str) -> None:
    assert yaml.safe_load(TEXTS[name])["permissions"] == {}
    allowed = {"contents": "read", "id-token": "write"} if name in DEPLOYING else {"contents": "read"}
    assert [job["permissions"] for job in jobs(name).values()] == [allowed] * len(jobs(name))


@pytest.mark.parametrize("name", TEXTS)
def test_a_run_ends_and_does_not_cross_another(name: str) -> None:
    assert all("timeout-minutes" in job for job in jobs(name).values())
    assert "group" in yaml.safe_load(TEXTS[name])["concurrency"]


@pytest.mark.parametrize("name", DEPLOYING)
def test_deployments_have_an_environment_and_sign_in_by_federation(name: str) -> None:
    for job in jobs(name).values():
        assert job["environment"] == "${{ inputs.environment }}"
        (sign_in,) = [step for step in job["steps"] if step.get("uses", "").startswith("azure/login@")]
        assert set(sign_in["with"]) == {"client-id", "tenant-id", "subscription-id"}


@pytest.mark.parametrize("name", TEXTS)
def test_commands_are_not_put_together_from_expressions(name: str) -> None:
    commands = [step["run"] for job in jobs(name).values() for step in job["steps"] if "run" in step]
    assert commands
    assert [command for command in commands if "${{" in command] == []


def test_variables_are_those_of_the_documentation() -> None:
    used = set(re.findall(r"\bvars\.(\w+)", "\n".join(TEXTS.values())))
    described = {name for row in table("3. Let the workflows sign in") for name in row[0].split(", ")}
    assert used == described


@pytest.mark.parametrize("name", DEPLOYING)
def test_files_that_are_deployed_are_there(name: str) -> None:
    named = re.findall(r"\b(?:infra|containers|requirements)/[\w./-]+\.\w+", TEXTS[name])
    assert named
    assert [each for each in named if not (ROOT / each).is_file()] == []


def test_functions_are_packed_with_the_python_they_run_on() -> None:
    module = (ROOT / "infra/modules/function-app.bicep").read_text()
    found = re.search(r"param pythonVersion string = '([\d.]+)'", module)
    assert found
    steps = jobs("deploy-apps.yml")["functions"]["steps"]
    (python,) = [step["with"] for step in steps if step.get("uses", "").startswith("actions/setup-python@")]
    assert python["python-version"] == found[1]
