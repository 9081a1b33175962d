"""The values that all steps share. Frozen, compared by value, and free of any input or output.

Vocabulary: a *source* is the cluster that the groups leave, a *target* the one they move to. An offset's
name says its side. A committed offset is the next record that the group wants. All offsets are >= 0;
"none" is `None` only where the name says what is absent (`target_prior`: nothing was committed).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

# What a row's lower end is (`Row.lower_kind`), where more than one module asks for it by name.
PROVEN_SYNC, LOG_START, LOG_EARLIEST, LOG_LATEST = "proven-sync", "log-start", "log-earliest", "log-latest"
# Reasons of rows that others ask for by name: the target group is beyond and stays there; another row, or a check,
# blocks the group.
AHEAD_KEPT, GROUP_BLOCKED = "ahead-kept", "group-blocked"


class Side(StrEnum):
    """Which cluster a fact was read from."""

    SOURCE = "source"
    TARGET = "target"

    @property
    def other(self) -> "Side":
        """The other of the two."""
        return Side.TARGET if self is Side.SOURCE else Side.SOURCE


class TopicPartition(NamedTuple):
    """One partition of one topic, on a cluster that the context names.

    A tuple, unlike the others: it is a key by the hundred thousand, and a dataclass hashes ten times slower.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


# Rows ask for theirs again and again, and thousands of groups share one: made anew it takes three times as long.
_partition = lru_cache(maxsize=100_000)(TopicPartition)


@lru_cache(maxsize=4096)
def partitions_of(topics: tuple[str, ...], partitions: tuple[int, ...]) -> tuple[TopicPartition, ...]:
    """Return partitions, of one topic each, or all of a single one. Groups of one application share the answer."""
    each = topics if len(topics) == len(partitions) else repeat(topics[0], len(partitions))
    return tuple(map(TopicPartition, each, partitions))


class GroupPartition(NamedTuple):
    """One committed offset's place: a group and a partition, by the source's topic name. A tuple, as the one above."""

    group: str
    topic: str
    partition: int

    @property
    def source_partition(self) -> TopicPartition:
        """The partition on the source."""
        return _partition(self.topic, self.partition)


# Stands in for commit metadata that is there, but that the client cannot return.
UNREAD_METADATA = "\N{REPLACEMENT CHARACTER}"


# Reason of a row that undoes a write whose outcome is unknown: what the target shows does not prove it done.
UNACKNOWLEDGED = "not-acknowledged"


class Commit(NamedTuple):
    """A committed offset as the coordinator stores it, with the metadata that the consumer attached.

    `leader_epoch` is that of the record before, None where the consumer sent none. It is never carried to the other
    cluster, where it would feed the consumer's truncation check; `migrate.survey.other_log` says what it proves.
    A tuple, as the ones above: they are made by the hundred thousand.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class LogRange:
    """A partition's log at the moment it was pinned: `start` inclusive, `end` exclusive.

    `end` is the last stable offset: an open transaction below the log end would commit underneath the plan.
    `end_leader_epoch` is the leader epoch of the log's end, None where the cluster did not report it; it rises whenever
    the log gets another leader, so that ranges are compared without it.
    """

    start: int
    end: int
    end_leader_epoch: int | None = field(default=None, compare=False)


# Our own word for a group that two listings did not show.
ABSENT = "Absent"
STOPPED_STATES = frozenset({"Empty", "Dead", ABSENT})


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as its coordinator describes it.

    `state` is Kafka's own word ("Empty", "Dead", "Stable", "PreparingRebalance", ..., "Unknown"), or `ABSENT`.
    `kind` is "classic", "consumer" or "other" ("other": not a consumer group, such as a Connect worker's).
    `members` names the members as "client-id@host", at most a few dozen; `member_count` counts all. `assignor` is
    the name of the assignor in use ("range", "stream"), "" where there is none or it was not reported.
    """

    state: str
    member_count: int = 0
    members: tuple[str, ...] = ()
    kind: str = "classic"
    assignor: str = ""

    @property
    def is_stopped(self) -> bool:
        """True if no member holds the group: Empty, absent, or Dead (also what brokers say of a group they lack)."""
        return self.state in STOPPED_STATES and self.member_count == 0

    def some_members(self, most: int = 10) -> str:
        """Return up to `most` members, and how many more there are: `members` may hold only the first of them."""
        named = self.members[:most]
        others = self.member_count - len(named)
        return ", ".join(named) + (f" and {others} more" if others > 0 else "")


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster says of itself. `may_describe` is None where the broker did not report its ACL verdict."""

    cluster_id: str
    brokers: int
    may_describe: bool | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A call's answer for one group or partition that is not a result.

    `code` is Kafka's name of the error ("GROUP_AUTHORIZATION_FAILED", "_TIMED_OUT").
    `outcome_unknown` is True where a write may have been carried out: read back before deciding. `first_doubt` is how
    the first try that may have been carried out ended, where this is the answer to a later one; "" else.
    """

    code: str
    message: str
    retriable: bool = False
    outcome_unknown: bool = False
    first_doubt: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True, order=True, slots=True)
class OffsetSync:
    """The source's record at `source_offset` was written to the target at `target_offset`.

    `position` is the sync's own offset in the offset-syncs topic: the order in which MM2 wrote them.
    """

    position: int
    source_offset: int
    target_offset: int


class Decision(StrEnum):
    """What `apply` does with a row."""

    SET = "set"
    REMOVE = "remove"
    KEEP = "keep"
    SKIP = "skip"
    BLOCK = "block"


class Method(StrEnum):
    """How a row's target offset was found."""

    MATCH = "match"
    SYNC = "sync"
    END = "end"
    WINDOW = "window"
    TIMESTAMP = "timestamp"
    CHECKPOINT = "checkpoint"
    EXPLICIT = "explicit"


class Grade(StrEnum):
    """How much is proven about a row's target offset (docs/translation.md, "Grades")."""

    EXACT = "exact"
    BOUNDED = "bounded"
    ESTIMATED = "estimated"


class Level(StrEnum):
    """A check's verdict on one subject."""

    PASS = "pass"
    WARN = "warn"
    BLOCK = "block"
    NOT_VISIBLE = "not-visible"


class Scope(StrEnum):
    """What a check's subject is: a block on it blocks the groups that it touches."""

    CLUSTER = "cluster"
    TOPIC = "topic"
    GROUP = "group"
    ROW = "row"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One named check's verdict on one subject.

    `subject` is what `--accept CHECK:SUBJECT` names: a group, a topic, "group/topic/partition" or a cluster
    alias. `accepted` is True where a waiver turned the block into a warning: the report says so.
    `counts_as` is the level that decides (a `not-visible` counts as its check's block or warn).
    """

    check: str
    level: Level
    scope: Scope
    subject: str
    expected: str
    seen: str
    todo: str = ""
    accepted: bool = False
    counts_as: Level = Level.PASS

    @property
    def says_nothing(self) -> bool:
        """True where a check that can only refute found nothing: neither a finding nor a pass."""
        return self.level is Level.NOT_VISIBLE and self.counts_as is Level.PASS


class Row(NamedTuple):
    """One committed offset and what becomes of it. The fields are the plan file's, in its order.

    A tuple: columns become a million rows, and rows columns, without a call for each field.

    `decision`, `reason` (a code such as "already-there") and `sentence` are never empty.
    `target_offset` is None only where nothing is planned (block without translation, skip, remove).
    `rereads_at_most` is a proven bound, None where none is proven; `rereads_estimate` is what the window's
    width suggests and bounds nothing. The `lower_` and `upper_` pairs are the window's ends: the syncs on
    either side of the committed offset; `lower_kind` says what is at the lower end. Where records were
    compared: `equality` is what they had to agree in (`migrate.match.equality.Equality`, "" where not known), `why` the
    code of what comparing said ("" where nothing was compared), `missing_on_target` how many owed records have no
    copy on the target (None where that is not known). `target_metadata` is committed with `target_offset`, byte for
    byte; "" where the commit shall have none. In a plan of commits as of an earlier time, `source_committed` is that of
    then, and `live_source_offset` what is committed on the source when the plan is made; None for nothing, and in any
    other plan.

    `target_group` is the group's name on the target, "" where it keeps its own; all rows of a group agree in it.
    """

    group: str
    source_topic: str
    target_topic: str
    partition: int
    source_committed: int | None
    source_metadata: str
    source_log_start: int | None
    source_log_end: int | None
    target_log_start: int | None
    target_log_end: int | None
    target_prior: int | None
    target_prior_metadata: str
    decision: Decision
    target_offset: int | None
    method: Method | None
    grade: Grade | None
    rereads_at_most: int | None
    rereads_estimate: int | None
    reason: str
    sentence: str
    lower_kind: str = ""
    lower_source_offset: int | None = None
    lower_target_offset: int | None = None
    upper_source_offset: int | None = None
    upper_target_offset: int | None = None
    checkpoint_source_offset: int | None = None
    checkpoint_target_offset: int | None = None
    equality: str = ""
    why: str = ""
    missing_on_target: int | None = None
    target_metadata: str = ""
    live_source_offset: int | None = None
    target_group: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        """The sort key of a plan's rows: group, source topic, partition."""
        return (self.group, self.source_topic, self.partition)

    @property
    def source_partition(self) -> TopicPartition:
        """The partition on the source whose commit this row translates."""
        return _partition(self.source_topic, self.partition)

    @property
    def target_partition(self) -> TopicPartition:
        """The partition on the target that this row commits."""
        return _partition(self.target_topic, self.partition)

    @property
    def group_on_target(self) -> str:
        """What the group is called on the target."""
        return self.target_group or self.group

    @property
    def target_commit(self) -> Commit | None:
        """What the target shall have committed for this row; None for nothing."""
        return None if self.target_offset is None else Commit(self.target_offset, self.target_metadata)

    @property
    def needs_acknowledgement(self) -> bool:
        """True if only the cluster's own answer to this row's write says that it is done, whatever is committed now."""
        return self.reason == UNACKNOWLEDGED

    @property
    def subject(self) -> str:
        """The row's name in checks and waivers: "group/topic/partition"."""
        return f"{self.group}/{self.source_topic}/{self.partition}"


Commits = Mapping[TopicPartition, Commit]


def lag(row: Row) -> int | None:
    """Return how many records lie between the committed offset and the source's end; None where either is not."""
    return between(row.source_committed, row.source_log_end)


def between(offset: int | None, end: int | None) -> int | None:
    """Return the distance from an offset to an end; None where either is not."""
    return None if offset is None or end is None else end - offset


def rereads(row: Row) -> int | None:
    """Return a row's re-reads: the proven bound if there is one, else the estimate, else None."""
    return row.rereads_at_most if row.rereads_at_most is not None else row.rereads_estimate


def rewinds(row: Row) -> bool:
    """True if the row sets the target group back behind where it is."""
    return (
        row.decision is Decision.SET
        and row.target_prior is not None
        and row.target_offset is not None
        and row.target_offset < row.target_prior
    )


def may_skip(row: Row) -> bool:
    """True if a reviewer's choice lets this row pass over records: skipped, kept ahead, or set to the log end."""
    return (
        row.decision is Decision.SKIP
        or (row.decision is Decision.KEEP and row.reason == AHEAD_KEPT)
        or (row.decision is Decision.SET and row.lower_kind == LOG_LATEST)
    )
