"""The sign-in service: discovery, key sets, and the token endpoint with its grants."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Any

import msgspec

from matoolkit.simulation.tenant.calls import Refused, json_answer, own_addresses
from matoolkit.simulation.tenant.entra import assertions, refusals
from matoolkit.simulation.tenant.entra.identities import EXCHANGE_RESOURCES, GRAPH_RESOURCES, Person

if TYPE_CHECKING:
    from matoolkit.clock import Clock
    from matoolkit.simulation.tenant.calls import Answer, Call
    from matoolkit.simulation.tenant.entra.device_codes import DeviceCodes
    from matoolkit.simulation.tenant.entra.identities import Application, ExposedApi
    from matoolkit.simulation.tenant.entra.tokens import Tokens

_ANYONE = {"common", "organizations"}
_DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
_OWN_SCOPES = {"openid", "profile", "offline_access", "email"}
_REMEMBERED = 10_000


class SignIn:
    """Answers what clients ask `https://login.microsoftonline.com`."""

    def __init__(
        self, tenant_id: str, domains: list[str], tokens: Tokens, device_codes: DeviceCodes, clock: Clock
    ) -> None:
        self._tenant_id = tenant_id
        self._domains = domains
        self._tokens = tokens
        self._clock = clock
        self._refresh_tokens: dict[str, tuple[str, Person, str]] = {}
        self.device_codes = device_codes
        self.applications: dict[str, Application] = {}
        self.apis: dict[str, ExposedApi] = {}
        self.public_clients: set[str] = set()
        """Ids of applications in which people sign in: command lines."""

    def answer(self, call: Call) -> Answer:
        """Answer a request, or refuse it."""
        match (call.method, [part.lower() for part in call.segments]):
            case ("GET", ["common", "discovery", "instance"]):
                return self._instance(call)
            case ("GET", [tenant, "v2.0", ".well-known", "openid-configuration"]):
                return self._configuration(call, tenant, version=2)
            case ("GET", [tenant, ".well-known", "openid-configuration"]):
                return self._configuration(call, tenant, version=1)
            case ("GET", [tenant, "discovery", "v2.0", "keys"] | [tenant, "discovery", "keys"]):
                self._check_tenant(tenant)
                call.operation = "keys"
                return json_answer(200, self._tokens.keys.published(f"{call.origin}/{self._tenant_id}/v2.0"))
            case ("POST", [tenant, "oauth2", "v2.0", "token"]):
                return self._token(call, tenant)
            case ("POST", [tenant, "oauth2", "v2.0", "devicecode"]):
                return self._begin_device_code(call, tenant)
            case _:
                raise Refused(json_answer(404, {"error": "not_found"}))

    # Discovery -------------------------------------------------------------------------------------------------------

    def _instance(self, call: Call) -> Answer:
        call.operation = "discovery"
        host = call.origin.removeprefix("https://")
        return json_answer(
            200,
            {
                "tenant_discovery_endpoint": f"{call.origin}/{self._tenant_id}/v2.0/.well-known/openid-configuration",
                "api-version": "1.1",
                "metadata": [{"preferred_network": host, "preferred_cache": host, "aliases": [host]}],
            },
        )

    def _configuration(self, call: Call, tenant: str, *, version: int) -> Answer:
        call.operation = "discovery"
        self._check_tenant(tenant)
        base = f"{call.origin}/{tenant}"
        suffix = "/v2.0" if version == 2 else ""  # noqa: PLR2004 - the number of the endpoint
        return json_answer(
            200,
            {
                "issuer": self._issuer(call, version),
                "token_endpoint": f"{base}/oauth2/v2.0/token",
                "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                "device_authorization_endpoint": f"{base}/oauth2/v2.0/devicecode",
                "jwks_uri": f"{base}/discovery{suffix}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
                "response_types_supported": ["code", "id_token"],
                "subject_types_supported": ["pairwise"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "scopes_supported": ["openid", "profile", "email", "offline_access"],
                "tenant_region_scope": "EU",
            },
        )

    def _issuer(self, call: Call, version: int) -> str:
        if version == 1:
            return f"https://sts.windows.net/{self._tenant_id}/"
        return f"{call.origin}/{self._tenant_id}/v2.0"

    def _check_tenant(self, tenant: str) -> None:
        if tenant.lower() not in {self._tenant_id, *_ANYONE, *self._domains}:
            raise refusals.tenant_not_found(tenant)

    # Grants ----------------------------------------------------------------------------------------------------------

    def _token(self, call: Call, tenant: str) -> Answer:
        form = call.form
        grant = form.get("grant_type", "")
        call.operation, call.subject = f"token {grant.rpartition(':')[2]}".strip(), form.get("client_id", "")
        self._check_tenant(tenant)
        client = _required(form, "client_id")
        match _required(form, "grant_type"):
            case "client_credentials":
                return self._client_credentials(call, client, form, tenant)
            case grant if grant == _DEVICE_CODE:
                self._check_public_client(client)
                person, scope = self.device_codes.redeem(_required(form, "device_code"), client)
                return self._for_person(call, client, person, scope)
            case "refresh_token":
                self._check_public_client(client)
                holder = self._refresh_tokens.get(_required(form, "refresh_token"))
                if holder is None or holder[0] != client:
                    raise refusals.refused(
                        70000, "Provided grant is invalid or malformed, or was revoked.", error="invalid_grant"
                    )
                return self._for_person(call, client, holder[1], form.get("scope") or holder[2])
            case grant:
                raise refusals.refused(
                    70003, f"The app requested an unsupported grant type '{grant}'.", error="unsupported_grant_type"
                )

    def _client_credentials(self, call: Call, client: str, form: dict[str, str], tenant: str) -> Answer:
        application = self.applications.get(client.lower())
        if application is None:
            raise refusals.application_not_found(client, self._tenant_id)
        if "client_assertion" in form:
            if form.get("client_assertion_type") != assertions.KIND:
                raise refusals.parameter_missing("client_assertion_type")
            base = {f"{call.origin}/{name}" for name in (tenant, self._tenant_id)}
            audiences = {f"{each}/oauth2/v2.0/token" for each in base} | {f"{each}/v2.0" for each in base}
            assertions.check_assertion(application, form["client_assertion"], audiences, self._clock.now())
        elif "client_secret" in form:
            if form["client_secret"] not in application.secrets:
                raise refusals.wrong_secret(client)
        else:
            raise refusals.refused(
                7000218,
                "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.",
                error="invalid_client",
                status=401,
            )
        scope = _required(form, "scope")
        if not scope.endswith("/.default") or " " in scope:
            raise refusals.scope_invalid(scope)
        resource = scope.removesuffix("/.default").rstrip("/")
        claims, version = self._audience(call, resource, application)
        token, seconds = self._tokens.issue(
            {
                **claims,
                "iss": self._issuer(call, version),
                "tid": self._tenant_id,
                "oid": application.object_id,
                "sub": application.object_id,
                "appid" if version == 1 else "azp": application.client_id,
                "idtyp": "app",
                "ver": f"{version}.0",
            }
        )
        return json_answer(
            200,
            {"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": token},
            {"Cache-Control": "no-store"},
        )

    def _audience(self, call: Call, resource: str, application: Application) -> tuple[dict[str, Any], int]:
        """Audience and roles of a token, and its version."""
        if resource in GRAPH_RESOURCES:
            return {"aud": resource, "roles": sorted(application.graph_roles)}, 1
        if resource in EXCHANGE_RESOURCES:
            return {"aud": resource, "roles": sorted(application.exchange_roles)}, 1
        if resource in own_addresses(call.origin):
            # Both services live here, so a client that derives the scope from an address gets what both grant.
            return {"aud": resource, "roles": sorted(application.graph_roles | application.exchange_roles)}, 1
        api = self._api(resource)
        return {"aud": api.client_id if api.token_version != 1 else api.uri, "roles": []}, api.token_version

    def _api(self, resource: str) -> ExposedApi:
        for api in self.apis.values():
            if resource in {api.uri, api.client_id}:
                return api
        raise refusals.resource_not_found(resource, self._tenant_id)

    # People ----------------------------------------------------------------------------------------------------------

    def _begin_device_code(self, call: Call, tenant: str) -> Answer:
        form = call.form
        call.operation, call.subject = "devicecode", form.get("client_id", "")
        self._check_tenant(tenant)
        client = _required(form, "client_id")
        self._check_public_client(client)
        code = self.device_codes.begin(client, _required(form, "scope"))
        page = f"{call.origin}/devicelogin"
        return json_answer(
            200,
            {
                "user_code": code.user_code,
                "device_code": code.device_code,
                "verification_uri": page,
                "expires_in": self.device_codes.lifetime_seconds,
                "interval": self.device_codes.interval_seconds,
                "message": f"To sign in, use a web browser to open the page {page} and enter the code {code.user_code}"
                " to authenticate.",
            },
        )

    def _check_public_client(self, client: str) -> None:
        if client.lower() not in self.public_clients:
            raise refusals.application_not_found(client, self._tenant_id)

    def _for_person(self, call: Call, client: str, person: Person, scope: str) -> Answer:
        wanted = [each for each in scope.split() if each not in _OWN_SCOPES]
        api: ExposedApi | None = None
        granted: list[str] = []
        for each in wanted:
            resource, _, name = each.rpartition("/")
            api = self._api(resource)
            granted = sorted(api.scopes) if name == ".default" else [*granted, name]
        version = api.token_version if api else 1
        who = {
            "tid": self._tenant_id,
            "oid": person.object_id,
            "sub": person.object_id,
            "name": person.name or person.username,
            "preferred_username": person.username,
        }
        access = {
            **who,
            "aud": GRAPH_RESOURCES[0] if api is None else api.uri if version == 1 else api.client_id,
            "iss": self._issuer(call, version),
            "scp": " ".join(granted),
            "roles": sorted(person.roles),
            "appid" if version == 1 else "azp": client,
            "ver": f"{version}.0",
        }
        if version == 1:
            access["upn"] = access.pop("preferred_username")
        token, seconds = self._tokens.issue(access)
        identity, _ = self._tokens.issue({**who, "aud": client, "iss": self._issuer(call, 2), "ver": "2.0"})
        answer = {
            "token_type": "Bearer",
            "scope": " ".join(wanted),
            "expires_in": seconds,
            "ext_expires_in": seconds,
            "access_token": token,
            "id_token": identity,
            "client_info": base64.urlsafe_b64encode(
                msgspec.json.encode({"uid": person.object_id, "utid": self._tenant_id})
            )
            .decode()
            .rstrip("="),
        }
        if "offline_access" in scope.split():
            if len(self._refresh_tokens) >= _REMEMBERED:
                self._refresh_tokens.clear()
            answer["refresh_token"] = secrets.token_urlsafe(48)
            self._refresh_tokens[str(answer["refresh_token"])] = (client, person, scope)
        return json_answer(200, answer, {"Cache-Control": "no-store"})

    def revoke_refresh_tokens(self) -> None:
        """Whoever holds a refresh token has to sign in again."""
        self._refresh_tokens.clear()


def _required(form: dict[str, str], name: str) -> str:
    value = form.get(name)
    if not value:
        raise refusals.parameter_missing(name)
    return value
