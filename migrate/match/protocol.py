"""What comparing records exchanges: what is asked, what is needed of both logs, what was read, what is answered.

Records are offset, timestamp and fingerprint. Pure. `migrate.match.matcher.matching` holds the conversation about one
partition, `migrate.match.compare` sees to all of them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from migrate.match.equality import Equality
from migrate.model import LogRange, TopicPartition


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Every record that a read_committed reader sees of one log in [start, end), in log order.

    `times` are timestamps in ms, `prints` fingerprints under the topic's equality; all three sequences have the same
    length, and so has `keys` where it was asked for: what a cleaner tells records apart by (`key_mark`).
    `readable_from` is greater than `start` where retention had deleted the beginning by the time it was read.
    """

    start: int
    end: int
    readable_from: int
    offsets: Sequence[int]
    times: Sequence[int]
    prints: Sequence[int]
    keys: Sequence[int] = ()


def key_mark(key: bytes | None, value: bytes | None) -> int:
    """Return a key's hash, with the last bit set for a tombstone (a record without a value). One process's own."""
    return hash(key) & ~1 | (value is None)


class OffsetRange(NamedTuple):
    """Offsets of one log, `start` inclusive, `end` exclusive. A tuple: each commit asks for a few."""

    start: int
    end: int


# A sync of the chain, or another original and its copy: (source offset, target offset).
OffsetPair = tuple[int, int]
# Returns the chain of a partition (Law 1) by its name on MM2's source, given the ends of the plan's two logs.
ChainOf = Callable[[TopicPartition, int, int], tuple[OffsetPair, ...]]


@dataclass(frozen=True, slots=True)
class Work:
    """A partition to compare with its copy, and the distinct committed offsets to place.

    `source` and `target` are the plan's. `source_has_copies` is True where the copying went the other way: the source
    holds the copies, perhaps twice, and what the target lacks never comes.
    `source_committed` are sorted, each within [0, source_log.end]. `has_open_transaction` is True where the source's
    log reaches beyond its last stable offset. `last_copied_offset` is MM2's own committed source offset (the last
    record it has copied for sure), None if unknown. `compacted` is True where a cleaner may take superseded records
    from the target. `may_keep_timestamps` is False where both topics' `message.timestamp.type` do not allow of it.
    """

    source: TopicPartition
    target: TopicPartition
    source_log: LogRange
    target_log: LogRange
    source_committed: tuple[int, ...]
    has_open_transaction: bool = False
    last_copied_offset: int | None = None
    compacted: bool = False
    source_has_copies: bool = False
    may_keep_timestamps: bool = False

    @property
    def original(self) -> TopicPartition:
        """The partition that was copied, by which offset syncs know it."""
        return self.target if self.source_has_copies else self.source


def no_chain(place: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
    """Return the chain of any partition where there are no syncs: a `ChainOf`."""
    return ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be read: offsets of either log per partition, and bytes from each cluster (None: no limit).

    With `match_records` 0 nothing is compared: every commit is placed by Law 2, which reads a few records for it. With
    `by_timestamp` every commit is placed by Law 2b, which reads the source alone, from the lowest commit on.
    """

    match_records: int
    fetch_bytes: int | None
    by_timestamp: bool = False


class WhyUnmatched(StrEnum):
    """Why a commit was not placed by comparing; the value is the reason of its row."""

    NO_MATCH = "no-match"
    MATCH_LIMIT = "match-limit"
    RECORDS_CHANGED = "records-changed-in-flight"
    TIMESTAMPS_NOT_KEPT = "timestamps-not-kept"
    NOT_READABLE = "not-readable"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionQuestion(Work):
    """A work with the chain between both logs, and how to compare them.

    `sync_pairs` is the chain of Law 1 in log order. `match_limit` is how many offsets of either log may be read for
    this partition. `by_timestamp` asks for Law 2b; `unread` asks for Law 2, and says why no window of this partition is
    read.
    """

    sync_pairs: Sequence[OffsetPair]
    equality: Equality
    match_limit: int = 1_000_000
    by_timestamp: bool = False
    unread: WhyUnmatched | None = None

    @classmethod
    def of(cls, work: Work, sync_pairs: Sequence[OffsetPair], limits: Limits) -> "PartitionQuestion":
        """Return the question about a work before it is known how its records compare."""
        return cls(
            work.source, work.target, work.source_log, work.target_log, work.source_committed,
            work.has_open_transaction, work.last_copied_offset, work.compacted, work.source_has_copies,
            sync_pairs=sync_pairs, equality=Equality.ALL, match_limit=limits.match_records,
            by_timestamp=limits.by_timestamp,
        )  # fmt: skip

    def still_to_copy_below(self, committed: int) -> int:
        """Return how many source offsets below a commit MM2's own position has not passed: it copies them yet.

        0 where that position is unknown, and where the source has the copies: nothing more is copied then.
        """
        if self.source_has_copies or self.last_copied_offset is None:
            return 0
        return max(0, committed - max(self.last_copied_offset + 1, self.source_log.start))


@dataclass(frozen=True, slots=True)
class Needs:
    """What to read next: ranges of either log (disjoint, sorted), and first offsets for timestamps (ms)."""

    source: tuple[OffsetRange, ...] = ()
    target: tuple[OffsetRange, ...] = ()
    source_times: tuple[int, ...] = ()
    target_times: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Supply:
    """The answer to `Needs`: one stretch per range, in its order, and for each timestamp the first offset at
    which a record has that timestamp or a later one; the log's pinned end where there is none."""

    source: tuple[LogSlice, ...] = ()
    target: tuple[LogSlice, ...] = ()
    source_first: Mapping[int, int] | None = None
    target_first: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Sent instead of a `Supply` where a log could not be read: `reason` is Kafka's name of the error."""

    reason: str


class Why(StrEnum):
    """Why a matched row is where it is; all but the first keep it from being exact."""

    PROVEN = "proven"
    UNKNOWN_RECORD = "unknown-record"
    BELOW_LOG_START = "below-log-start"
    CHANGED_IN_FLIGHT = "changed-in-flight"
    NOT_COPIED_YET = "not-copied-yet"
    RETENTION = "retention"
    LOOK_ALIKES = "look-alikes"
    NOT_ALL_READ = "not-all-read"
    LEAST_TIMESTAMP = "least-timestamp"


class Matched(NamedTuple):
    """A commit that the records place. Exact if `why` is `PROVEN`. A tuple: they come back from Spark by the million.

    `rereads_at_most`: records on the target at or after `target_offset` that the group has read already, or
    reads twice there; an upper bound (for exact rows: counted). `missing_on_target`: owed records without a copy.
    `lower`, `upper`: the proven syncs around the commit; None where the window runs to the log's start or end.
    """

    target_offset: int
    why: Why
    rereads_at_most: int
    missing_on_target: int = 0
    lower: OffsetPair | None = None
    upper: OffsetPair | None = None

    @property
    def exact(self) -> bool:
        """True if the offset is the best one, proven from both sides."""
        return self.why is Why.PROVEN


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A commit that matching could not place; Law 2 does.

    `guard_offset` is the y of Law 2: the target's first offset whose timestamp is at or after that of the first source
    record at or after the commit; the target's pinned end where the source has no such record left, None where
    timestamps cannot tell (LogAppendTime, a log that cannot be read). `lower` is the nearest proven sync at or below
    the commit, if any. `refuted` is True where there is none, and the records of the nearest one differ. `error_code`
    is Kafka's name of what kept a log from being read, "" where it could be.
    """

    reason: WhyUnmatched
    guard_offset: int | None = None
    lower: OffsetPair | None = None
    refuted: bool = False
    error_code: str = ""

    @classmethod
    def not_readable(cls, error_code: str) -> "Unmatched":
        """Return a commit next to which a log could not be read."""
        return cls(WhyUnmatched.NOT_READABLE, error_code=error_code)


@dataclass(frozen=True, slots=True)
class Tail:
    """How far MM2 has come on this partition, by the records (docs/translation.md, "Drained").

    `uncopied` counts source records from the last proven sync on that have no copy in order on the target, None if
    unknown; 0 means drained. `passed_over` of them lie before the source record that was copied last. `last_record` is
    the offset of the source's last record, None where it was not read or there is none. `waiting_since` is the
    timestamp (ms) of the first record from which on nothing was copied, None where there is none or it is unknown.
    `foreign` counts target records from that sync on that equal none that was read of the source: a writer of the
    target's own, or records changed on the way; `perhaps_copies` of them may be copies of source records that nobody
    sees: aborted, compacted, or of an open transaction.
    """

    uncopied: int | None
    last_record: int | None = None
    waiting_since: int | None = field(default=None, compare=False)
    foreign: int = 0
    perhaps_copies: int = 0
    passed_over: int = 0

    def at_rest(self) -> "Tail":
        """Return the tail of a copy that stands still: what was passed over does not come any more."""
        return replace(self, uncopied=self.uncopied and self.uncopied - self.passed_over, passed_over=0)


@dataclass(frozen=True)
class PartitionAnswer:
    """The place of every commit asked about, the tail, and how many records of either log were read."""

    places: Mapping[int, Matched | Unmatched]
    tail: Tail
    source_read: int
    target_read: int


@dataclass(frozen=True, slots=True)
class FetchEstimate:
    """What comparing will fetch, said before it starts: bytes and records from each cluster, and the partitions.

    `left_out` are partitions that `Limits` leave out, because there is not enough budget for them.
    """

    partitions: int
    source_records: int
    target_records: int
    source_bytes: int
    target_bytes: int
    left_out: int


@dataclass(frozen=True)
class Comparison:
    """The answers by source partition; every work has one.

    `equalities` tell by source topic which parts of records had to agree, None where no anchor agreed under any
    (reason `records-changed-in-flight`). The byte counts are what was really fetched, where the client tells.
    """

    answers: Mapping[TopicPartition, PartitionAnswer]
    equalities: Mapping[str, Equality | None]
    estimate: FetchEstimate
    source_bytes: int
    target_bytes: int


@dataclass(frozen=True, slots=True)
class Listener:
    """Hears what is about to be read, once and before the first window, then about how many partitions are compared."""

    expects: Callable[[FetchEstimate], None]
    advance: Callable[[int, int], None]


Comparer = Callable[[Collection[Work], Limits, Listener], Comparison]
"""Compares the records of both clusters, and places the commits of every work; payloads stay where they are read.

The chain comes from the offset syncs that `MirrorReader.windows` has read. Raises `ClusterError` if a cluster does not
answer; a topic that may not be read makes its works `Unmatched`.
"""
