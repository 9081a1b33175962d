"""The records of `__consumer_offsets` decoded whole, in plain Python: what Spark's SQL is held against."""

import struct
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
    NEWEST_VERSION,
    OTHER_TYPE,
    Fault,
    decode_commit,
    decode_key,
    label_of,
)

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
    is_classic = record_type == CLASSIC_TYPE
    version = int.from_bytes(value[:2], "big")
    if len(value) < 2:
        return Fault.BAD_LENGTH
    if version > (NEWEST_VERSION if is_classic else 0):
        return Fault.UNKNOWN_VERSION
    if not is_classic:
        return Fault.BAD_LENGTH if len(value) < _KIND_VALUE_SIZE else GroupValue(GROUP_KINDS[record_type], version)
    try:
        return _classic(version, _Reader(value, version >= 4))
    except _Broken as broken:
        return broken.fault


def _classic(version: int, reader: "_Reader") -> GroupValue:
    protocol_type, generation = reader.text(), reader.number("i")
    protocol, leader = reader.text_or_none(), reader.text_or_none()
    state_ms = reader.number("q") if version >= 2 else -1
    count = reader.count()
    if not 0 <= count <= len(reader.data):
        raise _Broken(Fault.BAD_LENGTH)
    members = tuple(_member(version, reader) for _ in range(count))
    reader.end()
    kind, since = GROUP_KINDS[CLASSIC_TYPE], state_ms if state_ms >= 0 else None
    return GroupValue(kind, version, protocol_type, generation, protocol, leader, since, members)


def _member(version: int, reader: "_Reader") -> GroupValueMember:
    member_id, instance_id = reader.text(), reader.text_or_none() if version >= 3 else None
    client_id, client_host = reader.text(), reader.text()
    rebalance_timeout = reader.number("i") if version >= 1 else None
    member = GroupValueMember(
        member_id, instance_id, client_id, client_host, rebalance_timeout, reader.number("i")
    )  # fmt: skip
    for _ in ("subscription", "assignment"):
        reader.skip(reader.count())
    reader.tags()
    return member


@dataclass
class _Reader:
    """Reads `data` behind its version; raises `_Broken` where it ends too early, or goes on too long."""

    data: bytes
    flexible: bool
    at: int = 2
    is_text: bool = True

    def skip(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if size < 0 or len(found) < size:
            raise _Broken(Fault.BAD_LENGTH)
        self.at += size
        return found

    def number(self, kind: str) -> int:
        number: int = struct.unpack(f">{kind}", self.skip(struct.calcsize(kind)))[0]
        return number

    def count(self, kind: str = "i") -> int:
        """A length: an unsigned varint of four bytes at most, as nothing here is as long as 256 MiB; else a number."""
        if not self.flexible:
            return self.number(kind)
        found = 0
        for shift in (0, 7, 14, 21):
            byte = self.number("B")
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found - 1
        raise _Broken(Fault.BAD_LENGTH)

    def text(self) -> str:
        return self._decoded(self.count("h"))

    def text_or_none(self) -> str | None:
        size = self.count("h")
        return None if size == -1 else self._decoded(size)

    def _decoded(self, size: int) -> str:
        raw = self.skip(size)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.is_text = False
            return ""

    def tags(self) -> None:
        if self.flexible and self.number("B") != 0:
            raise _Broken(Fault.UNKNOWN_TAGS)

    def end(self) -> None:
        """The end of all: bytes that are no text are told only of what is whole else."""
        self.tags()
        if self.at != len(self.data):
            raise _Broken(Fault.BAD_LENGTH)
        if not self.is_text:
            raise _Broken(Fault.INVALID_UTF8)
