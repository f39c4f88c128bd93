"""The package of the function apps is what the workflow makes, and each app finds its functions in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.infra.templates import ROOT, function_apps, table

if TYPE_CHECKING:
    from pathlib import Path

FUNCTIONS = {
    "scheduler": {"scheduler"},
    "orchestrator": {"orchestrator_events", "orchestrator_results", "orchestrator_upkeep"},
    "admin-api": {"admin_api"},
}
GIVEN = {
    "Orchestrator__WorkerIds": "worker-01,worker-02",
    "AzureAd__Instance": "https://login.microsoftonline.com/",
    "AzureAd__TenantId": "11111111-2222-3333-4444-555555555555",
    "AzureAd__ClientId": "11111111-2222-3333-4444-555555555556",
    "AzureAd__Audience": "api://11111111-2222-3333-4444-555555555556",
}
"""What the templates work out only when they are deployed."""
LOAD = """
import json, function_app, matoolkit
found = [
    {"name": each.get_function_name(), **json.loads(each.get_function_json())}
    for each in function_app.app.get_functions()
]
print(json.dumps({"from": matoolkit.__file__, "functions": found}))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the workflow packs, but for the requirements, which are installed here already; unpacked."""
    folder = tmp_path_factory.mktemp("deployment")
    for name in ("src", "requirements"):
        (folder / name).symlink_to(ROOT / name)
    workflow = yaml.safe_load((ROOT / ".github/workflows/deploy-apps.yml").read_text())
    (step,) = [each for each in workflow["jobs"]["functions"]["steps"] if each.get("name") == "Package"]
    lines = step["run"].replace("\\\n", " ").splitlines()
    commands = [line for line in lines if "-m pip install" not in line]
    assert len(commands) == len(lines) - 1
    (folder / "package" / ".python_packages").mkdir(parents=True)
    environment = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}  # noqa: PTH120 - on PATH as text
    subprocess.run(["bash", "-ec", "\n".join(commands)], cwd=folder, env=environment, check=True)
    with zipfile.ZipFile(folder / "package.zip") as packed:
        packed.extractall(folder / "deployed")
    return folder / "deployed"


def told(part: str) -> dict[str, str]:
    """The settings of an app, as its template gives them."""
    parameters = function_apps()[part]
    settings: dict[str, Any] = {each["name"]: each["value"] for each in parameters["settings"]}
    host = {"serviceBusHost", "${serviceBus.name}.servicebus.windows.net"}
    found = {
        name: "contoso-sb.servicebus.windows.net" if value in host else value
        for name, value in settings.items()
        if name not in GIVEN
    }
    found |= {name: GIVEN[name] for name in settings if name in GIVEN}
    connection = f"{part.title().replace('-', '')}__SqlConnectionString"
    return {**found, connection: "Server=tcp:contoso.database.windows.net,1433;Database=matoolkit;"}


@pytest.mark.parametrize("part", FUNCTIONS)
def test_each_app_finds_its_functions_in_the_package(package: Path, part: str, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(package), "PATH": os.environ["PATH"], **told(part)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["from"].startswith(str(package)), "not what was packed"
    assert {each["name"] for each in answer["functions"]} == FUNCTIONS[part]
    triggers = [binding for each in answer["functions"] for binding in each["bindings"] if "Trigger" in binding["type"]]
    prefixes = {f"{each['connection']}__" for each in triggers if "connection" in each}
    assert all(any(name.startswith(prefix) for name in told(part)) for prefix in prefixes), "the host cannot connect"


def test_the_documentation_names_the_functions_there_are() -> None:
    described = {(part, function) for part, function, _ in table("Functions")}
    assert described == {(part, function) for part, functions in FUNCTIONS.items() for function in functions}


def test_the_host_s_file_is_in_the_package(package: Path) -> None:
    host = json.loads((package / "host.json").read_text())
    assert host["version"] == "2.0"
    assert host["extensionBundle"]["id"] == "Microsoft.Azure.Functions.ExtensionBundle"
