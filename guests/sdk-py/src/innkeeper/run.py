"""Runs a guest with the texts of documents, as the host does."""

from __future__ import annotations

import contextlib
import io
import json
import traceback
from typing import Any

from .context import Context, Host
from .desired import Outcome, failed
from .errors import BadInput, ReadError
from .guest import Guest
from .observed import Observed


def describe(guest: type[Guest[Any, Any]]) -> str:
    """Returns the text of the manifest."""
    return json.dumps(guest.manifest)


def reconcile(guest: type[Guest[Any, Any]], observed: str, host: Host) -> tuple[str, str]:
    """Runs the guest with the text of an `observed` document.

    Returns tag and text of the outcome. An exception fails the run; uncaught it would be a trap
    without a reason.
    """
    lines = _Lines(host)
    outcome: Outcome
    try:
        with contextlib.redirect_stdout(lines), contextlib.redirect_stderr(lines):
            document = json.loads(observed)
            state = Observed(guest.primary_type, guest.parameters_type, document)
            outcome = guest().reconcile(Context(host), state)
    except BadInput as error:
        outcome = failed(error.reason, str(error), permanent=True)
    except ReadError as error:
        outcome = failed(error.reason, str(error))
    except Exception as error:
        host.write("error", traceback.format_exc())
        outcome = failed("GuestError", f"{type(error).__name__}: {error}")
    lines.close()
    return outcome.tag, json.dumps(outcome.document)


class _Lines(io.StringIO):
    """Logs printed lines. Python's own standard output uses WASI and would trap."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._host.write("info", line)
        return len(text)

    def close(self) -> None:
        if self._rest:
            self.write("\n")
