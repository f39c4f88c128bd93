"""What reading a source depends on besides its runbook, handed in."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from matoolkit.scheduler.sources.errors import VariableNotAllowed, VariableNotSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matoolkit.scheduler.sources.port import Alarm, Tokens

ALLOWED_VARIABLES: Final = ("DATAVERSE_*", "DATABRICKS_*", "SQL_*", "MATOOLKIT_SOURCE_*")
"""The environment variables that a runbook may name, unless the operator allows others."""

# Whatever the operator allows: what the product, its worker and its sign-in are configured with.
_NEVER: Final = ("MATOOLKIT_*", "*__*", "APP_*", "AZURE_*", "IDENTITY_*", "MSI_*")
_STILL: Final = "MATOOLKIT_SOURCE_*"


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The limits of a source, and its ways to the world outside."""

    environment: Mapping[str, str]
    monotonic: Callable[[], float]
    """Seconds that only grow, for time limits."""
    sleep: Callable[[float], None]
    """Waits; only a statement that is asked about again and again needs it."""
    alarm: Alarm
    """Ends what runs into its time limit while it is computing."""
    tokens: Tokens
    allowed: tuple[str, ...] = ALLOWED_VARIABLES
    time_limit_seconds: float = 120
    row_cap: int = 500_000
    chunk_rows: int = 1_000
    ca_file: str | None = None
    """A file of certificates to trust instead of those that come with the product."""
    plain_loopback: bool = False
    """Whether this machine itself may be spoken to without TLS, for tests."""

    def variable(self, name: str, purpose: str) -> str:
        """The value of an environment variable that a runbook names."""
        folded = name.upper()
        allowed = any(fnmatchcase(folded, pattern.upper()) for pattern in self.allowed)
        ours = any(fnmatchcase(folded, pattern) for pattern in _NEVER) and not fnmatchcase(folded, _STILL)
        if ours:
            raise VariableNotAllowed(
                f"{name} is for the product's own settings, and a runbook may not name it as {purpose}:"
                f" put the value into another variable, such as SQL_PEOPLE, and name that"
            )
        if not allowed:
            raise VariableNotAllowed(
                f"a runbook may not name the environment variable {name} as {purpose}: it may name"
                f" {', '.join(self.allowed)}"
            )
        value = self.environment.get(name, "").strip()
        if not value:
            raise VariableNotSet(
                f"the environment variable {name}, which the runbook names as {purpose}, is not set: set it where"
                " the scheduler runs"
            )
        return value
