"""The Bicep templates as data, and the tables of the documentation that they are compared with."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pycep

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
SHARED = "shared/deploy.bicep"
ENGINE = "automation/scheduler-orchestrator/deploy.bicep"
API = "automation/admin-api/deploy.bicep"
WORKER = "automation/cloud-worker/deploy.bicep"
STAGES = {"1": SHARED, "2a": ENGINE, "2b": API, "2c": WORKER}
FILES = sorted(file.relative_to(INFRA).as_posix() for file in INFRA.rglob("*.bicep"))


@cache
def template(path: str) -> dict[str, Any]:
    """A template, parsed."""
    return dict(pycep.BicepParser().parse(text=(INFRA / path).read_text()))


def variable(path: str, name: str) -> Any:
    return template(path)["variables"][name]["value"]


def body(thing: dict[str, Any]) -> dict[str, Any]:
    """What a resource or module consists of, below its conditions and loops."""
    config: dict[str, Any] = thing["config"]
    while "config" in config:
        config = config["config"]
    return config


def resources(path: str, kind: str) -> dict[str, dict[str, Any]]:
    """The resources of a type that a template makes, by their names in the template."""
    found = template(path).get("resources", {})
    return {name: each for name, each in found.items() if each["type"] == kind and not each["existing"]}


def only(path: str, kind: str) -> dict[str, Any]:
    """The one resource of this type."""
    (resource,) = resources(path, kind).values()
    return body(resource)


def modules(path: str, file: str) -> dict[str, dict[str, Any]]:
    """The uses of a module, by their names in the template."""
    found = template(path).get("modules", {})
    return {name: each for name, each in found.items() if each["detail"]["path"].endswith(file)}


def function_apps() -> dict[str, dict[str, Any]]:
    """What each function app is given, by the part it runs."""
    return {
        body(each)["params"]["name"].removeprefix("${prefix}-"): body(each)["params"]
        for path in (ENGINE, API)
        for each in modules(path, "function-app.bicep").values()
    }


def loop(thing: dict[str, Any]) -> Any:
    """What a resource or module is repeated over; nothing when it stands alone."""
    kind = thing["config"].get("loop_type")
    return kind["detail"]["array_name"] if kind else None


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its value, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading of the page on Azure, without marks."""
    page = (ROOT / "docs/deploy-azure.md").read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(?:(?!#).*\n)*?((?:\|.*\n)+)", page, re.MULTILINE)
    assert found, f"no table below {heading}"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()[2:]]
    return [[cell.replace("`", "").replace("\\*", "") for cell in row] for row in rows]


def parameters(path: str, suffix: str) -> dict[str, Any]:
    """The values of a parameter file that stands beside a template."""
    file = (INFRA / path).with_name(f"deploy.parameters{suffix}.json")
    return {name: each["value"] for name, each in json.loads(file.read_text())["parameters"].items()}
