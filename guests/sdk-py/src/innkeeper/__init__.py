"""Write Innkeeper guests in Python.

A guest is a pure function from observed state to desired state: a class with a manifest and a
method `reconcile`. Plain Python runs and tests it (`innkeeper.testing`); componentize-py makes a
component of it (`innkeeper.component`).
"""

from . import condition
from .context import Context
from .decode import decode
from .describe import Describe
from .desired import Desired, Failed, Outcome, complete, failed, partial
from .errors import (
    BadInput,
    Forbidden,
    InvalidRead,
    NotFound,
    NotServed,
    ReadError,
    Undeclared,
)
from .guest import Guest
from .kind import Kind, Object
from .observed import Observed, ObservedObject
from .template_hash import template_hash
from .update_group import UpdateGroup
from .value_source import ValueSource

__all__ = [
    "BadInput",
    "Context",
    "Describe",
    "Desired",
    "Failed",
    "Forbidden",
    "Guest",
    "InvalidRead",
    "Kind",
    "NotFound",
    "NotServed",
    "Object",
    "Observed",
    "ObservedObject",
    "Outcome",
    "ReadError",
    "Undeclared",
    "UpdateGroup",
    "ValueSource",
    "complete",
    "condition",
    "decode",
    "failed",
    "partial",
    "template_hash",
]
