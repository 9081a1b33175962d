"""The closing lines of an export: what was read, written and left out, and why."""

from migrate.extras.offsets_topic.request import Exported
from migrate.extras.offsets_topic.text import announcement, missing_lines, short_topic_lines, summary_lines, topic_lines
from migrate.model import Failure, LogRange
from migrate.survey.offsets_pin import OffsetsPin

PIN = OffsetsPin("A", 50, {3: LogRange(5, 25), 7: LogRange(4, 4)}, {3: 28})
UNSEEN = Failure("NOT_VISIBLE", "no")


def test_what_will_be_read_is_said_in_bytes_before():
    assert announcement(PIN, PIN.fetched_bytes, " in two passes") == (
        "reading __consumer_offsets of A: 2 of 50 partitions, 20 offsets, about 4.4 kB in two passes"
    )


def test_every_record_is_accounted_for_by_name_and_what_is_not_known_is_said():
    labels = {"commit": 9, "commit-with-unknown-tags": 1, "commit-tombstone": 1, "type-5": 2, "type-99": 1}
    broken = {"undecodable-value:unknown-version": 1}
    left_out = {
        "superseded": 6, "tombstone": 1, "type-5": 2, "type-99": 1, "filter:exclude-group": 3, "outside-time": 1,
        "not-its-partition": 4, "commit-without-offset": 5,
    }  # fmt: skip
    exported = Exported(labels | broken, {"commit": 1}, left_out | broken)
    assert list(summary_lines(exported, PIN, "x.jsonl", Failure("CLUSTER_AUTHORIZATION_FAILED", "no"))) == [
        "1 record written to x.jsonl: 1 commit",
        "15 records read: 9 commit, 1 commit-tombstone, 1 commit-with-unknown-tags, 2 type-5 "
        "(ConsumerGroupMemberMetadata), 1 type-99 (unknown), 1 undecodable-value:unknown-version",
        "24 records left out:",
        "  6 superseded by a later record of the same key",
        "  5 with an offset of -1, which is read as nothing committed",
        "  4 in a partition that is not their group's own, left from when the topic had fewer",
        "  3 by the filter exclude-group",
        "  2 of a type that is not exported, type-5 (ConsumerGroupMemberMetadata)",
        "  1 outside --since and --until",
        "  1 tombstones: offsets that were deleted or have expired",
        "  1 of a type that is not exported, type-99 (unknown)",
        "  1 that cannot be decoded, undecodable-value:unknown-version",
        "Commits with unknown tags are of a newer Kafka: what is known of them was written, the rest left out.",
        "Pinned: 3: 5-25",
        "offsets.retention.minutes is not visible (CLUSTER_AUTHORIZATION_FAILED): when most commits expire is unknown",
    ]


def test_each_thing_that_was_asked_for_and_not_given_has_a_line_and_what_is_left_out_by_contract_has_none():
    lost = {"undecodable-value:unknown-version": 2, "undecodable-key:bad-length": 1}
    assert list(missing_lines(Exported({}, {}, {}, ("simpel",), lost), PIN)) == [
        "Not visible: 3 offsets of partition 3 from 25 on: a transaction is open there, which hides what any group has "
        "committed after it began",
        "Not decodable: 1 record that would have been written (undecodable-key:bad-length)",
        "Not decodable: 2 records that would have been written (undecodable-value:unknown-version)",
        "Nothing is there of simpel",
    ]
    left_out = {"type-99": 3, "undecodable-value:bad-length": 1, "commit-without-offset": 1}
    assert not list(missing_lines(Exported(left_out, {}, left_out), OffsetsPin("A", 50, {3: LogRange(5, 25)}, {})))


def test_of_a_topic_it_is_said_how_far_its_log_ends_moved_and_only_what_that_proves():
    assert list(topic_lines(5, 5, 5)) == ["The topic's log ends moved by 5: by what was written, nothing twice"]
    (more,) = topic_lines(5, 5, 7)
    assert "moved by 7, 2 more than was written" in more and "tasks that Spark ran again" in more
    assert list(topic_lines(5, 8, 8))[0] == "3 lines of an attempt that compaction broke off are in the topic too"
    assert "not visible (NOT_VISIBLE)" in next(topic_lines(5, 5, UNSEEN))
    for grown in (UNSEEN, 5, 7):
        assert not list(short_topic_lines(5, grown))
    short = "Not there: 5 records were acknowledged, and the topic's log ends moved by 4 only"
    assert list(topic_lines(5, 5, 4)) == [] and list(short_topic_lines(5, 4)) == [short]
