"""Functions for any guest in Python. wit/schema describes the documents."""

import contextlib
import io
import json
import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    tag: str
    document: dict


def complete(**desired):
    """The whole desired state: the host deletes earlier objects that are not in it."""
    return Outcome("complete", desired)


def partial(**desired):
    """A part of the desired state: the host applies it and deletes nothing."""
    return Outcome("partial", desired)


def failed(reason, message, **more):
    """Fails the run: the host changes no object and retries with backoff.

    `reason` is one CamelCase word, `message` is for people. With `permanent=True` the host retries
    only when something changes.
    """
    return Outcome("failed", {"reason": reason, "message": message, **more})


def condition(type, holds, reason, message=""):
    """A condition of the primary; `holds` is True, False, or None for the status Unknown."""
    status = {True: "True", False: "False", None: "Unknown"}[holds]
    return {"type": type, "status": status, "reason": reason, "message": message}


class BadInput(Exception):
    """The primary or the parameters are invalid: the run fails permanently with this reason."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


class Lines(io.TextIOBase):
    """Logs printed lines. Python's own standard output uses WASI and would trap."""

    def __init__(self, log):
        self.log = log
        self.rest = ""

    def write(self, text):
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.log("INFO", line)
        return len(text)

    def close(self):
        if self.rest:
            self.write("\n")


def run(reconcile, observed, log):
    """Calls `reconcile` with the text of an `observed` document; returns tag and text of the outcome.

    `log` takes the name of a level and a line: printed lines, and the traceback of an exception. An
    exception fails the run; uncaught it would be a trap without a reason.
    """
    lines = Lines(log)
    try:
        with contextlib.redirect_stdout(lines), contextlib.redirect_stderr(lines):
            outcome = reconcile(json.loads(observed))
    except BadInput as error:
        outcome = failed(error.reason, str(error), permanent=True)
    except Exception as error:
        log("ERROR", traceback.format_exc())
        outcome = failed("GuestError", f"{type(error).__name__}: {error}")
    lines.close()
    return outcome.tag, json.dumps(outcome.document)
