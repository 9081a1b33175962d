"""One line of `doctor`'s report: what was looked at, what was seen, what to do."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """The verdict of one examination."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Examined:
    """One line of the doctor's report."""

    health: Health
    what: str
    seen: str
    todo: str = ""
