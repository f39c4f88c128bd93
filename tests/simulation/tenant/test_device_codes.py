"""Signing in with a device code, as the command line does."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jwt
import msal  # type: ignore[import-untyped] # the library has no types
import pytest
from azure.identity import DeviceCodeCredential

from matoolkit.simulation.tenant import TENANT_ID, Decision, ExposedApi, Person, SimulatedTenant
from tests.simulation.tenant.client import Client, how_to_reach

if TYPE_CHECKING:
    from collections.abc import Iterator

PERSON = Person(username="operator@target.example", name="The Operator", roles=frozenset({"Admin"}))


@pytest.fixture
def cli(server: SimulatedTenant) -> Iterator[str]:
    """An application that people sign in through."""
    identifier = str(uuid4())
    server.tenant.allow_people_in(identifier)
    codes = server.tenant.device_codes
    codes.interval_seconds = 0
    yield identifier
    codes.interval_seconds, codes.lifetime_seconds, codes.approve_as = 5, 900, None


@pytest.fixture
def scope(server: SimulatedTenant) -> str:
    api = server.tenant.expose(ExposedApi(client_id=str(uuid4())))
    return f"{api.uri}/user_impersonation"


def application(client: Client, cli: str) -> msal.PublicClientApplication:
    # With a session of our own, since REQUESTS_CA_BUNDLE would be preferred to `verify`.
    return msal.PublicClientApplication(
        cli, authority=f"{client.server.url}/{TENANT_ID}", instance_discovery=False, http_client=client.session
    )


def test_azure_identity_signs_in_once_somebody_approves(server: SimulatedTenant, cli: str, scope: str) -> None:
    asked = Event()

    def approve(_uri: str, user_code: str, _expires: Any) -> None:
        server.tenant.device_codes.decide(user_code, Decision.APPROVED, PERSON)
        asked.set()

    with DeviceCodeCredential(cli, tenant_id=TENANT_ID, prompt_callback=approve, **how_to_reach(server)) as credential:
        token = credential.get_token(scope).token
    assert asked.is_set()
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["preferred_username"] == PERSON.username
    assert claims["name"] == PERSON.name
    assert claims["oid"] == PERSON.object_id
    assert (claims["roles"], claims["scp"]) == (["Admin"], "user_impersonation")


def test_msal_renews_without_asking_until_it_is_revoked(
    server: SimulatedTenant, client: Client, cli: str, scope: str
) -> None:
    tenant = client.server.tenant
    tenant.device_codes.approve_as = PERSON
    people = application(client, cli)
    result = people.acquire_token_by_device_flow(people.initiate_device_flow([scope]))
    assert "access_token" in result, result
    [account] = people.get_accounts()
    assert account["username"] == PERSON.username
    renewed = people.acquire_token_silent([scope], account, force_refresh=True)
    assert renewed
    assert renewed["access_token"] != result["access_token"]
    tenant.sign_in.revoke_refresh_tokens()
    failed = people.acquire_token_silent_with_error([scope], account, force_refresh=True)
    assert failed
    assert failed["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("decision", "error"), [(Decision.DECLINED, "authorization_declined"), (Decision.EXPIRED, "expired_token")]
)
def test_msal_tells_what_became_of_it(client: Client, cli: str, scope: str, decision: Decision, error: str) -> None:
    people = application(client, cli)
    flow = people.initiate_device_flow([scope])
    client.server.tenant.device_codes.decide(flow["user_code"], decision)
    assert people.acquire_token_by_device_flow(flow)["error"] == error


def test_waiting_and_asking_too_often(server: SimulatedTenant, client: Client, cli: str, scope: str) -> None:
    server.tenant.device_codes.interval_seconds = 60
    begun = client.ask("POST", "/organizations/oauth2/v2.0/devicecode", data={"client_id": cli, "scope": scope}).json()
    assert begun["interval"] == 60
    assert begun["user_code"] in begun["message"]

    def ask(**changes: str) -> str:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
            "client_id": cli,
            "device_code": begun["device_code"],
        }
        answer = client.ask("POST", f"/{TENANT_ID}/oauth2/v2.0/token", data={**form, **changes})
        return str(answer.json().get("error", "signed in"))

    assert ask() == "authorization_pending"
    assert ask() == "slow_down"
    assert ask(device_code="x") == "bad_verification_code"
    server.tenant.device_codes.decide(begun["user_code"].lower(), Decision.APPROVED, PERSON)
    assert ask() == "signed in"
    assert ask() == "bad_verification_code"


def test_a_code_ends_by_itself(server: SimulatedTenant, cli: str, scope: str) -> None:
    server.tenant.device_codes.lifetime_seconds = 0
    code = server.tenant.device_codes.begin(cli, scope)
    with Client(server) as client:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
            "client_id": cli,
            "device_code": code.device_code,
        }
        answer = client.ask("POST", f"/{TENANT_ID}/oauth2/v2.0/token", data=form)
    assert answer.json()["error"] == "expired_token"


def test_only_known_applications_may_ask(client: Client) -> None:
    answer = client.ask("POST", f"/{TENANT_ID}/oauth2/v2.0/devicecode", data={"client_id": "x", "scope": "y"})
    assert answer.json()["error"] == "unauthorized_client"


def test_deciding_on_nothing_is_refused(server: SimulatedTenant) -> None:
    with pytest.raises(Exception, match="no sign-in with the code XYZ"):
        server.tenant.device_codes.decide("XYZ", Decision.DECLINED)
    with pytest.raises(ValueError, match="needs a person"):
        server.tenant.device_codes.decide("XYZ", Decision.APPROVED)
