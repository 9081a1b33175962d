"""What `status --follow` shows of a mandate: its status file, read at every look."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.apply.follow_run import read_status, status_path
from migrate.clock import ms_of
from migrate.plan.file import read_plan
from migrate.plan.standing import mandate_of
from migrate.show.follow import status_facts
from migrate.show.lines import aligned
from migrate.show.mandate import LABELS
from migrate.show.plan_table import Page


@dataclass(frozen=True)
class Followed:
    """The status file of one mandate."""

    path: Path

    @classmethod
    def under(cls, plan_path: Path) -> "Followed":
        """Return that of the mandate at `plan_path`; raises `UsageError` for a plan that is none."""
        plan = read_plan(plan_path)
        mandate_of(plan)
        return cls(status_path(plan_path, plan.fingerprint))

    def document(self) -> dict[str, Any] | None:
        """Return what the file says now, None where there is none; raises `MigrateError` if it cannot be read."""
        return read_status(self.path)

    def lines(self, page: Page, now_ms: int) -> Iterator[str]:
        """Yield what the file says now, for people; `now_ms` is the time of the look."""
        document = self.document()
        last = None if document is None else document["pass"]
        at_ms = None if last is None else ms_of(last["at"])
        yield from aligned(status_facts(document, now_ms, at_ms), page.width, LABELS)
