"""The runbooks that are running, parsed once."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from matoolkit.errors import MatoolkitError
from matoolkit.messages import Kind
from matoolkit.runbooks import RunbookErrors, load_runbook
from matoolkit.store import runbooks

if TYPE_CHECKING:
    from matoolkit.runbooks import Runbook, Step
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction
    from matoolkit.store.executions import Execution

log = logging.getLogger(__name__)

_KEPT = 64


class RunbookMissing(MatoolkitError):
    """The database does not hold the runbook version that a batch runs, or what it holds cannot be read."""


class StepMissing(MatoolkitError):
    """The runbook version does not have the step that an execution was made for."""


class Library:
    """Published versions never change, so what was parsed is kept."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[tuple[str, int], Runbook] = OrderedDict()

    def runbook(self, tx: Transaction, name: str, version: int) -> Runbook:
        """A version of a runbook."""
        key = (runbooks.folded(name), version)
        found = self._parsed.get(key)
        if found is not None:
            return found
        published = runbooks.read_version(tx, name, version)
        if published is None:
            raise RunbookMissing(f"version {version} of the runbook '{name}' was never published")
        try:
            parsed = load_runbook(published.yaml_content)
        except RunbookErrors as error:
            raise RunbookMissing(f"version {version} of the runbook '{name}' cannot be read: {error}") from error
        self._parsed[key] = parsed
        if len(self._parsed) > _KEPT:
            self._parsed.popitem(last=False)
        return parsed

    def can_read(self, tx: Transaction, name: str, version: int) -> bool:
        """Whether a version can be read; if not, the log says why."""
        try:
            self.runbook(tx, name, version)
        except RunbookMissing as error:
            log.warning("%s", error)
            return False
        return True

    def step(self, tx: Transaction, batch: Batch, execution: Execution) -> Step:
        """The step an execution was made for."""
        runbook = self.runbook(tx, batch.runbook_name, execution.runbook_version)
        steps = _steps(runbook, execution)
        if execution.step_index >= len(steps):
            raise StepMissing(f"the runbook has no step {execution.step_index} where '{execution.step_name}' was")
        return steps[execution.step_index]


def _steps(runbook: Runbook, execution: Execution) -> tuple[Step, ...]:
    match execution.kind:
        case Kind.STEP:
            phase = runbook.phase(execution.group or "")
            return () if phase is None else phase.steps
        case Kind.INIT:
            return runbook.init
        case Kind.ROLLBACK:
            return runbook.rollbacks.get(execution.group or "", ())
        case Kind.REMOVAL:
            return runbook.on_member_removed
