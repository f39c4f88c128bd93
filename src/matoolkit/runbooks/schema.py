"""The runbook format as a JSON Schema, for editors that complete and check while typing."""

from __future__ import annotations

from typing import Any, assert_never

from matoolkit.runbooks.definition import DATA_SOURCE, RETRY, RUNBOOK
from matoolkit.runbooks.forms import (
    Block,
    Blocks,
    Form,
    Integer,
    NamedBlocks,
    Parameter,
    Section,
    Text,
    Texts,
)

_Schema = dict[str, Any]


def json_schema() -> _Schema:
    """Return the schema, made from the definition that the parser reads."""
    definitions: dict[str, _Schema] = {}
    root = _section(RUNBOOK, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "matoolkit runbook",
        **root,
        "$defs": definitions,
    }


def _section(section: Section, definitions: dict[str, _Schema]) -> _Schema:
    properties: dict[str, Any] = {}
    for key in section.keys:
        form = _form(key.form, definitions)
        if not key.required:
            # A key without a value is as good as absent, to the parser too.
            form = {"anyOf": [form, {"type": "null"}]}
        properties[key.name] = {"description": key.description, **form}
    for name, reason in section.refused:
        properties[name] = {"description": f"Not here: {reason}.", "not": {}}
    schema: _Schema = {
        "type": "object",
        "description": section.description,
        "properties": properties,
        "required": [key.name for key in section.keys if key.required],
        "additionalProperties": False,
    }
    return schema | _together(section)


def _together(section: Section) -> _Schema:
    """Return what the parser checks of several keys at once."""
    if section is DATA_SOURCE:
        databricks = {"properties": {"type": {"const": "databricks"}}, "required": ["type"]}
        return {
            "oneOf": [_given("batch_time_column"), _given("batch_time")],
            "if": databricks,
            "then": _given("warehouse_id"),
            "else": {"not": _given("warehouse_id")},
        }
    if section is RETRY:
        return {"if": {"properties": {"max_retries": {"minimum": 1}}}, "then": _given("interval")}
    return {}


def _given(name: str) -> _Schema:
    return {"properties": {name: {"not": {"type": "null"}}}, "required": [name]}


def _form(form: Form, definitions: dict[str, _Schema]) -> _Schema:
    match form:
        case Text():
            return _text(form)
        case Parameter():
            return {"type": "string", "maxLength": form.max_length}
        case Integer():
            return {"type": "integer", "minimum": form.minimum, "maximum": form.maximum}
        case Block():
            return _reference(form.section, definitions)
        case Blocks():
            items = _reference(form.section, definitions)
            return {"type": "array", "items": items} | ({"minItems": form.minimum} if form.minimum else {})
        case Texts():
            values = _form(form.values, definitions)
            return {"type": "object", "propertyNames": _text(form.names), "additionalProperties": values}
        case NamedBlocks():
            values = _form(form.blocks, definitions)
            return {"type": "object", "propertyNames": _text(form.names), "additionalProperties": values}
        case _:
            assert_never(form)


def _text(form: Text) -> _Schema:
    schema: _Schema = {"type": "string"}
    if form.choices:
        return schema | {"enum": [str(choice) for choice in form.choices]}
    schema |= {"minLength": 1, "maxLength": form.max_length, "pattern": f"^(?:{form.pattern})$"}
    if form.examples:
        schema["examples"] = list(form.examples)
    return schema


def _reference(section: Section, definitions: dict[str, _Schema]) -> _Schema:
    name = section.name.replace(" ", "-")
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = _section(section, definitions)
    return {"$ref": f"#/$defs/{name}"}
