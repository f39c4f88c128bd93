"""Sign-in with azure-identity over TLS: secrets, certificates, keys that change, and every refusal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jwt
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential, ClientSecretCredential

from matoolkit.clock import ManualClock
from matoolkit.simulation.tenant import (
    DOMAINS,
    TENANT_ID,
    Application,
    ExposedApi,
    SimulatedTenant,
    make_client_certificate,
)
from tests.simulation.tenant.client import CLIENT_ID, GRAPH, SECRET, Client, error_of, how_to_reach

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

CERTIFICATE = make_client_certificate()


def sign_in(server: SimulatedTenant, **form: str) -> Any:
    every = {"client_id": CLIENT_ID, "client_secret": SECRET, "grant_type": "client_credentials",
             "scope": f"{GRAPH}/.default", "tenant": TENANT_ID, **form}  # fmt: skip
    with Client(server) as client:
        tenant = every.pop("tenant")
        answer = client.ask("POST", f"/{tenant}/oauth2/v2.0/token", data={k: v for k, v in every.items() if v})
        return answer.status_code, answer.json()


def verified(server: SimulatedTenant, token: str, audience: str, version: str = "v2.0") -> dict[str, Any]:
    """Claims, checked as our API would: by the published configuration and keys."""
    prefix = f"/{TENANT_ID}/{version}" if version else f"/{TENANT_ID}"
    with Client(server) as client:
        configuration = client.ask("GET", f"{prefix}/.well-known/openid-configuration").json()
        keys = jwt.PyJWKClient(configuration["jwks_uri"], ssl_context=server.client_context())
        key = keys.get_signing_key_from_jwt(token)
        return jwt.decode(token, key, ["RS256"], audience=audience, issuer=configuration["issuer"])


def test_a_secret_gives_a_token_for_graph(server: SimulatedTenant) -> None:
    with ClientSecretCredential(TENANT_ID, CLIENT_ID, SECRET, **how_to_reach(server)) as credential:
        token = credential.get_token(f"{GRAPH}/.default").token
    claims = verified(server, token, GRAPH, version="")
    assert claims["iss"] == f"https://sts.windows.net/{TENANT_ID}/"
    assert claims["tid"] == TENANT_ID
    assert claims["appid"] == CLIENT_ID
    assert "User.ReadWrite.All" in claims["roles"]


@pytest.mark.parametrize("password", ["", "pfx-password"])
def test_a_registered_certificate_gives_a_token(server: SimulatedTenant, password: str) -> None:
    client = str(uuid4())
    server.tenant.register(Application(client_id=client, certificates=[CERTIFICATE.certificate_pem]))
    with CertificateCredential(
        TENANT_ID, client, certificate_data=CERTIFICATE.pfx(password), password=password or None, **how_to_reach(server)
    ) as credential:
        assert verified(server, credential.get_token(f"{GRAPH}/.default").token, GRAPH, "")["appid"] == client


def test_a_certificate_that_is_not_registered_is_refused(server: SimulatedTenant) -> None:
    with (
        CertificateCredential(
            TENANT_ID, CLIENT_ID, certificate_data=CERTIFICATE.pem, **how_to_reach(server)
        ) as credential,
        pytest.raises(ClientAuthenticationError, match="AADSTS700027"),
    ):
        credential.get_token(f"{GRAPH}/.default")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"exp": datetime.now(UTC) - timedelta(minutes=10)}, 700024),
        ({"nbf": datetime.now(UTC) + timedelta(days=1)}, 700024),
        ({"aud": "https://elsewhere.example"}, 700023),
        ({"iss": "somebody"}, 700021),
        ({"sub": "somebody"}, 700021),
    ],
)
def test_assertions_are_checked(server: SimulatedTenant, changes: dict[str, Any], code: int) -> None:
    client = str(uuid4())
    server.tenant.register(Application(client_id=client, certificates=[CERTIFICATE.certificate_pem]))
    claims = {
        "iss": client,
        "sub": client,
        "aud": f"{server.url}/{TENANT_ID}/oauth2/v2.0/token",
        "exp": datetime.now(UTC) + timedelta(minutes=5),
    }
    from cryptography.hazmat.primitives.hashes import SHA256

    thumbprint = jwt.utils.base64url_encode(CERTIFICATE.certificate.fingerprint(SHA256())).decode()
    form = {"client_id": client, "client_secret": "", "client_assertion_type":
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}  # fmt: skip

    def asserted(key: Any, claims: dict[str, Any]) -> Any:
        return sign_in(server, client_assertion=jwt.encode(claims, key, "PS256", {"x5t#S256": thumbprint}), **form)

    assert asserted(CERTIFICATE.key, claims)[0] == 200
    status, body = asserted(CERTIFICATE.key, {**claims, **changes})
    assert (status, body["error"], body["error_codes"]) == (401, "invalid_client", [code])
    # The right thumbprint over somebody else's signature.
    assert asserted(make_client_certificate().key, claims)[1]["error_codes"] == [700027]
    assert sign_in(server, client_assertion="x", **form)[1]["error_codes"] == [50027]


@pytest.mark.parametrize(
    ("form", "status", "error", "code"),
    [
        ({"client_secret": "wrong"}, 401, "invalid_client", 7000215),
        ({"client_secret": ""}, 401, "invalid_client", 7000218),
        ({"client_id": "5d1cfa3e-0000-4000-8000-000000000000"}, 400, "unauthorized_client", 700016),
        ({"client_id": ""}, 400, "invalid_request", 900144),
        ({"tenant": "5d1cfa3e-0000-4000-8000-000000000000"}, 400, "invalid_request", 90002),
        ({"scope": "User.Read"}, 400, "invalid_scope", 1002012),
        ({"scope": "https://elsewhere.example/.default"}, 400, "invalid_resource", 500011),
        ({"grant_type": "password"}, 400, "unsupported_grant_type", 70003),
        ({"grant_type": ""}, 400, "invalid_request", 900144),
    ],
)
def test_sign_in_is_refused_in_its_own_words(
    server: SimulatedTenant, form: dict[str, str], status: int, error: str, code: int
) -> None:
    answered, body = sign_in(server, **form)
    assert (answered, body["error"], body["error_codes"]) == (status, error, [code])
    assert body["error_description"].startswith(f"AADSTS{code}: ")
    assert {"trace_id", "correlation_id", "timestamp", "error_uri"} <= set(body)
    assert SECRET not in str(body)


def test_azure_identity_tells_a_wrong_secret(server: SimulatedTenant) -> None:
    with (
        ClientSecretCredential(TENANT_ID, CLIENT_ID, "wrong", **how_to_reach(server)) as credential,
        pytest.raises(ClientAuthenticationError, match="AADSTS7000215"),
    ):
        credential.get_token(f"{GRAPH}/.default")


@pytest.mark.parametrize("version", [1, 2])
def test_an_exposed_api_gets_the_tokens_it_asked_for(server: SimulatedTenant, version: int) -> None:
    api = server.tenant.expose(ExposedApi(client_id=str(uuid4()), token_version=version))
    _, body = sign_in(server, scope=f"{api.uri}/.default")
    audience, where = (api.uri, "") if version == 1 else (api.client_id, "v2.0")
    claims = verified(server, body["access_token"], audience, where)
    assert claims["ver"] == f"{version}.0"
    if version == 2:
        assert claims["iss"] == f"{server.url}/{TENANT_ID}/v2.0"


def test_a_domain_stands_for_the_tenant(server: SimulatedTenant) -> None:
    assert sign_in(server, tenant=DOMAINS[0])[0] == 200


def test_discovery_leads_back_here(client: Client) -> None:
    instance = client.ask("GET", "/common/discovery/instance?api-version=1.1").json()
    configuration = client.ask("GET", instance["tenant_discovery_endpoint"]).json()
    assert all(
        configuration[key].startswith(client.server.url)
        for key in ("token_endpoint", "device_authorization_endpoint", "jwks_uri", "issuer")
    )
    assert client.ask("GET", "/nobody/v2.0/.well-known/openid-configuration").status_code == 400


def graph_status(server: SimulatedTenant, token: str) -> tuple[int, str]:
    with Client(server) as client:
        answer = client.graph("GET", "/users?$top=1", token=token)
        return (200, "") if answer.ok else error_of(answer)


def test_keys_roll_over(server: SimulatedTenant) -> None:
    old = sign_in(server)[1]["access_token"]
    server.tenant.tokens.keys.roll_over()
    new = sign_in(server)[1]["access_token"]
    assert jwt.get_unverified_header(old)["kid"] != jwt.get_unverified_header(new)["kid"]
    for token in (old, new):
        assert graph_status(server, token) == (200, "")
        assert verified(server, token, GRAPH, "")
    server.tenant.tokens.keys.roll_over(retire=True)
    assert graph_status(server, new) == (401, "InvalidAuthenticationToken")
    with pytest.raises(jwt.PyJWKClientError):
        verified(server, new, GRAPH, "")


def test_tokens_end() -> None:
    clock = ManualClock(datetime.now(UTC))
    with SimulatedTenant(sign_in_clock=clock) as server:
        server.tenant.register(Application(client_id=CLIENT_ID, secrets={SECRET}))
        server.tenant.tokens.lifetime_seconds = 60
        _, body = sign_in(server)
        assert body["expires_in"] == 60
        assert graph_status(server, body["access_token"])[0] == 200
        clock.advance(seconds=61)
        assert graph_status(server, body["access_token"]) == (401, "InvalidAuthenticationToken")


def test_what_graph_does_not_take_for_a_token(client: Client) -> None:
    forged = jwt.encode({"aud": GRAPH, "exp": 9999999999}, "x" * 32, "HS256", {"kid": "x"})
    unsigned = jwt.encode({"aud": GRAPH}, "", "none")
    for token in ("", "x", forged, unsigned, client.token("https://outlook.office365.com")):
        answer = client.graph("GET", "/users", token=token)
        assert error_of(answer) == (401, "InvalidAuthenticationToken")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("method", "path", "roles", "allowed"),
    [
        ("GET", "/users?$top=1", {"User.Read.All"}, True),
        ("POST", "/users", {"User.Read.All"}, False),
        ("POST", "/invitations", {"GroupMember.ReadWrite.All"}, False),
        ("GET", "/groups", {"User.Read.All"}, False),
        ("DELETE", "/users/x", {"User.Read.All"}, False),
        ("POST", "/beta/users/x/convertExternalToInternalMemberUser", {"User.Invite.All"}, False),
    ],
)
def test_rights_are_checked(server: SimulatedTenant, method: str, path: str, roles: set[str], allowed: bool) -> None:
    application = Application(client_id=str(uuid4()), secrets={"s"}, graph_roles=frozenset(roles))
    server.tenant.register(application)
    credential: TokenCredential
    with (
        ClientSecretCredential(TENANT_ID, application.client_id, "s", **how_to_reach(server)) as credential,
        Client(server, credential) as client,
    ):
        answer = client.graph(method, path, {} if method == "POST" else None)
        assert answer.ok if allowed else error_of(answer) == (403, "Authorization_RequestDenied")
