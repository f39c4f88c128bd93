"""Who may do what: the roles of the documentation and no more, and no password or key anywhere."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.infra.templates import (
    ENGINE,
    FILES,
    INFRA,
    SHARED,
    STAGES,
    WORKER,
    body,
    function_apps,
    loop,
    only,
    parameters,
    resources,
    table,
    template,
    walk,
)

APP = "modules/function-app.bicep"
STORAGE = "modules/function-storage.bicep"
ROLES = json.loads((INFRA / "modules/roles.json").read_text())
ASSIGNMENT = "Microsoft.Authorization/roleAssignments"
PLACES = {"serviceBus": "Service Bus", "vault": "Key Vault", "account": "its storage", "registry": "registry"}


def role_of(assignment: dict[str, Any]) -> str:
    """The role as the template names it: by itself, or by the variable of its loop."""
    definition = body(assignment)["properties"]["roleDefinitionId"]["function"]
    assert definition["type"] == "subscription_resource_id"
    assert definition["parameters"]["resource_type"] == "Microsoft.Authorization/roleDefinitions"
    access = definition["parameters"]["resource_name_1"]["operator"]["operands"]
    assert access["operand_1"] == "roles"
    return str(access["operand_2"])


def assigned(path: str, given: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and place of every assignment of a template, with loops over parameters filled in from what is given."""
    found = []
    for each in resources(path, ASSIGNMENT).values():
        over = loop(each)
        names = [role_of(each)] if over is None else given[over] if isinstance(over, str) else over
        found += [(name, PLACES[body(each)["scope"]]) for name in names]
    return found


def every_assignment() -> list[list[str]]:
    return [
        *([part, *each] for part, given in function_apps().items() for each in assigned(APP, given)),
        *(["cloud-worker", *each] for each in assigned(WORKER, {})),
    ]


def test_roles_are_those_of_the_documentation_and_no_more() -> None:
    described = table("Roles")
    assert len(described) == 17
    assert sorted(every_assignment()) == sorted(described)


def test_an_assignment_is_named_after_the_role_it_gives() -> None:
    # Two of the same name are one, so a name that says another role would take that one's place.
    for path in (APP, WORKER):
        for each in resources(path, ASSIGNMENT).values():
            named = str(body(each)["name"])
            given = str(body(each)["properties"]["roleDefinitionId"])
            for role in ROLES:
                assert (f"'{role}'" in named or f".{role}" in named) == (f"'{role}'" in given or f".{role}" in given)


def test_no_other_template_assigns_a_role() -> None:
    assert {path for path in FILES if resources(path, ASSIGNMENT)} == {APP, WORKER}
    assert {path for path in FILES if ASSIGNMENT in (INFRA / path).read_text()} == {APP, WORKER}


def test_every_role_is_used_and_known_by_its_id() -> None:
    assert set(ROLES) == {role for _, role, _ in every_assignment()}
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", each) for each in ROLES.values())
    assert len(set(ROLES.values())) == len(ROLES)


@pytest.mark.parametrize("path", FILES)
def test_templates_ask_for_no_password_and_give_no_secret_away(path: str) -> None:
    text = (INFRA / path).read_text()
    forbidden = r"listKeys|listConnectionStrings|listAccountSas|getSecret|SharedAccessKey|AccountKey|authorizationRules"
    assert re.findall(forbidden, text, re.IGNORECASE) == []
    parsed = template(path)
    words = re.compile(r"password|sharedkey|sas|connectionstring|secretvalue|token", re.IGNORECASE)
    assert [name for name in parsed.get("parameters", {}) if words.search(name)] == []
    assert [name for name in parsed.get("outputs", {}) if words.search(name) or "secret" in name.lower()] == []
    assert [key for key, _ in walk(parsed) if re.search("administratorLogin", key)] == []


@pytest.mark.parametrize("path", sorted(STAGES.values()))
@pytest.mark.parametrize("suffix", ["", ".prod"])
def test_parameter_files_fit_their_templates(path: str, suffix: str) -> None:
    given = parameters(path, suffix)
    assert set(given) <= set(template(path)["parameters"])
    assert given["environmentName"] == ("prod" if suffix else "dev")
    assert not [value for value in given.values() if "Password=" in str(value)]


def test_only_the_tier_of_service_bus_opens_it() -> None:
    assert parameters(SHARED, "")["serviceBusTier"] == "Standard"
    assert parameters(SHARED, ".prod")["serviceBusTier"] == "Premium"


def test_the_database_knows_entra_only() -> None:
    administrators = only(ENGINE, "Microsoft.Sql/servers")["properties"]["administrators"]
    assert administrators["azureADOnlyAuthentication"] is True
    database = only(ENGINE, "Microsoft.Sql/servers/databases")
    assert database["sku"]["name"] == "GP_S_Gen5_1"
    assert database["properties"]["autoPauseDelay"] == 60
    assert database["properties"]["maxSizeBytes"] == 32 * 1024**3


def test_connection_strings_hold_no_password() -> None:
    texts = re.findall(r"'(Server=tcp:[^\n]*)'", "".join((INFRA / path).read_text() for path in FILES))
    assert len(texts) == 2
    for text in texts:
        assert "Authentication=Active Directory Managed Identity" in text
        assert not re.search(r"password|pwd|user id|uid", text, re.IGNORECASE)


def test_the_vault_keeps_what_is_deleted() -> None:
    vault = only(SHARED, "Microsoft.KeyVault/vaults")["properties"]
    assert vault["enableRbacAuthorization"] is True
    assert vault["enableSoftDelete"] is True
    assert vault["softDeleteRetentionInDays"] == 7
    assert vault["enablePurgeProtection"] is True


def test_storage_and_registry_have_no_keys() -> None:
    storage = only(STORAGE, "Microsoft.Storage/storageAccounts")["properties"]
    assert storage["allowSharedKeyAccess"] is False
    assert storage["allowBlobPublicAccess"] is False
    assert only(SHARED, "Microsoft.ContainerRegistry/registries")["properties"]["adminUserEnabled"] is False


def test_nothing_is_suppressed_without_a_reason() -> None:
    for path in FILES:
        skips = re.findall(r"checkov:skip=(.*)", (INFRA / path).read_text())
        assert [each for each in skips if not re.fullmatch(r"CKV2?_AZURE_\d+: \S.{7,}", each)] == []
    listed = re.findall(r"^  - CKV.*", (INFRA / "checkov.yaml").read_text(), re.MULTILINE)
    assert listed
    assert [each for each in listed if " # " not in each] == []
