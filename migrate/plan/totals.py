"""A plan in numbers: what every format and report adds up, counted in one place.

Re-reads and the comparison with MM2 are over all rows that have a translation, blocked ones too: a rehearsal
on a running system blocks every row, and is made to see these numbers.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from migrate.model import Decision, Grade, Method, Row, between
from migrate.plan.plan import Plan
from migrate.row_table import GroupRows, PlanRows
from migrate.text import duration_text

FILTERED = "filtered:"


@dataclass(frozen=True, slots=True)
class Mm2Comparison:
    """The plan's target offsets beside MM2's newest checkpoints, in rows and records.

    `behind`: following MM2 would read more records again. `beyond`: MM2 points further than the plan does;
    it may skip records, or the plan is more careful. `skipping`: it does too, where the plan's offset is proven the
    best, so that MM2 does skip records. `absent`: MM2 has no checkpoint. `other_commit`: its checkpoint is of a later
    commit than the plan translates, so that the two offsets say nothing of each other.
    """

    behind_rows: int = 0
    behind_records: int = 0
    beyond_rows: int = 0
    beyond_records: int = 0
    equal_rows: int = 0
    absent_rows: int = 0
    skipping_rows: int = 0
    skipping_records: int = 0
    other_commit_rows: int = 0

    @property
    def compared_rows(self) -> int:
        """Rows that have both offsets, of one commit or MM2's of an earlier one."""
        return self.behind_rows + self.beyond_rows + self.equal_rows + self.skipping_rows


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows by decision and grade, groups by what becomes of them, commits read and filtered, re-reads.

    `rereads_bounded` is over rows with a proven bound, `rereads_estimated` over the others that have an
    estimate; `unknown_rows` have a translation and neither. An undo rewinds by its nature: not counted there.
    """

    rows: int
    decisions: Mapping[Decision, int]
    grades: Mapping[Grade | None, int]
    groups: int
    groups_to_write: int
    groups_blocked: int
    commits_read: int
    added: int
    filtered: Mapping[str, int]
    bounded_rows: int
    rereads_bounded: int
    estimated_rows: int
    rereads_estimated: int
    unknown_rows: int
    skipping_rows: int
    rewinding_rows: int
    mm2: Mm2Comparison

    @property
    def add_up(self) -> bool:
        """True if rows + filtered = commits read + rows added: no commit is silently absent (promise 3)."""
        return self.rows + sum(self.filtered.values()) == self.commits_read + self.added


def totals(plan: Plan) -> Totals:
    """Count a plan's rows, groups and records."""
    blocked = plan.blocked_groups()
    writing = {
        group
        for group, rows in plan.groups().items()
        if {Decision.SET, Decision.REMOVE}.intersection(rows.column("decision"))
    }
    counts = plan.header.counts
    rereads_of = plan.rows.values("target_offset", "rereads_at_most", "rereads_estimate")
    placed = [(at_most, estimate) for offset, at_most, estimate in rereads_of if offset is not None]
    bounded = [at_most for at_most, _ in placed if at_most is not None]
    guessed = [estimate for at_most, estimate in placed if at_most is None and estimate is not None]
    return Totals(
        rows=len(plan.rows),
        decisions=plan.decisions(),
        grades=plan.rows.tally("grade"),
        groups=len(plan.groups()),
        groups_to_write=len(writing - blocked),
        groups_blocked=len(blocked),
        commits_read=counts.get("commits_read", 0),
        added=counts.get("uncommitted_added", 0),
        filtered={k.removeprefix(FILTERED): n for k, n in counts.items() if k.startswith(FILTERED)},
        bounded_rows=len(bounded),
        rereads_bounded=sum(bounded),
        estimated_rows=len(guessed),
        rereads_estimated=sum(guessed),
        unknown_rows=len(placed) - len(bounded) - len(guessed),
        skipping_rows=sum(1 for _ in plan.skipping()),
        rewinding_rows=sum(1 for _ in plan.rewinding()),
        mm2=compare_with_mm2(plan.rows),
    )


def compare_with_mm2(rows: PlanRows | GroupRows) -> Mm2Comparison:
    """Compare translations with MM2's newest checkpoints; offsets chosen by option are none, and left out."""
    behind, beyond, skipping, equal, absent, other = [], [], [], 0, 0, 0
    fields = ("target_offset", "method", "checkpoint_target_offset", "grade", "target_log_end")
    commits = rows.values("source_committed", "checkpoint_source_offset")
    for (target_offset, method, checkpoint, grade, log_end), commit in zip(rows.values(*fields), commits, strict=True):
        if target_offset is None or method is Method.EXPLICIT:
            continue
        if checkpoint is None:
            absent += 1
        elif is_of_later_commit(*commit):
            other += 1
        elif (difference := checkpoint - target_offset) < 0:
            behind.append(-difference)
        elif not difference:
            equal += 1
        elif _is_proven_best(grade, target_offset, log_end):
            skipping.append(difference)
        else:
            beyond.append(difference)
    return Mm2Comparison(
        len(behind), sum(behind), len(beyond), sum(beyond), equal, absent, len(skipping), sum(skipping), other
    )


def is_of_later_commit(source_committed: int | None, checkpoint_source_offset: int | None) -> bool:
    """True where MM2 made its checkpoint of a commit beyond the row's: the group went on, or was set back since."""
    if source_committed is None or checkpoint_source_offset is None:
        return False
    return checkpoint_source_offset > source_committed


def is_proven_best(row: Row) -> bool:
    """True where any offset beyond the row's is proven to skip records: at the log's end there is none to skip."""
    return _is_proven_best(row.grade, row.target_offset, row.target_log_end)


def _is_proven_best(grade: Grade | None, target_offset: int | None, target_log_end: int | None) -> bool:
    return grade is Grade.EXACT and target_offset != target_log_end


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """Rows of one group added up. `lag` and `rereads` are None where no row has them, or one that counts has not.

    `sign` goes before the re-reads: "~" where a row's are only estimated, "<=" where they are a bound, else "".
    """

    decisions: Mapping[Decision, int]
    lag: int | None
    rereads: int | None
    sign: str


def group_totals(rows: GroupRows) -> GroupTotals:
    """Add up the rows of one group."""
    stood = [log for log in rows.values("source_committed", "source_log_end") if log[0] is not None]
    lags = [between(*log) for log in stood]
    behind = [max(0, n) for n in lags if n is not None]  # a commit beyond the end is no negative lag
    of_rows = rows.values("target_offset", "rereads_at_most", "rereads_estimate")
    placed_rows = [(at_most, estimate) for placed, at_most, estimate in of_rows if placed is not None]
    counted = [n for at_most, estimate in placed_rows if (n := estimate if at_most is None else at_most) is not None]
    guessed = any(at_most is None and estimate is not None for at_most, estimate in placed_rows)
    counts = Counter(rows.whole("decision"))
    return GroupTotals(
        {d: counts[d] for d in Decision if counts[d]},
        # A sum of some of them would pass for the group's.
        sum(behind) if behind and len(behind) == len(stood) else None,
        sum(counted) if counted and len(counted) == len(placed_rows) else None,
        "~" if guessed else "<=" if Grade.BOUNDED in rows.column("grade") else "",
    )


# Starting the process and reaching a cluster, where no timing tells.
START_SECONDS = 1.0
WRITE_IN_READS = 3.0
# With fewer, reading commits mostly finds coordinators, and says nothing of writing: six rows were forecast to be
# applied in 16 s, and took 2.
MEASURABLE_OFFSETS = 1000
# What `plan` read that `apply` reads again, by the names of its steps.
READ_AGAIN = ("reach", "commits", "pin", "topics")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds that each command is likely to take, and how many offsets of how many groups `apply` would write."""

    plan_seconds: float
    apply_seconds: float
    verify_seconds: float
    offsets: int
    groups: int

    @property
    def text(self) -> str:
        """The forecast in one line; `apply` and `verify` are in it only where the number of offsets decides."""
        took = [("plan", self.plan_seconds)]
        if self.offsets >= MEASURABLE_OFFSETS:
            took += [("apply", self.apply_seconds), ("verify", self.verify_seconds)]
        return ", ".join(f"{command} about {duration_text(seconds)}" for command, seconds in took)


def forecast(plan: Plan) -> Forecast | None:
    """Return how long the night's commands will take, from the timings of a rehearsal; None without any (an undo).

    `plan` takes what it took. `apply` reads groups and logs again, as often as `plan` did but for the second look, then
    writes and reads back; `verify` reads the target. A write costs about as much as three reads of the same offsets
    (10,000 groups of 10 partitions: 1.9 s to read, 5.2 s to write). Blocked rows count: on the night they are to be
    written.
    """
    timings = plan.header.timings
    if not timings:
        return None
    read = sum(timings.get(name, 0.0) for name in READ_AGAIN)
    # States are asked for twice by `plan`, once by `apply`.
    read += timings.get("states", 0.0) / 2
    commits = timings.get("commits", 0.0)
    to_write = [
        sum(offset is not None and decision is not Decision.KEEP for offset, decision in rows)
        for rows in (of_group.values("target_offset", "decision") for of_group in plan.groups().values())
    ]
    return Forecast(
        plan_seconds=START_SECONDS + sum(timings.values()),
        apply_seconds=START_SECONDS + read + (WRITE_IN_READS + 1) * commits,
        verify_seconds=START_SECONDS + timings.get("reach", 0.0) + commits,
        offsets=sum(to_write),
        groups=sum(map(bool, to_write)),
    )
