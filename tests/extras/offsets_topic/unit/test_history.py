"""What a history asks for and when it is whole, where logs ended at a past time, and what is shown and said of it."""

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
from migrate.extras.offsets_topic.log_ends import NOT_FOUND, ends_at
from migrate.extras.offsets_topic.request import Exported
from migrate.extras.offsets_topic.text import history_summary, history_table
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.offsets_pin import OffsetsPin
from migrate.text import cells
from tests.fakes import FakeCluster
from tests.unit.goldenfiles import compare_with_golden

MINUTE = 60_000
START = 1_767_225_600_000
PIN = OffsetsPin("A", 50, {3: LogRange(5, 65), 7: LogRange(4, 4)}, {3: 70})
REQUEST = HistoryRequest(MINUTE, START + 10**7)
DENIED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
COUNTED = Exported(
    {"commit": 44, "commit-tombstone": 2, "type-5": 3}, {"commit": 40},
    {"tombstone": 2, "filter:exclude-group": 4, "type-5": 3},
)  # fmt: skip
UNKNOWN = Exported({}, {}, {}, ("simpel",))

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
TOLD = HistoryResult(COUNTED, 9, unseen={reason_of(RECORDS_GONE): 3, reason_of(DENIED): 1})


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_and_its_summary_are_as_agreed(width):
    shown = list(history_table(ROWS, TOLD, REQUEST, width, False))
    lines = [*shown, "", *history_summary(TOLD, PIN, "")]
    compare_with_golden(f"history-{width}.txt", "\n".join(lines) + "\n", GOLDEN)
    assert all(cells(line) <= width for line in shown) and not any("\x1b" in line for line in shown)


def test_what_was_not_asked_for_or_is_all_there_is_said_to_be_that():
    whole = HistoryResult(COUNTED, len(ROWS), with_lag=False, unseen={reason_of(RECORDS_GONE): 3})
    shown, said = list(history_table(ROWS, whole, REQUEST, 160, False)), list(history_summary(whole, PIN, "x.csv"))
    assert "earlier" not in "\n".join(shown) and shown[-1].endswith(" -")
    assert said[0] == "5 rows written to x.csv of 40 commits"
    assert any("--no-lag" in line for line in said) and not any("not whole" in line for line in said)
    assert list(history_summary(HistoryResult(UNKNOWN, 0), PIN, ""))[-1] == "Nothing is there of simpel"


def test_a_history_ends_now_or_at_until_and_has_every_commit_and_no_tombstone():
    assert [HistoryRequest(1000, 50, until_ms=until).cut_ms for until in (None, 40, 60)] == [50, 40, 50]
    asked = HistoryRequest(1000, 50, since_ms=3, until_ms=40).as_export()
    assert (asked.history, asked.tombstones, asked.kinds) == (True, False, "commits")
    assert (asked.since_ms, asked.until_ms) == (3, 40)


def test_what_retention_has_taken_is_not_there_and_what_nobody_told_is_missing():
    assert HistoryResult(COUNTED, 3, unseen={reason_of(RECORDS_GONE): 2, reason_of(OFFSET_DELETED): 1}).is_whole
    assert not HistoryResult(COUNTED, 3, unseen={reason_of(DENIED): 1}).is_whole
    assert not HistoryResult(UNKNOWN, 0).is_whole
    assert not HistoryResult(Exported({}, {}, {}, (), {"undecodable-value:bad-length": 1}), 0).is_whole
    place = TopicPartition("t", 1)
    assert end_rows({(place, 5): 70, (place, 6): DENIED}) == [
        ("t", 1, 5, 70, None), ("t", 1, 6, None, "TOPIC_AUTHORIZATION_FAILED: no"),
    ]  # fmt: skip


def test_too_many_questions_are_not_asked():
    assert lookups_of(10, 10) is None
    assert "at 11 times of partitions, and --max-lookups allows 10" in (lookups_of(11, 10) or "")


T0 = TopicPartition("t", 0)
SILENT = Failure("LEADER_NOT_AVAILABLE", "silent", retriable=True)
HIDDEN = Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there")


class FakeTimes:
    """A log as a list of (offset, timestamp), and the times that are asked of it."""

    def __init__(self, log, is_silent=False):
        self.log, self.is_silent, self.asked = log, is_silent, []

    def first_offsets(self, pairs):
        self.asked += [time_ms for _, time_ms in pairs]
        first = {pair: next((offset for offset, ms in self.log if ms >= pair[1]), None) for pair in pairs}
        if self.is_silent:
            return dict.fromkeys(pairs), {T0: SILENT}
        return first, {T0: max((ms for _, ms in self.log), default=None)}


LOG = [(0, 100), (1, 200), (2, 300)]


@pytest.mark.parametrize(("pinned", "log", "ends"), [
    # The end at a time is the first offset of that time or later; behind the newest record the pinned end counts.
    (LogRange(0, 3), LOG, {100: 0, 101: 1, 300: 2, 301: 3}),
    # What came after the pin does not count.
    (LogRange(0, 2), [(0, 1), (5, 9)], {8: 2}),
    # Where retention has taken the records of that time no lag is made up.
    (LogRange(50, 52), [(50, 500), (51, 600)], {400: RECORDS_GONE, 501: 51}),
    # An empty log ended at 0, or nobody knows.
    (LogRange(0, 0), [], {1: 0}), (LogRange(7, 7), [], {1: RECORDS_GONE}),
])  # fmt: skip
def test_the_end_at_a_time_is_told_as_far_as_the_records_that_are_left_tell_it(pinned, log, ends):
    found = ends_at(FakeCluster(ranges={T0: pinned}), FakeTimes(log), [(T0, time_ms) for time_ms in ends])
    assert list(found.values()) == list(ends.values())


def test_an_end_that_is_held_back_by_a_transaction_counts_as_for_kafkas_own_tool():
    held = FakeCluster(ranges={T0: LogRange(0, 1)}, watermarks={T0: 5})
    assert ends_at(held, FakeTimes([(0, 100)]), [(T0, 101)]) == {(T0, 101): 5}


def test_what_a_broker_does_not_answer_is_not_visible_and_not_a_log_without_later_records():
    held, pairs = FakeCluster(ranges={T0: LogRange(0, 3)}), [(T0, 100), (T0, 101)]
    assert set(ends_at(held, FakeTimes(LOG, is_silent=True), pairs).values()) == {SILENT}
    # Its newest record is later than what it does not find.
    unfound = FakeTimes([])
    unfound.first_offsets = lambda pairs: (dict.fromkeys(pairs), {T0: 100})
    assert list(ends_at(held, unfound, pairs).values()) == [NOT_FOUND, 3]
    hidden = FakeTimes(LOG)
    assert set(ends_at(FakeCluster(ranges={T0: HIDDEN}), hidden, pairs).values()) == {HIDDEN} and not hidden.asked
