"""The records of `__consumer_offsets` decoded whole, in plain Python: what Spark's SQL is held against."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.survey.offsets_wire import (
    BROKEN_KEY,
    CLASSIC_TYPE,
    COMMIT,
    COMMIT_TOMBSTONE,
    COMMIT_TYPES,
    COMMIT_WITH_OTHER_TAGS,
    GROUP,
    GROUP_KINDS,
    GROUP_TOMBSTONE,
    MEMBER_FIELDS,
    NEWEST_VERSION,
    OTHER_TYPE,
    Fault,
    decode_commit,
    decode_key,
    label_of,
)

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_KIND_VALUE_SIZE = 7


@dataclass(frozen=True, slots=True)
class GroupValueMember:
    """A member of a classic group; without its subscription and assignment, which may hold data of users."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int | None
    session_timeout: int


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A group. All but `kind` and `version` are a classic group's, and None, or empty, for other kinds.

    `state_ms` is when its state last changed (ms since 1970), None where that was not stored.
    """

    kind: str
    version: int
    protocol_type: str | None = None
    generation: int | None = None
    protocol: str | None = None
    leader: str | None = None
    state_ms: int | None = None
    members: tuple[GroupValueMember, ...] = ()


class _Broken(Exception):
    """Raised where bytes cannot be read."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


def label(key: bytes | None, value: bytes | None) -> str:
    """Name a record for the counts: "commit", "type-5" for a type that is not decoded, "undecodable-value:..."."""
    decoded = decode_key(key)
    if isinstance(decoded, Fault):
        return BROKEN_KEY + decoded
    if decoded.record_type in COMMIT_TYPES:
        if value is None:
            return COMMIT_TOMBSTONE
        commit = decode_commit(value)
        if isinstance(commit, Fault):
            return label_of(commit)
        return COMMIT_WITH_OTHER_TAGS if commit.other_tags else COMMIT
    if decoded.record_type not in GROUP_KINDS:
        return f"{OTHER_TYPE}{decoded.record_type}"
    if value is None:
        return GROUP_TOMBSTONE
    group = decode_group(decoded.record_type, value)
    return label_of(group) if isinstance(group, Fault) else GROUP


def decode_group(record_type: int, value: bytes) -> GroupValue | Fault:
    """Decode the value of a group's own record; `record_type` is one of `GROUP_KINDS`."""
    try:
        if record_type == CLASSIC_TYPE:
            return _classic(value)
        version, _ = _versioned(value, 0)
        if len(value) < _KIND_VALUE_SIZE:
            raise _Broken(Fault.BAD_LENGTH)
        return GroupValue(GROUP_KINDS[record_type], version)
    except _Broken as broken:
        return broken.fault


def _versioned(value: bytes, newest: int) -> tuple[int, "_Reader"]:
    if len(value) < _INT16.size:
        raise _Broken(Fault.BAD_LENGTH)
    version = int.from_bytes(value[:2], "big")
    if version > newest:
        raise _Broken(Fault.UNKNOWN_VERSION)
    return version, _Reader(value, 2, flexible=version >= 4)


def _classic(value: bytes) -> GroupValue:
    version, reader = _versioned(value, NEWEST_VERSION)
    protocol_type = reader.take("S")
    generation = reader.int32()
    protocol, leader = reader.take("N"), reader.take("N")
    state_ms = reader.int64() if version >= 2 else -1
    count = reader.count()
    if not 0 <= count <= len(value):
        raise _Broken(Fault.BAD_LENGTH)
    members = [list(reader.fields(MEMBER_FIELDS[version])) for _ in range(count)]
    if version >= 4:
        reader.take("T")
    reader.end()
    return GroupValue(
        GROUP_KINDS[CLASSIC_TYPE],
        version,
        _text(protocol_type),
        generation,
        None if protocol is None else _text(protocol),
        None if leader is None else _text(leader),
        state_ms if state_ms >= 0 else None,
        tuple(_member(version, fields) for fields in members),
    )


def _member(version: int, fields: list[bytes | None]) -> GroupValueMember:
    """Make a member of its fields, in the order of `MEMBER_FIELDS`."""
    left = iter(fields)
    member_id = _text(next(left))
    instance = next(left) if version >= 3 else None
    instance_id = None if instance is None else _text(instance)
    client_id, client_host = _text(next(left)), _text(next(left))
    rebalance_timeout = _number(next(left)) if version >= 1 else None
    return GroupValueMember(
        member_id, instance_id, client_id, client_host, rebalance_timeout, _number(next(left))
    )  # fmt: skip


def _number(raw: bytes | None) -> int:
    number: int = _INT32.unpack(raw or b"")[0]
    return number


def _text(raw: bytes | None) -> str:
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError:
        raise _Broken(Fault.INVALID_UTF8) from None


@dataclass
class _Reader:
    """Reads `data` from `at` on; raises `_Broken` where it ends too early, or goes on too long."""

    data: bytes
    at: int
    flexible: bool = False

    def skip(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if size < 0 or len(found) < size:
            raise _Broken(Fault.BAD_LENGTH)
        self.at += size
        return found

    def end(self) -> None:
        if self.at != len(self.data):
            raise _Broken(Fault.BAD_LENGTH)

    def byte(self) -> int:
        return self.skip(1)[0]

    def int32(self) -> int:
        number: int = _INT32.unpack(self.skip(_INT32.size))[0]
        return number

    def int64(self) -> int:
        number: int = _INT64.unpack(self.skip(_INT64.size))[0]
        return number

    def varint(self) -> int:
        """An unsigned varint of four bytes at most: nothing here is as long as 256 MiB."""
        found = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise _Broken(Fault.BAD_LENGTH)

    def count(self) -> int:
        return self.varint() - 1 if self.flexible else self.int32()

    def take(self, kind: str) -> bytes | None:
        """Take a field of a kind of `MEMBER_FIELDS`; None for a string that is null."""
        if kind == "I":
            return self.skip(_INT32.size)
        if kind == "T":
            if self.byte() != 0:
                raise _Broken(Fault.UNKNOWN_TAGS)
            return b""
        if self.flexible or kind == "B":
            size = self.count()
        else:
            size = _INT16.unpack(self.skip(_INT16.size))[0]
        return None if size == -1 and kind == "N" else self.skip(size)

    def fields(self, kinds: str) -> Iterator[bytes | None]:
        return map(self.take, kinds)
