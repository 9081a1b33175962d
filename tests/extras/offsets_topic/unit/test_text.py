"""The closing lines of an export: what was read, written and left out, and why."""

from dataclasses import replace

from migrate.extras.offsets_topic.request import Exported
from migrate.extras.offsets_topic.text import (
    announcement,
    missing_lines,
    short_topic_lines,
    summary_lines,
    topic_lines,
)
from migrate.model import Failure, LogRange
from migrate.survey.offsets_pin import OffsetsPin

PIN = OffsetsPin("A", 50, {3: LogRange(5, 25), 7: LogRange(4, 4)}, {3: 28})


def test_what_will_be_read_is_said_in_bytes_before():
    assert announcement(PIN, PIN.fetched_bytes, " in two passes") == (
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
    assert lines[-1] == "Pinned: 3: 5-25"


def test_what_is_left_from_when_the_topic_had_fewer_partitions_is_said_to_be_that():
    lines = list(summary_lines(Exported({"commit": 2}, {}, {"not-its-partition": 2}), PIN, "x", None))
    assert "  2 in a partition that is not their group's own, left from when the topic had fewer" in lines


def test_what_is_not_known_is_said():
    exported = Exported({"commit-with-unknown-tags": 1}, {"commit-with-unknown-tags": 1}, {})
    lines = list(summary_lines(exported, PIN, "x", Failure("CLUSTER_AUTHORIZATION_FAILED", "no")))
    assert any("of a newer Kafka" in line for line in lines)
    assert any("offsets.retention.minutes is not visible (CLUSTER_AUTHORIZATION_FAILED)" in line for line in lines)


def test_each_thing_that_was_asked_for_and_not_given_has_a_line():
    lost = {"undecodable-value:unknown-version": 2, "undecodable-key:bad-length": 1}
    assert list(missing_lines(Exported({}, {}, {}, ("simpel",), lost), PIN)) == [
        "Not visible: 3 offsets of partition 3 from 25 on: a transaction is open there, which hides what any group has "
        "committed after it began",
        "Not decodable: 1 record that would have been written (undecodable-key:bad-length)",
        "Not decodable: 2 records that would have been written (undecodable-value:unknown-version)",
        "Nothing is there of simpel",
    ]


def test_what_is_left_out_by_contract_is_not_missing():
    exported = Exported({"type-99": 3}, {}, {"type-99": 3, "undecodable-value:bad-length": 1})
    assert list(missing_lines(exported, OffsetsPin("A", 50, {3: LogRange(5, 25)}, {}))) == []


def test_of_a_topic_it_is_said_how_far_its_log_ends_moved_and_only_what_that_proves():
    assert list(topic_lines(5, 5, 5)) == ["The topic's log ends moved by 5: by what was written, nothing twice"]
    (more,) = topic_lines(5, 5, 7)
    assert "moved by 7, 2 more than was written" in more and "tasks that Spark ran again" in more
    assert list(topic_lines(5, 8, 8))[0] == "3 lines of an attempt that compaction broke off are in the topic too"
    (unseen,) = topic_lines(5, 5, Failure("NOT_VISIBLE", "no"))
    assert "not visible (NOT_VISIBLE)" in unseen
    assert list(short_topic_lines(5, Failure("NOT_VISIBLE", "no"))) == list(short_topic_lines(5, 5)) == []
    assert list(short_topic_lines(5, 7)) == [] and list(topic_lines(5, 5, 4)) == []
    assert list(short_topic_lines(5, 4)) == [
        "Not there: 5 records were acknowledged, and the topic's log ends moved by 4 only"
    ]


def test_a_commit_without_an_offset_is_named_and_nothing_is_missing():
    exported = Exported({"commit": 1, "commit-without-offset": 1}, {"commit": 1}, {"commit-without-offset": 1})
    words = "  1 with an offset of -1, which is read as nothing committed"
    assert words in list(summary_lines(exported, PIN, "x", None))
    assert list(missing_lines(exported, replace(PIN, open_ends={}))) == []
