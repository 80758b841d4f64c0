"""What a run may ask the host for."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Literal, Protocol

Level = Literal["debug", "info", "warn", "error"]
"""The severity of a line in the log."""


class Host(Protocol):
    """The imports of a guest. Reads return the texts of documents, or raise a ReadError."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> str:
        """Returns an `observed-object` document."""

    def list(self, api_version: str, kind: str, namespace: str, selector: str) -> str:
        """Returns an `observed-list` document."""

    def now_ms(self) -> float:
        """Returns the milliseconds since 1970, which do not change during a run."""

    def write(self, level: Level, line: str) -> None:
        """Writes a line to the host's log."""


class Log:
    """Lines for the host's log, which labels them with module and primary."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def debug(self, line: str) -> None:
        """Writes a line for somebody who looks for a bug."""
        self._host.write("debug", line)

    def info(self, line: str) -> None:
        """Writes a line. `print` does the same."""
        self._host.write("info", line)

    def warn(self, line: str) -> None:
        """Writes a warning."""
        self._host.write("warn", line)

    def error(self, line: str) -> None:
        """Writes an error."""
        self._host.write("error", line)


class Context:
    """The clock, the log and the reads of one run. `Kind.get` and `Kind.list` read."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.log = Log(host)

    def now(self) -> datetime:
        """The time of the run, in UTC. Its passing alone does not run the guest: use `requeue`."""
        return datetime.fromtimestamp(self.host.now_ms() / 1000, timezone.utc)
