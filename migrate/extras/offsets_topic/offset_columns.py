"""The records of `__consumer_offsets` as Spark SQL: the same rules as `migrate.survey.offsets_wire`, no Python workers.

As MM2's records (`migrate.spark.columns`), they are judged in two steps: the *shape* of a value, record by record, then
the key and the label, once per distinct key and shape. Functions return frames with columns added, or SQL text;
positions are 1-based as in SQL. Lengths are columns of their own: Spark would compute them anew wherever they are used.
"""

from typing import TYPE_CHECKING

from migrate.spark.columns import int64, is_utf8, uint16
from migrate.survey import offsets_wire as wire
from migrate.survey.offsets_wire import Fault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Shapes of a value (a tinyint, so that grouping by it costs nothing).
TOMBSTONE = 0
COMMIT = 1
COMMIT_WITH_OTHER_TAGS = 2
GROUP = 3
NOT_DECODED = 4
BROKEN = {fault: 5 + number for number, fault in enumerate(Fault)}

# What a classic group's record says of when its offsets expire, in one number: the time since when it is empty, or
EMPTY_SINCE_UNKNOWN = -1
HAS_MEMBERS = -2
NEVER_JOINED = -3

_COMMITS = ", ".join(map(str, wire.COMMIT_TYPES))
_GROUPS = ", ".join(map(str, wire.GROUP_KINDS))
_CLASSIC = f"record_type = {wire.CLASSIC_TYPE} and version <= {wire.NEWEST_VERSION}"
_FLEXIBLE = "version >= 4"
# A tag that is not known, told from bytes that end too early.
_OTHER_TAG = -9
# Not deterministic, so that Spark's optimizer moves no condition on a shape below it: it would write out all that a
# shape is made of wherever it is named, again and again, and take minutes for it.
_NEVER = "monotonically_increasing_id() < 0"
_SCRATCH = ("text", "tail", "tag_count", "has_topic_id", "classic", "walked")


def uint8(column: str, position: str) -> str:
    """A byte; NULL beyond the end."""
    return f"cast(conv(hex(substring({column}, {position}, 1)), 16, 10) as int)"


def int16(column: str, position: str) -> str:
    """A signed big-endian int16."""
    return f"shiftright(shiftleft({uint16(column, position)}, 16), 16)"


def int32(column: str, position: str) -> str:
    """A signed big-endian int32; NULL where not all of it is there."""
    raw = f"cast(conv(hex(substring({column}, {position}, 4)), 16, 10) as bigint)"
    whole = f"{position} <= length({column}) - 3"
    return f"if({whole}, cast(shiftright(shiftleft({raw}, 32), 32) as int), null)"


def flexible(position: str) -> str:
    """A length of the flexible versions: struct<at, size>; an unsigned varint of at most four bytes, less one."""
    byte = [uint8("value", f"{position} + {n}") for n in range(4)]
    cases = []
    for width in range(1, 5):
        low = "".join(f"({byte[n]} & 127) * {128**n} + " for n in range(width - 1))
        number = f"{low}{byte[width - 1]} * {128 ** (width - 1)} - 1"
        cases.append(f"when {byte[width - 1]} < 128 then named_struct('at', {position} + {width}, 'size', {number})")
    return f"case {' '.join(cases)} end"


def shaped(frame: "DataFrame") -> "DataFrame":
    """Add `record_type`, `version`, `shape` and `empty_since` to records with `key` and `value`.

    `empty_since` is of classic groups alone: ms since 1970, or one of `HAS_MEMBERS`, `EMPTY_SINCE_UNKNOWN`,
    `NEVER_JOINED`.
    """
    empty_since = (
        f"case when record_type = {wire.CLASSIC_TYPE} and shape = {GROUP} then"
        f" case when classic.members.size > 0 then {HAS_MEMBERS} when classic.type.size = 0 then {NEVER_JOINED}"
        f" when version < 2 then {EMPTY_SINCE_UNKNOWN}"
        f" else greatest({int64('value', 'classic.state_at')}, {EMPTY_SINCE_UNKNOWN}) end end"
    )
    measured = _classic_measured(_commit_measured(_versioned(frame)))
    walked = measured.selectExpr("*", f"case when {_CLASSIC} then {_walk()} end as walked")
    judged = walked.selectExpr("*", f"if({_NEVER}, null, cast({_shape()} as tinyint)) as shape")
    return judged.selectExpr("*", f"cast({empty_since} as bigint) as empty_since").drop(*_SCRATCH)


def labelled(frame: "DataFrame") -> "DataFrame":
    """Add `label`, `group`, `topic` and `topic_partition` to rows with `key`, `record_type` and `shape`.

    `group` is also that of types which are not decoded, as far as their keys have one; the names are NULL where the key
    is broken.
    """
    is_commit = f"record_type in ({_COMMITS})"
    sizes = frame.selectExpr("*", f"{uint16('key', 3)} as first").selectExpr(
        "*", f"case when {is_commit} and length(key) >= 6 + first then {uint16('key', '5 + first')} end as second"
    )
    fixed = f"if({is_commit}, 10 + first + second, 4 + first)"
    topic = "substring(key, 7 + first, second)"
    texts = f"{is_utf8('substring(key, 5, first)')} and (not {is_commit} or {is_utf8(topic)})"
    fault = (
        f"case when key is null then '{Fault.NO_KEY}' when length(key) < 2 then '{Fault.BAD_LENGTH}'"
        f" when record_type not in ({_COMMITS}, {_GROUPS}) then null"
        f" when first is null or first >= 32768 or coalesce(second, 0) >= 32768"
        f" or coalesce(length(key) <> {fixed}, true) then '{Fault.BAD_LENGTH}'"
        f" when not ({texts}) then '{Fault.INVALID_UTF8}'"
        f" when {is_commit} and substring(key, -4, 1) >= X'80' then '{Fault.NEGATIVE}' end"
    )
    faults = " ".join(f"when shape = {code} then '{wire.label_of(fault)}'" for fault, code in BROKEN.items())
    named = (
        f"case when fault is not null then concat('{wire.BROKEN_KEY}', fault)"
        f" when record_type not in ({_COMMITS}, {_GROUPS}) then concat('{wire.OTHER_TYPE}', record_type)"
        f" when shape = {TOMBSTONE} then if({is_commit}, '{wire.COMMIT_TOMBSTONE}', '{wire.GROUP_TOMBSTONE}')"
        f" when shape = {COMMIT} then '{wire.COMMIT}'"
        f" when shape = {COMMIT_WITH_OTHER_TAGS} then '{wire.COMMIT_WITH_OTHER_TAGS}'"
        f" when shape = {GROUP} then '{wire.GROUP}' {faults} end"
    )
    has_group = "fault is null and length(key) >= 4 + first and first < 32768"
    return (
        sizes.selectExpr("*", f"{fault} as fault")
        .selectExpr(
            "*",
            f"{named} as label",
            f"case when {has_group} and {is_utf8('substring(key, 5, first)')}"
            " then cast(substring(key, 5, first) as string) end as `group`",
            f"case when fault is null and {is_commit} then cast({topic} as string) end as topic",
            f"case when fault is null and {is_commit} then {int32('key', 'length(key) - 3')} end as topic_partition",
        )
        .drop("first", "second", "fault")
    )


def with_commit_values(frame: "DataFrame") -> "DataFrame":
    """Add what commits say to records with `key` and `value`: NULL for any other record, and for tombstones.

    `committed_offset`, `metadata`, `commit_timestamp`, `stored_expire_timestamp`, `leader_epoch`, `topic_id`.
    """
    measured = _commit_measured(_versioned(frame) if "version" not in frame.columns else frame)
    is_commit = f"shape in ({COMMIT}, {COMMIT_WITH_OTHER_TAGS})"
    epoch = int32("value", "11")
    topic_id = "substring(translate(base64(substring(value, tail + 11, 16)), '+/', '-_'), 1, 22)"
    said = {
        "committed_offset": int64("value", 3),
        "metadata": "cast(substring(value, text.at, text.size) as string)",
        "commit_timestamp": int64("value", "tail"),
        "stored_expire_timestamp": f"if(version = 1, {int64('value', 'tail + 8')}, null)",
        "leader_epoch": f"if(version >= 3 and {epoch} >= 0, {epoch}, null)",
        "topic_id": f"if(has_topic_id, {topic_id}, null)",
    }
    found = measured.selectExpr("*", *(f"case when {is_commit} then {sql} end as {name}" for name, sql in said.items()))
    return found.drop("text", "tail", "tag_count", "has_topic_id")


def with_group_values(frame: "DataFrame") -> "DataFrame":
    """Add what groups say to records with `record_type`, `version` and `shape`: NULL for any other record.

    `kind`, and of classic groups `protocol_type`, `generation`, `protocol`, `leader`, `state_timestamp`, `members`
    (struct<memberId, groupInstanceId, clientId, clientHost, rebalanceTimeout, sessionTimeout>).
    """
    measured = _classic_measured(frame)
    is_classic = f"shape = {GROUP} and record_type = {wire.CLASSIC_TYPE}"
    kinds = " ".join(f"when {number} then '{kind}'" for number, kind in wire.GROUP_KINDS.items())
    state = int64("value", "classic.state_at")
    said = {
        "protocol_type": _text("classic.type"),
        "generation": int32("value", "classic.type.at + classic.type.size"),
        "protocol": _text("classic.protocol"),
        "leader": _text("classic.leader"),
        "state_timestamp": f"if(version >= 2 and {state} >= 0, {state}, null)",
        "members": _members(),
    }
    found = measured.selectExpr(
        "*",
        f"case record_type {kinds} end as kind",
        *(f"case when {is_classic} then {sql} end as {name}" for name, sql in said.items()),
    )
    return found.drop(*_SCRATCH)


def _versioned(frame: "DataFrame") -> "DataFrame":
    return frame.selectExpr("*", f"{uint16('key', 1)} as record_type", f"{uint16('value', 1)} as version")


def _commit_measured(frame: "DataFrame") -> "DataFrame":
    """Add where a commit's metadata is (`text`: at, size), what follows it (`tail`), and what its tags are."""
    text = (
        f"case when record_type not in ({_COMMITS}) then null"
        f" when version <= 2 then named_struct('at', 13, 'size', {int16('value', '11')})"
        f" when version = 3 then named_struct('at', 17, 'size', {int16('value', '15')})"
        f" when version = 4 then {flexible('15')} end"
    )
    return (
        frame.selectExpr("*", f"{text} as text")
        .selectExpr("*", "if(text.size >= 0, text.at + text.size, null) as tail")
        .selectExpr("*", f"if(version = 4, {uint8('value', 'tail + 8')}, null) as tag_count")
        .selectExpr(
            "*",
            "coalesce(tag_count between 1 and 127 and substring(value, tail + 9, 2) = X'0010'"
            " and length(value) >= tail + 26, false) as has_topic_id",
        )
    )


def _classic_measured(frame: "DataFrame") -> "DataFrame":
    """Add where the parts of a classic group's value are, up to its first member (`classic`).

    One expression: as columns that rest on each other, Spark's optimizer would write them out into each other.
    """

    def string(at: str) -> str:
        return f"if({_FLEXIBLE}, {flexible(at)}, named_struct('at', {at} + 2, 'size', {int16('value', at)}))"

    many = f"if({_FLEXIBLE}, {flexible('at')}, named_struct('at', at + 4, 'size', {int32('value', 'at')}))"
    parts = "'type', t, 'protocol', p, 'leader', l, 'state_at', state_at, 'members', m"
    found = _let("m", many, f"named_struct({parts})")
    found = _let("at", "state_at + if(version >= 2, 8, 0)", found)
    found = _let("state_at", "l.at + greatest(l.size, 0)", found)
    found = _let("l", _let("at", "p.at + greatest(p.size, 0)", string("at")), found)
    found = _let("p", _let("at", "t.at + t.size + 4", string("at")), found)
    found = _let("t", string("3"), found)
    return frame.selectExpr("*", f"case when {_CLASSIC} then {found} end as classic")


def _let(name: str, value: str, body: str) -> str:
    """Compute a value once, and name it in the body."""
    return f"transform(array({value}), {name} -> {body})[0]"


def _kinds() -> str:
    listed = " ".join(f"when {version} then '{kinds}'" for version, kinds in enumerate(wire.MEMBER_FIELDS))
    return f"case version {listed} end"


def _field(kind: str, at: str) -> str:
    """Where a field is, as struct<at, size>; NULL beyond the end."""
    tag = uint8("value", at)
    return (
        f"case when {kind} = 'I' then named_struct('at', {at}, 'size', 4)"
        f" when {kind} = 'T' then case when {tag} = 0 then named_struct('at', {at} + 1, 'size', 0)"
        f" when {tag} > 0 then named_struct('at', {at} + 1, 'size', {_OTHER_TAG}) end"
        f" when {_FLEXIBLE} then {flexible(at)}"
        f" when {kind} = 'B' then named_struct('at', {at} + 4, 'size', {int32('value', at)})"
        f" else named_struct('at', {at} + 2, 'size', {int16('value', at)}) end"
    )


def _walk() -> str:
    """Go through all members: struct<at, is_text>: the end (NULL: they are broken), and whether all text is UTF-8."""
    end = "f.at + greatest(f.size, 0)"
    text = is_utf8("substring(value, f.at, greatest(f.size, 0))")
    step = (
        f"case when acc.at is null or acc.at < 0 then acc"
        f" when f.size = {_OTHER_TAG} then named_struct('at', {_OTHER_TAG}, 'is_text', acc.is_text)"
        f" when f.size >= if(kind = 'N', -1, 0) and f.size <= length(value) and {end} <= length(value) + 1"
        f" then named_struct('at', {end}, 'is_text', acc.is_text and (kind not in ('S', 'N') or {text}))"
        " else named_struct('at', cast(null as int), 'is_text', acc.is_text) end"
    )
    step = _let("kind", "substr(kinds, i % length(kinds) + 1, 1)", _let("f", _field("kind", "acc.at"), step))
    last = "classic.members.size * length(kinds) - 1"
    places = f"if(classic.members.size > 0, sequence(0, {last}), cast(array() as array<int>))"
    walk = f"aggregate({places}, named_struct('at', classic.members.at, 'is_text', true), (acc, i) -> {step})"
    return (
        "case when classic.type.size >= 0 and classic.protocol.size >= -1 and classic.leader.size >= -1"
        " and classic.members.at <= length(value) + 1 and classic.members.size between 0 and length(value)"
        f" then {_let('kinds', _kinds(), walk)} end"
    )


def _shape() -> str:
    size = "length(value)"
    commit_end = f"{size} = tail + 7 + if(version = 1, 8, 0)"
    tags_fit = (
        f"case when tag_count = 0 then {size} = tail + 8"
        f" when tag_count = 1 and substring(value, tail + 9, 1) = X'00' then has_topic_id and {size} = tail + 26"
        f" else {size} >= tail + 8 + 2 * tag_count end"
    )
    other_tags = "tag_count > 1 or (tag_count = 1 and substring(value, tail + 9, 1) <> X'00')"
    commit = (
        f"case when version > {wire.NEWEST_VERSION} then {BROKEN[Fault.UNKNOWN_VERSION]}"
        f" when not coalesce(if(version = 4, {tags_fit}, {commit_end}), false) then {BROKEN[Fault.BAD_LENGTH]}"
        f" when not {is_utf8('substring(value, text.at, text.size)')} then {BROKEN[Fault.INVALID_UTF8]}"
        f" when substring(value, 3, 8) = X'{'FF' * 8}' then {BROKEN[Fault.WITHOUT_OFFSET]}"
        f" when substring(value, 3, 1) >= X'80' then {BROKEN[Fault.NEGATIVE]}"
        f" when {other_tags} then {COMMIT_WITH_OTHER_TAGS} else {COMMIT} end"
    )
    last_tag = uint8("value", "walked.at")
    texts = " and ".join(is_utf8(_bytes(name)) for name in ("classic.type", "classic.protocol", "classic.leader"))
    classic = (
        f"case when version > {wire.NEWEST_VERSION} then {BROKEN[Fault.UNKNOWN_VERSION]}"
        f" when walked.at is null then {BROKEN[Fault.BAD_LENGTH]}"
        f" when walked.at = {_OTHER_TAG} or ({_FLEXIBLE} and {last_tag} > 0) then {BROKEN[Fault.UNKNOWN_TAGS]}"
        f" when walked.at <> {size} + if({_FLEXIBLE}, 0, 1) then {BROKEN[Fault.BAD_LENGTH]}"
        f" when not (walked.is_text and {texts}) then {BROKEN[Fault.INVALID_UTF8]} else {GROUP} end"
    )
    return (
        f"case when value is null then {TOMBSTONE}"
        f" when coalesce(record_type not in ({_COMMITS}, {_GROUPS}), true) then {NOT_DECODED}"
        f" when {size} < 2 then {BROKEN[Fault.BAD_LENGTH]}"
        f" when record_type in ({_COMMITS}) then {commit} when record_type = {wire.CLASSIC_TYPE} then {classic}"
        f" when version > 0 then {BROKEN[Fault.UNKNOWN_VERSION]}"
        f" when {size} < 7 then {BROKEN[Fault.BAD_LENGTH]} else {GROUP} end"
    )


def _bytes(extent: str) -> str:
    return f"substring(value, {extent}.at, greatest({extent}.size, 0))"


def _text(extent: str) -> str:
    return f"if({extent}.size < 0, null, cast({_bytes(extent)} as string))"


def _members() -> str:
    """The members of a classic group whose shape was found whole."""
    extents = "array<struct<at: int, size: int>>"
    step = "named_struct('at', f.at + greatest(f.size, 0), 'fields', concat(acc.fields, array(f)))"
    step = _let("f", _field("substr(kinds, k, 1)", "acc.at"), step)
    none = f"named_struct('at', every.at, 'fields', cast(array() as {extents}))"
    member = f"aggregate(sequence(1, length(kinds)), {none}, (acc, k) -> {step})"
    more = _let("m", member, "named_struct('at', m.at, 'each', concat(every.each, array(m.fields)))")
    # Two levels: each adds to a list of its own, and an array is copied whenever it grows.
    fields = (
        "aggregate(if(classic.members.size > 0, sequence(1, classic.members.size), cast(array() as array<int>)),"
        f" named_struct('at', classic.members.at, 'each', cast(array() as array<{extents}>)),"
        f" (every, n) -> {more}, every -> every.each)"
    )
    skipped = "if(version >= 3, 1, 0)"
    timed = "if(version >= 1, 1, 0)"
    said = {
        "memberId": _text("m[0]"),
        "groupInstanceId": f"if(version >= 3, {_text('m[1]')}, null)",
        "clientId": _text(f"m[1 + {skipped}]"),
        "clientHost": _text(f"m[2 + {skipped}]"),
        "rebalanceTimeout": f"if(version >= 1, {int32('value', f'm[3 + {skipped}].at')}, null)",
        "sessionTimeout": int32("value", f"m[3 + {skipped} + {timed}].at"),
    }
    made = ", ".join(f"'{name}', {sql}" for name, sql in said.items())
    return _let("kinds", _kinds(), f"transform({fields}, m -> named_struct({made}))")
