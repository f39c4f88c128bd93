"""Subnets, private endpoints and private DNS are those of the documentation."""

from __future__ import annotations

import ipaddress
from typing import Any

from tests.infra.templates import (
    API,
    ENGINE,
    SHARED,
    WORKER,
    body,
    function_apps,
    loop,
    modules,
    only,
    resources,
    table,
    template,
    variable,
)

STORAGE = "modules/function-storage.bicep"


def test_subnets() -> None:
    described = [["" if cell == "-" else cell for cell in row] for row in table("Subnets")]
    assert described == [list(subnet.values()) for subnet in variable(SHARED, "subnets")]


def test_subnets_lie_in_the_network_and_apart_from_each_other() -> None:
    (space,) = only(SHARED, "Microsoft.Network/virtualNetworks")["properties"]["addressSpace"]["addressPrefixes"]
    network = ipaddress.IPv4Network(space)
    subnets = [ipaddress.IPv4Network(subnet["prefix"]) for subnet in variable(SHARED, "subnets")]
    assert all(subnet.subnet_of(network) for subnet in subnets)
    assert not [(a, b) for a in subnets for b in subnets if a is not b and a.overlaps(b)]


def endpoints() -> list[tuple[str, str, str]]:
    """Name, group and zone of every private endpoint of a deployment of all stages."""
    direct = [body(each)["params"] for path in (SHARED, ENGINE, API, WORKER) for each in endpoint_uses(path).values()]
    (repeated,) = modules(STORAGE, "private-endpoint.bicep").values()
    assert loop(repeated) == "services"
    return [
        *((each["name"].removeprefix("${prefix}-"), each["groupId"], each["zoneName"]) for each in direct),
        *(
            (f"pe-st-{service['groupId']}", service["groupId"], service["zoneName"])
            for _ in function_apps()
            for service in variable(STORAGE, "services")
        ),
    ]


def endpoint_uses(path: str) -> dict[str, dict[str, Any]]:
    return modules(path, "private-endpoint.bicep")


def test_private_endpoints() -> None:
    described = [
        (name, group, zone) for name, _, group, zone, count in table("Private endpoints") for _ in range(int(count))
    ]
    assert len(described) == 12
    assert sorted(endpoints()) == sorted(described)


def test_each_function_app_has_a_storage_account_of_its_own() -> None:
    assert len(modules("modules/function-app.bicep", "function-storage.bicep")) == 1
    assert sorted(function_apps()) == ["admin-api", "orchestrator", "scheduler"]


def test_only_the_endpoint_of_service_bus_is_optional() -> None:
    conditions = {name: each["config"].get("condition") for name, each in endpoint_uses(SHARED).items()}
    assert conditions == {"vaultEndpoint": None, "serviceBusEndpoint": "isPremium"}
    assert [each["config"].get("condition") for each in endpoint_uses(ENGINE).values()] == [None]


def test_zones_are_made_and_linked_for_what_has_endpoints() -> None:
    zones = variable(SHARED, "zones")
    assert len(zones) == len(set(zones)) == 6
    assert set(zones) == {zone for _, _, zone in endpoints()}
    found = template(SHARED)["resources"]
    assert loop(found["dnsZones"]) == "zones"
    assert loop(found["dnsLinks"]) == "zones"


def test_every_app_is_in_its_own_subnet() -> None:
    places = {
        name: each["config"]["name"]
        for path in (ENGINE, API, WORKER)
        for name, each in template(path)["resources"].items()
        if each["type"] == "Microsoft.Network/virtualNetworks/subnets"
    }
    assert places == {
        "schedulerSubnet": "snet-scheduler",
        "orchestratorSubnet": "snet-orchestrator",
        "appSubnet": "snet-admin-api",
        "workerSubnet": "snet-cloud-worker",
        "endpointSubnet": "snet-private-endpoints",
    }
    used = {
        part: params["appSubnetId"]["operator"]["operands"]["operand_1"] for part, params in function_apps().items()
    }
    assert used == {"scheduler": "schedulerSubnet", "orchestrator": "orchestratorSubnet", "admin-api": "appSubnet"}


def test_what_holds_data_is_closed() -> None:
    server = only(ENGINE, "Microsoft.Sql/servers")["properties"]
    assert server["publicNetworkAccess"] == "Disabled"
    vault = only(SHARED, "Microsoft.KeyVault/vaults")["properties"]
    assert vault["networkAcls"] == {"defaultAction": "Deny", "bypass": "AzureServices"}
    storage = only(STORAGE, "Microsoft.Storage/storageAccounts")["properties"]
    assert (storage["networkAcls"]["defaultAction"], storage["networkAcls"]["bypass"]) == ("Deny", "AzureServices")
    site = only("modules/function-app.bicep", "Microsoft.Web/sites")["properties"]
    assert site["siteConfig"]["ipSecurityRestrictionsDefaultAction"] == "Deny"
    environment = only(WORKER, "Microsoft.App/managedEnvironments")["properties"]
    assert environment["vnetConfiguration"]["internal"] is True
    assert "ingress" not in only(WORKER, "Microsoft.App/containerApps")["properties"]["configuration"]
    assert resources(WORKER, "Microsoft.Network/publicIPAddresses") == {}


def test_names_fit_where_they_are_put() -> None:
    longest = {"baseName": "b" * 12, "environmentName": "prod", "workerId": "w" * 14}
    for path in (SHARED, ENGINE, API, WORKER):
        for name, length in longest.items():
            given = template(path)["parameters"].get(name, {"decorators": []})
            limits = [each["argument"] for each in given["decorators"] if each["type"] == "max_length"]
            assert limits in ([len(length)], []), (path, name)
    prefix = f"{longest['baseName']}-{longest['environmentName']}"
    for path, kind, limit in (
        (WORKER, "Microsoft.App/containerApps", 32),
        (SHARED, "Microsoft.KeyVault/vaults", 24),
        (SHARED, "Microsoft.ContainerRegistry/registries", 50),
        (SHARED, "Microsoft.ServiceBus/namespaces", 50),
    ):
        name = only(path, kind)["name"].replace("${prefix}", prefix)
        for parameter, value in longest.items():
            name = name.replace(f"${{{parameter}}}", value)
        assert "$" not in name
        assert len(name) <= limit, name
