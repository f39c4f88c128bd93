"""What is paid for: the tiers are those of the documentation, and the worker sleeps as often as it says."""

from __future__ import annotations

from matoolkit.worker.configuration import WorkerSettings
from tests.infra.templates import ENGINE, SHARED, WORKER, only, parameters, table, template


def test_tiers_are_those_of_the_documentation() -> None:
    tiers = [parameters(SHARED, suffix)["serviceBusTier"] for suffix in ("", ".prod")]
    (profile,) = only(WORKER, "Microsoft.App/managedEnvironments")["properties"]["workloadProfiles"]
    bus = only(SHARED, "Microsoft.ServiceBus/namespaces")["sku"]
    assert (bus["name"], bus["tier"]) == ("serviceBusTier", "serviceBusTier")
    made = {
        "Log Analytics": only(SHARED, "Microsoft.OperationalInsights/workspaces")["properties"]["sku"]["name"],
        "Service Bus": f"{tiers[0]} in dev, {tiers[1]} in prod",
        "Key Vault": only(SHARED, "Microsoft.KeyVault/vaults")["properties"]["sku"]["name"],
        "registry": only(SHARED, "Microsoft.ContainerRegistry/registries")["sku"]["name"],
        "Azure SQL": only(ENGINE, "Microsoft.Sql/servers/databases")["sku"]["name"],
        "function apps": only("modules/function-app.bicep", "Microsoft.Web/serverfarms")["sku"]["tier"],
        "container app": profile["workloadProfileType"],
    }
    assert made == {row[0]: row[1] for row in table("Tiers")}
    assert only("modules/function-app.bicep", "Microsoft.Web/serverfarms")["sku"]["name"] == "FC1"


def test_the_worker_is_woken_and_sleeps_as_the_product_has_it() -> None:
    scale = only(WORKER, "Microsoft.App/containerApps")["properties"]["template"]["scale"]
    assert (scale["pollingInterval"], scale["cooldownPeriod"]) == (30, 300)
    idle = template(WORKER)["parameters"]["idleTimeoutSeconds"]
    assert int(idle["default"]) == WorkerSettings.idle_timeout_seconds.default
    assert scale["rules"][0]["custom"]["metadata"]["messageCount"] == "1"
