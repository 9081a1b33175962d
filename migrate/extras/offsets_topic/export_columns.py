"""What is exported of a record of `__consumer_offsets`: as columns, as a line of JSON, as a row of CSV.

The first eight fields of a commit have the names that Kafka's own tools and published articles use.
"""

from typing import TYPE_CHECKING

from migrate.extras.offsets_topic import offset_columns as columns
from migrate.extras.offsets_topic.request import Expires, ExportKinds
from migrate.survey import offsets_wire as wire

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = {
    "tombstone": "value is null",
    "logPartition": "log_partition",
    "logOffset": "log_offset",
    "logTimestamp": "log_timestamp",
}
_COMMIT = {
    "topic": "topic",
    "partition": "topic_partition",
    "group": "`group`",
    "version": "version",
    "offset": "committed_offset",
    "metadata": "metadata",
    "commitTimestamp": "commit_timestamp",
    "expireTimestamp": "expire_timestamp",
    "expires": "expires",
    "recordType": "record_type",
    "leaderEpoch": "leader_epoch",
    "topicId": "topic_id",
}
_GROUP = {
    "group": "`group`",
    "recordType": "record_type",
    "kind": "kind",
    "version": "version",
    "protocolType": "protocol_type",
    "generation": "generation",
    "protocol": "protocol",
    "leader": "leader",
    "currentStateTimestamp": "state_timestamp",
    "members": "members",
}
_COMMIT_FIELDS = _COMMIT | _PLACE
_GROUP_FIELDS = _GROUP | _PLACE
_FIELDS = {
    ExportKinds.COMMITS: _COMMIT_FIELDS,
    ExportKinds.GROUPS: _GROUP_FIELDS,
    ExportKinds.ALL: _COMMIT | _GROUP | _PLACE,
}
_IS_COMMIT = f"record_type in ({', '.join(map(str, wire.COMMIT_TYPES))})"
_JSON = "map('ignoreNullFields', 'false')"


def names(kinds: ExportKinds) -> tuple[str, ...]:
    """The fields of every row, in their order."""
    return tuple(_FIELDS[kinds])


def decoded(chosen: "DataFrame", facts: "DataFrame | None", retention_ms: int | None) -> "DataFrame":
    """Add what commits and groups say, and when commits expire, to labelled records.

    `facts` are those of groups (facts_of, empty_since, is_broken, is_newer_kind, has_members), None for a history: a
    commit that was superseded does not expire any more, so only what it carries itself is shown.
    """
    said = columns.with_group_values(columns.with_commit_values(chosen.drop("empty_since")))
    if facts is None:
        rule = f"if(stored_expire_timestamp >= 0, '{Expires.STORED}', '{Expires.UNKNOWN}')"
        since = "cast(null as bigint)"
    else:
        said = said.join(facts, said["group"] == facts["facts_of"], "left")
        rule, since = _rule(retention_ms is not None), "empty_since"
    retention = "cast(null as bigint)" if retention_ms is None else f"cast({retention_ms} as bigint)"
    end = (
        f"case expires when '{Expires.STORED}' then stored_expire_timestamp"
        f" when '{Expires.FROM_COMMIT}' then try_add(commit_timestamp, {retention})"
        f" when '{Expires.FROM_EMPTY}' then try_add({since}, {retention}) end"
    )
    return said.selectExpr("*", f"case when committed_offset is not null then {rule} end as expires").selectExpr(
        "*", f"{end} as expire_timestamp"
    )


def as_json(frame: "DataFrame", kinds: ExportKinds) -> "DataFrame":
    """One column of JSON texts."""
    return frame.selectExpr(f"{_json_text(kinds)} as line")


def as_records(frame: "DataFrame", kinds: ExportKinds) -> "DataFrame":
    """Records of another topic: the key as it is in the offsets topic, a JSON text, and where the record stands."""
    return frame.selectExpr("key", f"{_json_text(kinds)} as value", "log_partition", "log_offset")


def _json_text(kinds: ExportKinds) -> str:
    commit, group = (f"to_json({_struct(fields)}, {_JSON})" for fields in (_COMMIT_FIELDS, _GROUP_FIELDS))
    return {
        ExportKinds.COMMITS: commit,
        ExportKinds.GROUPS: group,
        ExportKinds.ALL: f"if({_IS_COMMIT}, {commit}, {group})",
    }[kinds]


def as_table(frame: "DataFrame", kinds: ExportKinds) -> "DataFrame":
    """A column for each field."""
    return frame.selectExpr(*(f"{sql} as `{name}`" for name, sql in _FIELDS[kinds].items()))


def _struct(fields: dict[str, str]) -> str:
    listed = (f"'{name}', {sql}" for name, sql in fields.items())
    return f"named_struct({', '.join(listed)})"


def _rule(knows_retention: bool) -> str:
    """By which clock a commit expires: Kafka's law, `offsetExpirationCondition` of each kind of group (KIP-211).

    While a topic is consumed, not even an end that a commit carries itself counts (`cleanupExpiredOffsets`).
    """
    from_commit = Expires.FROM_COMMIT if knows_retention else Expires.UNKNOWN
    from_empty = Expires.FROM_EMPTY if knows_retention else Expires.UNKNOWN
    return (
        f"case when empty_since = {columns.HAS_MEMBERS} or (is_newer_kind and has_members)"
        f" then '{Expires.NOT_WHILE_CONSUMED}'"
        f" when stored_expire_timestamp >= 0 then '{Expires.STORED}'"
        f" when is_broken then '{Expires.UNKNOWN}'"
        f" when empty_since >= 0 then '{from_empty}' else '{from_commit}' end"
    )
