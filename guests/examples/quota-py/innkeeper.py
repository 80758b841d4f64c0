"""Documents in and out: what any guest in Python can use. wit/schema says what is in them."""

import contextlib
import io
import json
import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    tag: str
    document: dict


def complete(**desired):
    """This is all that is desired: what was made before and is not in it goes."""
    return Outcome("complete", desired)


def partial(**desired):
    """Apply this and keep the rest: something is not ready or not known yet."""
    return Outcome("partial", desired)


def failed(reason, message, **more):
    """Nothing can be said: keep everything, and tell why.

    `reason` is one CamelCase word, `message` is for people. With `permanent=True` it is tried
    again only when something changes.
    """
    return Outcome("failed", {"reason": reason, "message": message, **more})


def condition(type, holds, reason, message=""):
    """A condition of the primary; `holds` is True, False, or None if it cannot be told."""
    status = {True: "True", False: "False", None: "Unknown"}[holds]
    return {"type": type, "status": status, "reason": reason, "message": message}


class BadInput(Exception):
    """The primary or the parameters cannot be used: the run fails with this reason, once."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


class Lines(io.TextIOBase):
    """Takes what is printed. Python's own standard output would be WASI, and trap."""

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
    """Calls `reconcile` with an `observed` document's text; gives the tag and the text of the answer.

    `log` takes a level's name and a line: what is printed, and where an exception came from. An
    exception is a failure of the run: not caught it would be a trap, and nobody would learn why.
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
