"""Which topics are audited, in which order their ends are pinned, and what of them cannot be read."""

import re
from dataclasses import replace

import pytest

from migrate.errors import ClusterError
from migrate.extras.audit.pin import pin_topics, with_current_starts
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import FlowFilter, TopicFilter
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.progress import Timer
from migrate.survey.filters import Filters
from migrate.survey.survey import Clusters
from tests.fakes import FakeClock, FakeCluster, FakeGroupFacts, NoProgress
from tests.unit.planscene import FakeMirror

FLOW = client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B")
OFFSETS = TopicPartition("mm2-offsets.A.internal", 0)
T0, T1, COPY0, COPY1 = (TopicPartition(topic, p) for topic in ("t", "A.t") for p in (0, 1))


def clusters(source=None, target=None, positions=None, **told):
    facts = FakeGroupFacts(**told)
    source = {T0: LogRange(0, 10), T1: LogRange(2, 5)} if source is None else source
    target = {COPY0: LogRange(0, 8), COPY1: LogRange(0, 4)} if target is None else target
    ids = {"t": "1", "A.t": "2"}
    on_source = FakeCluster(Side.SOURCE, "A", "source-id", ranges=source, ids=ids, told=facts)
    on_target = FakeCluster(ranges=target | {OFFSETS: LogRange(0, 1)}, ids=ids, told=facts)
    return Clusters(on_source, on_target, FakeMirror(last_copied_offset=positions or {}))


def pinned(of, flow=FLOW, *topics):
    return pin_topics(flow, of, Filters.from_options(topics=topics), Timer(FakeClock(), NoProgress()))


def test_a_topic_that_is_copied_is_pinned_on_both_sides_with_the_replicators_position():
    (topic,), left_out = pinned(clusters(positions={T0: 7}))
    assert (topic.topic, topic.target, topic.ids, left_out) == ("t", "A.t", ("1", "2"), ())
    assert topic.source_logs == {0: LogRange(0, 10), 1: LogRange(2, 5)}
    assert topic.target_logs == {0: LogRange(0, 8), 1: LogRange(0, 4)}
    assert topic.next_to_copy == {0: 8} and not topic.unproven and not topic.compacted


def test_positions_are_read_before_the_targets_ends_and_these_before_the_sources():
    of, calls = clusters(), []
    of.source.on_call = lambda call: calls.append(f"A {call}")
    of.target.on_call = lambda call: calls.append(f"B {call}")
    pinned(of)
    read = [call for call in calls if "watermarks" in call or "ranges" in call]
    # The first range is that of MM2's own positions.
    assert read == ["B log_ranges", "B high_watermarks", "B log_ranges", "A high_watermarks", "A log_ranges"]


def test_a_log_begins_where_it_does_now_and_ends_where_it_was_pinned():
    of = clusters()
    (topic,), _ = pinned(of)
    of.source.ranges |= {T0: LogRange(6, 30), T1: LogRange(0, 5)}
    of.target.ranges[COPY0] = LogRange(20, 25)
    now = with_current_starts(topic, of)
    assert now.source_logs == {0: LogRange(6, 10), 1: LogRange(2, 5)}
    assert now.target_logs == {0: LogRange(8, 8), 1: LogRange(0, 4)}
    of.target.ranges[COPY1] = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
    with pytest.raises(ClusterError, match="partition 1 of A.t on B is not visible any more"):
        with_current_starts(topic, of)


def test_what_has_no_copy_or_does_not_answer_is_never_passed_over():
    refused = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
    others = {TopicPartition(*place): LogRange(0, 1) for place in (("t", 2), ("u", 0))}
    source = {T0: LogRange(0, 10), T1: refused} | others
    (t, u), _ = pinned(clusters(source))
    assert t.source_logs.keys() == {0} and u.source_logs == {}
    assert t.unproven == ("partition 1 on A is not visible (TOPIC_AUTHORIZATION_FAILED)", "A.t on B has no partition 2")
    assert u.unproven == ("there is no topic A.u on B",)


def test_open_transactions_are_seen_on_both_sides():
    of = clusters()
    of.source.watermarks[T0] = of.target.watermarks[COPY1] = 20
    (topic,), _ = pinned(of)
    assert topic.unproven == ("partition 0: a transaction is open on A from 10 on",)
    assert topic.open_on_target == {1}


def test_who_takes_records_is_asked_of_both_sides_and_a_policy_that_is_not_visible_may_be_compaction():
    for compacted, sides in ({"t"}, {Side.SOURCE}), ({"A.t"}, {Side.TARGET}), (set(), set()):
        (topic,), _ = pinned(clusters(compacted=frozenset(compacted)))
        assert topic.compacted == sides and topic.only_compacted == ("t" in compacted) and not topic.hides_policy
    of = clusters()
    of.source.told = of.target.told = None
    (topic,), _ = pinned(of)
    assert topic.compacted == {*Side} and topic.hides_policy and not topic.only_compacted


ONLY_T = FlowFilter(((TopicFilter((re.compile("t"),), ()),),))


def test_topics_outside_the_filters_are_left_alone_and_those_outside_mm2s_or_copied_from_the_target_are_named():
    names = ("t", "u", "heartbeats", "B.heartbeats", "__consumer_offsets", "mm2.internal", "B.t")
    source = {TopicPartition(name, 0): LogRange(0, 1) for name in names}
    topics, left_out = pinned(clusters(source), replace(FLOW, topic_filter=ONLY_T))
    assert [topic.topic for topic in topics] == ["t"] and left_out == ("B.t", "u")
    topics, left_out = pinned(clusters(source), FLOW, "u|v")
    assert [topic.topic for topic in topics] == ["u"] and left_out == ()


def test_of_a_plan_its_partitions_are_pinned_and_none_of_its_topics_is_passed_over():
    owed = {"t": [1, 7], "gone": [0], "u": [0]}
    of = clusters({T0: LogRange(0, 10), T1: LogRange(2, 5), TopicPartition("u", 0): LogRange(0, 1)})
    timer = Timer(FakeClock(), NoProgress())
    topics, left_out = pin_topics(replace(FLOW, topic_filter=ONLY_T), of, Filters(), timer, owed)
    assert [(topic.topic, [*topic.source_logs], topic.unproven) for topic in topics] == [
        ("gone", [], ("there is no topic gone on A",)),
        ("t", [1], ("A.t on B has no partition 7",)),
        ("u", [], ("there is no topic A.u on B",)),
    ]
    assert left_out == ()
