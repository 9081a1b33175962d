"""The records of `__consumer_offsets` that say what kind a group is, and when its offsets' clock started. Pure.

Their bytes are those of `offsets_wire`. Types that it does not decode are passed over, as the brokers' own contract for
readers says; nothing here raises on foreign bytes.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from migrate.clock import is_date
from migrate.model import Failure, TopicPartition
from migrate.survey.offsets_wire import (
    CLASSIC_TYPE,
    COMMIT_TYPES,
    GROUP_KINDS,
    KINDS_OF_PARTS,
    CommitValue,
    Fault,
    decode_any_commit,
    decode_classic,
    decode_commit,
    decode_key,
)

OFFSETS_TOPIC = "__consumer_offsets"
# Spark reads that topic under names of groups that begin so, which nobody joins and which commit nothing.
READER_GROUP_PREFIX = "mm2-migrate-"
UNKNOWN_PROTOCOL = "unknown"

_COMMIT_KEY = b"\0\1"
# How often a group commits, a few of its partitions tell, by their newest commits: a cluster has a million partitions.
PACE_PARTITIONS, PACE_COMMITS = 4, 9


class GroupKind(StrEnum):
    """What a group is to its coordinator. A simple group has offsets and has never had a member."""

    SIMPLE = "simple"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class PastCommit(NamedTuple):
    """When a commit was made, in ms since 1970, and at which offset."""

    at_ms: int
    offset: int


class CommitTopic(NamedTuple):
    """The offset of a commit, and the id of the topic that it was made on, as Kafka prints it."""

    source_offset: int
    topic_id: str


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """What a group's own records say.

    `protocol_type` is a classic group's ("consumer", "connect"), `UNKNOWN_PROTOCOL` where its record could not be read,
    "" for other kinds. `empty_since_ms` is the moment that a classic group lost its last member, None while it has
    members and where its coordinator did not store it (before Kafka 2.1). `committed_ms` are the times of the group's
    present commits, by partition, those of -1 among them; `expires_ms` the ends of those that carry one, which brokers
    honour before anything else. `newest` are the last commits, oldest first, of a few partitions with more than one,
    where they were asked for. `made_on` are the topics of those present commits that say so, which brokers from Kafka
    4.1 on write.
    """

    kind: GroupKind
    protocol_type: str = ""
    empty_since_ms: int | None = None
    committed_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    expires_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    newest: Mapping[TopicPartition, tuple[PastCommit, ...]] = field(default_factory=dict)
    made_on: Mapping[TopicPartition, CommitTopic] = field(default_factory=dict)

    @property
    def has_one_clock(self) -> bool:
        """True for a classic group that has had members: all its offsets expire together, by `empty_since_ms`."""
        return self.kind is GroupKind.CLASSIC and bool(self.protocol_type)

    @property
    def last_commit_ms(self) -> int | None:
        """The time of the newest present commit (ms since 1970); None where no commit is there."""
        return max(self.committed_ms.values(), default=None)

    @property
    def seconds_between_commits(self) -> float | None:
        """The median time between successive commits on a partition; None where fewer than two are left."""
        steps = self._steps()
        return round(median(ms for ms, _ in steps) / 1000, 1) if steps else None

    @property
    def records_between_commits(self) -> int | None:
        """The median of offsets between successive commits on a partition; None where fewer than two are left."""
        steps = self._steps()
        return round(median(offsets for _, offsets in steps)) if steps else None

    def _steps(self) -> list[tuple[int, int]]:
        pairs = (pair for commits in self.newest.values() for pair in pairwise(commits))
        steps = [(then.at_ms - before.at_ms, then.offset - before.offset) for before, then in pairs]
        # A step back is somebody's reset, and no consumer's pace.
        return [step for step in steps if min(step) >= 0]


def newest_ms(records: Mapping[str, GroupRecord] | Failure) -> int:
    """Return the newest time in these records, which the brokers' clock has passed; 0 without any, or if not read.

    A client's own time that is no date says nothing of that clock (OffsetCommit 1 sends one with each commit).
    """
    listed = () if isinstance(records, Failure) else records.values()
    times = (time for r in listed for time in (r.empty_since_ms or 0, *r.committed_ms.values()))
    return max(filter(is_date, times), default=0)


class GroupLog:
    """Takes the records of the offsets topic, each partition in log order, and keeps the last record of each key.

    Only those of `groups` are kept, of all groups where it is None; a few earlier commits too, which tell their pace. A
    busy cluster commits by the million and under few keys: bytes are kept as they come, and decoded at the end. `taken`
    is how many records this reading took, `next_offset` where the next begins; `goes_on` says that there will be one.
    """

    def __init__(self, groups: Collection[str] | None = None) -> None:
        self._names = None if groups is None else frozenset(map(key_part, groups))
        self.taken = self.next_offset = 0
        self.goes_on = False
        self._last: dict[bytes, bytes | None] = {}
        self._newest: dict[bytes, deque[bytes]] = {}
        self._partitions: Counter[bytes] = Counter()

    def holds(self, other: "GroupLog") -> bool:
        """True if this one keeps the groups of another, too."""
        return self._names is None or (other._names is not None and self._names >= other._names)

    def take(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> None:
        """Take records that follow those taken before; a null value says that the group, or its offset, is gone."""
        last, names = self._last, self._names
        for key, value in zip(keys, values, strict=True):
            if key is None:
                continue
            if key in last or names is None or key[2 : 4 + int.from_bytes(key[2:4], "big")] in names:
                self._note(key, value, last.get(key))
                last[key] = value

    def _note(self, key: bytes, value: bytes | None, before: bytes | None) -> None:
        """Keep the newest commits of the first few partitions of a group that are committed more than once."""
        newest = self._newest.get(key)
        if newest is None:
            # The first records of a compacted log are those of the quietest partitions: they take nobody's place.
            if before is None or value is None or key[:2] != _COMMIT_KEY:
                return
            name = key[2 : 4 + int.from_bytes(key[2:4], "big")]
            if self._partitions[name] == PACE_PARTITIONS:
                return
            self._partitions[name] += 1
            newest = self._newest[key] = deque([before], maxlen=PACE_COMMITS)
        if value is None:
            # What was committed before the offset was deleted is no step to what comes after.
            newest.clear()
        else:
            newest.append(value)

    def groups(self) -> dict[str, GroupRecord]:
        """Return what is kept of each group; the records, maybe half a million, are let go unless the log goes on."""
        words = _understood(self._records())
        # In an order that does not depend on who came first: the records may be those that another reader has found.
        for key, values in sorted(self._newest.items()):
            place, commits = decode_key(key), map(decode_commit, values)
            made = tuple(PastCommit(c.committed_ms, c.offset) for c in commits if not isinstance(c, Fault))
            if len(made) < 2 or isinstance(place, Fault) or place.topic is None or place.partition is None:
                continue
            if place.group in words:
                words[place.group].newest[TopicPartition(place.topic, place.partition)] = made
        records = {name: words[name].record() for name in sorted(words)}
        return {name: record for name, record in records.items() if record is not None}

    def _records(self) -> Iterator[tuple[bytes, bytes]]:
        for key in [*self._last]:
            if (value := self._last[key] if self.goes_on else self._last.pop(key)) is not None:
                yield key, value


@dataclass
class _Words:
    """What the records of one group say: protocol type and empty since when, by kind; the rest as in `GroupRecord`.

    `part_kinds` are the kinds that records of its parts tell, for a group that has no record of its own.
    """

    kinds: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    part_kinds: set[str] = field(default_factory=set)
    committed_ms: dict[TopicPartition, int] = field(default_factory=dict)
    expires_ms: dict[TopicPartition, int] = field(default_factory=dict)
    made_on: dict[TopicPartition, CommitTopic] = field(default_factory=dict)
    newest: dict[TopicPartition, tuple[PastCommit, ...]] = field(default_factory=dict)

    def take(self, place: TopicPartition, commit: CommitValue) -> None:
        """Keep a commit, unless a later one of that place is known, and nothing of one that is older.

        Two keys may name one partition, on a cluster that has been upgraded since Kafka 0.8.
        """
        if commit.committed_ms < self.committed_ms.get(place, commit.committed_ms):
            return
        self.committed_ms[place] = commit.committed_ms
        self.expires_ms.pop(place, None)
        if commit.expires_ms is not None:
            self.expires_ms[place] = commit.expires_ms
        self.made_on.pop(place, None)
        if commit.topic_id is not None:
            self.made_on[place] = CommitTopic(commit.offset, commit.topic_id)

    def record(self) -> GroupRecord | None:
        simple = {GroupKind.SIMPLE.value} if self.committed_ms else set()
        kinds = self.kinds or dict.fromkeys(self.part_kinds or simple, ("", None))
        for kind in (GroupKind.CONSUMER, GroupKind.SHARE, GroupKind.STREAMS, GroupKind.CLASSIC, GroupKind.SIMPLE):
            if kind in kinds:
                protocol_type, empty_since_ms = kinds[kind]
                return GroupRecord(
                    kind, protocol_type, empty_since_ms, self.committed_ms, self.expires_ms, self.newest,
                    self.made_on,
                )  # fmt: skip
        return None


def _understood(records: Iterable[tuple[bytes, bytes]]) -> dict[str, _Words]:
    """Return what records say, by group; each key's beginning and place is understood once, whoever commits there."""
    words: dict[str, _Words] = defaultdict(_Words)
    head_of, place_of = lru_cache(maxsize=4096)(decode_key), cache(TopicPartition)
    for key, value in records:
        is_commit = key[:2] == _COMMIT_KEY
        about = head_of(key[:-4] + bytes(4)) if is_commit else decode_key(key)
        if isinstance(about, Fault) or about.record_type not in (*COMMIT_TYPES, *GROUP_KINDS, *KINDS_OF_PARTS):
            continue
        if about.topic is not None and about.partition is not None:
            partition = int.from_bytes(key[-4:], "big", signed=True)
            # One without an offset has a time all the same: somebody has used the group then.
            commit = decode_any_commit(value)
            if not isinstance(commit, Fault) and partition >= 0:
                words[about.group].take(place_of(about.topic, partition), commit)
        elif about.record_type == CLASSIC_TYPE:
            clock = decode_classic(value)
            # Left out, the group would be taken for one that never had a member, and given the full time.
            words[about.group].kinds[GroupKind.CLASSIC] = (
                (UNKNOWN_PROTOCOL, None) if isinstance(clock, Fault) else clock
            )
        elif about.record_type in GROUP_KINDS:
            words[about.group].kinds[GROUP_KINDS[about.record_type]] = ("", None)
        elif about.group:
            words[about.group].part_kinds.add(KINDS_OF_PARTS[about.record_type])
    return words


def logs_of(groups: Iterable[str], partitions: int) -> dict[int, GroupLog]:
    """Return a log for each partition of the offsets topic that holds some of these groups, for those groups alone.

    Where the topic was given more partitions, a group's old one still has what it had: no coordinator reads that.
    """
    held: dict[int, list[str]] = {}
    for group in groups:
        held.setdefault(partition_of(group, partitions), []).append(group)
    return {partition: GroupLog(named) for partition, named in held.items()}


class LogMemory:
    """The logs of groups as far as they were read, so that the next reading goes on from there.

    `records_read` is how many records were read into them so far.
    """

    def __init__(self) -> None:
        self._logs: dict[int, GroupLog] = {}
        self.records_read = 0

    def take(self, groups: Collection[str], partitions: int, ends: Mapping[int, int]) -> dict[int, GroupLog]:
        """Return what `logs_of` does, each log as far as it was read; `ends` are those of the topic's partitions.

        A log is not here until it is kept again: what was read in part of a reading that failed is not known. One that
        is shorter than it was read, by the election of a replica that was behind, is read anew; one that has grown
        beyond that place again looks like one that lost nothing.
        """
        logs = logs_of(groups, partitions)
        for partition, log in logs.items():
            log.goes_on = True
            known = self._logs.pop(partition, None)
            if known is not None and known.holds(log) and known.next_offset <= ends[partition]:
                logs[partition] = known
            logs[partition].taken = 0
        return logs

    def keep(self, logs: Mapping[int, GroupLog]) -> None:
        """Keep logs that were read to their ends."""
        self._logs |= logs
        self.records_read += sum(log.taken for log in logs.values())


def records_of(logs: Iterable[GroupLog]) -> dict[str, GroupRecord]:
    """Return what is kept of each group in these logs, in the order of names."""
    found = {group: record for log in logs for group, record in log.groups().items()}
    return dict(sorted(found.items()))


def key_part(group: str) -> bytes:
    """Return a group's name as it is in a key, behind its length."""
    name = group.encode("utf-8", "surrogateescape")
    return len(name).to_bytes(2, "big") + name


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of the offsets topic that holds a group (`Utils.abs(groupId.hashCode()) % n`)."""
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    signed = code - 0x1_0000_0000 if code & 0x8000_0000 else code
    return (0 if signed == -0x8000_0000 else abs(signed)) % partitions
