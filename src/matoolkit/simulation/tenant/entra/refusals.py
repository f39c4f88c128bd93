"""Errors as the sign-in service words them."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from matoolkit.simulation.tenant.calls import Refused, json_answer


def refused(code: int, message: str, *, error: str = "invalid_request", status: int = 400) -> Refused:
    """An error of the sign-in service: `AADSTS…` with the number and a sentence."""
    trace, correlation = str(uuid4()), str(uuid4())
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}"
    body = {
        "error": error,
        "error_description": f"AADSTS{code}: {message} Trace ID: {trace} Correlation ID: {correlation}"
        f" Timestamp: {now}",
        "error_codes": [code],
        "timestamp": now,
        "trace_id": trace,
        "correlation_id": correlation,
        "error_uri": f"https://login.microsoftonline.com/error?code={code}",
    }
    return Refused(json_answer(status, body))


def tenant_not_found(tenant: str) -> Refused:
    """No such tenant."""
    return refused(
        90002,
        f"Tenant '{tenant}' not found. Check to make sure you have the correct tenant ID and are signing into the"
        " correct cloud. Check with your subscription administrator, this may happen if there are no active"
        " subscriptions for the tenant.",
    )


def application_not_found(client: str, tenant: str) -> Refused:
    """No such application."""
    return refused(
        700016,
        f"Application with identifier '{client}' was not found in the directory '{tenant}'. This can happen if the"
        " application has not been installed by the administrator of the tenant or consented to by any user in the"
        " tenant.",
        error="unauthorized_client",
    )


def wrong_secret(client: str) -> Refused:
    """The secret is not one of the application's."""
    return refused(
        7000215,
        "Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not"
        f" the client secret ID, for a secret added to app '{client}'.",
        error="invalid_client",
        status=401,
    )


def parameter_missing(name: str) -> Refused:
    """The form lacks a parameter."""
    return refused(900144, f"The request body must contain the following parameter: '{name}'.")


def resource_not_found(resource: str, tenant: str) -> Refused:
    """No tokens are issued for that."""
    return refused(
        500011,
        f"The resource principal named {resource} was not found in the tenant named {tenant}. This can happen if the"
        " application has not been installed by the administrator of the tenant or consented to by any user in the"
        " tenant.",
        error="invalid_resource",
    )


def scope_invalid(scope: str) -> Refused:
    """Client credentials take `/.default` and nothing else."""
    return refused(
        1002012,
        f"The provided value for scope {scope} is not valid. Client credential flows must have a scope value with"
        " /.default suffixed to the resource identifier (application ID URI).",
        error="invalid_scope",
    )
