"""No test reaches the network."""

from __future__ import annotations

import asyncio
import socket
import urllib.request

import pytest


def test_addresses_elsewhere_are_refused() -> None:
    with socket.socket() as client, pytest.raises(AssertionError, match=r"nothing beyond this machine.* 192\.0\.2\.1"):
        client.connect(("192.0.2.1", 443))


def test_names_elsewhere_are_refused() -> None:
    with pytest.raises(AssertionError, match="tried graph"):
        urllib.request.urlopen("https://graph.microsoft.com/")


def test_asynchronous_code_is_refused_too() -> None:
    async def reach_out() -> None:
        await asyncio.open_connection("192.0.2.1", 443)

    with pytest.raises(AssertionError, match="nothing beyond this machine"):
        asyncio.run(reach_out())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_reached(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection((host, server.getsockname()[1]), timeout=5)
        connection, _ = server.accept()
        client.close()
        connection.close()
