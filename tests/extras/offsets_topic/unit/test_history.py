"""What a history asks for and when it is whole, its time series on a screen, and what is said of it in the end."""

from pathlib import Path
from types import SimpleNamespace

import pytest

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
from migrate.extras.offsets_topic.text import history_summary, history_table
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.offsets_pin import OffsetsPin
from migrate.text import cells
from tests.unit.goldenfiles import compare_with_golden

MINUTE = 60_000
START = 1_767_225_600_000
PIN = OffsetsPin("A", 50, {3: LogRange(5, 65), 7: LogRange(4, 4)}, {3: 70})
REQUEST = HistoryRequest(MINUTE, START + 10**7)
COUNTED = Exported(
    {"commit": 44, "commit-tombstone": 2, "type-5": 3}, {"commit": 40},
    {"tombstone": 2, "filter:exclude-group": 4, "type-5": 3},
)  # fmt: skip

GOLDEN = Path(__file__).parents[1] / "golden"


def row(minute, offset, group="billing", topic="orders", partition=0, **more):
    said = {"commits": 12, "records_per_s": 20.0, "end_at_time": offset + 30, "lag": 30, "lag_is_estimate": True}
    place = {"time": START + minute * MINUTE, "group": group, "topic": topic, "partition": partition, "offset": offset}
    return SimpleNamespace(**place, **said | more)


UNSEEN = {"end_at_time": None, "lag": None, "lag_is_estimate": None}
ROWS = [
    row(3, 2_400), row(2, 1_200, records_per_s=None), row(4, 900, records_per_s=None),
    row(3, 77, partition=1, commits=1, records_per_s=0.016),
    row(5, 123_456_789_012, "crm-\x1b[2Jsync", "a-topic-with-a-rather-long-name.for-a-narrow-page", 11, **UNSEEN),
]  # fmt: skip
TOLD = HistoryResult(COUNTED, 9, unseen={reason_of(RECORDS_GONE): 3, "TOPIC_AUTHORIZATION_FAILED: no": 1})


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_is_as_agreed(width):
    lines = [*history_table(ROWS, TOLD, REQUEST, width, False), "", *history_summary(TOLD, PIN, "")]
    compare_with_golden(f"history-{width}.txt", "\n".join(lines) + "\n", GOLDEN)
    shown = list(history_table(ROWS, TOLD, REQUEST, width, False))
    assert all(cells(line) <= width for line in shown) and not any("\x1b" in line for line in shown)


def test_rows_that_are_not_shown_are_counted():
    assert list(history_table(ROWS, TOLD, REQUEST, 160, False))[-1].startswith("and 4 rows of earlier times")
    told = HistoryResult(COUNTED, len(ROWS))
    assert "earlier" not in "\n".join(history_table(ROWS, told, REQUEST, 160, False))


def test_a_lag_is_never_shown_as_more_than_an_estimate_and_what_is_not_visible_is_never_0():
    lags = [line.split()[-1] for line in history_table(ROWS, TOLD, REQUEST, 160, False) if line.startswith("2026")]
    assert lags == ["~30", "~30", "~30", "~30", "?"]
    without = HistoryResult(COUNTED, 1, with_lag=False)
    assert list(history_table(ROWS[-1:], without, REQUEST, 160, False))[-1].endswith(" -")


def test_the_summary_counts_every_record_and_says_what_the_cleaner_has_taken():
    lines = list(history_summary(TOLD, PIN, "x.csv"))
    assert lines[0] == "9 rows written to x.csv of 40 commits"
    assert (
        "49 records read of 60 offsets pinned: the others are transaction markers, aborted commits, or compacted away"
        in lines
    )
    assert any("goes back only as far as the log cleaner has not been" in line for line in lines)
    assert "  2 tombstones: offsets that were deleted or have expired" in lines
    assert any("a transaction is open" in line for line in lines)
    assert "END-AT-TIME and LAG of 1 row are not visible (TOPIC_AUTHORIZATION_FAILED: no)" in lines
    assert "Something that is there could not be read: this history is not whole" in lines


def test_a_history_that_is_whole_does_not_say_that_it_is_not():
    gone = HistoryResult(COUNTED, 9, unseen={reason_of(RECORDS_GONE): 3})
    assert not any("not whole" in line for line in history_summary(gone, PIN, ""))
    unknown = HistoryResult(Exported({}, {}, {}, ("simpel",)), 0, with_lag=False)
    lines = list(history_summary(unknown, PIN, ""))
    assert lines[-1] == "Nothing is there of simpel" and any("--no-lag" in line for line in lines)
    assert isinstance(RECORDS_GONE, Failure)


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
