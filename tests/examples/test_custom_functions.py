"""The example folder: loaded as a worker loads it, and called as a test of one's own would call it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from matoolkit.worker import FunctionContext, FunctionError
from matoolkit.worker.loading import add_custom
from matoolkit.worker.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parents[2] / "examples" / "custom_functions"


@pytest.fixture(scope="module")
def registry() -> Registry:
    made = Registry()
    add_custom(made, FOLDER)
    return made


class NoticeService:
    """What the functions talk to, with a memory."""

    def __init__(self, status: int = 201) -> None:
        self._status = status
        self.letters: list[dict[str, Any]] = []
        self._keys: set[str] = set()

    async def take(self, request: web.Request) -> web.Response:
        if request.headers["Authorization"] != "Bearer s3cret":
            return web.Response(status=401)
        if request.headers["Idempotency-Key"] in self._keys:
            return web.Response(status=409)
        if self._status == 201:
            self._keys.add(request.headers["Idempotency-Key"])
            self.letters.append(await request.json())
        return web.json_response({"id": f"notice-{len(self.letters)}"}, status=self._status)


def sent(registry: Registry, service: NoticeService, *contexts: FunctionContext, **parameters: str) -> list[Any]:
    """What the function makes of these contexts, one after another."""

    async def call() -> list[Any]:
        application = web.Application()
        application.router.add_post("/notices", service.take)
        async with TestServer(application) as server:
            url = str(server.make_url("/notices"))
            found = registry.find("Send-MigrationNotice")
            given = {"UserPrincipalName": "ada@contoso.example", "ServiceUrl": url, "ApiKey": "s3cret", **parameters}
            return [await found.code(ctx=ctx, **found.arguments(given)) for ctx in contexts]

    return asyncio.run(call())


def first() -> FunctionContext:
    return FunctionContext(job_id="step-1", idempotency_key="step-1")


def test_a_notice_is_sent(registry: Registry) -> None:
    service = NoticeService()
    assert sent(registry, service, first()) == [{"Sent": True, "NoticeId": "notice-1"}]
    assert service.letters == [{"to": "ada@contoso.example", "template": "migration", "language": "en"}]


def test_a_repeated_job_sends_no_second_one(registry: Registry) -> None:
    service = NoticeService()
    again = FunctionContext(job_id="step-1", idempotency_key="step-1", deliveries=2)
    assert sent(registry, service, first(), again)[1] == {"Sent": False, "NoticeId": None}
    assert len(service.letters) == 1


@pytest.mark.parametrize(
    ("status", "kind", "throttled"), [(429, "NoticeServiceBusy", True), (500, "NoticeRefused", False)]
)
def test_a_service_that_refuses_is_a_failure(registry: Registry, status: int, kind: str, throttled: bool) -> None:
    with pytest.raises(FunctionError) as caught:
        sent(registry, NoticeService(status), first())
    assert (caught.value.type, caught.value.is_throttled) == (kind, throttled)


def test_the_key_is_a_secret(registry: Registry) -> None:
    (key,) = [each for each in registry.find("send-migrationnotice").parameters if each.secret]
    assert key.name == "ApiKey"


@pytest.fixture
def names(registry: Registry) -> Callable[..., Any]:
    found = registry.find("Get-TargetNames")
    return lambda **given: found.code(**found.arguments({"Domain": "contoso.example", **given}))


@pytest.mark.parametrize(
    ("given", "upn"),
    [
        ({"GivenName": "Ada", "Surname": "Lovelace"}, "ada.lovelace@contoso.example"),
        ({"GivenName": "Zoë", "Surname": "O'Brien", "Number": "2"}, "zoe.obrien2@contoso.example"),
        ({"GivenName": "Søren", "Surname": "Großmann"}, "soren.grossmann@contoso.example"),
    ],
)
def test_names_are_made_of_plain_letters(names: Callable[..., Any], given: dict[str, str], upn: str) -> None:
    assert names(**given).TargetUpn == upn


def test_names_without_letters_are_refused(names: Callable[..., Any]) -> None:
    with pytest.raises(FunctionError, match="no letters"):
        names(GivenName="Ada", Surname="李")
