"""Proxy addresses: `SMTP:` marks the primary one, `smtp:` the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from matoolkit.simulation.tenant.exchange.refusals import ADDRESS_TAKEN, BINDING, INVALID, NOT_ACCEPTED, refused

if TYPE_CHECKING:
    from matoolkit.simulation.tenant.exchange.recipients import Recipients

HASHTABLE = "#Exchange.GenericHashTable"
_ADDRESS = re.compile(r"[^\s@:<>()\[\],;\"\\]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


def changed_addresses(recipients: Recipients, recipient: dict[str, Any], value: object) -> list[str]:
    """The addresses that `-EmailAddresses` makes of those there are: a list replaces, a hashtable adds and removes."""
    current: list[str] = list(recipient["EmailAddresses"])
    if isinstance(value, dict):
        if value.get("@odata.type") != HASHTABLE:
            raise _not_bound(f"the hashtable does not carry '@odata.type': '{HASHTABLE}'")
        unknown = set(value) - {"@odata.type", "Add", "Remove"}
        if unknown:
            raise _not_bound(f"the hashtable's key '{min(unknown)}' is neither 'Add' nor 'Remove'")
        for each in _texts(value.get("Remove", [])):
            current = _without(current, _parsed(each)[1])
        for each in _texts(value.get("Add", [])):
            current = _with(recipients, recipient, current, each)
        return current
    replaced: list[str] = []
    for each in _texts(value):
        replaced = _with(recipients, recipient, replaced, each)
    if not any(each.startswith("SMTP:") for each in replaced):
        raise refused(INVALID, "There is no primary SMTP address among the e-mail addresses.")
    return replaced


def primary(addresses: list[str]) -> str:
    """The primary address, without its prefix."""
    return next(each for each in addresses if each.startswith("SMTP:")).partition(":")[2]


def checked_address(text: str) -> str:
    """An address without its prefix, when it is one."""
    prefix, address = _parsed(text)
    if prefix.lower() != "smtp" or not _ADDRESS.fullmatch(address):
        raise refused(INVALID, f'The address "{address}" is not a valid SMTP address.')
    return address


def _with(recipients: Recipients, recipient: dict[str, Any], current: list[str], text: str) -> list[str]:
    prefix, address = _parsed(text)
    if prefix.lower() != "smtp":
        if prefix.lower() == "x500":
            return [*_without_quietly(current, address), f"{prefix}:{address}"]
        raise refused(INVALID, f'The address "{text}" is not a valid proxy address.')
    checked_address(text)
    if address.rpartition("@")[2].lower() not in recipients.domains:
        raise refused(
            NOT_ACCEPTED,
            f"You can't use the domain because it's not an accepted domain for your organization: \"{address}\".",
        )
    owner = recipients.owner_of(address)
    if owner is not None and owner["Guid"] != recipient["Guid"]:
        raise refused(
            ADDRESS_TAKEN,
            f'The proxy address "{prefix}:{address}" is already being used by the proxy addresses or LegacyExchangeDN'
            f' of "{owner["Name"]}". Please choose another proxy address.',
        )
    if prefix == "SMTP":
        demoted = [
            f"smtp:{each.partition(':')[2]}" if each.startswith("SMTP:") else each
            for each in _without_quietly(current, address)
        ]
        return [f"SMTP:{address}", *demoted]
    if any(each.partition(":")[2].casefold() == address.casefold() for each in current):
        return current
    return [*current, f"smtp:{address}"]


def _without(current: list[str], address: str) -> list[str]:
    for each in current:
        if each.startswith("SMTP:") and each.partition(":")[2].casefold() == address.casefold():
            raise refused(INVALID, f'The primary SMTP address "{address}" cannot be removed.')
    return _without_quietly(current, address)


def _without_quietly(current: list[str], address: str) -> list[str]:
    return [each for each in current if each.partition(":")[2].casefold() != address.casefold()]


def _parsed(text: str) -> tuple[str, str]:
    prefix, colon, address = text.partition(":")
    return (prefix, address) if colon else ("smtp", text)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    for each in values:
        if not isinstance(each, str):
            raise _not_bound(f"'{each}' is not text")
    return [str(each) for each in values]


def _not_bound(why: str) -> Exception:
    return refused(BINDING, f"Cannot bind parameter 'EmailAddresses' to the target: {why}.")
