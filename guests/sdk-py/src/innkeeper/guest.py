"""The class of a guest."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

from . import documents
from .context import Context
from .desired import Outcome
from .observed import Observed

P = TypeVar("P")
Q = TypeVar("Q")


class Guest(ABC, Generic[P, Q]):
    """A guest: a pure function from observed state to desired state.

    `P` is the type of the primary, `Q` that of the Module's parameters: dataclasses or `Object`,
    and None for a guest without parameters. A guest keeps no state between runs: each has a fresh
    instance, and nothing survives it.
    """

    manifest: ClassVar[documents.Manifest]
    """The kinds that the guest reconciles, creates and reads; `Describe` makes it."""

    primary_type: ClassVar[type[Any]] = dict
    parameters_type: ClassVar[type[Any]] = types.NoneType

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for base in getattr(cls, "__orig_bases__", ()):
            if get_origin(base) is Guest:
                primary, parameters = get_args(base)
                cls.primary_type, cls.parameters_type = primary, parameters

    @abstractmethod
    def reconcile(self, context: Context, observed: Observed[P, Q]) -> Outcome:
        """Computes the desired state from the observed state of one primary.

        Raises BadInput to fail permanently, and any other exception to fail with a retry.
        """
