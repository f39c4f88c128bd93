"""What the API says of itself: the OpenAPI document, true to what it does, and a page for people made of it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

from matoolkit.api.asked import AutomationRequest, PublishRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastapi import FastAPI

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "code{background:#f2f2f2;padding:.1rem .3rem;border-radius:3px}table{border-collapse:collapse;margin:.5rem 0}"
    "td,th{border:1px solid #ddd;padding:.2rem .6rem;text-align:left;vertical-align:top}"
    "h3{margin:2rem 0 .3rem}summary{cursor:pointer;color:#555}"
)


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document."""
    described = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    schemas: dict[str, Any] = described["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for kind in (PublishRequest, AutomationRequest):
        schemas[kind.__name__] = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    for path in described["paths"].values():
        for operation in path.values():
            # What does not fit is answered as 400.
            operation["responses"].pop("422", None)
    return described


def page(described: dict[str, Any]) -> str:
    """A page that needs nothing from anywhere."""
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(described['info']['title'])}</title>"
        f"<style>{_STYLE}</style><h1>{escape(described['info']['title'])} {escape(described['info']['version'])}</h1>"
        f"<p>{escape(described['info'].get('summary', ''))}</p>"
        '<p>For programs: <a href="openapi.json">openapi.json</a>. Every route but <code>/api/health</code> wants a'
        " token: <code>Authorization: Bearer …</code>.</p>" + "".join(_operations(described)) + "</html>"
    )


def _operations(described: dict[str, Any]) -> Iterator[str]:
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            yield f"<h3><code>{method.upper()} {escape(path)}</code></h3>"
            yield f"<p><b>{escape(operation['summary'])}.</b> {escape(operation.get('description', ''))}</p>"
            yield _table(
                "Parameters",
                [
                    (each["name"], each["in"], _type(each["schema"]), each.get("description", ""))
                    for each in operation.get("parameters", ())
                ],
            )
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                yield _table(f"Body, {kind}", _fields(body["schema"], schemas))
            answer = operation["responses"].get("200", {}).get("content", {})
            for kind, body in answer.items():
                yield _table(f"Answer, {kind}", _fields(body["schema"], schemas))
            codes = [(code, each["description"]) for code, each in operation["responses"].items() if code != "200"]
            yield f"<details><summary>Errors</summary>{_table('', codes)}</details>"


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> list[tuple[str, ...]]:
    resolved = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return [(name, _type(each), each.get("description", "")) for name, each in resolved.get("properties", {}).items()]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    return str(schema.get("format") or schema.get("type", "anything"))


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (f"<p><i>{escape(title)}</i></p>" if title else "") + f"<table>{lines}</table>"
