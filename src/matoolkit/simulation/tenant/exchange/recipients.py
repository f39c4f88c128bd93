"""What Exchange holds: mail users and distribution groups, found by any of their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from matoolkit.simulation.tenant.directory import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matoolkit.clock import Clock
    from matoolkit.simulation.tenant.archive import Archive

    Recipient = dict[str, Any]

NO_GUID = "00000000-0000-0000-0000-000000000000"
_NAMES = (
    "Guid", "Id", "Name", "Alias", "UserPrincipalName", "ExternalDirectoryObjectId", "DistinguishedName",
    "PrimarySmtpAddress", "LegacyExchangeDN", "ExchangeGuid",
)  # fmt: skip


def names_of(recipient: Mapping[str, Any]) -> set[str]:
    """Everything a recipient can be called, case-folded."""
    names = {str(recipient[name]).casefold() for name in _NAMES if recipient.get(name)}
    names |= {each.partition(":")[2].casefold() for each in recipient.get("EmailAddresses", ())}
    return names - {NO_GUID, ""}


class Recipients:
    """Mail users and distribution groups."""

    def __init__(self, archive: Archive, clock: Clock, domains: list[str]) -> None:
        self._archive = archive
        self._clock = clock
        self.domains = domains
        self.mail_users: dict[str, Recipient] = {}
        self.groups: dict[str, Recipient] = {}
        self._by_name: dict[str, str] = {}
        self._by_address: dict[str, str] = {}
        for key, recipient in archive.load("mail-user"):
            self.mail_users[key] = recipient
            self._index(recipient)
        for key, recipient in archive.load("distribution-group"):
            self.groups[key] = recipient
            self._index(recipient)

    def mail_user(self, identity: str) -> Recipient | None:
        """A mail user by any name."""
        return self.mail_users.get(self._by_name.get(identity.casefold(), ""))

    def group(self, identity: str) -> Recipient | None:
        """A distribution group by any name."""
        return self.groups.get(self._by_name.get(identity.casefold(), ""))

    def owner_of(self, address: str) -> Recipient | None:
        """Who has a proxy address, without its prefix."""
        key = self._by_address.get(address.casefold(), "")
        return self.mail_users.get(key) or self.groups.get(key)

    def recipient(self, key: str) -> Recipient | None:
        """A recipient by its Guid."""
        return self.mail_users.get(key) or self.groups.get(key)

    def add_mail_users(self, several: Iterable[Mapping[str, Any]]) -> list[Recipient]:
        """Mail users, each with a UserPrincipalName; what is not given is derived from it."""
        added = [self._mail_user(each) for each in several]
        self._add("mail-user", self.mail_users, added)
        return added

    def add_groups(self, several: Iterable[Mapping[str, Any]]) -> list[Recipient]:
        """Distribution groups, each with a Name; Members are identities of mail users."""
        added = [self._distribution_group(each) for each in several]
        self._add("distribution-group", self.groups, added)
        return added

    def change_mail_user(self, recipient: Recipient, changes: Mapping[str, Any]) -> None:
        """Set properties."""
        changed = {**recipient, **changes}
        self._archive.put("mail-user", recipient["Guid"], changed)
        self._forget(recipient)
        recipient.update(changes)
        self._index(recipient)

    def _add(self, kind: str, among: dict[str, Recipient], added: list[Recipient]) -> None:
        for recipient in added:
            for address in recipient["EmailAddresses"]:
                if self.owner_of(address.partition(":")[2]) is not None:
                    raise ValueError(f"two recipients cannot have the address {address}")
        self._archive.put_all(kind, ((recipient["Guid"], recipient) for recipient in added))
        for recipient in added:
            among[recipient["Guid"]] = recipient
            self._index(recipient)

    def _index(self, recipient: Recipient) -> None:
        key = recipient["Guid"]
        for name in names_of(recipient):
            self._by_name.setdefault(name, key)
        for address in recipient["EmailAddresses"]:
            self._by_address[address.partition(":")[2].casefold()] = key

    def _forget(self, recipient: Recipient) -> None:
        key = recipient["Guid"]
        for name in names_of(recipient):
            if self._by_name.get(name) == key:
                del self._by_name[name]
        for address in recipient["EmailAddresses"]:
            self._by_address.pop(address.partition(":")[2].casefold(), None)

    def _mail_user(self, given: Mapping[str, Any]) -> Recipient:
        name = given["UserPrincipalName"]
        local = name.partition("@")[0]
        primary = given.get("PrimarySmtpAddress", name)
        external = given.get("ExternalEmailAddress", f"SMTP:{primary}")
        return {
            **self._common(local, given),
            "UserPrincipalName": name,
            "Alias": local,
            "DisplayName": local,
            "PrimarySmtpAddress": primary,
            "WindowsEmailAddress": primary,
            "EmailAddresses": [f"SMTP:{primary}"],
            "ExchangeGuid": NO_GUID,
            "ArchiveGuid": NO_GUID,
            "HiddenFromAddressListsEnabled": False,
            "RecipientType": "MailUser",
            "RecipientTypeDetails": "MailUser",
            **given,
            "ExternalEmailAddress": external if ":" in external else f"SMTP:{external}",
        }

    def _distribution_group(self, given: Mapping[str, Any]) -> Recipient:
        name = given["Name"]
        alias = re.sub(r"[^\w.-]", "", name)
        address = given.get("PrimarySmtpAddress", f"{alias}@{self.domains[0]}")
        members = []
        for identity in given.get("Members", ()):
            member = self.mail_user(identity)
            if member is None:
                raise ValueError(f"there is no mail user {identity} to be a member of {name}")
            members.append(member["Guid"])
        return {
            **self._common(name, given),
            "Alias": alias,
            "DisplayName": name,
            "PrimarySmtpAddress": address,
            "EmailAddresses": [f"SMTP:{address}"],
            "RecipientType": "MailUniversalDistributionGroup",
            "RecipientTypeDetails": "MailUniversalDistributionGroup",
            **given,
            "Members": members,
        }

    def _common(self, name: str, given: Mapping[str, Any]) -> Recipient:
        key = str(uuid4())
        name = str(given.get("Name", name))
        folder = "/o=ExchangeLabs/ou=Exchange Administrative Group/cn=Recipients"
        return {
            "Guid": key,
            "Id": name,
            "Identity": name,
            "Name": name,
            "ExternalDirectoryObjectId": "",
            "DistinguishedName": f"CN={name},OU={self.domains[0]},OU=Microsoft Exchange Hosted Organizations,"
            "DC=EURPR06A001,DC=PROD,DC=OUTLOOK,DC=COM",
            "LegacyExchangeDN": f"{folder}/cn={key.replace('-', '')}",
            "WhenCreatedUTC": timestamp(self._clock.now()),
        }
