"""Users: made, read, changed and removed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from matoolkit.simulation.tenant.calls import Answer, json_answer
from matoolkit.simulation.tenant.graph import odata
from matoolkit.simulation.tenant.graph.properties import Kind, Property, Schema, require
from matoolkit.simulation.tenant.graph.refusals import bad_request, conflict, invalid_value, not_found

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.simulation.tenant.calls import Call
    from matoolkit.simulation.tenant.directory import Directory

_TEXT, _TEXTS = Property(Kind.STRING), Property(Kind.STRINGS)
_FLAG, _TIME = Property(Kind.BOOLEAN), Property(Kind.TIME)
_SEEN, _SEEN_LIST = Property(Kind.STRING, writable=False), Property(Kind.STRINGS, writable=False)
_SEEN_OBJECTS = Property(Kind.OBJECTS, writable=False)

PASSWORD = Schema(
    "microsoft.graph.passwordProfile",
    {
        "password": _TEXT,
        "forceChangePasswordNextSignIn": _FLAG,
        "forceChangePasswordNextSignInWithMfa": _FLAG,
    },
)
ATTRIBUTES = Schema(
    "microsoft.graph.onPremisesExtensionAttributes",
    {f"extensionAttribute{number}": _TEXT for number in range(1, 16)},
)
USER = Schema(
    "microsoft.graph.user",
    {
        **dict.fromkeys(
            (
                "displayName", "mailNickname", "userPrincipalName", "givenName", "surname", "jobTitle", "department",
                "companyName", "officeLocation", "city", "state", "country", "postalCode", "streetAddress",
                "mobilePhone", "faxNumber", "usageLocation", "preferredLanguage", "preferredDataLocation",
                "employeeId", "employeeType", "mail", "userType", "passwordPolicies", "ageGroup",
                "consentProvidedForMinor", "onPremisesImmutableId",
            ),
            _TEXT,
        ),
        "accountEnabled": Property(Kind.BOOLEAN, nullable=False),
        "showInAddressList": _FLAG,
        "employeeHireDate": _TIME,
        "businessPhones": _TEXTS,
        "otherMails": _TEXTS,
        "passwordProfile": Property(Kind.OBJECT, inner=PASSWORD),
        "onPremisesExtensionAttributes": Property(Kind.OBJECT, inner=ATTRIBUTES),
        "identities": Property(Kind.OBJECTS),
        **dict.fromkeys(
            (
                "id", "createdDateTime", "deletedDateTime", "creationType", "externalUserState",
                "externalUserStateChangeDateTime", "onPremisesDistinguishedName", "onPremisesDomainName",
                "onPremisesLastSyncDateTime", "onPremisesSamAccountName", "onPremisesSecurityIdentifier",
                "onPremisesSyncEnabled", "onPremisesUserPrincipalName", "refreshTokensValidFromDateTime",
                "securityIdentifier", "legalAgeGroupClassification", "lastPasswordChangeDateTime",
            ),
            _SEEN,
        ),
        "proxyAddresses": _SEEN_LIST,
        "imAddresses": _SEEN_LIST,
        "assignedLicenses": _SEEN_OBJECTS,
        "assignedPlans": _SEEN_OBJECTS,
    },
    extensions=True,
)  # fmt: skip

DEFAULT = (
    "businessPhones", "displayName", "givenName", "jobTitle", "mail", "mobilePhone", "officeLocation",
    "preferredLanguage", "surname", "userPrincipalName", "id",
)  # fmt: skip
_REQUIRED = ("accountEnabled", "displayName", "passwordProfile", "userPrincipalName", "mailNickname")
_NAME = re.compile(r"[A-Za-z0-9'._\-!#^~]{1,64}@[A-Za-z0-9.-]{1,48}")
_NICKNAME = re.compile(r"[^\s@()\\\[\]\";:<>,]{1,64}")
_CLASSES = (r"[a-z]", r"[A-Z]", r"[0-9]", r"[^A-Za-z0-9]")


def viewed(user: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """A user with the properties asked for; what was never set is null, or an empty list."""
    properties = USER.properties
    return {
        name: user[name]
        if name in user
        else []
        if name in properties and properties[name].kind in {Kind.STRINGS, Kind.OBJECTS}
        else None
        for name in names
    }


def check_name(directory: Directory, name: str, besides: str = "") -> None:
    """Refuse a user principal name that is malformed, in a foreign domain, or taken."""
    if not _NAME.fullmatch(name) or name.startswith(".") or ".@" in name:
        raise bad_request("Property userPrincipalName is invalid.", target="userPrincipalName", detail="InvalidValue")
    if name.rpartition("@")[2].lower() not in directory.domains:
        raise bad_request(
            "The domain portion of the userPrincipalName property is invalid. You must use one of the verified domain"
            " names in your organization.",
            target="userPrincipalName",
            detail="InvalidValue",
        )
    if directory.is_name_taken(name, besides):
        raise conflict("userPrincipalName")


def check_password(profile: dict[str, Any], name: str) -> None:
    """Refuse a password that the policy does not accept. It is looked at here and kept nowhere."""
    require(profile, ("password",), "User")
    password = profile["password"]
    kinds = sum(re.search(each, password) is not None for each in _CLASSES)
    within = name.partition("@")[0].casefold() in password.casefold() if name else False
    if not 8 <= len(password) <= 256 or kinds < 3 or within:  # noqa: PLR2004 - the policy's own numbers
        raise bad_request(
            "The specified password does not comply with password complexity requirements. Please provide a different"
            " password.",
            target="password",
            detail="InvalidValue",
        )


class Users:
    """What is asked of `/users`."""

    def __init__(self, directory: Directory, created: Callable[[dict[str, Any]], None]) -> None:
        self._directory = directory
        self._created = created

    def find(self, identifier: str) -> dict[str, Any]:
        """A user that exists and can be seen."""
        user = self._directory.user(identifier)
        if user is None:
            raise not_found(identifier)
        return user

    def create(self, call: Call) -> Answer:
        """POST /users."""
        body = USER.read(call)
        call.subject = str(body.get("userPrincipalName") or "")
        require(body, _REQUIRED, "User")
        self._check_values(body)
        check_name(self._directory, body["userPrincipalName"])
        check_password(body.pop("passwordProfile"), body["userPrincipalName"])
        user = self._directory.add_user(body)
        self._created(user)
        version = call.segments[0]
        return json_answer(
            201,
            {"@odata.context": f"{call.origin}/{version}/$metadata#users/$entity", **viewed(user, DEFAULT)},
            {"Location": f"{call.origin}/{version}/users/{user['id']}"},
        )

    def read(self, call: Call, identifier: str) -> Answer:
        """GET /users/{id}."""
        query = call.query
        odata.check_options(query)
        names = odata.selected(query, USER, DEFAULT)
        user = self.find(identifier)
        suffix = f"({','.join(names)})" if "$select" in query else ""
        context = f"{call.origin}/{call.segments[0]}/$metadata#users{suffix}/$entity"
        return json_answer(200, {"@odata.context": context, **viewed(user, names)})

    def list(self, call: Call) -> Answer:
        """GET /users."""
        query = call.query
        odata.check_options(query)
        names = odata.selected(query, USER, DEFAULT)
        passes = odata.filtered(query, USER)
        numbered = ((number, user) for number, user in self._directory.all_users() if passes(user))
        page = odata.page_of(call, query, numbered)
        answer: dict[str, Any] = {"@odata.context": f"{call.origin}/{call.segments[0]}/$metadata#users"}
        if page.next_link:
            answer["@odata.nextLink"] = page.next_link
        return json_answer(200, {**answer, "value": [viewed(user, names) for user in page.objects]})

    def change(self, call: Call, identifier: str) -> Answer:
        """PATCH /users/{id}."""
        body = USER.read(call)
        user = self.find(identifier)
        if not body:
            raise bad_request("Write requests must contain at least one property to be changed.", code="BadRequest")
        for name in ("displayName", "mailNickname", "userPrincipalName"):
            if name in body:
                require(body, (name,), "User")
        self._check_values(body)
        if "userPrincipalName" in body:
            check_name(self._directory, body["userPrincipalName"], user["id"])
        profile = body.pop("passwordProfile", None)
        if profile and "password" in profile:
            check_password(profile, body.get("userPrincipalName", user["userPrincipalName"]))
        self._directory.change_user(user, body)
        return Answer(204)

    def remove(self, identifier: str) -> Answer:
        """DELETE /users/{id}."""
        self._directory.remove_user(self.find(identifier))
        return Answer(204)

    def _check_values(self, body: dict[str, Any]) -> None:
        nickname = body.get("mailNickname")
        if nickname is not None and not _NICKNAME.fullmatch(nickname):
            raise invalid_value("mailNickname", "User")
        if len(body.get("displayName") or "") > 256:  # noqa: PLR2004 - Graph's limit
            raise invalid_value("displayName", "User")
        if body.get("usageLocation") and not re.fullmatch(r"[A-Z]{2}", body["usageLocation"]):
            raise invalid_value("usageLocation", "User")
        if body.get("userType") not in {None, "Member", "Guest"}:
            raise invalid_value("userType", "User")
        if body.get("mail") and "@" not in body["mail"]:
            raise invalid_value("mail", "User")
