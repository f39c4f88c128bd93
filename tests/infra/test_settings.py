"""Each app is told what the documentation says, under the names that the product reads."""

from __future__ import annotations

import re

import pytest

from tests.infra.templates import WORKER, function_apps, only, table, variable

APP = "modules/function-app.bicep"
DESCRIBED = {row[0]: set(re.findall(r"\b[A-Za-z]+(?:__?\w+)+", row[1])) for row in table("Settings")}
# What Flex Consumption refuses, since it has places of its own for it.
REFUSED = {
    "FUNCTIONS_EXTENSION_VERSION",
    "FUNCTIONS_WORKER_RUNTIME",
    "SCM_DO_BUILD_DURING_DEPLOYMENT",
    "WEBSITE_CONTENTAZUREFILECONNECTIONSTRING",
    "WEBSITE_CONTENTSHARE",
    "WEBSITE_RUN_FROM_PACKAGE",
    "WEBSITE_VNET_ROUTE_ALL",
}


def secret_settings(part: str) -> dict[str, str]:
    """Setting and secret of a part; what an operator adds by `sourceSecrets` is not known here."""
    given = function_apps()[part]["secretSettings"]
    if "function" in given:
        given = given["function"]["parameters"]["arg_1"]
    return dict(given)


def settings(part: str) -> set[str]:
    return {each["name"] for each in function_apps()[part]["settings"]} | set(secret_settings(part))


@pytest.mark.parametrize("part", ["scheduler", "orchestrator", "admin-api"])
def test_function_apps(part: str) -> None:
    assert settings(part) == DESCRIBED[part]


def test_what_all_function_apps_are_told() -> None:
    assert {each["name"] for each in variable(APP, "commonSettings")} == DESCRIBED["all function apps"]


def test_the_worker() -> None:
    (container,) = only(WORKER, "Microsoft.App/containerApps")["properties"]["template"]["containers"]
    assert {each["name"] for each in container["env"]} == DESCRIBED["cloud-worker"]


def test_nothing_is_set_that_the_plan_refuses() -> None:
    told = {each["name"] for each in variable(APP, "commonSettings")}.union(*map(settings, function_apps()))
    assert told & REFUSED == set()


@pytest.mark.parametrize(
    ("part", "setting", "secret"),
    [
        ("scheduler", "Scheduler__SqlConnectionString", "scheduler-sql-connection-string"),
        ("orchestrator", "Orchestrator__SqlConnectionString", "orchestrator-sql-connection-string"),
        ("admin-api", "AdminApi__SqlConnectionString", "admin-api-sql-connection-string"),
    ],
)
def test_connection_strings_come_from_the_vault(part: str, setting: str, secret: str) -> None:
    assert secret_settings(part) == {setting: secret}


def test_the_worker_is_probed_where_it_answers_and_has_time_to_stop() -> None:
    template = only(WORKER, "Microsoft.App/containerApps")["properties"]["template"]
    (container,) = template["containers"]
    told = {each["name"]: each["value"] for each in container["env"]}
    (probe,) = container["probes"]
    assert probe["httpGet"] == {"path": "/health", "port": int(told["HEALTH_CHECK_PORT"])}
    assert template["terminationGracePeriodSeconds"] > int(told["SHUTDOWN_GRACE_SECONDS"])
