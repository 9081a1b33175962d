"""The records of `__consumer_offsets` that say what kind a group is, and when its offsets' clock started. Pure.

Layouts are those of Kafka's group-coordinator schemas (`OffsetCommitKey/Value`, `GroupMetadataKey/Value`, and the
group metadata keys of KIP-848, KIP-932 and KIP-1071): a key begins with an int16 record type, a value with an int16
version, all integers are big-endian. Unknown types are passed over, as the brokers' own contract for readers says;
nothing here raises on foreign bytes.
"""

import struct
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from migrate.model import Failure, TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"
UNKNOWN_PROTOCOL = "unknown"

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_COMMIT_TYPES = (0, 1)
_COMMIT_KEY = b"\0\1"
_CLASSIC_TYPE = 2
# How often a group commits, a few of its partitions tell, by their newest commits: a cluster has a million partitions.
PACE_PARTITIONS, PACE_COMMITS = 4, 9
# Of each kind the record that every group of it has; the others come and go with members.
_KIND_TYPES = {3: "consumer", 11: "share", 17: "streams"}


class GroupKind(StrEnum):
    """What a group is to its coordinator. A simple group has offsets and has never had a member."""

    SIMPLE = "simple"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class CommitGap(NamedTuple):
    """From one commit on a partition to the next: milliseconds, and offsets (below 0 where somebody set it back)."""

    ms: int
    offsets: int


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """What a group's own records say.

    `protocol_type` is a classic group's ("consumer", "connect"), `UNKNOWN_PROTOCOL` where its record could not be read,
    "" for other kinds. `empty_since_ms` is the moment that a classic group lost its last member, None while it has
    members and where its coordinator did not store it (before Kafka 2.1). `committed_ms` are the times of the group's
    present commits, by partition; `expires_ms` the ends of those that carry one, which brokers honour before anything
    else. `gaps` lie between successive commits, on a few partitions, newest commits only, where they were asked for.
    """

    kind: GroupKind
    protocol_type: str = ""
    empty_since_ms: int | None = None
    committed_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    expires_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    gaps: tuple[CommitGap, ...] = ()


def newest_ms(records: Mapping[str, GroupRecord] | Failure) -> int:
    """Return the newest time in these records, which the brokers' clock has passed; 0 without any, or if not read."""
    listed = () if isinstance(records, Failure) else records.values()
    return max((time for r in listed for time in (r.empty_since_ms or 0, *r.committed_ms.values())), default=0)


class GroupLog:
    """Takes the records of the offsets topic, each partition in log order, and keeps the last record of each key.

    Only those of `groups` are kept, of all groups where it is None; `with_gaps` keeps a few earlier commits too. A busy
    cluster commits by the million and under few keys: bytes are kept as they come, and decoded once, at the end.
    """

    def __init__(self, groups: Collection[str] | None = None, with_gaps: bool = False) -> None:
        self._names = None if groups is None else frozenset(map(_encoded, groups))
        self._last: dict[bytes, bytes | None] = {}
        self._with_gaps = with_gaps
        self._newest: dict[bytes, deque[bytes]] = {}
        self._partitions: Counter[bytes] = Counter()

    def take(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> None:
        """Take records that follow those taken before; a null value says that the group, or its offset, is gone."""
        last, names = self._last, self._names
        for key, value in zip(keys, values, strict=True):
            if key is None:
                continue
            if key in last or names is None or key[2 : 4 + int.from_bytes(key[2:4], "big")] in names:
                if self._with_gaps:
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
        """Return what is kept of each group now."""
        words: dict[str, _Words] = {}
        for key, value in self._last.items():
            if value is not None:
                with suppress(*_UNREADABLE):
                    _understand(key, value, words)
        for key, values in self._newest.items():
            with suppress(*_UNREADABLE):
                commits = [(_commit_times(value)[0], _INT64.unpack_from(value, 2)[0]) for value in values]
                if (word := words.get(_string(key, 2)[0])) is not None:
                    word.gaps += [CommitGap(then - at, new - old) for (at, old), (then, new) in pairwise(commits)]
        records = {name: words[name].record() for name in sorted(words)}
        return {name: record for name, record in records.items() if record is not None}


@dataclass
class _Words:
    """What the records of one group say: protocol type and empty since when, by kind; by place when its commit was made
    and when that ends by itself.
    """

    kinds: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    commits: dict[TopicPartition, tuple[int, int | None]] = field(default_factory=dict)
    gaps: list[CommitGap] = field(default_factory=list)

    def record(self) -> GroupRecord | None:
        committed = {place: made for place, (made, _) in self.commits.items()}
        expires = {place: end for place, (_, end) in self.commits.items() if end is not None}
        gaps = tuple(self.gaps)
        for kind in (GroupKind.CONSUMER, GroupKind.SHARE, GroupKind.STREAMS, GroupKind.CLASSIC):
            if kind in self.kinds:
                return GroupRecord(kind, *self.kinds[kind], committed, expires, gaps)
        return GroupRecord(GroupKind.SIMPLE, "", None, committed, expires, gaps) if committed else None


def _understand(key: bytes, value: bytes, words_of: dict[str, _Words]) -> None:
    """Add what one record says to the words of its group; raises for bytes that are not what their key says."""
    record_type = _INT16.unpack_from(key)[0]
    if record_type not in (*_COMMIT_TYPES, _CLASSIC_TYPE, *_KIND_TYPES):
        return
    group, at = _string(key, 2)
    words = words_of.setdefault(group, _Words())
    if record_type in _COMMIT_TYPES:
        topic, at = _string(key, at)
        place = TopicPartition(topic, _INT32.unpack_from(key, at)[0])
        # Both types of key may name one partition, on a cluster that has been upgraded since Kafka 0.8.
        times = _commit_times(value)
        if place not in words.commits or times[0] >= words.commits[place][0]:
            words.commits[place] = times
    elif record_type == _CLASSIC_TYPE:
        try:
            words.kinds[GroupKind.CLASSIC] = _classic(value)
        except _UNREADABLE:
            # Left out, the group would be taken for one that never had a member, and given the full time.
            words.kinds[GroupKind.CLASSIC] = (UNKNOWN_PROTOCOL, None)
    else:
        words.kinds[_KIND_TYPES[record_type]] = ("", None)


class _Foreign(Exception):
    """Bytes that are not what their key says."""


_UNREADABLE = (struct.error, UnicodeDecodeError, IndexError, _Foreign)


def _encoded(group: str) -> bytes:
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


def _commit_times(value: bytes) -> tuple[int, int | None]:
    """Return when a commit was made, and when it ends by itself (ms since 1970).

    Only version 1 carries an end: brokers up to 4.3 still write it for OffsetCommit 2 to 4 with a retention time.
    """
    version = _INT16.unpack_from(value)[0]
    if not 0 <= version <= 4:
        raise _Foreign
    _, at = _extent(value, 2 + 8 + (4 if version > 2 else 0), flexible=version == 4)
    made: int = _INT64.unpack_from(value, at)[0]
    end: int = _INT64.unpack_from(value, at + _INT64.size)[0] if version == 1 else -1
    return made, None if end < 0 else end


def _classic(value: bytes) -> tuple[str, int | None]:
    """Return protocol type and, where there are no members, the time of the last change of state (version 2 on)."""
    version = _INT16.unpack_from(value)[0]
    if not 0 <= version <= 4:
        raise _Foreign
    flexible = version >= 4
    protocol_type, at = _string(value, 2, flexible)
    at += _INT32.size  # the generation
    for _ in ("protocol", "leader"):
        _, at = _extent(value, at, flexible, nullable=True)
    since = None
    if version >= 2:
        since = _INT64.unpack_from(value, at)[0]
        at += _INT64.size
    members = _varint(value, at)[0] - 1 if flexible else _INT32.unpack_from(value, at)[0]
    if members < 0:
        raise _Foreign
    return protocol_type, None if members or since is None or since < 0 else since


def _string(data: bytes, at: int, flexible: bool = False) -> tuple[str, int]:
    """Return the string at `at`, and the place behind it."""
    start, end = _extent(data, at, flexible)
    return data[start:end].decode(), end


def _extent(data: bytes, at: int, flexible: bool, nullable: bool = False) -> tuple[int, int]:
    """Return where a string begins and ends, behind its length: an int16, or a varint of the length plus one."""
    if flexible:
        length, at = _varint(data, at)
        size = length - 1
    else:
        size, at = _INT16.unpack_from(data, at)[0], at + _INT16.size
    end = at + max(size, 0)
    if size < (-1 if nullable else 0) or end > len(data):
        raise _Foreign
    return at, end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint (KIP-482), and return it with the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise _Foreign
