"""The runbook format: every key there is, what it means and what it takes. The one place to change it."""

from __future__ import annotations

from typing import Final

from matoolkit.runbooks.durations import DURATION_PATTERN, OFFSET_PATTERN
from matoolkit.runbooks.forms import (
    NAME_PATTERN,
    Block,
    Blocks,
    Integer,
    Key,
    NamedBlocks,
    Parameter,
    Section,
    Text,
    Texts,
)
from matoolkit.runbooks.model import MultiValuedFormat, SourceType

MAX_RETRIES: Final = 100

NAME: Final = Text("a name of 1 to 128 printable characters, without braces", 128, NAME_PATTERN)
COLUMN: Final = Text("a column's name of 1 to 256 printable characters, without braces", 256, NAME_PATTERN)
RUNBOOK_NAME: Final = Text(
    "a name of 1 to 128 characters, without / \\ ? # % or braces, and not starting with a dot",
    128,
    r"[^\s./\\?#%{}](?:[^\x00-\x1f/\\?#%{}]*[^\s/\\?#%{}])?",
)
# Part of a subscription's filter, and so kept to what no filter can misread.
WORKER_ID: Final = Text(
    "1 to 64 letters, digits, '-', '_' or '.', starting with a letter or digit",
    64,
    "[A-Za-z0-9][A-Za-z0-9._-]*",
    examples=("worker-01",),
)
FUNCTION: Final = Text("a function's name of 1 to 256 characters", 256, r"[^\s](?:[^\x00-\x1f]*[^\s])?")
VARIABLE_NAME: Final = Text(
    "the name of an environment variable, not its value: letters, digits and '_'",
    128,
    "[A-Za-z_][A-Za-z0-9_]*",
    examples=("DATAVERSE_CONNECTION_STRING",),
)
DURATION: Final = Text(
    "a duration: a number and d, h, m or s, like 30s, 15m, 4h or 7d", 12, DURATION_PATTERN, examples=("15m", "24h")
)
OFFSET: Final = Text(
    "an offset: T-0, or T- with a number and d, h, m or s, like T-5d, T-4h or T-30m",
    14,
    OFFSET_PATTERN,
    examples=("T-5d", "T-0"),
)
TIME_ZONE: Final = Text("an IANA time zone, like Europe/Berlin or UTC", 64, "[A-Za-z][A-Za-z0-9_+/-]*")

MULTI_VALUED_COLUMN: Final = Section(
    "multi-valued column",
    "A column that packs several values into one text; steps get them as a list.",
    (
        Key("name", COLUMN, "The column.", required=True),
        Key(
            "format",
            Text("one of the formats", 64, choices=tuple(MultiValuedFormat)),
            "How the values are packed.",
            required=True,
        ),
    ),
)

DATA_SOURCE: Final = Section(
    "data source",
    "Where the members come from, and when each of them is due.",
    (
        Key("type", Text("one of the source types", 64, choices=tuple(SourceType)), "The kind of source.", True),  # noqa: FBT003
        Key(
            "connection",
            VARIABLE_NAME,
            "The environment variable that holds the connection string, URL or folder.",
            required=True,
        ),
        Key(
            "warehouse_id",
            VARIABLE_NAME,
            "Databricks only, and required there: the environment variable that holds the warehouse's id.",
        ),
        Key("query", Text("a query", 100_000), "The SQL query that returns the members, one row each.", required=True),
        Key("primary_key", COLUMN, "The column that tells members apart.", required=True),
        Key(
            "batch_time_column",
            COLUMN,
            "The column with the start time: members with the same time form a batch. Either this or batch_time.",
        ),
        Key(
            "batch_time",
            Text("the word immediate", 16, choices=("immediate",)),
            "Members form a batch as soon as they appear. Either this or batch_time_column.",
        ),
        Key("time_zone", TIME_ZONE, "The zone of start times that name none; UTC when absent."),
        Key(
            "max_batch_age",
            DURATION,
            "How long after its start time a group seen for the first time still becomes a batch; 1d when absent.",
        ),
        Key("multi_valued_columns", Blocks(MULTI_VALUED_COLUMN), "Columns that hold several values."),
    ),
)

RETRY: Final = Section(
    "retry",
    "How a failed step is tried again. A step's own replaces that of the runbook as a whole.",
    (
        Key("max_retries", Integer(0, MAX_RETRIES), "How often it is tried again; 0 for never.", required=True),
        Key("interval", DURATION, "How long to wait before; required unless max_retries is 0."),
    ),
)

POLL: Final = Section(
    "poll",
    "The step starts something that goes on in the tenant, and is asked again until it is complete.",
    (
        Key("interval", DURATION, "How long to wait between two questions.", required=True),
        Key("timeout", DURATION, "After how long to give up; at least the interval.", required=True),
    ),
)

_STEP_KEYS: Final = (
    Key("name", NAME, "The step's name, unique among the steps beside it.", required=True),
    Key("worker_id", WORKER_ID, "Which workers may run it.", required=True),
    Key("function", FUNCTION, "The function that is called; templates may stand in it.", required=True),
    Key(
        "params",
        Texts(NAME, Parameter(32_768)),
        "The function's parameters. A value that is one {{Column}} and nothing else keeps its type; "
        "{{secret:NAME}} is looked up by the worker.",
    ),
    Key(
        "output_params",
        Texts(COLUMN, NAME),
        "Variables for the member's later steps, each with the field of the result that it takes its value from.",
    ),
    Key("on_failure", NAME, "The rollback to run when the step has failed."),
    Key("poll", Block(POLL), POLL.description),
    Key("retry", Block(RETRY), RETRY.description),
    Key("timeout", DURATION, "How long a worker may take for one attempt; 30m when absent."),
)

_NO_ROLLBACK_OF_ITS_OWN: Final = "cannot have a rollback of its own"


def _step(name: str, description: str, **refused: str) -> Section:
    keys = tuple(key for key in _STEP_KEYS if key.name not in refused)
    return Section(name, description, keys, tuple(refused.items()))


STEP: Final = _step("step", "One call of a function for one member.")
INIT_STEP: Final = _step(
    "init step",
    "One call of a function for the batch, before any phase; only {{_batch_id}} and {{_batch_start_time}} are known.",
    output_params="an init step has no member to keep outputs for",
)
ROLLBACK_STEP: Final = _step(
    "rollback step",
    "One call of a function that undoes what a failed step began.",
    on_failure=f"a rollback step {_NO_ROLLBACK_OF_ITS_OWN}",
)
REMOVAL_STEP: Final = _step(
    "removal step",
    "One call of a function for a member that has left the batch.",
    on_failure=f"a step of on_member_removed {_NO_ROLLBACK_OF_ITS_OWN}",
)

PHASE: Final = Section(
    "phase",
    "Steps that every member of the batch goes through, one after another.",
    (
        Key("name", NAME, "The phase's name, unique in the runbook.", required=True),
        Key("offset", OFFSET, "How long before the batch's start time the phase begins.", required=True),
        Key("steps", Blocks(STEP, 1), "The steps, in order.", required=True),
    ),
)

RUNBOOK: Final = Section(
    "runbook",
    "What happens to every member of a migration wave, and when.",
    (
        Key("name", RUNBOOK_NAME, "The runbook's name.", required=True),
        Key("description", Text("a text of up to 4,096 characters", 4_096), "What it is for."),
        Key("data_source", Block(DATA_SOURCE), DATA_SOURCE.description, required=True),
        Key("retry", Block(RETRY), "How failed steps are tried again, for steps without a retry of their own."),
        Key("init", Blocks(INIT_STEP), "Steps that run once for a batch, before its phases."),
        Key("phases", Blocks(PHASE, 1), "The phases; their offsets say when, not their order.", required=True),
        Key("on_member_removed", Blocks(REMOVAL_STEP), "Steps for a member that has left its batch."),
        Key("rollbacks", NamedBlocks(NAME, Blocks(ROLLBACK_STEP, 1)), "Sequences of steps that on_failure names."),
    ),
)
