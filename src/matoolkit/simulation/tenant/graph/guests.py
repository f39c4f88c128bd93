"""Guests: people invited, and turned into people of our own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from matoolkit.simulation.tenant.calls import json_answer
from matoolkit.simulation.tenant.directory import timestamp
from matoolkit.simulation.tenant.graph.properties import Kind, Property, Schema, require
from matoolkit.simulation.tenant.graph.refusals import bad_request
from matoolkit.simulation.tenant.graph.users import PASSWORD, check_name, check_password

if TYPE_CHECKING:
    from matoolkit.clock import Clock
    from matoolkit.simulation.tenant.calls import Answer, Call
    from matoolkit.simulation.tenant.directory import Directory
    from matoolkit.simulation.tenant.graph.users import Users

_TEXT, _FLAG = Property(Kind.STRING), Property(Kind.BOOLEAN)
_MESSAGE = Schema(
    "microsoft.graph.invitedUserMessageInfo",
    {"customizedMessageBody": _TEXT, "messageLanguage": _TEXT, "ccRecipients": Property(Kind.OBJECTS)},
)
_INVITED = Schema("microsoft.graph.user", {"id": _TEXT})
INVITATION = Schema(
    "microsoft.graph.invitation",
    {
        "invitedUserEmailAddress": _TEXT,
        "invitedUserDisplayName": _TEXT,
        "invitedUserType": _TEXT,
        "inviteRedirectUrl": _TEXT,
        "sendInvitationMessage": _FLAG,
        "resetRedemption": _FLAG,
        "invitedUserMessageInfo": Property(Kind.OBJECT, inner=_MESSAGE),
        "invitedUser": Property(Kind.OBJECT, inner=_INVITED),
        "id": Property(Kind.STRING, writable=False),
        "inviteRedeemUrl": Property(Kind.STRING, writable=False),
        "status": Property(Kind.STRING, writable=False),
    },
)
CONVERSION = Schema(
    "convertExternalToInternalMemberUser",
    {"userPrincipalName": _TEXT, "mail": _TEXT, "passwordProfile": Property(Kind.OBJECT, inner=PASSWORD)},
)
_ADDRESS = re.compile(r"[A-Za-z0-9_][\w.'-]{0,63}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


def is_external(user: dict[str, Any]) -> bool:
    """Whether somebody signs in elsewhere."""
    return user.get("externalUserState") is not None or user.get("userType") == "Guest"


class Guests:
    """What is asked about guests."""

    def __init__(self, directory: Directory, users: Users, clock: Clock) -> None:
        self._directory = directory
        self._users = users
        self._clock = clock

    def invite(self, call: Call) -> Answer:
        """POST /invitations: a new guest, or a user of our own who is to sign in elsewhere."""
        body = INVITATION.read(call)
        address = str(body.get("invitedUserEmailAddress") or "")
        call.subject = address
        require(body, ("invitedUserEmailAddress", "inviteRedirectUrl"), "Invitation")
        if not _ADDRESS.fullmatch(address):
            raise bad_request("Invited user email address is invalid.", code="BadRequest")
        if urlsplit(body["inviteRedirectUrl"]).scheme not in {"http", "https"}:
            raise bad_request("Invite redirect URL is invalid.", code="BadRequest")
        if body.get("invitedUserType") not in {None, "Guest", "Member"}:
            raise bad_request("Invalid value specified for property 'invitedUserType' of resource 'Invitation'.")
        named = (body.get("invitedUser") or {}).get("id")
        user = self._users.find(named) if named else self._directory.owner_of(address)
        if user is not None and is_external(user) and not body.get("resetRedemption"):
            raise bad_request(
                f"The invited user already exists in the directory as object ID: {user['id']}. They can use that"
                " account to sign in to shared apps and resources.",
                code="BadRequest",
            )
        if user is not None and not named:
            raise bad_request(
                "The invited user already exists in the directory as an internal user.", code="BadRequest"
            )
        now = timestamp(self._clock.now())
        state = {"externalUserState": "PendingAcceptance", "externalUserStateChangeDateTime": now}
        if user is None:
            user = self._directory.add_user(self._guest(address, body) | state)
        else:
            # Somebody of our own who is invited stays what they were: only where they sign in changes.
            known = {} if user.get("mail") else {"mail": address}
            self._directory.change_user(user, state | known)
        return json_answer(201, self._invitation(call, body, user))

    def convert(self, call: Call, identifier: str) -> Answer:
        """POST /users/{id}/convertExternalToInternalMemberUser."""
        body = CONVERSION.read(call)
        require(body, ("userPrincipalName", "passwordProfile"), "User")
        user = self._users.find(identifier)
        if not is_external(user):
            raise bad_request("The user is not an external user and cannot be converted to an internal user.")
        check_name(self._directory, body["userPrincipalName"], user["id"])
        check_password(body["passwordProfile"], body["userPrincipalName"])
        changes = {
            "userPrincipalName": body["userPrincipalName"],
            "mailNickname": body["userPrincipalName"].partition("@")[0],
            "userType": "Member",
            "externalUserState": None,
            "externalUserStateChangeDateTime": None,
            "creationType": None,
        }
        if body.get("mail"):
            changes["mail"] = body["mail"]
        self._directory.change_user(user, changes)
        return json_answer(
            200,
            {
                "@odata.context": f"{call.origin}/beta/$metadata#microsoft.graph.conversionUserDetails",
                "displayName": user["displayName"],
                "userPrincipalName": user["userPrincipalName"],
                "convertedToInternalUserDateTime": timestamp(self._clock.now()),
                "mail": user.get("mail"),
            },
        )

    def _guest(self, address: str, body: dict[str, Any]) -> dict[str, Any]:
        local = address.replace("@", "_")
        return {
            "userPrincipalName": f"{local}#EXT#@{self._directory.domains[0]}",
            "mailNickname": f"{local}#EXT#",
            "displayName": body.get("invitedUserDisplayName") or address.partition("@")[0],
            "mail": address,
            "userType": body.get("invitedUserType") or "Guest",
            "creationType": "Invitation",
        }

    def _invitation(self, call: Call, body: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
        ticket = str(uuid4())
        return {
            "@odata.context": f"{call.origin}/{call.segments[0]}/$metadata#invitations/$entity",
            "id": ticket,
            "inviteRedeemUrl": f"{call.origin}/redeem?rd={quote(body['inviteRedirectUrl'], safe='')}&ticket={ticket}",
            "invitedUserDisplayName": body.get("invitedUserDisplayName") or user["displayName"],
            "invitedUserType": user["userType"],
            "invitedUserEmailAddress": body["invitedUserEmailAddress"],
            "sendInvitationMessage": bool(body.get("sendInvitationMessage")),
            "resetRedemption": bool(body.get("resetRedemption")),
            "inviteRedirectUrl": body["inviteRedirectUrl"],
            "status": "PendingAcceptance",
            "invitedUserMessageInfo": {
                "messageLanguage": None,
                "customizedMessageBody": None,
                "ccRecipients": [{"emailAddress": {"name": None, "address": None}}],
                **(body.get("invitedUserMessageInfo") or {}),
            },
            "invitedUser": {"id": user["id"]},
        }
