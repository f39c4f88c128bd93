"""The commands: what they take, and what they do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matoolkit.simulation.tenant.exchange import addresses
from matoolkit.simulation.tenant.exchange.refusals import BINDING, INVALID, not_found, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.simulation.tenant.exchange.recipients import Recipients

_GUID = re.compile(r"\{?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?", re.IGNORECASE)
_COMMON = {"ErrorAction": str, "WarningAction": str, "Verbose": bool, "Confirm": bool, "WhatIf": bool}


@dataclass(slots=True)
class Outcome:
    """What a command gave."""

    values: list[dict[str, Any]]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Command:
    """A command, with its parameters and their types; `object` is checked by the command itself."""

    name: str
    parameters: Mapping[str, type]
    run: Callable[[Recipients, Mapping[str, Any]], Outcome]
    required: tuple[str, ...] = ("Identity",)

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters by their own names, when each is known and of its type."""
        known = {name.casefold(): name for name in (*self.parameters, *_COMMON)}
        bound: dict[str, Any] = {}
        for name, value in given.items():
            exact = known.get(name.casefold())
            if exact is None:
                raise refused(BINDING, f"A parameter cannot be found that matches parameter name '{name}'.")
            kind = self.parameters.get(exact) or _COMMON[exact]
            if kind is not object and not isinstance(value, kind):
                raise refused(
                    BINDING,
                    f"Cannot process argument transformation on parameter '{exact}'. Cannot convert value"
                    f' "{value}" to type "{kind.__name__}".',
                )
            bound[exact] = value
        for name in self.required:
            if not bound.get(name):
                raise refused(
                    BINDING,
                    f"Cannot process command because of one or more missing mandatory parameters: {name}.",
                )
        return bound


def _set_mail_user(recipients: Recipients, given: Mapping[str, Any]) -> Outcome:
    recipient = recipients.mail_user(given["Identity"])
    if recipient is None:
        raise not_found(given["Identity"])
    changes: dict[str, Any] = {}
    for name, value in given.items():
        match name:
            case "Identity":
                continue
            case "EmailAddresses":
                changes[name] = addresses.changed_addresses(recipients, recipient, value)
                changes["PrimarySmtpAddress"] = changes["WindowsEmailAddress"] = addresses.primary(changes[name])
            case "ExternalEmailAddress":
                changes[name] = f"SMTP:{addresses.checked_address(value)}"
            case "ExchangeGuid" | "ArchiveGuid":
                changes[name] = _guid(name, value)
            case _:
                if name in _MAIL_USER_VALUES:
                    changes[name] = value
    changed = {name: value for name, value in changes.items() if recipient.get(name) != value}
    if not changed:
        return Outcome(
            [], [f"The command completed successfully but no settings of '{recipient['Name']}' have been modified."]
        )
    recipients.change_mail_user(recipient, changed)
    return Outcome([], [])


def _get_mail_user(recipients: Recipients, given: Mapping[str, Any]) -> Outcome:
    if "Identity" not in given:
        found = _limited(list(recipients.mail_users.values()), given)
        return Outcome([{**_UNLESS_SET, **each} for each in found], [])
    recipient = recipients.mail_user(given["Identity"])
    if recipient is None:
        raise not_found(given["Identity"])
    return Outcome([{**_UNLESS_SET, **recipient}], [])


def _get_members(recipients: Recipients, given: Mapping[str, Any]) -> Outcome:
    group = recipients.group(given["Identity"])
    if group is None:
        raise not_found(given["Identity"])
    found = (recipients.recipient(key) for key in group["Members"])
    return Outcome(_limited([each for each in found if each is not None], given), [])


def _limited(found: list[dict[str, Any]], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    size = given.get("ResultSize", 1000)
    if isinstance(size, str) and size.casefold() == "unlimited":
        return found
    try:
        return found[: int(size)]
    except (TypeError, ValueError) as error:
        raise refused(
            BINDING,
            f"Cannot process argument transformation on parameter 'ResultSize'. Cannot convert value \"{size}\".",
        ) from error


def _guid(name: str, value: str) -> str:
    if not _GUID.fullmatch(value):
        raise refused(
            BINDING,
            f"Cannot process argument transformation on parameter '{name}'. Cannot convert value \"{value}\" to type"
            ' "System.Guid".',
        )
    guid = value.strip("{}").lower()
    if name == "ExchangeGuid" and not guid.replace("-", "").strip("0"):
        raise refused(INVALID, "The property 'ExchangeGuid' cannot be empty.")
    return guid


_MAIL_USER_VALUES: dict[str, type] = {
    "Alias": str,
    "DisplayName": str,
    "Name": str,
    "MicrosoftOnlineServicesID": str,
    "WindowsEmailAddress": str,
    "HiddenFromAddressListsEnabled": bool,
    **{f"CustomAttribute{number}": str for number in range(1, 16)},
}

_UNLESS_SET: dict[str, Any] = {
    "ArchiveStatus": "None",
    "EmailAddressPolicyEnabled": False,
    "IsDirSynced": False,
    "MailTip": None,
    "ModerationEnabled": False,
    **{f"CustomAttribute{number}": "" for number in range(1, 16)},
    **{f"ExtensionCustomAttribute{number}": [] for number in range(1, 6)},
}
"""What a mail user shows besides what it was given."""

COMMANDS = {
    command.name.casefold(): command
    for command in (
        Command(
            "Set-MailUser",
            {
                "Identity": str,
                "EmailAddresses": object,
                "ExternalEmailAddress": str,
                "ExchangeGuid": str,
                "ArchiveGuid": str,
                **_MAIL_USER_VALUES,
            },
            _set_mail_user,
        ),
        Command("Get-MailUser", {"Identity": str, "ResultSize": object}, _get_mail_user, ()),
        Command("Get-DistributionGroupMember", {"Identity": str, "ResultSize": object}, _get_members),
    )
}
