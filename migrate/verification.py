"""Does the target hold what a plan says? Reading is one call; the comparison is pure.

A group that stands beyond its planned offset has been consumed on the target: that is what a cutover is for.
One that stands below, or has no offset, is a failure. One at its offset with other metadata is told, and is none: a
consumer that has just started commits where it stands.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from migrate.errors import EXIT_DONE, EXIT_FAILED
from migrate.model import Commits, Decision, Failure, Row, TopicPartition
from migrate.plan import Plan
from migrate.ports import ClusterAdmin, Progress

READ_BATCH = 1000


class Standing(StrEnum):
    """Where a committed offset stands against its planned one."""

    EQUAL = "equal"
    AHEAD = "ahead"
    OTHER_METADATA = "other-metadata"
    BEHIND = "behind"
    MISSING = "missing"
    NOT_REMOVED = "not-removed"
    NOT_REWOUND = "not-rewound"
    UNREADABLE = "unreadable"


GOOD = frozenset({Standing.EQUAL, Standing.AHEAD, Standing.OTHER_METADATA})


@dataclass(frozen=True, slots=True)
class Finding:
    """One row compared. `expected` and `seen` are target offsets, None for no commit."""

    key: tuple[str, str, int]
    target_partition: TopicPartition
    expected: int | None
    seen: int | None
    standing: Standing
    sentence: str

    @property
    def group(self) -> str:
        """The row's group."""
        return self.key[0]


@dataclass(frozen=True, slots=True)
class Verification:
    """All rows compared, in the plan's order. `moving` are groups that moved between two readings."""

    findings: tuple[Finding, ...]
    moving: frozenset[str] = frozenset()

    @property
    def exit_code(self) -> int:
        """0 if every row is equal or ahead, else 1."""
        return EXIT_DONE if all(f.standing in GOOD for f in self.findings) else EXIT_FAILED

    def counts(self) -> Counter[Standing]:
        """Count findings by standing."""
        return Counter(finding.standing for finding in self.findings)

    def after(self, earlier: "Verification") -> "Verification":
        """Return this second reading with the groups that moved since the `earlier` one."""
        before = {f.key: f.seen for f in earlier.findings}
        moving = frozenset(f.group for f in self.findings if before.get(f.key, f.seen) != f.seen)
        return Verification(self.findings, moving)

    def seen_from(self, topics: Collection[str], alias: str) -> "Verification":
        """Return the same, with what stands on topics that the cluster does not show us as unreadable, not missing.

        Brokers leave commits on topics that we may not DESCRIBE out of the answer, in silence.
        """
        why = "{} shows us no topic {}: it is gone, or this principal lacks DESCRIBE on it"
        return replace(
            self,
            findings=tuple(
                replace(f, standing=Standing.UNREADABLE, sentence=why.format(alias, f.target_partition.topic))
                if f.standing is Standing.MISSING and f.target_partition.topic not in topics
                else f
                for f in self.findings
            ),
        )


def verify(plan: Plan, target: ClusterAdmin, progress: Progress, rows: Collection[Row] | None = None) -> Verification:
    """Read the target afresh and compare the plan's rows, or those of them in `rows`.

    Raises `ClusterError` if the target cannot be reached.
    """
    rows = plan.rows if rows is None else rows
    groups = sorted({row.group for row in _verified(rows)})
    progress.step(f"reading committed offsets of {len(groups)} groups on {plan.header.target_alias}")
    commits: dict[str, Commits | Failure] = {}
    for start in range(0, len(groups), READ_BATCH):
        commits.update(target.commits(groups[start : start + READ_BATCH]))
        progress.advance(min(start + READ_BATCH, len(groups)), len(groups))
    found = compare(plan, commits, rows)
    if any(finding.standing is Standing.MISSING for finding in found.findings):
        found = found.seen_from(target.topics(), target.alias)
    return found


def compare(plan: Plan, commits: Mapping[str, Commits | Failure], rows: Collection[Row] | None = None) -> Verification:
    """Compare every row that was to be written or kept, or those of them in `rows`, with what is committed. Pure."""
    rows = plan.rows if rows is None else rows
    return Verification(tuple(_finding(row, commits.get(row.group, {})) for row in _verified(rows)))


def _verified(rows: Collection[Row]) -> list[Row]:
    return [row for row in rows if row.decision in (Decision.SET, Decision.REMOVE, Decision.KEEP)]


def _finding(row: Row, commits: Commits | Failure) -> Finding:
    # A kept row is held to what it was kept at: an `ahead-kept` one stands beyond its translation.
    expected = row.target_prior if row.decision is Decision.KEEP else row.target_offset
    if isinstance(commits, Failure):
        sentence = f"could not be read: {commits.code}: {commits.message}"
        return Finding(row.key, row.target_partition, expected, None, Standing.UNREADABLE, sentence)
    commit = commits.get(row.target_partition)
    seen = None if commit is None else commit.offset
    standing, sentence = _stand(expected, seen)
    prior = row.target_prior if row.decision is Decision.SET else None
    if standing is Standing.AHEAD and seen == prior:
        # A rewind that was never written looks like a consumer that has moved on, and skips what lies between.
        standing, sentence = Standing.NOT_REWOUND, f"still at its prior offset {seen}, beyond the planned {expected}"
    metadata = row.target_prior_metadata if row.decision is Decision.KEEP else row.target_metadata
    if standing is Standing.EQUAL and commit is not None and commit.metadata != metadata:
        standing = Standing.OTHER_METADATA
        sentence = f"stands at {seen} with other metadata than planned: a consumer has committed there since"
    return Finding(row.key, row.target_partition, expected, seen, standing, sentence)


def _stand(expected: int | None, seen: int | None) -> tuple[Standing, str]:
    if expected == seen:
        return Standing.EQUAL, "as planned"
    if expected is None:
        return Standing.NOT_REMOVED, f"stands at {seen}, where none was to be left"
    if seen is None:
        return Standing.MISSING, f"no committed offset, expected {expected}"
    if seen > expected:
        return Standing.AHEAD, f"moved on by {seen - expected}"
    return Standing.BEHIND, f"stands at {seen}, {expected - seen} below {expected}: these are read again"
