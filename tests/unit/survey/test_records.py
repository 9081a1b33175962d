"""Comparing records as `plan` sees it: what is asked, what is said beforehand, and what becomes of the answers."""

import pytest

from migrate.match.protocol import FetchEstimate, Limits, Matched, Unmatched, Why
from migrate.model import Decision, Failure, Grade, LogRange, Method, TopicPartition
from migrate.survey.records import estimate_text, timed_topics
from migrate.survey.survey import Clusters, Logs
from migrate.text import bytes_text, parse_bytes
from tests.fakes import FakeComparer, FakeGroupFacts, NoProgress
from tests.unit.planscene import planned, planned_flow, world
from tests.unit.surveyscene import timer


def compared(comparer, **options):
    return planned(*world(), comparer=comparer, **options)


def compared_row(group, topic, partition, committed, place):
    """The plan and the row of a commit that the comparer places so."""
    plan = compared(FakeComparer({(topic, partition, committed): place}))
    return plan, next(row for row in plan.rows if row.key == (group, topic, partition))


class Steps(NoProgress):
    def __init__(self):
        self.said = []

    def step(self, text: str) -> None:
        self.said.append(text)


def test_every_partition_with_commits_is_one_work_with_its_open_transaction_and_mm2s_position():
    source, target, mirror = world()
    source.commit("h", "t", 0, 55)
    source.commit("late", "t", 0, 20)
    source.watermarks[TopicPartition("t", 0)] = 103
    mirror.last_copied_offset = {TopicPartition("t", 1): 99}
    comparer = FakeComparer()
    planned(source, target, mirror, comparer=comparer)
    asked = [(*w.source, str(w.target), w.source_committed, w.has_open_transaction, w.last_copied_offset)
             for w in comparer.asked]  # fmt: skip
    assert asked == [
        ("t", 0, "A.t-0", (20, 55), True, None),
        ("t", 1, "A.t-1", (60,), False, 99),
        ("u", 0, "A.u-0", (100,), False, None),
    ]
    assert comparer.asked[0].source_log == LogRange(0, 100) == comparer.asked[0].target_log


def test_a_commit_that_the_records_prove_is_an_exact_row_with_the_proven_syncs_around_it():
    _, row = compared_row("g", "t", 0, 55, Matched(57, Why.PROVEN, 2))
    assert (row.decision, row.target_offset, row.method, row.grade) == (Decision.SET, 57, Method.MATCH, Grade.EXACT)
    assert (row.rereads_at_most, row.rereads_estimate, row.missing_on_target) == (2, None, 0)
    assert (row.reason, row.why, row.equality) == ("proven", "proven", "all")
    _, row = compared_row("g", "t", 1, 60, Matched(60, Why.PROVEN, 0, lower=(60, 60), upper=(90, 88)))
    assert row.method is Method.SYNC and row.lower_kind == "proven-sync"
    assert (row.lower_source_offset, row.lower_target_offset) == (60, 60)
    assert (row.upper_source_offset, row.upper_target_offset) == (90, 88)


def test_topics_that_may_not_be_read_give_rows_that_nothing_guards_and_no_failure():
    """Behind a target topic that was created anew, an unproven sync may lie beyond what the group is owed."""
    plan, row = compared_row("g", "t", 0, 55, Unmatched.not_readable("TOPIC_AUTHORIZATION_FAILED"))
    assert (row.target_offset, row.grade, row.reason) == (51, Grade.ESTIMATED, "sync-unguarded")
    assert "TOPIC_AUTHORIZATION_FAILED" in row.sentence and row.rereads_at_most is None
    assert plan.blocked_groups() == {"g"}


def test_what_will_be_fetched_is_said_before_the_reading_and_what_was_stands_in_the_header():
    steps = Steps()
    header = compared(FakeComparer(), progress=steps).header
    said = steps.said.index("comparing 3 partitions: about 1.2 GB from A, 1.3 MB from B")
    assert said > steps.said.index("reading MM2's offset syncs: mm2-offset-syncs.B.internal on A, offsets 0 to 30")
    assert steps.said.index("reading MM2's own positions") < steps.said.index("pinning 3 logs on B")
    assert header.comparison["partitions"] == 3 and header.comparison["source_bytes_estimated"] == 1_200_000_000
    assert header.comparison["source_bytes_fetched"] == 1_100_000_000
    assert header.comparison["target_records_read"] == 135
    assert "compare" in header.timings
    assert estimate_text(FetchEstimate(1, 5, 5, 900, 35_000_000, 2), "A", "B") == (
        "comparing 1 partition: about 900 B from A, 35 MB from B; 2 partitions left out by --max-fetch"
    )


def test_numbers_of_bytes_are_read_and_written_as_people_write_them():
    read = {"1048576": 1_048_576, "500M": 500_000_000, "2G": 2 * 10**9, "1.5g": 1_500_000_000, "3 kB": 3000}
    assert {text: parse_bytes(text) for text in read} == read
    for text in ("", "M", "-1", "5 potatoes", "1e9", "1..5G"):
        with pytest.raises(ValueError, match="invalid size"):
            parse_bytes(text)
    written = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 9_960: "10 kB", 1_250_000_000: "1.2 GB", 10**18: "1000 PB"}
    assert {count: bytes_text(count) for count in written} == written


BY_TIMESTAMP = Limits(1_000_000, None, by_timestamp=True)
UNREADABLE = Failure("TOPIC_AUTHORIZATION_FAILED", "DESCRIBE_CONFIGS is refused")


@pytest.mark.parametrize(("on_source", "on_target", "expected"), [
    ("CreateTime", "CreateTime", True),
    ("LogAppendTime", "CreateTime", True),
    ("CreateTime", "LogAppendTime", False),
    ("CreateTime", UNREADABLE, False),
    (UNREADABLE, "CreateTime", False),
])  # fmt: skip
def test_timestamps_may_be_kept_where_both_topics_say_who_stamps_records_and_it_is_not_the_copys_broker(
    on_source, on_target, expected
):
    comparer = FakeComparer()
    source_groups, target_groups = (FakeGroupFacts(timestamp_type=told) for told in (on_source, on_target))
    compared(comparer, limits=BY_TIMESTAMP, source_groups=source_groups, target_groups=target_groups)
    assert {work.may_keep_timestamps for work in comparer.asked} == {expected}


def test_on_a_failback_the_copys_broker_is_that_of_the_plans_source():
    flow, logs = planned_flow().reversed(), Logs({TopicPartition("A.t", 0): LogRange(0, 9)}, {})
    source, target, mirror = world()
    for copy, original, expected in (("CreateTime", "LogAppendTime", {"A.t"}), ("LogAppendTime", "CreateTime", set())):
        target.told, source.told = FakeGroupFacts(timestamp_type=copy), FakeGroupFacts(timestamp_type=original)
        assert timed_topics(Clusters(target, source, mirror), flow, logs, timer()) == expected
