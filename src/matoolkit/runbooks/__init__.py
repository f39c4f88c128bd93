"""What a runbook means: read from YAML with every error located, and filled in for each member. Pure."""

from matoolkit.runbooks.columns import required_columns
from matoolkit.runbooks.durations import parse_duration, parse_offset
from matoolkit.runbooks.model import (
    DataSource,
    MultiValuedColumn,
    MultiValuedFormat,
    Phase,
    Poll,
    Retry,
    Runbook,
    SourceType,
    Step,
)
from matoolkit.runbooks.parsing import Report, check_runbook, load_runbook
from matoolkit.runbooks.problems import Problem, RunbookErrors, Severity
from matoolkit.runbooks.resolution import resolve_step
from matoolkit.runbooks.schema import json_schema
from matoolkit.runbooks.templates import (
    SPECIAL_VARIABLES,
    SecretInData,
    Template,
    TemplateError,
    UnresolvedVariables,
    Values,
)

__all__ = [
    "SPECIAL_VARIABLES",
    "DataSource",
    "MultiValuedColumn",
    "MultiValuedFormat",
    "Phase",
    "Poll",
    "Problem",
    "Report",
    "Retry",
    "Runbook",
    "RunbookErrors",
    "SecretInData",
    "Severity",
    "SourceType",
    "Step",
    "Template",
    "TemplateError",
    "UnresolvedVariables",
    "Values",
    "check_runbook",
    "json_schema",
    "load_runbook",
    "parse_duration",
    "parse_offset",
    "required_columns",
    "resolve_step",
]
