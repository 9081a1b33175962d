"""What one pass of `follow` does with each group: set its rows, leave them, or refuse it with a reason. Pure.

Invariants, whatever the rows say:
- Never on a living group. One that was seen alive on the target is left alone from then on.
- Never over somebody else's write. A group in which something stands that is neither our own last write nor what stood
  there before our first one is left alone from then on.
- Never back, unless what stands there is our own last write: then a reset on the source has to reach the target.
- A group is set whole or not at all: also not without a place that we wrote, and that has no row any more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from migrate.apply.history import JournalState
from migrate.checks.check import is_without_members
from migrate.checks.groups import offsets_expiry
from migrate.extras.follow.journal import Followed, same
from migrate.model import (
    GROUP_BLOCKED,
    UNACKNOWLEDGED,
    UNREAD_METADATA,
    CheckResult,
    Commit,
    Commits,
    Decision,
    Failure,
    Grade,
    GroupState,
    Level,
    Row,
    Scope,
    TopicPartition,
)
from migrate.row_table import PlanRows
from migrate.survey.cluster import BrokerSettings
from migrate.survey.offsets_topic import GroupRecord
from migrate.survey.survey import Survey
from migrate.text import capital


class WhyNot(StrEnum):
    """Why `follow` refuses a group, where no check and no row of the plan names the reason."""

    ALIVE = "alive-on-target"
    WRITTEN = "written-by-somebody-else"
    NAME = "no-name-of-its-own"
    STATE = "state-not-visible"
    COMMITS = "commits-not-visible"
    MOVES_BACK = "would-move-back"
    MOVING = "commits-moving"
    GRADE = "grade-outside-mandate"
    JAVA = "java-needed"
    CHANGED = "changed-meanwhile"
    GONE_FROM_SOURCE = "gone-from-source"
    GONE_FROM_TARGET = "gone-from-target"
    NOT_SET = "not-set"


# Where the target does not tell how long it keeps offsets; Kafka's default is 7 days, before 2.0 it was one.
REFRESH_MS = 12 * 3_600_000
REFRESHES_PER_RETENTION = 4
# From then on the group is left alone: its consumers, or somebody, have taken it over.
FINAL = frozenset({WhyNot.ALIVE, WhyNot.WRITTEN})
_ONLY_JAVA = "Only Kafka's Java client reads and writes it byte for byte, and it could not be asked."


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the mandate allows, and what the target tells.

    `retention_ms` is how long it keeps offsets, None where it did not say. A write of ours that is older than
    `refresh_ms` is made again, so that retention does not take it.
    """

    grades: frozenset[Grade]
    retention_ms: int | None
    refresh_ms: int

    @classmethod
    def by(cls, settings: BrokerSettings | Failure, grades: frozenset[Grade]) -> "Allowed":
        """Return what a mandate with these grades allows on a target with these settings."""
        retention_ms = settings.retention_ms if isinstance(settings, BrokerSettings) else None
        return cls(
            grades, retention_ms, REFRESH_MS if retention_ms is None else retention_ms // REFRESHES_PER_RETENTION
        )


@dataclass(frozen=True)
class SeenGroup:
    """What a pass saw of one group: its translated rows with blocks laid over, and what is committed on the target.

    `moving` says which commits changed while the group had no member, "" where none did or that was accepted.
    `is_expiring` is True where retention takes its offsets soon, and a write of all of them keeps them. `own_clock_ms`
    is when retention takes all offsets of a classic group, by what was seen of it before; None where that was not seen.
    `doubt` refuses the group for what was not seen, whatever its rows say. `uncovered` says for which of its partitions
    it has no row, so that its consumers' `auto.offset.reset` decides there; "" for none. `written_ms` is when a place
    was written last, as far as the cluster has said so, or tried to first; `watched_since_ms` is when this process
    began to look. Both are in ms since 1970.
    """

    group: str
    rows: Sequence[Row]
    target_commits: Commits
    target_state: GroupState | Failure | None
    moving: str = ""
    is_expiring: bool = False
    own_clock_ms: int | None = None
    doubt: "Refusal | None" = None
    uncovered: str = ""
    written_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    watched_since_ms: int = 0

    @property
    def is_alive(self) -> bool:
        """True if it has members on the target: it reads where it is, and its offsets are its own affair until then."""
        return isinstance(self.target_state, GroupState) and not is_without_members(self.target_state)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a group is not written.

    `is_unsafe` where it would skip records if its consumers started on the target, or nobody can tell: nothing stands
    there, or nobody knows what they are owed.
    """

    reason: str
    sentence: str
    is_unsafe: bool = False

    @property
    def is_final(self) -> bool:
        """True if the group is left alone from now on."""
        return self.reason in FINAL


def judge(seen: SeenGroup, known: Followed, allowed: Allowed, now_ms: int) -> "tuple[Row, ...] | Refusal":
    """Return the rows of a group that a pass sets, or why it is left out.

    A row to set that stands there already is `UNACKNOWLEDGED`: no reading tells whether it was written again.
    """
    refused = _refusal(seen, known, allowed, now_ms)
    if refused is not None:
        return refused
    return tuple(
        _to_set(row, seen.target_commits.get(row.target_partition))
        for row in seen.rows
        if row.decision is not Decision.SKIP
        and (seen.is_expiring or _is_to_be_set(row, seen, known, now_ms - allowed.refresh_ms))
    )


def _to_set(row: Row, commit: Commit | None) -> Row:
    reason = UNACKNOWLEDGED if same(commit, row.target_commit) else row.reason
    return row._replace(decision=Decision.SET, reason=reason)


def _is_to_be_set(row: Row, seen: SeenGroup, known: Followed, written_before_ms: int) -> bool:
    """True if a row has to be written: it stands elsewhere, is not ours for certain, or retention would take it.

    What stands there is no proof of a write in doubt: only another one after it rules out that it shows yet.
    """
    place, commit = row.target_partition, seen.target_commits.get(row.target_partition)
    if not same(commit, row.target_commit) or not known.is_ours(place, commit):
        return True
    return not known.trace.is_certain(place) or seen.written_ms[place] <= written_before_ms


def _refusal(seen: SeenGroup, known: Followed, allowed: Allowed, now_ms: int) -> Refusal | None:
    if known.left:
        return refuse(seen, known.left, "It is left alone since an earlier pass.")
    state = seen.target_state
    if isinstance(state, Failure) or state is None:
        return refuse(seen, WhyNot.STATE, f"Its state on the target could not be read: {state or 'no answer'}.")
    if not is_without_members(state):
        return refuse(seen, WhyNot.ALIVE, f"It is {state.state} on the target: {state.some_members()}.")
    for found in (
        _unread(seen, known),
        _foreign(seen, known, allowed, now_ms),
        _gone(seen, known),
        _not_translated(seen, allowed),
        _backwards(seen, known),
    ):
        if found is not None:
            return found
    return None


def _unread(seen: SeenGroup, known: Followed) -> Refusal | None:
    """Return the refusal of a group whose metadata could not be read: whether it is ours is not known then."""
    for place in sorted({row.target_partition for row in seen.rows} | known.written):
        commit = seen.target_commits.get(place)
        if commit is not None and commit.metadata == UNREAD_METADATA:
            return refuse(seen, WhyNot.JAVA, f"{place} carries metadata on the target. {_ONLY_JAVA}")
    return None


def _foreign(seen: SeenGroup, known: Followed, allowed: Allowed, now_ms: int) -> Refusal | None:
    """Return the refusal of a group in which somebody else has written since we began; None where nobody has."""
    ours = {row.target_partition for row in seen.rows} | known.written
    for place in sorted(ours) if known.is_saved else ():
        commit, prior, writes = seen.target_commits.get(place), known.prior.get(place), known.writes(place)
        if known.is_ours(place, commit) or (known.may_be_as_before(place) and same(commit, prior)):
            continue
        if commit is None and (not writes or _is_expired(place, seen, allowed, now_ms)):
            continue
        if commit is None and seen.written_ms[place] < seen.watched_since_ms:
            # While no process looked, the clock of a whole group may have run out, or another client has removed it.
            return refuse(seen, WhyNot.GONE_FROM_TARGET, f"{place}: our own write, {writes[-1].offset}, is gone.")
        owed = writes or ((prior,) if prior else ())
        expected = " or ".join(str(own.offset) for own in owed) or "none"
        found = "none" if commit is None else str(commit.offset)
        return refuse(seen, WhyNot.WRITTEN, f"{place}: expected our own write, {expected}; found {found}.")
    return None


def _is_expired(place: TopicPartition, seen: SeenGroup, allowed: Allowed, now_ms: int) -> bool:
    if seen.own_clock_ms is not None and now_ms >= seen.own_clock_ms:
        return True
    return allowed.retention_ms is not None and now_ms - seen.written_ms[place] >= allowed.retention_ms


def own_clocks(
    before: Mapping[str, int],
    records: Mapping[str, GroupRecord] | Failure,
    retention_ms: int | None,
    written: Collection[str],
) -> dict[str, int]:
    """Return when retention takes all offsets of each classic group without members, in ms since 1970.

    `before` is the same of the pass before: of a group that has no record any more it holds until the group is written.
    """
    there = {} if isinstance(records, Failure) else records
    kept = {group: ms for group, ms in before.items() if group not in there and group not in written}
    if retention_ms is None:
        return kept
    return kept | {
        group: record.empty_since_ms + retention_ms
        for group, record in there.items()
        if record.has_one_clock and record.empty_since_ms is not None
    }


def _gone(seen: SeenGroup, known: Followed) -> Refusal | None:
    """Return the refusal of a group of which only a part of what we wrote has a place now: it is set whole or not."""
    written = known.written
    for row in seen.rows:
        if row.decision is Decision.SKIP and row.target_partition in written:
            # The mandate lets a pass begin without it, and not leave behind what an earlier one has set.
            sentence = f"{row.target_partition} was written, and has no translation now: {row.sentence}"
            return Refusal(row.reason, sentence, is_unsafe=True)
    gone = sorted(written - {row.target_partition for row in seen.rows})
    if not gone:
        return None
    sentence = f"No commit of it for {gone[0]} was seen on the source: its offset on the target may be old."
    return Refusal(WhyNot.GONE_FROM_SOURCE, sentence, is_unsafe=True)


def _not_translated(seen: SeenGroup, allowed: Allowed) -> Refusal | None:
    blocked = [row for row in seen.rows if row.decision is Decision.BLOCK]
    if blocked:
        # The row that blocks by itself says more than the others of its group.
        first = next((row for row in blocked if row.reason != GROUP_BLOCKED), blocked[0])
        return refuse(seen, first.reason, first.sentence)
    if seen.moving:
        sentence = f"It has no member, and yet its commits move ({seen.moving}): a reader that assigns partitions "
        return refuse(seen, WhyNot.MOVING, sentence + "itself is never seen as alive.")
    if seen.doubt is not None:
        return seen.doubt
    for row in seen.rows:
        if row.decision is Decision.SKIP:
            continue
        if row.target_commit is None or row.grade not in allowed.grades:
            grade = "no grade" if row.grade is None else f"grade {row.grade}"
            return refuse(seen, WhyNot.GRADE, f"{row.subject} has {grade}: {row.sentence}")
        if UNREAD_METADATA in (row.target_metadata, row.target_prior_metadata):
            return refuse(seen, WhyNot.JAVA, f"{row.subject} carries metadata. {_ONLY_JAVA}")
    return None


def _backwards(seen: SeenGroup, known: Followed) -> Refusal | None:
    for row in seen.rows:
        if row.decision is not Decision.SKIP and _would_go_back(row, seen, known):
            commit = seen.target_commits[row.target_partition]
            beyond = f"{commit.offset} is there, beyond {row.target_offset}"
            return refuse(seen, WhyNot.MOVES_BACK, f"{row.target_partition}: {beyond}, and it is not ours.")
    return None


def _would_go_back(row: Row, seen: SeenGroup, known: Followed) -> bool:
    commit = seen.target_commits.get(row.target_partition)
    if commit is None or row.target_offset is None or row.target_offset >= commit.offset:
        return False
    return not known.is_ours(row.target_partition, commit)


def gone_from_source(state: JournalState, there: Collection[str]) -> dict[str, Refusal]:
    """Return the groups that were written and have no row now; `there` are those that have.

    One that is left alone is done: what it has on the target is its consumers' affair.
    """
    sentence = "No commit of it was seen on the source: nothing keeps its offsets on the target from expiring."
    return {
        group: Refusal(WhyNot.GONE_FROM_SOURCE, sentence, is_unsafe=True)
        for group, trace in state.applied.items()
        if group not in there and trace.written() and group not in state.notes
    }


def without_rows(results: Collection[CheckResult], rows: PlanRows) -> dict[str, Refusal]:
    """Return the groups that a check blocks and that have no row: a name that no group has, a share group."""
    groups = rows.groups()
    blocks = (r for r in results if r.counts_as is Level.BLOCK and r.scope is Scope.GROUP and r.subject not in groups)
    return {r.subject: Refusal(r.check, f"{capital(r.seen)}; expected {r.expected}.") for r in blocks}


def kept_by_a_write(survey: Survey, rows: PlanRows, results: Iterable[CheckResult]) -> frozenset[str]:
    """Return the groups that `offsets-expiry` blocks, and would not if all their rows were written now.

    A plan leaves rows that stand right as they are. Here their block would forbid the very write that keeps them, where
    the clock runs from each commit; where it runs from when a classic group lost its last member, no write helps.
    """
    blocked = _expiring(results)
    of_blocked = (row for group, table in rows.groups().items() if group in blocked for row in table)
    written = PlanRows.of(
        row._replace(decision=Decision.SET) if row.decision is Decision.KEEP else row for row in of_blocked
    )
    return blocked - _expiring(offsets_expiry.judge(survey, written)) if blocked else blocked


def _expiring(results: Iterable[CheckResult]) -> frozenset[str]:
    return frozenset(r.subject for r in results if r.check == offsets_expiry.name and r.counts_as is Level.BLOCK)


def refuse(seen: SeenGroup, reason: str, sentence: str) -> Refusal:
    """Return the refusal of a group, unsafe where what was seen on the target does not rule out that it would skip."""
    is_unsafe = not (reason == WhyNot.ALIVE and seen.is_alive) and (bool(seen.uncovered) or any(_may_skip(seen)))
    return Refusal(str(reason), sentence, is_unsafe)


def _may_skip(seen: SeenGroup) -> Iterator[bool]:
    """Yield, for each row, whether what stands on the target may lie beyond what the group is owed.

    Where nothing stands, or what stands lies below the log's start, its consumers' `auto.offset.reset` decides.
    """
    for row in seen.rows:
        if row.decision is not Decision.SKIP:
            commit = seen.target_commits.get(row.target_partition)
            if commit is None or row.target_offset is None:
                yield True
            else:
                yield not (row.target_log_start or 0) <= commit.offset <= row.target_offset
