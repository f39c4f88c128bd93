"""What requests say in JSON: camelCase or snake_case, and nothing that is not known."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL character")
    return value


Name = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_without_nul)]


class Request(BaseModel):
    """What every request has in common."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", strict=True)


class PublishRequest(Request):
    """A runbook to be published."""

    name: Name
    yaml_content: Annotated[str, Field(min_length=1, max_length=1_000_000), AfterValidator(_without_nul)]
    overdue_behavior: Literal["rerun", "ignore"] | None = None
    """`rerun` when absent; to be given where batches are open."""
    rerun_init: bool | None = None


class AutomationRequest(Request):
    """A switch to be turned."""

    enabled: bool
