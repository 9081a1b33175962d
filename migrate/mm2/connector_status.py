"""What a Connect worker reports of MM2's connectors and their tasks, and the first line of a failure. Pure.

The document is that of `GET /connectors/NAME/status` (`ConnectorStateInfo`). Traces may quote settings, so only the
first line is kept, redacted.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from migrate.mm2.connectors import Role
from migrate.mm2.secrets import HIDDEN
from migrate.model import Failure, TopicPartition

RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED = "RUNNING", "PAUSED", "STOPPED", "FAILED", "UNASSIGNED"
# Of every worker's version; any other word is not acted on.
_STATES = (RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, "RESTARTING", "DESTROYED")
_LONGEST = 300

_SECRET = (
    r"[\w.$-]*(?:passw|passphrase|passwd|pwd|secret|token|credential|jaas|user\.info|\.key\b|api[_.-]?key"
    r"|access[_.-]?key)[\w.$-]*"
)
# A value may have blanks, commas and quotes in it, so that only the line ends it.
_REDACTIONS: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        # What Kafka says of a wrong setting: the value comes before the name (`ConfigException`).
        (rf"(invalid value ).*( for configuration {_SECRET})", rf"\1{HIDDEN}\2"),
        (r"(\w*LoginModule\b).*", rf"\1 {HIDDEN}"),
        (r"-----BEGIN.*|\bMII[\w+/=]{8,}", HIDDEN),  # a key in PEM, or its DER in base64
        # A name that is an exception's has a message behind it, and no value. JSON inside JSON has \" for a quote.
        (
            rf"(?<![\w.$-])(?![\w.$-]*(?:Exception|Error)\b)"
            rf"({_SECRET}(?:\\*[\"'])?(?:\s*[=:]|\s*\bis\b|\s*\bwas\b|\s+(?=\\*[\"']))\s*).*",
            rf"\1{HIDDEN}",
        ),
        (r"\beyJ[\w.+/=-]+", HIDDEN),  # a token says by its first bytes that it is one
        (r"(://)\S*@", rf"\1{HIDDEN}@"),
        (r"(\bauthorization\\*[\"']?\s*[=:]\s*).*", rf"\1{HIDDEN}"),
        (r"\b((?:basic|bearer|digest) )[\w.~+/=-]+", rf"\1{HIDDEN}"),
    )
)
_EXCEPTION = re.compile(r"\s*([\w.$]+(?:Exception|Error))\s*(?::.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConnectorPart:
    """A connector itself (`task` is None) or one of its tasks, and its state in the worker's word.

    `trace` is the first line of what failed, redacted; "" where nothing did, or where it could not be redacted.
    """

    task: int | None
    state: str
    trace: str = ""

    def __str__(self) -> str:
        what = "it" if self.task is None else f"task {self.task}"
        return f"{what} is {self.state}" + (f": {self.trace}" if self.trace else "")


@dataclass(frozen=True, slots=True)
class ConnectorTasks:
    """One of MM2's connectors with all its parts: itself first, then its tasks."""

    role: Role
    parts: tuple[ConnectorPart, ...]


Mm2Tasks = Mapping[str, ConnectorTasks | Failure]
"""By connector; a `Failure` where the worker did not report it. Empty where no worker is known."""


class WorkerReader(Protocol):
    """Asks a Connect worker about MM2. Reads only."""

    @property
    def where(self) -> str:
        """What is asked, for messages."""

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the last source offset copied, by source partition (KIP-875); raises `ClusterError`."""

    def tasks(self) -> Mm2Tasks:
        """Return the state of each connector of the flow; what is not reported is a `Failure`."""


def parts_of(document: object) -> tuple[tuple[ConnectorPart, ...], Mapping[int | None, str]] | None:
    """Return the parts in a worker's answer, without traces, and the traces as they are; None for any other answer."""
    match document:
        case {"connector": dict(itself), "tasks": list(tasks)}:
            documents = [(None, itself), *((task.get("id"), task) for task in tasks if isinstance(task, dict))]
        case _:
            return None
    parts, traces = [], {}
    for task, about in documents:
        state = about.get("state")
        if not isinstance(state, str) or not (task is None or isinstance(task, int)):
            return None
        parts.append(ConnectorPart(task, state if state in _STATES else "in an unknown state"))
        if isinstance(trace := about.get("trace"), str):
            traces[task] = trace
    if len(parts) <= len(tasks):  # a task that is no document must not pass for one that runs
        return None
    return tuple(parts), traces


def first_line(trace: str) -> str:
    """Return the first line of a stack trace, short, and with whatever looks like a secret hidden.

    Values that are known to be secret are hidden before, by who knows them: here a value shows by the words around it.
    """
    line = next((line.strip() for line in trace.splitlines() if line.strip()), "")
    for pattern, put in _REDACTIONS:
        line = pattern.sub(put, line)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def exception_name(trace: str) -> str:
    """Return the exception's class in the first line of a stack trace, and nothing of its message; "" if none shows."""
    match = _EXCEPTION.fullmatch(trace.lstrip().partition("\n")[0])
    return match[1] if match else ""
