"""What requests bring: JSON in one piece, and files piece by piece onto disk; neither beyond its limit."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeVar

import anyio
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from matoolkit.api.csv_members import MOST_BYTES
from matoolkit.api.errors import BadRequest, InvalidFile, TooLarge, TooSlow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from matoolkit.api.services import Services

_LARGEST_JSON = 4 * 1024 * 1024
_AROUND_A_FILE = 64 * 1024
_READ_ON = 4
"""By how many times its limit a body may go on while we throw it away, so that its sender hears why it was refused."""
_PATIENCE_SECONDS = 30.0
"""With a sender who says nothing in the middle of a body."""
_SHOWN_ERRORS = 20

Asked = TypeVar("Asked", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent, and the text that came with it."""

    file: IO[bytes]
    fields: dict[str, str]
    digest: str
    """Of everything that was sent, to tell a repetition from another request."""


class _Limited:
    """A request's body up to a limit."""

    def __init__(self, request: Request, limit: int) -> None:
        self._receive = request.receive
        self._limit = limit
        self._seen = 0
        declared = request.headers.get("content-length", "")
        self._declared = int(declared) if declared.isdigit() else 0

    async def receive(self) -> Any:
        message = await self._next()
        self._seen += len(message.get("body", b""))
        if max(self._seen, self._declared) > self._limit:
            while message.get("more_body") and self._seen <= self._limit * _READ_ON:
                message = await self._next()
                self._seen += len(message.get("body", b""))
            raise TooLarge(f"the request is larger than {self._limit:,} bytes")
        return message

    async def _next(self) -> Any:
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                return await self._receive()
        except TimeoutError:
            raise TooSlow(f"nothing more of the request has come for {_PATIENCE_SECONDS:g} seconds") from None


async def read_json(request: Request, kind: type[Asked]) -> tuple[Asked, str]:
    """What was asked, and a digest of it."""
    body = await Request(request.scope, _Limited(request, _LARGEST_JSON).receive).body()
    try:
        return kind.model_validate_json(body), hashlib.sha256(body).hexdigest()
    except ValidationError as error:
        raise BadRequest(_told(error)) from None


@asynccontextmanager
async def uploaded(services: Services, request: Request) -> AsyncIterator[Upload]:
    """The file of a form, `file`, and its other fields."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise BadRequest("send a form (multipart/form-data) with the CSV file in its field `file`")
    limited = Request(request.scope, _Limited(request, MOST_BYTES + _AROUND_A_FILE).receive)
    try:
        form = await limited.form(max_files=1, max_fields=8, max_part_size=8 * 1024)
    except HTTPException as error:
        raise BadRequest(f"the form cannot be read: {error.detail}") from error
    except TooLarge:
        raise InvalidFile([_TOO_LARGE]) from None
    except (ValueError, UnicodeError, LookupError) as error:
        raise BadRequest("the form cannot be read") from error
    async with limited.form():
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise BadRequest("the form has no file in its field `file`")
        if (file.size or 0) > MOST_BYTES:
            raise InvalidFile([_TOO_LARGE])
        fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        source: Any = file.file
        yield Upload(source, fields, await services.run(lambda: _digest(source, fields)))


_TOO_LARGE = f"the file is larger than {MOST_BYTES // 1024 // 1024} MB"


def _digest(file: IO[bytes], fields: dict[str, str]) -> str:
    digest = hashlib.sha256(repr(sorted(fields.items())).encode())
    while piece := file.read(1024 * 1024):
        digest.update(piece)
    file.seek(0)
    return digest.hexdigest()


def _told(error: ValidationError) -> str:
    """What is wrong with a body, without quoting it."""
    told = []
    for each in error.errors(include_url=False, include_context=False, include_input=False)[:_SHOWN_ERRORS]:
        place = ".".join(str(part) for part in each["loc"])
        told.append(f"{place}: {each['msg']}" if place else each["msg"])
    return "; ".join(told)
