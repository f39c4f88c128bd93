"""A client of the simulated tenant: real sign-in, real TLS, answers as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import requests
from azure.identity import ClientSecretCredential

from matoolkit.simulation.tenant import TENANT_ID, SimulatedTenant

if TYPE_CHECKING:
    from types import TracebackType

    from azure.core.credentials import TokenCredential

CLIENT_ID = "0c1a2b3c-1111-4222-8333-444455556666"
SECRET = "planted-client-secret"
PASSWORD = "Zebra-4711-Quitte"
GRAPH, EXCHANGE = "https://graph.microsoft.com", "https://outlook.office365.com"
ANCHOR = f"APP:SystemMailbox{{bb558c35-97f1-4cb9-8ff7-d53741dc928c}}@{TENANT_ID}"


def how_to_reach(server: SimulatedTenant) -> dict[str, Any]:
    """What azure-identity needs to know."""
    return {"authority": server.url, "disable_instance_discovery": True, "connection_verify": str(server.ca_file)}


def new_user(name: str, **changes: Any) -> dict[str, Any]:
    """A body that Graph accepts."""
    return {
        "accountEnabled": True,
        "displayName": f"Person {name}",
        "mailNickname": name,
        "userPrincipalName": f"{name}@target.example",
        "passwordProfile": {"password": PASSWORD, "forceChangePasswordNextSignIn": True},
        **changes,
    }


class Client:
    """Asks Graph and Exchange."""

    def __init__(self, server: SimulatedTenant, credential: TokenCredential | None = None) -> None:
        self.server = server
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = str(server.ca_file)
        self._own = None if credential else ClientSecretCredential(TENANT_ID, CLIENT_ID, SECRET, **how_to_reach(server))
        self._credential = credential or self._own

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.close()
        if self._own:
            self._own.close()

    def token(self, resource: str) -> str:
        assert self._credential
        return self._credential.get_token(f"{resource}/.default").token

    def ask(self, method: str, path: str, **request: Any) -> requests.Response:
        """Anything, with nothing but what is given."""
        url = path if path.startswith("https:") else self.server.url + path
        return self.session.request(method, url, timeout=30, allow_redirects=False, **request)

    def graph(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token(GRAPH) if token is None else token}"}
        if not path.startswith(("/v1.0", "/beta", "https:")):
            path = f"/v1.0{path}"
        return self.ask(method, path, headers=headers, **({} if body is None else {"json": body}))

    def command(self, name: str, *, headers: dict[str, str] | None = None, **parameters: Any) -> requests.Response:
        return self.page(f"/adminapi/beta/{TENANT_ID}/InvokeCommand", name, headers=headers, **parameters)

    def page(
        self, url: str, name: str, *, headers: dict[str, str] | None = None, **parameters: Any
    ) -> requests.Response:
        every = {
            "Authorization": f"Bearer {self.token(EXCHANGE)}",
            "X-AnchorMailbox": ANCHOR,
            "X-CmdletName": name,
            "X-ResponseFormat": "json",
            **(headers or {}),
        }
        body = {"CmdletInput": {"CmdletName": name, "Parameters": parameters}}
        return self.ask("POST", url, json=body, headers={key: value for key, value in every.items() if value})

    def create(self, name: str, **changes: Any) -> str:
        """A new user's id."""
        answer = self.graph("POST", "/users", new_user(name, **changes))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


def error_of(answer: requests.Response) -> tuple[int, str]:
    """Status and code of an error."""
    return answer.status_code, answer.json()["error"]["code"]


def kind_of(answer: requests.Response) -> tuple[int, str]:
    """Status and type of an error of Exchange."""
    _, kind, text = answer.json()["error"]["details"][0]["message"].split("|", 2)
    assert text
    return answer.status_code, kind.rpartition(".")[2]
