"""What of a plan needs a person's attention, worst first: blocks, skips and rewinds, waivers, warnings.

Results of one check with the same thing to do are one finding, so that 300 live groups are one; and what was seen on
several of its subjects alike is said once, with the subjects that share it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate.model import GROUP_BLOCKED, CheckResult, Decision, Level, Row, Scope
from migrate.plan.plan import UNDO, Header, Plan
from migrate.text import many, name, safe


class AttentionKind(StrEnum):
    """What sort of finding it is, as it is printed in front of it."""

    BLOCK = "BLOCK"
    MAY_SKIP = "MAY SKIP"
    REWIND = "REWIND"
    ACCEPTED = "ACCEPTED"
    WARN = "WARN"

    @property
    def is_grave(self) -> bool:
        """True for what stops the night or may cost data."""
        return self in (AttentionKind.BLOCK, AttentionKind.MAY_SKIP, AttentionKind.REWIND)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen, and all the subjects on which just that was seen, in their order."""

    seen: str
    subjects: tuple[str, ...]

    def listed(self, most: int) -> str:
        """Return at most so many of the subjects, as a list on one line."""
        return listed(self.subjects[:most])


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing to look at: a check or a row's reason, the subjects it was seen on, and what to do.

    `seen` are (subject, what was seen) pairs. `what` counts the subjects ("3 groups"), `noun` is what one of them is.
    """

    kind: AttentionKind
    name: str
    what: str
    expected: str
    seen: tuple[tuple[str, str], ...]
    todo: str
    noun: str = "place"

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What was seen, each once, in the order in which it was seen first."""
        return shared(self.seen)


def shared(seen: Iterable[tuple[str, str]]) -> tuple[Evidence, ...]:
    """Return (subject, what was seen) pairs with each thing seen once, in the order in which it came first."""
    subjects: dict[str, list[str]] = {}
    for subject, what in seen:
        subjects.setdefault(what, []).append(subject)
    return tuple(Evidence(what, tuple(names)) for what, names in subjects.items())


def listed(names: Iterable[str]) -> str:
    """Return names in a row; in quotes those that hold a comma or a blank, or one name would pass for two."""
    return ", ".join(f'"{safe(n)}"' if "," in n or " " in n else name(n) for n in names)


def findings(plan: Plan) -> tuple[Attention, ...]:
    """Return all findings, worst first; within a kind in the order of the checks."""
    of_checks = _of_checks(plan.header.checks)
    return _worst_first(
        [*of_checks, *_blocks_without_check(plan), *_of_rows(plan), *_given_up(plan), *_undecodable(plan)]
    )


def findings_of(checks: Iterable[CheckResult], skipping: Iterable[Row] = ()) -> tuple[Attention, ...]:
    """Return what checks say beside a pass, and the rows that may skip records by choice, worst first."""
    chosen = "Chosen by option: records that are owed may never be read on the target."
    return _worst_first([*_of_checks(checks), *_by_reason(AttentionKind.MAY_SKIP, skipping, chosen)])


def _worst_first(all_findings: Iterable[Attention]) -> tuple[Attention, ...]:
    return tuple(sorted(all_findings, key=lambda finding: list(AttentionKind).index(finding.kind)))


def failback_text(header: Header) -> str:
    """Return the sentence that introduces a failback: which cluster is written."""
    left, written = name(header.source_alias), name(header.target_alias)
    return f"the groups leave {left}, MM2's target, and go back to {written}: {written} is what is written."


def passed(checks: Sequence[CheckResult]) -> tuple[str, ...]:
    """Return the names of the checks of which every result is a pass."""
    other = {c.check for c in checks if c.level is not Level.PASS}
    return tuple(dict.fromkeys(c.check for c in checks if c.check not in other))


def not_ruled_out(checks: Sequence[CheckResult]) -> tuple[str, ...]:
    """Return a sentence for each check that can only refute, and found nothing: neither a finding nor a pass."""
    said = (f"{c.check}: {c.seen}. {c.todo}".rstrip() for c in checks if c.says_nothing)
    return tuple(safe(sentence) for sentence in dict.fromkeys(said))


def _of_checks(checks: Iterable[CheckResult]) -> Iterator[Attention]:
    grouped: dict[tuple[AttentionKind, bool, str, Scope, str], list[CheckResult]] = {}
    for c in checks:
        if c.level is Level.PASS or c.says_nothing:
            continue
        kind, todo = AttentionKind.BLOCK if c.counts_as is Level.BLOCK else AttentionKind.WARN, c.todo
        if c.accepted:
            kind, todo = AttentionKind.ACCEPTED, "Waived by --accept: it will be applied all the same."
        key = (kind, c.level is Level.NOT_VISIBLE, c.check, c.scope, todo)
        grouped.setdefault(key, []).append(c)
    for (kind, hidden, check, scope, todo), results in grouped.items():
        title = f"{check} (not visible)" if hidden else check
        expected = {c.expected for c in results}
        # Where each subject has an expectation of its own, it belongs to what was seen there.
        seen = [(c.subject, c.seen if len(expected) == 1 else f"{c.seen}; expected {c.expected}") for c in results]
        common = expected.pop() if len(expected) == 1 else ""
        yield Attention(kind, title, many(len(seen), str(scope)), common, tuple(seen), todo, str(scope))


def _blocks_without_check(plan: Plan) -> Iterator[Attention]:
    """Name blocked rows whose reason no blocking check gives: no block may be found only in the long list."""
    checks = {c.check for c in plan.blocks()}
    groups = plan.groups()
    blocked = [row for g in sorted(plan.blocked_groups()) for row in groups[g] if row.decision is Decision.BLOCK]
    explained = {row.group for row in blocked if row.reason in checks}
    rows = (r for r in blocked if r.reason not in checks and (r.reason != GROUP_BLOCKED or r.group not in explained))
    yield from _by_reason(AttentionKind.BLOCK, rows, "")


def _of_rows(plan: Plan) -> Iterator[Attention]:
    skipping = list(plan.skipping())
    todo = "No offset is set there: auto.offset.reset decides where these consumers start."
    yield from _by_reason(AttentionKind.MAY_SKIP, (r for r in skipping if r.decision is Decision.SKIP), todo)
    todo = "Chosen by option: records between the two offsets are not read on the target."
    yield from _by_reason(AttentionKind.MAY_SKIP, (r for r in skipping if r.decision is not Decision.SKIP), todo)
    todo = "Chosen by option: the group reads again what it has read on the target."
    yield from _by_reason(AttentionKind.REWIND, plan.rewinding(), todo)


def _given_up(plan: Plan) -> Iterator[Attention]:
    """Name what an undo gives up by the reviewer's choice, and by its nature."""
    if plan.header.kind != UNDO:
        return
    if plan.header.restores_moved:
        seen = tuple((group, f"back on {many(len(rows), 'partition')}") for group, rows in plan.groups().items())
        todo = "Chosen by --moved restore: what its consumers have read since is read again; apply's dry run counts it."
        what = many(len(seen), "group")
        yield Attention(AttentionKind.REWIND, "progress since is given up", what, "", seen, todo, "group")
    removed = (row for row in plan.rows if row.decision is Decision.REMOVE)
    yield from _by_reason(AttentionKind.WARN, removed, "auto.offset.reset decides where these consumers start.")


def _by_reason(kind: AttentionKind, rows: Iterable[Row], todo: str) -> Iterator[Attention]:
    grouped: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        grouped.setdefault(row.reason, []).append((row.subject, row.sentence))
    for reason, seen in grouped.items():
        yield Attention(kind, reason, many(len(seen), "row"), "", tuple(seen), todo, "row")


def _undecodable(plan: Plan) -> Iterator[Attention]:
    counts = {kind: n for kind, n in plan.header.mm2_counts.items() if n and "undecodable" in kind}
    if counts:
        seen = tuple((kind, many(n, "record")) for kind, n in counts.items())
        yield Attention(
            AttentionKind.WARN, "undecodable records in MM2's topics", many(sum(counts.values()), "record"), "", seen,
            "They were left aside. Find out who writes them.",
        )  # fmt: skip
