"""Events into jobs, results into progress: one file per message, and what follows when a member's step ends."""

from matoolkit.orchestrator.orchestrator import Orchestrator
from matoolkit.orchestrator.work import Settings

__all__ = ["Orchestrator", "Settings"]
