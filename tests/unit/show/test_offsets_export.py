"""The closing lines of an export: what was read, written and left out, and why."""

from migrate.model import Failure, LogRange
from migrate.show.offsets_export import announcement, summary_lines
from migrate.survey.offsets_export import Exported, OffsetsPin

PIN = OffsetsPin("A", 50, {3: LogRange(5, 25), 7: LogRange(4, 4)}, {3: 28})


def test_what_will_be_read_is_said_in_bytes_before():
    assert announcement(PIN) == (
        "reading __consumer_offsets of A: 2 of 50 partitions, 20 offsets, about 4.4 kB in two passes"
    )


def test_every_record_is_accounted_for_by_name():
    labels = {"commit": 9, "commit-tombstone": 1, "type-5": 2, "type-99": 1, "undecodable-value:unknown-version": 1}
    left_out = {
        "superseded": 5, "tombstone": 1, "type-5": 2, "type-99": 1, "undecodable-value:unknown-version": 1,
        "filter:exclude-group": 2, "outside-time": 1,
    }  # fmt: skip
    lines = list(summary_lines(Exported(labels, {"commit": 1}, left_out), PIN, "x.jsonl", None))
    assert lines[:4] == [
        "1 record written to x.jsonl: 1 commit",
        "14 records read: 9 commit, 1 commit-tombstone, 2 type-5 (ConsumerGroupMemberMetadata), 1 type-99 (unknown), "
        "1 undecodable-value:unknown-version",
        "13 records left out:",
        "  5 superseded by a later record of the same key",
    ]
    assert "  2 of a type that is not exported, type-5 (ConsumerGroupMemberMetadata)" in lines
    assert "  1 that cannot be decoded, undecodable-value:unknown-version" in lines
    assert "  2 by the filter exclude-group" in lines and "  1 outside --since and --until" in lines
    assert lines[-2:] == ["Pinned: 3: 5-25", "  partition 3: a transaction is open; 3 offsets from 25 on not read"]


def test_what_is_not_known_or_not_there_is_said():
    exported = Exported({"commit-with-unknown-tags": 1}, {"commit-with-unknown-tags": 1}, {}, ("simpel",))
    lines = list(summary_lines(exported, PIN, "x", Failure("CLUSTER_AUTHORIZATION_FAILED", "no")))
    assert any("of a newer Kafka" in line for line in lines)
    assert any("offsets.retention.minutes is not visible (CLUSTER_AUTHORIZATION_FAILED)" in line for line in lines)
    assert lines[-1] == "Nothing was read of simpel"
