"""Who may do what: the token that a request to Graph or Exchange brings, checked as the real services do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matoolkit.simulation.tenant.calls import own_addresses
from matoolkit.simulation.tenant.entra.identities import EXCHANGE_RESOURCES, GRAPH_RESOURCES

if TYPE_CHECKING:
    from matoolkit.simulation.tenant.calls import Call
    from matoolkit.simulation.tenant.entra.tokens import Tokens

_GRAPH = {*GRAPH_RESOURCES, *(f"{each}/" for each in GRAPH_RESOURCES), "00000003-0000-0000-c000-000000000000"}
_EXCHANGE = {*EXCHANGE_RESOURCES, *(f"{each}/" for each in EXCHANGE_RESOURCES), "00000002-0000-0ff1-ce00-000000000000"}


class Access:
    """Checks tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def graph(self, call: Call) -> dict[str, Any] | str:
        """The token's claims, or what is wrong with it in Graph's words."""
        return self._check(call, _GRAPH)

    def exchange(self, call: Call) -> dict[str, Any] | str:
        """The token's claims, or what is wrong with it."""
        return self._check(call, _EXCHANGE)

    def _check(self, call: Call, audiences: set[str]) -> dict[str, Any] | str:
        token = call.bearer
        if not token:
            return "Access token is empty."
        claims = self._tokens.check(token)
        if claims is None:
            return "CompactToken parsing failed with error code: 80049217"
        if claims["aud"] not in audiences and claims["aud"] not in own_addresses(call.origin):
            return "Access token validation failure. Invalid audience."
        if self._tokens.expired(claims):
            return "Lifetime validation failed, the token is expired."
        return claims
