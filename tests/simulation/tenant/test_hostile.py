"""Whatever is sent, the tenant answers with an error of the service and never falls over."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matoolkit.simulation.tenant import TENANT_ID, Application, Tenant
from matoolkit.simulation.tenant.calls import Answer, Call
from matoolkit.simulation.tenant.exchange.commands import COMMANDS
from matoolkit.simulation.tenant.graph.guests import CONVERSION, INVITATION
from matoolkit.simulation.tenant.graph.users import PASSWORD, USER
from tests.simulation.tenant.client import ANCHOR, EXCHANGE, GRAPH

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(
    ["x@target.example", "smtp:x@target.example", "SMTP:y@target.example", "#Exchange.GenericHashTable", "Geheim-4711!"]
)  # fmt: skip
NAMES = sorted(
    {*USER.properties, *INVITATION.properties, *CONVERSION.properties, *PASSWORD.properties, "groupIds", "@odata.id"}
    | {"@odata.type", "Add", "Remove", "CmdletInput", "CmdletName", "Parameters"}
    | {name for command in COMMANDS.values() for name in command.parameters}
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner),
    max_leaves=12,
)
GRAPH_PATHS = [
    ("POST", "/v1.0/users"),
    ("PATCH", "/v1.0/users/PERSON"),
    ("POST", "/v1.0/invitations"),
    ("POST", "/beta/users/GUEST/convertExternalToInternalMemberUser"),
    ("POST", "/v1.0/groups/GROUP/members/$ref"),
    ("POST", "/v1.0/users/PERSON/checkMemberGroups"),
]


@cache
def tenant() -> Tenant:
    made = Tenant(seed=1)
    made.register(Application(client_id="app", secrets={"s"}))
    made.add_mail_users([{"UserPrincipalName": "anna@target.example"}])
    return made


@cache
def identifiers() -> dict[str, str]:
    [person] = tenant().add_users([{"userPrincipalName": "anna@target.example"}])
    [guest] = tenant().add_guests([{"mail": "bert@source.example"}])
    [group] = tenant().add_groups([{"displayName": "all"}])
    return {"PERSON": person["id"], "GUEST": guest["id"], "GROUP": group["id"]}


def ask(method: str, path: str, body: bytes = b"", *, query: str = "", **headers: str) -> Answer:
    for name, identifier in identifiers().items():
        path = path.replace(name, identifier)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    call = Call(method, path, query, named, body, "https://localhost:1")
    _, reply = tenant().before_acting(call)
    assert reply is None
    answer = tenant().act(call, None).answer
    assert answer is not None
    return answer


@cache
def token(resource: str) -> str:
    form = f"client_id=app&client_secret=s&grant_type=client_credentials&scope={resource}/.default"
    answer = ask("POST", f"/{TENANT_ID}/oauth2/v2.0/token", form.encode())
    return f"Bearer {msgspec.json.decode(answer.body)['access_token']}"


@pytest.mark.parametrize(("method", "path"), GRAPH_PATHS)
@settings(max_examples=150)
@given(body=JSON)
def test_any_body_is_answered_by_graph(method: str, path: str, body: Any) -> None:
    answer = ask(
        method, path, msgspec.json.encode(body), Authorization=token(GRAPH), **{"Content-Type": "application/json"}
    )
    assert answer.status < 300 or msgspec.json.decode(answer.body)["error"]["code"]


@settings(max_examples=300)
@given(name=st.sampled_from([command.name for command in COMMANDS.values()]), parameters=JSON)
def test_any_parameters_are_answered_by_exchange(name: str, parameters: Any) -> None:
    if isinstance(parameters, dict):
        parameters.setdefault("Identity", "anna@target.example")
    body = msgspec.json.encode({"CmdletInput": {"CmdletName": name, "Parameters": parameters}})
    answer = ask(
        "POST",
        f"/adminapi/beta/{TENANT_ID}/InvokeCommand",
        body,
        Authorization=token(EXCHANGE),
        X_CmdletName=name,
        X_AnchorMailbox=ANCHOR,
        **{"Content-Type": "application/json"},
    )
    assert answer.status == 200 or msgspec.json.decode(answer.body)["error"]["details"]


@settings(max_examples=300)
@given(
    parts=st.lists(st.sampled_from(["users", "groups", "members", "$ref", "invitations", "GROUP"]) | st.text()),
    query=st.text(),
    option=st.sampled_from(["$filter", "$select", "$top", "$skiptoken"]),
)
def test_any_path_and_query_are_answered(parts: list[str], query: str, option: str) -> None:
    path = "/v1.0/" + "/".join(quote(part, safe="") for part in parts)
    assert ask("GET", path, query=f"{option}={quote(query)}", Authorization=token(GRAPH)).status < 500


@settings(max_examples=200)
@given(body=st.binary(max_size=60), bearer=st.text(max_size=60))
def test_any_sign_in_and_any_token_is_answered(body: bytes, bearer: str) -> None:
    assert ask("POST", f"/{TENANT_ID}/oauth2/v2.0/token", body).status in {400, 401}
    assert ask("GET", "/v1.0/users", Authorization=f"Bearer {bearer}").status == 401


@settings(max_examples=200)
@given(assertion=st.text(max_size=40), secret=st.text(max_size=10))
def test_any_assertion_is_refused(assertion: str, secret: str) -> None:
    form = f"client_id=app&grant_type=client_credentials&client_secret={quote(secret)}z&scope={GRAPH}/.default"
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    with_assertion = f"{form}&client_assertion_type={kind}&client_assertion={quote(assertion)}."
    for each in (form, with_assertion):
        assert ask("POST", f"/{TENANT_ID}/oauth2/v2.0/token", each.encode()).status == 401
