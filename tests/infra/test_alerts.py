"""Alerts are about metrics that there are, in the direction that is bad, and told to whom the deployment names."""

from __future__ import annotations

import re

from matoolkit.telemetry import ALL, Sort
from tests.infra.templates import ENGINE, WORKER, body, loop, modules, only, table, template, variable

ALERTS = "modules/alerts.bicep"
WORDS = {"LessThan": "below", "GreaterThan": "above"}


def test_rules_are_those_of_the_documentation() -> None:
    described = [(row[0], row[1].partition(",")[0], row[2]) for row in table("Alerts")]
    made = [
        (each["name"], each["metric"], f"{WORDS[each['operator']]} {each['threshold']}")
        for each in variable(ALERTS, "alerts")
    ]
    assert made == described
    assert len({name for name, _, _ in made}) == len(made) == 7


def test_rules_are_about_levels_that_the_product_tells() -> None:
    levels = {each.name for each in ALL if each.sort is Sort.LEVEL}
    assert {each["metric"] for each in variable(ALERTS, "alerts")} <= levels


def test_what_must_not_wait_has_a_rule() -> None:
    watched = {each["metric"].removeprefix("matoolkit.") for each in variable(ALERTS, "alerts")}
    assert watched >= {
        "members.stuck",
        "phases.overdue",
        "scheduler.lead",
        "queue.oldest",
        "outbox.age",
        "dead_messages",
    }


def test_every_rule_asks_for_its_metric_in_the_workspace() -> None:
    rules = template(ALERTS)["resources"]["rules"]
    assert loop(rules) == "alerts"
    properties = body(rules)["properties"]
    (criterion,) = properties["criteria"]["allOf"]
    assert 'AppMetrics | where Name == "${alert.metric}" and ${alert.only}' in criterion["query"]
    assert criterion["metricMeasureColumn"] == re.findall(r"summarize (\w+) = max", criterion["query"])[0]
    assert properties["scopes"] == ["workspaceId"]
    assert properties["actions"] == {"actionGroups": "actionGroupIds"}


def test_rules_are_made_once_with_the_scheduler() -> None:
    (used,) = modules(ENGINE, "alerts.bicep").values()
    assert body(used)["params"]["actionGroupIds"] == "actionGroupIds"
    assert template(ENGINE)["parameters"]["actionGroupIds"]


def test_every_part_tells_the_same_workspace() -> None:
    for path in ("modules/function-app.bicep", WORKER):
        insights = only(path, "Microsoft.Insights/components")["properties"]
        assert "orkspace" in str(insights["WorkspaceResourceId"])
