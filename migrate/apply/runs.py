"""One run of a command that writes, as its journal has it: a value, for whoever shows a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

UNDONE = "apply of an undo plan"


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of `apply` or `rollback`, or `UNDONE`: the apply of a plan that undoes this one, with its own journal.

    Times are ISO 8601; `ended` is "" and `exit_code` None where no end was noted. `counts` are rows by status, as
    `outcome.RowStatus` names them. `source_not_seen` is why the source was not compared, "" where it was.
    """

    command: str
    began: str
    who: str
    ended: str = ""
    exit_code: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    source_not_seen: str = ""

    @property
    def end_noted(self) -> str:
        """When it ended, or where that can be looked up."""
        return self.ended or ("see its own journal" if self.command == UNDONE else "no end noted")
