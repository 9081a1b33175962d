"""What a history asks for, and when it is whole."""

from migrate.extras.offsets_topic.history_values import (
    OFFSET_DELETED,
    RECORDS_GONE,
    HistoryRequest,
    HistoryResult,
    end_rows,
    lookups_of,
    reason_of,
)
from migrate.extras.offsets_topic.request import Exported
from migrate.model import Failure, TopicPartition

COUNTED = Exported({"commit": 3}, {"commit": 3}, {})
DENIED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")


def test_a_history_ends_now_or_at_until():
    assert HistoryRequest(1000, 50).cut_ms == 50
    assert HistoryRequest(1000, 50, until_ms=40).cut_ms == 40
    assert HistoryRequest(1000, 50, until_ms=60).cut_ms == 50


def test_of_the_topic_every_commit_counts_and_tombstones_are_left_out():
    asked = HistoryRequest(1000, 50, since_ms=3, until_ms=40).as_export()
    assert (asked.history, asked.tombstones, asked.kinds, asked.since_ms, asked.until_ms) == (
        True, False, "commits", 3, 40,
    )  # fmt: skip


def test_what_retention_has_taken_is_not_there_and_what_nobody_told_is_missing():
    assert HistoryResult(COUNTED, 3, unseen={reason_of(RECORDS_GONE): 2, reason_of(OFFSET_DELETED): 1}).is_whole
    assert not HistoryResult(COUNTED, 3, unseen={reason_of(DENIED): 1}).is_whole
    assert not HistoryResult(Exported({}, {}, {}, ("simpel",)), 0).is_whole
    assert not HistoryResult(Exported({}, {}, {}, (), {"undecodable-value:bad-length": 1}), 0).is_whole


def test_too_many_questions_are_not_asked():
    assert lookups_of(10, 10) is None
    assert "at 11 times of partitions, and --max-lookups allows 10" in (lookups_of(11, 10) or "")


def test_an_end_is_a_number_or_has_its_reason():
    t0 = TopicPartition("t", 0)
    assert end_rows({(t0, 5): 7, (t0, 6): DENIED}) == [
        ("t", 0, 5, 7, None),
        ("t", 0, 6, None, "TOPIC_AUTHORIZATION_FAILED: no"),
    ]
