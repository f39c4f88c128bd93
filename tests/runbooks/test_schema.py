"""The JSON Schema and the parser agree: what one accepts or refuses by itself, so does the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from matoolkit.runbooks import check_runbook, json_schema
from matoolkit.runbooks.definition import RUNBOOK
from matoolkit.runbooks.forms import Block, Blocks, NamedBlocks, Section
from tests.runbooks.documents import MINIMAL, changed

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())
STEP = "        function: Do-It\n"


def sections(section: Section) -> dict[str, Section]:
    found = {section.name: section}
    for key in section.keys:
        match key.form:
            case Block(inner) | Blocks(inner) | NamedBlocks(_, Blocks(inner)):
                found |= sections(inner)
            case _:
                pass
    return found


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())
    assert json_schema() == json_schema()
    assert json_schema() is not json_schema()


def test_every_section_and_key_is_described() -> None:
    schema = json_schema()
    for name, section in sections(RUNBOOK).items():
        described = schema if section is RUNBOOK else schema["$defs"][name.replace(" ", "-")]
        properties = described["properties"]
        assert set(properties) == {key.name for key in section.keys} | dict(section.refused).keys()
        assert all(properties[key.name]["description"] == key.description for key in section.keys)
    assert len(schema["$defs"]) == len(sections(RUNBOOK)) - 1


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_clean(example: Path) -> None:
    report = check_runbook(example.read_bytes())
    assert (report.errors, report.warnings) == ((), ())
    assert list(VALIDATOR.iter_errors(yaml.safe_load(example.read_text()))) == []
    assert report.runbook is not None
    assert report.runbook.name == example.stem


def test_the_examples_show_every_key() -> None:
    assert {example.stem for example in EXAMPLES} == {
        "every-feature",
        "group-remediation",
        "immediate-provisioning",
        "scheduled-mailbox-migration",
    }
    shown: set[str] = set()
    for example in EXAMPLES:
        shown |= _keys(yaml.safe_load(example.read_text()))
    assert {key.name for section in sections(RUNBOOK).values() for key in section.keys} <= shown


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


# The standard functions of the contract: mandatory parameters, then optional ones.
STANDARD = {
    "New-EntraUser": (
        "DisplayName UserPrincipalName",
        "MailNickname Password AccountEnabled ForceChangePasswordNextSignIn",
    ),
    "Set-EntraUserUPN": ("UserId NewUserPrincipalName", ""),
    "Add-EntraGroupMember": ("GroupId UserId", ""),
    "Remove-EntraGroupMember": ("GroupId UserId", ""),
    "{{Action}}-EntraGroupMember": ("GroupId UserId", ""),
    "Convert-EntraB2BToInternal": ("UserId NewUserPrincipalName", "Mail Password ForceChangePasswordNextSignIn"),
    "Test-EntraAttributeMatch": ("UserId AttributeName ExpectedValue", "IsMultiValue"),
    "Test-EntraGroupMembership": ("GroupId UserId", ""),
    "Set-ExchangePrimaryEmail": ("Identity NewPrimaryEmail", ""),
    "Set-ExchangeExternalAddress": ("Identity ExternalEmailAddress", ""),
    "Set-ExchangeMailUserGuids": ("Identity ExchangeGuid", "ArchiveGuid"),
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_call_functions_that_exist(example: Path) -> None:
    runbook = check_runbook(example.read_bytes()).runbook
    assert runbook is not None
    text = example.read_text()
    steps = [
        *runbook.init,
        *(step for phase in runbook.phases for step in phase.steps),
        *runbook.on_member_removed,
        *(step for steps in runbook.rollbacks.values() for step in steps),
    ]
    for step in steps:
        function = step.function.text
        if function not in STANDARD:
            before = text.split(f"function: {function}\n")[0].splitlines()
            assert any("custom function" in line for line in before[-3:]), f"{function} is not said to be custom"
            continue
        mandatory, optional = (set(names.split()) for names in STANDARD[function])
        given = {name for name, _ in step.params}
        assert mandatory <= given <= mandatory | optional, function


BOTH_REFUSE = {
    "unknown key": ("phases:", "owner: me\nphases:"),
    "number for a text": ("name: wave", "name: 12"),
    "slash in the name": ("name: wave", "name: a/b"),
    "blank query": ("select * from people", "'  '"),
    "source type": ("type: sql", "type: excel"),
    "connection string": ("SQL_WAVES", "'sqlite://'"),
    "warehouse for sql": ("  primary_key", "  warehouse_id: W\n  primary_key"),
    "databricks without warehouse": ("type: sql", "type: databricks"),
    "no batch time": ("  batch_time_column: Starts\n", ""),
    "null batch time": ("batch_time_column: Starts", "batch_time_column:"),
    "both batch times": ("  primary_key", "  batch_time: immediate\n  primary_key"),
    "offset": ("T-0", "T-0d"),
    "worker id": ("worker-01", "a b"),
    "boolean parameter": (STEP, f"{STEP}        params: {{A: true}}\n"),
    "poll without timeout": (STEP, f"{STEP}        poll: {{interval: 1m}}\n"),
    "retry without interval": (STEP, f"{STEP}        retry: {{max_retries: 1}}\n"),
    "too many retries": (STEP, f"{STEP}        retry: {{max_retries: 101, interval: 1m}}\n"),
    "no steps": (
        "    steps:\n      - name: one\n        worker_id: worker-01\n        function: Do-It\n",
        "    steps: []\n",
    ),
    "outputs of init": ("phases:", "init: [{name: a, worker_id: w, function: f, output_params: {A: b}}]\nphases:"),
    "removal step with rollback": (
        "phases:",
        (
            "rollbacks: {u: [{name: a, worker_id: w, function: f}]}\n"
            "on_member_removed: [{name: a, worker_id: w, function: f, on_failure: u}]\nphases:"
        ),
    ),
    "empty rollback": ("phases:", "rollbacks: {u: []}\nphases:"),
}
BOTH_ACCEPT = {
    "nothing changed": ("name: wave", "name: wave"),
    "null for what is optional": ("phases:", "init:\nretry:\nphases:"),
    "no retries": (STEP, f"{STEP}        retry: {{max_retries: 0}}\n"),
    "empty parameter": (STEP, f"{STEP}        params: {{A: ''}}\n"),
    "long query": ("select * from people", "|\n    select *\n    from people"),
}


@pytest.mark.parametrize("case", BOTH_REFUSE)
def test_both_refuse(case: str) -> None:
    document = changed(*BOTH_REFUSE[case])
    assert check_runbook(document).strict_errors()
    assert not VALIDATOR.is_valid(yaml.safe_load(document))


@pytest.mark.parametrize("case", BOTH_ACCEPT)
def test_both_accept(case: str) -> None:
    document = changed(*BOTH_ACCEPT[case])
    report = check_runbook(document)
    assert (report.errors, report.warnings) == ((), ())
    assert list(VALIDATOR.iter_errors(yaml.safe_load(document))) == []


def test_the_minimal_runbook_is_valid() -> None:
    assert VALIDATOR.is_valid(yaml.safe_load(MINIMAL))
