"""The hands: takes jobs, runs functions against the target tenant, and reports what came of them.

What is exported here is what functions are written with, the product's own and the customer's.
"""

from matoolkit.worker.context import FunctionContext
from matoolkit.worker.errors import (
    Expired,
    FunctionError,
    FunctionNotAllowed,
    NotConfigured,
    OutcomeUnknown,
    TimedOut,
    ValidationError,
)
from matoolkit.worker.registry import function

__all__ = [
    "Expired",
    "FunctionContext",
    "FunctionError",
    "FunctionNotAllowed",
    "NotConfigured",
    "OutcomeUnknown",
    "TimedOut",
    "ValidationError",
    "function",
]
