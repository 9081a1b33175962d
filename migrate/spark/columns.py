"""MirrorMaker 2's wire formats as Spark SQL expressions: the same rules as `migrate.mm2.wire`, no Python workers.

A record is judged in two steps. The *shape* of its value is cheap and comes first, record by record; its key is
judged later, once per distinct key. Both together give the *label* under which the record is counted, the same
as `migrate.mm2.wire.label`. Most functions return SQL text; positions are 1-based as in SQL.
"""

from typing import TYPE_CHECKING

from migrate.mm2.wire import Reason, RecordKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Shapes of a value (a tinyint, so that grouping by it costs nothing).
CHECKPOINT = 0
TOMBSTONE = 1
SYNC = 2
SYNC_OF_OTHER_VERSION = 3  # its first two bytes, read as a checkpoint's version, are not 0
HEARTBEAT = 4
CONNECT_JSON = 5
UNKNOWN_VERSION = 6
BAD_LENGTH = 7
NEGATIVE_CHECKPOINT = 8
MISSPELT_CHECKPOINT = 9  # its metadata is not UTF-8
NEGATIVE_SYNC = 10
NEGATIVE_SYNC_OF_OTHER_VERSION = 11
CHECKPOINT_WITH_METADATA = 12

CHECKPOINTS = (CHECKPOINT, CHECKPOINT_WITH_METADATA)
SYNCS = (SYNC, SYNC_OF_OTHER_VERSION)

UNDECODABLE = "undecodable:"
CHECKPOINT_HEAD = 20
_SYNC_SIZE = 16
_HEARTBEAT_SIZE = 10


def int64(column: str, position: str | int) -> str:
    """A signed big-endian int64; the -10 is what makes `conv` read the sign."""
    return f"cast(conv(hex(substring({column}, {position}, 8)), 16, -10) as bigint)"


def uint16(column: str, position: str | int) -> str:
    """A big-endian int16, read without its sign: negative numbers are 32768 and more."""
    return f"cast(conv(hex(substring({column}, {position}, 2)), 16, 10) as int)"


def is_utf8(binary: str) -> str:
    """True for valid UTF-8; the cast itself checks nothing."""
    return f"is_valid_utf8(cast({binary} as string))"


def sync_offsets() -> tuple[str, str]:
    """Source and target offset of an offset sync's `value`; NULL for values of another length."""
    return tuple(f"if(length(value) = {_SYNC_SIZE}, {int64('value', at)}, null)" for at in (1, 9))  # type: ignore[return-value]


def metadata(value: str = "value") -> str:
    """The bytes of a checkpoint's metadata."""
    return f"substring({value}, {CHECKPOINT_HEAD + 1})"


def shape(value: str = "value") -> str:
    """The shape of a value. Signs are read off a single byte: only what is kept is worth decoding."""
    size = f"length({value})"
    head = CHECKPOINT_HEAD
    plain = (
        f"{size} = {head} and substring({value}, 1, 3) < X'000080' and substring({value}, 11, 1) < X'80'"
        f" and substring({value}, 19, 2) = X'0000'"
    )
    json = (
        f"substring({value}, 1, 10) = X'7B22736368656D61223A' or ({size} % 4 = 2 and substring({value}, 1, 1) = X'22'"
        f" and cast({value} as string) rlike '^\"[A-Za-z0-9+/]+={{0,2}}\"\\\\z')"
    )
    version_0 = f"substring({value}, 1, 2) = X'0000'"
    metadata_fits = f"{size} = {head} + {uint16(value, 19)} and {size} < {head + 0x8000}"
    code = (
        f"case when {plain} then {CHECKPOINT}"
        f" when {value} is null then {TOMBSTONE}"
        f" when {size} >= {head} and {version_0} and {metadata_fits} then"
        f" case when {_negative(value, 3)} or {_negative(value, 11)} then {NEGATIVE_CHECKPOINT}"
        f" when {is_utf8(metadata(value))} then {CHECKPOINT_WITH_METADATA} else {MISSPELT_CHECKPOINT} end"
        f" when {json} then {CONNECT_JSON}"
        f" when {size} = {_SYNC_SIZE} then"
        f" case when {_negative(value, 1)} or {_negative(value, 9)}"
        f" then if({version_0}, {NEGATIVE_SYNC}, {NEGATIVE_SYNC_OF_OTHER_VERSION})"
        f" else if({version_0}, {SYNC}, {SYNC_OF_OTHER_VERSION}) end"
        f" when {size} = {_HEARTBEAT_SIZE} and {version_0} then {HEARTBEAT}"
        f" when {size} >= 2 and not {version_0} then {UNKNOWN_VERSION}"
        f" else {BAD_LENGTH} end"
    )
    return f"cast({code} as tinyint)"


def with_label(frame: "DataFrame", expected: RecordKind) -> "DataFrame":
    """Add `label`, the name under which records with this `key` and `shape` are counted, and `names_key`.

    `expected` is what the topic should hold; `names_key` is true if the key is one of that kind. One row per key and
    shape is enough. Lengths are columns of their own because Spark would compute them anew wherever they are used.
    """
    from pyspark.sql.functions import expr

    problem = _CHECKPOINT_KEY_PROBLEM if expected is RecordKind.CHECKPOINT else _SYNC_KEY_PROBLEM
    measured = (
        frame.withColumn("first", expr(uint16("key", 1)))
        .withColumn("second", expr(f"if(length(key) < 4 + first, 0, {uint16('key', '3 + first')})"))
        .withColumn("problem", expr(problem))
    )
    labelled = measured.withColumn("label", expr(_label(expected))).withColumn("names_key", expr("problem is null"))
    return labelled.drop("first", "second", "problem")


def checkpoint_key() -> dict[str, str]:
    """The columns of a valid checkpoint's `key`: `group`, `topic`, `partition`; the column `first` is `group_size`."""
    return {
        "group": "cast(substring(key, 3, first) as string)",
        "topic": "cast(substring(key, 5 + first, length(key) - 8 - first) as string)",
        "partition": "cast(conv(hex(substring(key, length(key) - 3, 4)), 16, 10) as int)",
    }


def group_size() -> str:
    """How many bytes of a checkpoint's `key` the group's name takes."""
    return uint16("key", 1)


def _label(expected: RecordKind) -> str:
    offsets_key = "substring(key, 1, 2) = X'5B22' and substring(key, -2, 2) = X'7D5D'"
    if expected is RecordKind.CHECKPOINT:
        is_checkpoint, is_sync = "problem is null", f"{_SYNC_KEY_PROBLEM} is null"
        versions = _among((UNKNOWN_VERSION, SYNC_OF_OTHER_VERSION, NEGATIVE_SYNC_OF_OTHER_VERSION))
        lengths = _among((BAD_LENGTH, SYNC, NEGATIVE_SYNC, HEARTBEAT))
    else:
        is_checkpoint, is_sync = f"{_CHECKPOINT_KEY_PROBLEM} is null", "problem is null"
        versions = "false"
        broken = (BAD_LENGTH, UNKNOWN_VERSION, NEGATIVE_CHECKPOINT, MISSPELT_CHECKPOINT)
        lengths = _among((*broken, *CHECKPOINTS, HEARTBEAT))
    reason = (
        f"case when {versions} then '{Reason.UNKNOWN_VERSION}' when {lengths} then '{Reason.BAD_LENGTH}'"
        f" else coalesce(problem, if(shape = {MISSPELT_CHECKPOINT}, '{Reason.INVALID_UTF8}', '{Reason.OTHER}')) end"
    )
    return (
        f"case when {_among(CHECKPOINTS)} and {is_checkpoint} then '{RecordKind.CHECKPOINT}'"
        f" when shape = {TOMBSTONE} then '{RecordKind.TOMBSTONE}'"
        f" when {_among(SYNCS)} and {is_sync} then '{RecordKind.OFFSET_SYNC}'"
        f" when shape = {HEARTBEAT} and {_HEARTBEAT_KEY_PROBLEM} is null then '{RecordKind.HEARTBEAT}'"
        f" when {offsets_key} then '{RecordKind.CONNECT_OFFSETS}'"
        f" when shape = {CONNECT_JSON} then '{RecordKind.CONNECT_JSON}'"
        f" else concat('{UNDECODABLE}', {reason}) end"
    )


def _key_problem(strings: int, tail: int) -> str:
    """The reason why `key` does not hold that many strings and then `tail` bytes; NULL if it does."""
    fixed = 2 * strings + tail
    texts = [is_utf8("substring(key, 3, first)")]
    size = f"{fixed} + first"
    if strings == 2:
        texts.append(is_utf8("substring(key, 5 + first, second)"))
        size += " + second"
    negative = f"when {_negative('key', 'length(key) - 3')} then '{Reason.OTHER}'" if tail else ""
    too_long = "first >= 32768" + (" or second >= 32768" if strings == 2 else "")
    return (
        f"case when key is null then '{Reason.OTHER}'"
        f" when length(key) < {fixed} or {too_long} or length(key) <> {size} then '{Reason.BAD_LENGTH}'"
        f" when not ({' and '.join(texts)}) then '{Reason.INVALID_UTF8}' {negative} end"
    )


def _among(codes: tuple[int, ...]) -> str:
    return f"shape in ({', '.join(map(str, codes))})"


def _negative(column: str, position: str | int) -> str:
    return f"substring({column}, {position}, 1) >= X'80'"


_CHECKPOINT_KEY_PROBLEM = _key_problem(strings=2, tail=4)
_SYNC_KEY_PROBLEM = _key_problem(strings=1, tail=4)
_HEARTBEAT_KEY_PROBLEM = _key_problem(strings=2, tail=0)
