"""Results of jobs: each execution is moved on, and what waited behind it follows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from matoolkit.messages import Kind, RetryCheck, execution_fields
from matoolkit.orchestrator import batch_init, progression, sequences
from matoolkit.orchestrator.checks import concerned
from matoolkit.orchestrator.decisions import (
    Failed,
    GoesOn,
    Stale,
    Succeeded,
    TooLate,
    TryAgain,
    on_result,
    picked_outputs,
)
from matoolkit.store import members as member_store
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.states import ExecutionStatus
from matoolkit.telemetry.metrics import STEPS_ENDED, STEPS_RETRIED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matoolkit.messages import WorkerResult
    from matoolkit.orchestrator.checks import Concerned
    from matoolkit.orchestrator.decisions import Decision
    from matoolkit.orchestrator.work import Work
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

Decided = list[tuple["Execution", "Decision"]]


def handle(work: Work, results: Sequence[WorkerResult]) -> None:
    """Move every execution on by its result; a result that comes again, or too late, moves nothing."""
    by_execution: dict[tuple[Kind, int], list[WorkerResult]] = {}
    for result in results:
        named = result.correlation_data.execution()
        if named is not None and result.correlation_data.deployment_id in (
            msgspec.UNSET,
            work.settings.deployment_id,
        ):
            by_execution.setdefault(named, []).append(result)
    found = concerned(work, by_execution)
    work.tracing.note(found.executions, lambda key: by_execution[key][0])
    decided: dict[Kind, Decided] = {}
    for key, execution in found.executions.items():
        # Only one of several results can be the one that is waited for; the others are duplicates or stale.
        reported = by_execution[key]
        result = reported[0]
        if len(reported) > 1:
            result = next((each for each in reported if each.job_id == execution.job_id), result)
        decision = on_result(execution, result, found.batch(execution), found.member(execution), work.now)
        if not isinstance(decision, Stale):
            decided.setdefault(execution.kind, []).append((execution, decision))
    for kind, decisions in sorted(decided.items()):
        _write(work, kind, decisions, found)
    _remember_outputs(work, decided, found)
    _follow(work, decided, found)


def _write(work: Work, kind: Kind, decisions: Decided, found: Concerned) -> None:
    """The executions themselves."""
    ended: list[tuple[Any, ...]] = []
    polled: list[tuple[Any, ...]] = []
    retried: list[tuple[Any, ...]] = []
    late: list[tuple[Any, ...]] = []
    for execution, decision in decisions:
        key = (execution.id, execution.job_id)
        match decision:
            case Succeeded(result_json):
                ended.append((*key, ExecutionStatus.SUCCEEDED, result_json, None))
            case Failed(error):
                ended.append((*key, ExecutionStatus.FAILED, None, error))
            case GoesOn(result_json, ask_at):
                polled.append((*key, ask_at, result_json, None))
            case TryAgain(error, at):
                retried.append((*key, at, None, error))
                work.send_event(_retry_check(work, execution, found.batch(execution)), at)
            case TooLate(result_json, error):
                late.append((*key, ExecutionStatus.CANCELLED, result_json, error))
            case Stale():
                pass
            case _:
                assert_never(decision)
    executions = EXECUTIONS[kind]
    executions.end(work.tx, ended, work.now)
    executions.wait_for_poll(work.tx, polled, work.now)
    executions.wait_for_retry(work.tx, retried)
    executions.record_late(work.tx, late, work.now)
    if work.telemetry.is_on:
        for status, count in Counter(row[2] for row in ended).items():
            work.count(STEPS_ENDED, count, kind=kind, status=status)
        work.count(STEPS_RETRIED, len(retried), kind=kind)


def _retry_check(work: Work, execution: Execution, batch: Batch) -> RetryCheck:
    return RetryCheck(
        runbook_name=batch.runbook_name,
        runbook_version=execution.runbook_version,
        batch_id=execution.batch_id,
        retry_count=execution.retry_count + 1,
        traceparent=work.tracing.of(execution, batch),
        **execution_fields(execution.kind, execution.id),
    )


def _remember_outputs(work: Work, decided: Mapping[Kind, Decided], found: Concerned) -> None:
    """What steps report of their members, for the templates of later steps."""
    changed: dict[int, str] = {}
    for decisions in decided.values():
        for execution, decision in decisions:
            member = found.member(execution)
            if member is None or not isinstance(decision, Succeeded) or decision.outcome is None:
                continue
            if execution.generation not in (None, member.generation):
                continue  # the leaving of an earlier stay
            step = work.library.step(work.tx, found.batch(execution), execution)
            outputs = picked_outputs(step.output_params, decision.outcome) if step.output_params else {}
            if outputs:
                known = _decode(member.worker_data_json) if member.worker_data_json else {}
                worker_data = _encode({**known, **outputs}).decode()
                changed[member.id] = worker_data
                found.members[member.id] = msgspec.structs.replace(member, worker_data_json=worker_data)
    member_store.remember(work.tx, changed)


def _follow(work: Work, decided: Mapping[Kind, Decided], found: Concerned) -> None:
    """What waited for these results."""
    for kind, decisions in sorted(decided.items()):
        succeeded = [each for each, decision in decisions if isinstance(decision, Succeeded)]
        failed = [each for each, decision in decisions if isinstance(decision, Failed)]
        match kind:
            case Kind.STEP:
                progression.fail(work, failed, found.batches, found.members)
                freed = {each.member_id: found.members[each.member_id] for each in succeeded if each.member_id}
                upcoming = progression.advance(work, freed, found.batches)
                work.phases_to_close |= {
                    each.phase_id for each in succeeded if each.phase_id and _left_phase(each, upcoming)
                }
            case Kind.INIT:
                for execution in succeeded:
                    batch_init.advance(work, found.batch(execution), execution.runbook_version)
                for execution, decision in decisions:
                    if isinstance(decision, Failed):
                        batch_init.fail(work, found.batch(execution), execution, decision.error)
            case Kind.ROLLBACK:
                sequences.fail_rollbacks(work, failed)
                for parent, ids in sequences.parents_of(succeeded).items():
                    sequences.advance_rollbacks(work, parent, ids)
            case Kind.REMOVAL:
                sequences.fail_removals(work, failed)
                sequences.advance_removals(work, [each.member_id for each in succeeded if each.member_id])
        still = {each.member_id for each, decision in decisions if isinstance(decision, TooLate) and each.member_id}
        # A job that outlived its member was the last thing that ran: leaving, or coming back, may begin.
        sequences.advance_removals(work, still)


def _left_phase(ended: Execution, upcoming: Mapping[int, Execution]) -> bool:
    following = upcoming.get(ended.member_id or 0)
    return following is None or following.phase_id != ended.phase_id
