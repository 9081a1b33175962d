"""Does the target hold what a plan says? Reading is a few calls; the comparison is pure.

An offset beyond the planned one is what a cutover is for, if the group's consumers took it there, and skips records if
anybody else did: MM2's group sync, a second tool, a colleague. Offsets cannot tell the two apart. So it is good only
where the group has members now, or the user says that consumers have run; and a journal beside the plan has to say,
too, that the row was set and read back, which is never enough alone: somebody may have written since. The same holds
for a row at its offset with other metadata: a consumer that has just started commits where it is.

Rows that were not to be written are counted apart (`Verification.not_written`), and a plan that was rolled back is
spent: it is never verified, wherever its offsets are.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from migrate.apply.history import JournalState
from migrate.apply.outcome import NOTED_WORDS, Noted, State, found_at, noted, state_of
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, UsageError
from migrate.model import CheckResult, Commit, Commits, Decision, Failure, GroupState, Row, TopicPartition
from migrate.plan.plan import UNDO, Plan
from migrate.ports import Progress
from migrate.progress import in_batches
from migrate.row_table import GroupRows, PlanRows
from migrate.survey.cluster import ClusterAdmin
from migrate.text import many


class Standing(StrEnum):
    """Where a committed offset is, against its planned one.

    The `-empty` ones lack a consumer that accounts for them, the `-not-set` ones a write that was read back. Of
    `blocked`, `skipped` and `left-out` nothing was to be written: by the plan, by a reviewer's choice, or because apply
    left the group out. Of `rolled-back`, a rollback of the group alone was begun: apply never writes it again.
    """

    EQUAL = "equal"
    AHEAD = "ahead"
    OTHER_METADATA = "other-metadata"
    BEHIND = "behind"
    MISSING = "missing"
    AHEAD_EMPTY = "ahead-empty"
    AHEAD_NOT_SET = "ahead-not-set"
    METADATA_EMPTY = "other-metadata-empty"
    METADATA_NOT_SET = "other-metadata-not-set"
    NOT_REMOVED = "not-removed"
    NOT_REWOUND = "not-rewound"
    NOT_ACKNOWLEDGED = "not-acknowledged"
    MOVING_EMPTY = "moving-empty"
    UNREADABLE = "unreadable"
    BLOCKED = "blocked"
    SKIPPED = "skipped"
    LEFT_OUT = "left-out"
    ROLLED_BACK = "rolled-back"


NOT_WRITTEN = {Decision.BLOCK: Standing.BLOCKED, Decision.SKIP: Standing.SKIPPED}


def blocks_without_rows(plan: Plan) -> tuple[CheckResult, ...]:
    """Return the open blocks that no blocked row shows: a group without a commit, a misspelt name, a share group."""
    return (*(() if plan.blocked_groups() else plan.cluster_blocks()), *plan.blocks_without_rows())


MAKE_VERIFICATION = "Make it with: mm2-migrate verify PLAN --format json > verify.json"
GOOD = frozenset({Standing.EQUAL, Standing.AHEAD, Standing.OTHER_METADATA})
# What only consumers may commit, and what is to be asked about them first.
_BY_CONSUMERS = frozenset(
    {
        Standing.AHEAD, Standing.AHEAD_EMPTY, Standing.AHEAD_NOT_SET,
        Standing.OTHER_METADATA, Standing.METADATA_EMPTY, Standing.METADATA_NOT_SET,
    }
)  # fmt: skip
_BY_STATE = frozenset({Standing.AHEAD_EMPTY, Standing.METADATA_EMPTY})
# Of a topic that the target does not show.
_HIDDEN = "NOT_SHOWN"
_AS_BEFORE = frozenset({Standing.MISSING, Standing.BEHIND, Standing.NOT_REMOVED, Standing.METADATA_NOT_SET})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the offsets. `topics` are those that the target shows us, None where that was not asked.

    `states` are the target's groups as they are now. `consumers_ran` is the user's word that they have consumed there.
    """

    journal: JournalState = field(default_factory=JournalState)
    consumers_ran: bool = False
    states: Mapping[str, GroupState | Failure] = field(default_factory=dict)
    topics: Collection[str] | None = None


class VerifyFinding(NamedTuple):
    """One row compared. `expected` and `seen` are target offsets, None for no commit; `journal` is its word.

    `reason` is the plan's code of a row that it does not write, "" of any other. A tuple: there are as many as the plan
    has rows.
    """

    key: tuple[str, str, int]
    target_partition: TopicPartition
    expected: int | None
    seen: int | None
    standing: Standing
    sentence: str
    journal: Noted = Noted.NOTHING
    reason: str = ""

    @property
    def group(self) -> str:
        """The row's group."""
        return self.key[0]

    @property
    def is_good(self) -> bool:
        """True if the group may start, or has started, from there."""
        return self.standing in GOOD


@dataclass(frozen=True, slots=True)
class Verification:
    """All rows compared, in the plan's order. `moving` are groups that moved between two readings.

    `not_written` are the rows that there is nothing to compare of, `blocks` the plan's blocks that have no row at all.
    `spent` says that a rollback of the plan was begun, `undone` whether it restored all, None where another journal
    says so. `unapplied` says that the plan has no journal, and that all it writes is where it was before.
    """

    findings: tuple[VerifyFinding, ...]
    moving: frozenset[str] = frozenset()
    not_written: tuple[VerifyFinding, ...] = ()
    blocks: tuple[CheckResult, ...] = ()
    spent: bool = False
    undone: bool | None = None
    unapplied: bool = False

    @property
    def bad(self) -> tuple[VerifyFinding, ...]:
        """Rows that are not as planned."""
        return tuple(f for f in self.findings if not f.is_good)

    @property
    def exit_code(self) -> int:
        """1 if a row is not as planned or the plan is spent; else 4 if something was not written; else 0."""
        if self.spent or self.bad:
            return EXIT_FAILED
        return EXIT_PARTLY if self.not_written or self.blocks else EXIT_DONE

    def counts(self) -> Counter[Standing]:
        """Count findings by standing."""
        return Counter(finding.standing for finding in self.findings)

    def after(self, earlier: "Verification", alive: Callable[[frozenset[str]], frozenset[str]]) -> "Verification":
        """Return this second reading with the groups that moved since the `earlier` one.

        `alive` returns those of them that consumers account for: any other one that moves is a finding.
        """
        before = {f.key: f.seen for f in earlier.findings}
        moved = {f.key for f in self.findings if before.get(f.key, f.seen) != f.seen}
        moving = frozenset(f.group for f in self.findings if f.key in moved)
        strange = moving - alive(moving) if moving else moving
        findings = tuple(
            f._replace(
                standing=Standing.MOVING_EMPTY,
                sentence=f"{f.sentence}; moved between two readings by an unknown client",
            )
            if f.key in moved and f.group in strange and f.standing in GOOD
            else f
            for f in self.findings
        )
        return replace(self, findings=findings, moving=moving)


def with_members(target: ClusterAdmin, known: "Known", groups: frozenset[str]) -> frozenset[str]:
    """Return those of `groups` that consumers account for: they have members now, or consumers are said to have run."""
    if known.consumers_ran:
        return groups
    states = target.group_states(sorted(groups))
    return frozenset(g for g, state in states.items() if not isinstance(state, Failure) and state.member_count)


def read_verification(file: Path) -> bytes:
    """Return the content of a file with what `verify --format json` printed; raises `UsageError` for no such file."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"The verification {file} cannot be read: {error.strerror}.", MAKE_VERIFICATION) from None


def joint_exit_code(*codes: int) -> int:
    """Return the exit code of several answers: 1 outranks 4, which outranks 0."""
    return EXIT_FAILED if EXIT_FAILED in codes else max(codes)


def verify(
    plan: Plan,
    target: ClusterAdmin,
    progress: Progress,
    rows: Collection[Row] | None = None,
    known: Known | None = None,
) -> Verification:
    """Read the target afresh and compare the plan's rows, or those of them in `rows`.

    Group states are asked for where an offset needs a consumer to account for it. Raises `ClusterError` if the target
    cannot be reached.
    """
    known = known or Known()
    if rows is None:
        groups = sorted(g for g, table in plan.groups().items() if set(table.column("decision")) - NOT_WRITTEN.keys())
    else:
        groups = sorted({row.group for row in rows if row.decision not in NOT_WRITTEN})
    progress.step(f"reading committed offsets of {many(len(groups), 'group')} on {plan.header.target_alias}")
    commits = in_batches(groups, target.commits, progress)
    first, asked = compare(plan, commits, rows, known), known
    unseen = any(finding.seen is None for finding in first.findings)
    if unseen or any(row.standing is Standing.LEFT_OUT for row in first.not_written):
        # Brokers leave commits on topics that we may not DESCRIBE out of the answer, in silence.
        known = replace(known, topics=target.topics())
    unexplained = sorted({f.group for f in first.findings if f.standing in _BY_STATE})
    if unexplained:
        progress.step(f"asking {plan.header.target_alias} whether {many(len(unexplained), 'group')} have members")
        known = replace(known, states=in_batches(unexplained, target.group_states, progress))
    return first if known is asked else compare(plan, commits, rows, known)


def compare(
    plan: Plan,
    commits: Mapping[str, Commits | Failure],
    rows: Collection[Row] | None = None,
    known: Known | None = None,
) -> Verification:
    """Compare the plan's rows, or those of them in `rows`, with what is committed. Pure.

    Blocks without a row are those of the whole plan: a selection of rows is not asked about them.
    """
    known = known or Known()
    journal, shown = known.journal, known.topics
    findings: list[VerifyFinding] = []
    unwritten: list[VerifyFinding] = []
    states: set[State] = set()
    tables = plan.groups().values() if rows is None else PlanRows.of(rows).groups().values()
    for table in tables:
        trace, partitions = journal.applied.get(table.group), table.target_partitions()
        if not journal.is_spent and table.group in journal.spent_groups:
            back, sentence = journal.rolled_back.get(table.group), "its group was rolled back alone, and read back"
            those = unwritten
            if back is None and (trace is None or not trace.written()):
                sentence = "its group was given up by `rollback --group` before anything of it was written"
            elif back is None or not back.read_back:
                # Somewhere between the two states; else it is no part of the plan any more.
                sentence = "its group was rolled back alone, and not read back: run that rollback again"
                those = findings
            those += (
                VerifyFinding(r.key, r.target_partition, None, None, Standing.ROLLED_BACK, sentence) for r in table
            )
            continue
        found = _found(table, commits.get(table.group, {}), shown)
        for row, partition, commit in zip(table, partitions, found, strict=True):
            state = state_of(row, trace, commit)
            if state is State.NOT_HELD:
                why, sentence = NOT_WRITTEN[row.decision], row.sentence
                unwritten.append(VerifyFinding(row.key, partition, None, None, why, sentence, reason=row.reason))
                continue
            word = noted(row, trace, journal)
            if row.decision is not Decision.KEEP:
                states.add(state)
            if state is State.AS_PLANNED:
                offset = None if commit is None or isinstance(commit, Failure) else commit.offset
                findings.append(VerifyFinding(row.key, partition, offset, offset, Standing.EQUAL, "as planned", word))
                continue
            finding = _finding(plan, row, commit, state, word, known)
            if trace is None and word is Noted.NO_WRITE and state is State.PENDING and finding.standing in _AS_BEFORE:
                # Apply wrote other groups and not this one. One that has moved since is a finding, and so is one beyond
                # its planned offset: starting there skips records.
                where = "it has no committed offset" if finding.seen is None else f"it is at {finding.seen}"
                sentence = f"{NOTED_WORDS[word]}: {where}, as before"
                unwritten.append(finding._replace(standing=Standing.LEFT_OUT, sentence=sentence))
            else:
                findings.append(finding)
    blocks = blocks_without_rows(plan) if rows is None else ()
    undone = journal.is_undone if journal.is_spent else None
    unapplied = not journal.events and states == {State.PENDING}
    return Verification(tuple(findings), frozenset(), tuple(unwritten), blocks, journal.is_spent, undone, unapplied)


def _found(
    rows: GroupRows, commits: Commits | Failure, shown: Collection[str] | None
) -> Sequence[Commit | Failure | None]:
    """Return what is committed for each row of a group; `shown` are the topics that the target shows, if asked."""
    found = found_at(commits, rows.target_partitions())
    if shown is None or None not in found:
        return found
    hidden, pairs = Failure(_HIDDEN, ""), zip(rows.whole("target_topic"), found, strict=True)
    return [hidden if commit is None and topic not in shown else commit for topic, commit in pairs]


def _finding(
    plan: Plan, row: Row, commit: Commit | Failure | None, state: State, word: Noted, known: Known
) -> VerifyFinding:
    """Return how a row that is not as planned stands."""
    # A kept row is held to what it was kept at: an `ahead-kept` one is beyond its translation.
    kept = row.decision is Decision.KEEP
    expected = row.target_prior if kept else row.target_offset
    seen = None if commit is None or isinstance(commit, Failure) else commit.offset
    if isinstance(commit, Failure):
        standing, sentence = Standing.UNREADABLE, f"could not be read: {commit}"
        if commit.code == _HIDDEN:
            gone = "it is gone, or this principal lacks DESCRIBE on it"
            sentence = f"{plan.header.target_alias} shows us no topic {row.target_topic}: {gone}"
    elif state is State.UNKNOWN:
        where = "no offset" if seen is None else f"at {seen}"
        standing = Standing.NOT_ACKNOWLEDGED
        sentence = f"is {where}, and the cluster has not acknowledged it: an earlier write may still become visible"
    elif expected is None:
        standing, sentence = Standing.NOT_REMOVED, f"is at {seen}, where none was to be left"
    elif seen is None:
        standing, sentence = Standing.MISSING, f"no committed offset, expected {expected}"
    elif seen < expected:
        standing = Standing.BEHIND
        sentence = f"is at {seen}, {expected - seen} below the planned {expected}: these are read again"
    elif seen != expected and seen == row.target_prior and not kept and word is not Noted.READ_BACK:
        # A rewind that was never written looks like a consumer that has moved on, and skips what lies between.
        standing = Standing.NOT_REWOUND
        sentence = f"is still at its prior offset {seen}, beyond the planned {expected}"
    else:
        standing, sentence = _explained(plan, row, seen - expected, seen, word, known)
    if not kept and (word is not Noted.NOTHING or standing in _BY_CONSUMERS):
        since = ", and a rollback has begun since" if known.journal.is_spent and word is Noted.READ_BACK else ""
        sentence = f"{sentence}; {NOTED_WORDS[word]}{since}"
    return VerifyFinding(row.key, row.target_partition, expected, seen, standing, sentence, word)


def _explained(plan: Plan, row: Row, beyond: int, seen: int, word: Noted, known: Known) -> tuple[Standing, str]:
    """Return whether consumers account for an offset, or for metadata, that only they may have committed."""
    standing, sentence = Standing.OTHER_METADATA, f"is at {seen} with other metadata than planned"
    good = sentence
    if beyond:
        standing, good = Standing.AHEAD, f"moved on by {beyond} to {seen}"
        sentence = f"is at {seen}, {beyond} beyond the planned {seen - beyond}"
    # An undo that nobody has applied finds offsets beyond its own: they are what it is to take back.
    proof_is_due = row.decision is not Decision.KEEP and (known.journal.events > 0 or plan.header.kind == UNDO)
    if proof_is_due and word is not Noted.READ_BACK:
        return Standing(f"{standing}-not-set"), sentence
    if known.consumers_ran:
        return standing, f"{good}: consumers have run, says --consumers-ran"
    state = known.states.get(row.group)
    if isinstance(state, Failure):
        return Standing.UNREADABLE, f"{sentence}, and whether the group has members could not be read: {state}"
    if state is not None and state.member_count:
        return standing, f"{good}: the group has {many(state.member_count, 'member')}"
    empty = f"the group has no members{'' if state is None else f' ({state.state})'}"
    return Standing(f"{standing}-empty"), f"{sentence}, and {empty}"
