"""Errors as the command endpoint words them."""

from __future__ import annotations

import zlib

from matoolkit.simulation.tenant.calls import Answer, Refused, json_answer

NOT_FOUND = "Microsoft.Exchange.Configuration.Tasks.ManagementObjectNotFoundException"
ADDRESS_TAKEN = "Microsoft.Exchange.Management.Common.ProxyAddressExistsException"
NOT_ACCEPTED = "Microsoft.Exchange.Management.RecipientTasks.NotAcceptedDomainException"
INVALID = "Microsoft.Exchange.Data.DataValidationException"
BINDING = "System.Management.Automation.ParameterBindingException"
NO_COMMAND = "System.Management.Automation.CommandNotFoundException"
BUSY = "Microsoft.Exchange.Data.Storage.ServerBusyException"


def error_answer(status: int, kind: str, message: str) -> Answer:
    """An error in the endpoint's envelope: the type stands in the middle of the detail."""
    code = "NotFound" if status == 404 else "BadRequest" if status == 400 else "InternalServerError"  # noqa: PLR2004 - statuses of HTTP
    number = f"Ex{hash_of(kind):06X}"
    return json_answer(
        status,
        {
            "error": {
                "code": code,
                "message": "Error executing cmdlet",
                "details": [{"code": "Context", "target": "", "message": f"{number}|{kind}|{message}"}],
                "innererror": {
                    "message": "Error executing cmdlet",
                    "type": "Microsoft.Exchange.Admin.OData.Core.ODataServiceException",
                    "stacktrace": "",
                },
            }
        },
    )


def hash_of(kind: str) -> int:
    """The number that stands before a type: always the same for one type."""
    if kind == NOT_FOUND:
        return 0x6F9304
    return zlib.crc32(kind.encode()) & 0xFFFFFF


def refused(kind: str, message: str, *, status: int = 400) -> Refused:
    """An error of a command."""
    return Refused(error_answer(status, kind, message))


def not_found(identity: str) -> Refused:
    """404 for a recipient."""
    return refused(
        NOT_FOUND,
        f"The operation couldn't be performed because object '{identity}' couldn't be found on"
        " 'DB6PR06A001DC06.EURPR06A001.PROD.OUTLOOK.COM'.",
        status=404,
    )


def bad_request(message: str) -> Refused:
    """400 for a request that is no command at all."""
    return Refused(json_answer(400, {"error": {"code": "BadRequest", "message": message}}))
