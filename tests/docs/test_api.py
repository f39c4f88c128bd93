"""The page about the API lists the routes there are, with the roles they want."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

from matoolkit.api.app import create_app
from matoolkit.api.asked import AutomationRequest, PublishRequest
from matoolkit.hosts.api import ApiSettings
from matoolkit.hosts.orchestrator import OrchestratorSettings
from matoolkit.hosts.scheduler import SchedulerSettings
from matoolkit.telemetry import SILENT
from tests.api.test_access import ADMIN, ANYBODY, READER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/api.md").read_text()


class NoServices:
    """To be described, it needs none."""

    telemetry = SILENT

    def new_id(self) -> str:
        return ""


def described() -> dict[str, Any]:
    nothing: Any = NoServices()
    app = create_app(nothing, time.monotonic)
    route: Any = next(each for each in app.routes if getattr(each, "path", "") == "/openapi.json")
    found: dict[str, Any] = json.loads(asyncio.run(route.endpoint()).body)
    return found


def test_every_route_is_listed_with_its_role() -> None:
    listed = re.findall(r"^\| `([A-Z]+) (/api\S+)` \| (\w+) \|", PAGE, re.MULTILINE)
    there = {(method.upper(), path) for path, methods in described()["paths"].items() for method in methods}
    assert {(method, path) for method, path, _ in listed} == there
    assert len(listed) == len(there)
    for role, routes in {"Admin": ADMIN, "Reader": READER, "any": ANYBODY}.items():
        named = [f"{method} {path}" for method, path, of in listed if of == role]
        assert len(named) == len(routes)
        for method, path in routes:
            pattern = re.sub(r"/(?:x|1)\b", r"/{[a-z_]+}", f"{method} {path.partition('?')[0]}")
            assert any(re.fullmatch(pattern, each) for each in named)


def test_every_setting_is_described() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    declared = {
        each.name for service in (ApiSettings, SchedulerSettings, OrchestratorSettings) for each in service.declared()
    }
    assert [each for each in sorted(declared) if f"`{each}`" not in page] == []


def test_every_action_of_the_audit_is_described() -> None:
    page = (ROOT / "docs/security.md").read_text()
    source = "".join(file.read_text() for file in (ROOT / "src/matoolkit/api/routes").glob("*.py"))
    actions = set(re.findall(r"who\.name, f?\"([a-z_]+\.[a-z_]+)", source))
    assert {"batch.created", "member.removed", "runbook.automation_"} <= actions
    assert [each for each in sorted(actions) if f"`{each}" not in page] == []


def test_what_requests_say_is_in_the_document() -> None:
    schemas = described()["components"]["schemas"]
    for kind in (PublishRequest, AutomationRequest):
        assert kind.__name__ in schemas
