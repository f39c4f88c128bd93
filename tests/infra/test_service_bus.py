"""Topics and subscriptions are those of the product, and the documentation counts their cost rightly."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from matoolkit.bus.topology import WORKER_ID, Names, SubscriptionRule, TopicRule
from tests.infra.templates import ENGINE, SHARED, STAGES, WORKER, body, loop, modules, only, table, template, variable

SUBSCRIPTION = "modules/subscription.bicep"
CREDITS_A_SECOND = 1_000


def iso(duration: timedelta) -> str:
    """A duration as templates write it."""
    if duration >= timedelta(days=1):
        return f"P{duration.days}D"
    return f"PT{duration // timedelta(minutes=1)}M"


def test_topics_are_those_of_the_product_with_its_rules() -> None:
    assert variable(SHARED, "topics") == [topic.name for topic in Names().topology().topics]
    rule = TopicRule("any")
    topics = template(SHARED)["resources"]["serviceBusTopics"]
    assert loop(topics) == "topics"
    assert body(topics)["properties"] == {
        "defaultMessageTimeToLive": iso(rule.time_to_live),
        "duplicateDetectionHistoryTimeWindow": iso(rule.duplicate_window),
        "enablePartitioning": False,
        "maxSizeInMegabytes": 1024,
        "requiresDuplicateDetection": True,
    }


def test_subscriptions_have_the_rules_of_the_product() -> None:
    rule = SubscriptionRule("any", "any")
    assert only(SUBSCRIPTION, "Microsoft.ServiceBus/namespaces/topics/subscriptions")["properties"] == {
        "deadLetteringOnMessageExpiration": True,
        "defaultMessageTimeToLive": "P14D",
        "lockDuration": iso(rule.lock_duration),
        "maxDeliveryCount": rule.max_delivery_count,
    }


def made() -> list[list[str]]:
    """Topic, subscription, stage and filter of every subscription the templates make."""
    rows = []
    for stage, path in STAGES.items():
        for each in modules(path, "subscription.bicep").values():
            given = body(each)["params"]
            condition = given.get("condition", "everything").replace("\\'", "'")
            row = [given["topicName"], given["name"], stage, condition]
            rows.append([cell.replace("${workerId}", "{workerId}") for cell in row])
    return rows


def test_subscriptions_are_those_of_the_documentation() -> None:
    assert sorted(made()) == sorted(table("Topics"))


def test_subscriptions_are_those_the_product_listens_to() -> None:
    names = Names()
    worker = names.worker("{workerId}")
    assert worker.filter is not None
    wanted = [(rule.topic, rule.name) for rule in (*names.topology().subscriptions, worker)]
    assert sorted((row[0], row[1]) for row in made()) == sorted(wanted)
    assert ["worker-jobs", worker.name, "2c", f"{WORKER_ID} = '{worker.filter.value}'"] in made()


def test_a_filter_takes_the_place_of_the_one_that_lets_everything_through() -> None:
    rule = only(SUBSCRIPTION, "Microsoft.ServiceBus/namespaces/topics/subscriptions/rules")
    assert rule["name"] == "$Default"
    assert rule["properties"] == {"filterType": "SqlFilter", "sqlFilter": {"sqlExpression": "condition"}}


def test_the_scaler_watches_the_worker_s_subscription_without_a_key() -> None:
    scale = only(WORKER, "Microsoft.App/containerApps")["properties"]["template"]["scale"]
    assert (scale["minReplicas"], scale["maxReplicas"]) == (0, 1)
    (rule,) = scale["rules"]
    custom = rule["custom"]
    assert custom["type"] == "azure-servicebus"
    assert "identity" in custom
    assert "auth" not in custom
    assert custom["metadata"]["subscriptionName"] == "worker-${workerId}"
    assert custom["metadata"]["topicName"] == Names().jobs


def credits_a_step(workers: int) -> int:
    """One for each message sent or received, one for each subscription whose filter is asked."""
    job = 1 + workers + 1
    result = 1 + len([rule for rule in Names().topology().subscriptions if rule.topic == Names().results]) + 1
    return job + result


@pytest.mark.parametrize("row", table("Service Bus"), ids=lambda row: row[0])
def test_the_ceiling_of_the_standard_tier(row: list[str]) -> None:
    workers = int(row[0])
    cost = credits_a_step(workers)
    minutes = math.ceil(10_000 * 5 * cost / CREDITS_A_SECOND / 60)
    assert row == [str(workers), str(cost), str(CREDITS_A_SECOND // cost), f"{minutes} min"]


def test_the_tier_decides_whether_the_namespace_is_closed() -> None:
    properties = only(SHARED, "Microsoft.ServiceBus/namespaces")["properties"]
    assert "Disabled" in str(properties["publicNetworkAccess"])
    assert properties["disableLocalAuth"] is True
    assert variable(ENGINE, "serviceBusHost") == "${serviceBus.name}.servicebus.windows.net"
