"""What became of a plan, as the table, the report and JSON show it; `report_outcome` makes it of files beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.apply.runs import PastRun

Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class RowAfter:
    """One row afterwards. `seen` is the offset that was read back as text, "" where it was not read, "none" for none.

    `standing` and `verified` are `verify`'s word and sentence, "" where it was not run or did not look at this row.
    """

    status: str
    seen: str = ""
    told: str = ""
    standing: str = ""
    verified: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """One sentence in capitals at the top, and whether it is good news: "good", "warn" or "bad"."""

    text: str
    kind: str


@dataclass(frozen=True)
class Aftermath:
    """What happened to a plan. Empty where it has no journal and was not verified; `verified_at` is ISO 8601, or "".

    `spent` says that a rollback of all of it was begun, `undone` whether that restored everything, None where another
    journal says so. Groups: `spent_groups` were rolled back alone, `half_undone` are those of them that were not
    restored, or not read back; `unwritten` are those of others that `apply` did not set, and may: with `left_out` it
    saw to that itself.
    """

    verdicts: tuple[Headline, ...] = ()
    runs: tuple[PastRun, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[Key, RowAfter] = field(default_factory=dict)
    standings: Mapping[str, int] = field(default_factory=dict)
    spent: bool = False
    undone: bool | None = None
    spent_groups: frozenset[str] = frozenset()
    half_undone: frozenset[str] = frozenset()
    unwritten: frozenset[str] = frozenset()
    left_out: bool = False
    complete: bool = False
    verified_at: str = ""

    def __bool__(self) -> bool:
        return bool(self.verdicts)


@dataclass(frozen=True, slots=True)
class Beside:
    """What the files beside a plan say: what became of it, and the different names that have signed it."""

    after: Aftermath = field(default_factory=Aftermath)
    signed: tuple[str, ...] = ()
