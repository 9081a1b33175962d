"""Everything is read in the order that is safe: nothing that was not told becomes a smaller plan."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from migrate.errors import ClusterError, UsageError
from migrate.match.protocol import Tail
from migrate.mm2.name_map import NameMap
from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord
from migrate.model import Commit, Failure, GroupPartition, GroupState, LogRange, Side, TopicPartition
from migrate.survey.commits import from_checkpoints, from_source, read_priors, with_uncommitted
from migrate.survey.commits_source import FROM_CHECKPOINTS
from migrate.survey.filters import Filters
from migrate.survey.groups import ExpiryWatch, Listing, both_looks, commits_that_moved, other_kinds, read_expiry_facts
from migrate.survey.hidden_topics import hosted_ahead, with_hidden
from migrate.survey.mm2_topics import read_checkpoints_topic, read_syncs_topic
from migrate.survey.offsets_pin import CompactedMeanwhileError
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from migrate.survey.policies import Policies, Uncommitted
from migrate.survey.survey import Clusters, ClusterSurvey, Logs, Mm2Topic, Watermarks, window_questions
from migrate.survey.take import take_survey
from tests.builders import make_row
from tests.fakes import ALIVE, EMPTY, FakeClock, FakeCluster, FakeComparer, FakeGroupFacts, NoProgress, Script
from tests.unit.planscene import CHECKPOINTS, SYNCS, world
from tests.unit.surveyscene import FLOW, request, timer

REFUSED = Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")
T1 = TopicPartition("t", 1)


def taken(source, target, mirror, clock=None, comparer=None, **changes):
    clusters = Clusters(source, target, mirror, comparer)
    return take_survey(request(**changes), clusters, clock or FakeClock(), NoProgress())


def test_commits_come_first_then_the_targets_ends_then_the_sources_and_high_watermarks_after_both():
    source, target, mirror = world()
    calls: list[tuple[str, str]] = []
    for cluster in (source, target):
        cluster.on_call = lambda call, alias=cluster.alias: calls.append((alias, call))
    taken(source, target, mirror)
    pinned = [n for n, call in enumerate(calls) if call[1] == "log_ranges"]
    assert calls.index(("A", "topic_ids")) < calls.index(("A", "commits")) < pinned[0]
    assert calls.index(("B", "topic_ids")) < pinned[1], "an id vouches for what is read after it"
    assert [calls[n][0] for n in pinned][:3] == ["B", "B", "A"], "MM2's positions, the target's logs, the source's"
    assert pinned[2] < calls.index(("A", "high_watermarks"))


@pytest.mark.parametrize(
    ("grown", "settle", "last_copied_offset", "uncopied"),
    [(0, 15.0, None, 2), (3, 15.0, None, 5), (REFUSED, 15.0, None, 5), (0, 0.5, None, 5), (0, 15.0, 70, 5)],
    ids=["stands still", "grows", "not readable again", "hardly looked at", "MM2's own position tells more"],
)
def test_what_was_passed_over_comes_no_more_where_the_copy_has_not_grown_for_a_settle_time(
    grown, settle, last_copied_offset, uncopied
):
    source, target, mirror = world()
    mirror.last_copied_offset = {} if last_copied_offset is None else {T1: last_copied_offset}
    later = {("A.t", 1): grown if grown is REFUSED else 100 + grown, ("A.t", 0): 107}
    comparer = FakeComparer(tails={T1: Tail(5, passed_over=3), ("t", 0): Tail(7, passed_over=7)})

    class Clock(FakeClock):
        def wait(self, seconds):
            super().wait(seconds)
            target.watermarks.update(later)

    survey = taken(source, target, mirror, Clock(), comparer, settle_seconds=settle)
    assert survey.answers[T1].tail.uncopied == uncopied and survey.answers["t", 0].tail.uncopied == 7


def test_a_log_that_may_not_be_read_is_a_failure_of_that_log_alone_and_a_silent_cluster_never_a_smaller_plan():
    source, target, mirror = world()
    source.ranges[TopicPartition("u", 0)] = REFUSED
    logs = taken(source, target, mirror).logs.source
    assert logs[TopicPartition("u", 0)] == REFUSED and logs[TopicPartition("t", 0)] == LogRange(0, 100)
    source.down = True
    with pytest.raises(ClusterError, match="--source-down plans from the target alone"):
        taken(source, target, mirror)


def test_a_map_of_other_clusters_is_refused_before_any_group_is_asked_for():
    source, target, mirror = world()
    of_others = NameMap("--group-map", "other.plan", clusters=frozenset({"x", "y"}))
    with pytest.raises(UsageError, match="other.plan is a plan for clusters x and y"):
        taken(source, target, mirror, group_map=of_others)
    assert not {"groups", "commits"} & (source.calls | target.calls).keys()


def test_a_topic_that_was_shown_and_is_deleted_meanwhile_is_not_hidden():
    source, target, mirror = world()
    everything = frozenset(target.topics()) | {"deleted", "secret"}
    target.hosted = lambda: everything
    clusters = Clusters(None, target, mirror, looks_for_hidden=True)
    before = ClusterSurvey(topics=target.topics() | {"deleted": 1})
    after = with_hidden(clusters, ClusterSurvey(), before, hosted_ahead(clusters), timer())
    assert after[1].hidden == {"secret"}


SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
KEY = GroupPartition("g", "t", 0)


@pytest.mark.parametrize(("commit", "source", "target", "question"), [
    (Commit(40), {SOURCE: LogRange(0, 90)}, LogRange(0, 80), (40, 90, 80)),
    (Commit(40), {}, LogRange(0, 80), (40, None, 80)),
    (Commit(40), {SOURCE: REFUSED}, LogRange(0, 80), None),
    (Commit(40), {SOURCE: LogRange(0, 90)}, REFUSED, None),
    (None, {SOURCE: LogRange(0, 90)}, LogRange(0, 80), None),
])  # fmt: skip
def test_a_window_is_asked_for_what_is_committed_up_to_the_pinned_ends_as_far_as_they_are_known(
    commit, source, target, question
):
    asked = window_questions(FLOW, Logs(source, {TARGET: target}))(KEY, commit)
    assert (asked and (asked.source_committed, asked.source_end, asked.target_end)) == question


@pytest.mark.parametrize(("watermark", "is_open"), [(90, False), (91, True), (REFUSED, True), (None, True)])
def test_a_transaction_counts_as_open_unless_the_high_watermark_refutes_it(watermark, is_open):
    watermarks = Watermarks({} if watermark is None else {SOURCE: watermark}, {})
    assert watermarks.is_open(SOURCE, LogRange(0, 90)) is is_open


WITHOUT_H = Filters.from_options(exclude_groups=["h"])


def selected(source, target, mirror, filters=None, reader=None):
    clusters = Clusters(reader or source, target, mirror)
    return from_source(clusters, source.groups(), request(filters=filters or Filters()), timer())


def test_rows_and_what_the_filters_take_add_up_to_the_commits_read_with_what_is_pending_named():
    source, target, mirror = world()
    source.unstable = {"g", "h"}
    found = selected(source, target, mirror, WITHOUT_H)
    assert {key.group for key in found.commits} == found.unstable == {"g"}
    assert sum(map(len, found.read.values())) == len(found.commits) + sum(found.filtered.values()) == 3
    assert found.filtered == {"exclude-group": 1} and found.groups_seen == {"g", "h"}


def test_a_group_that_may_not_be_read_or_is_left_out_of_the_answer_is_an_error_unless_the_filters_take_it():
    source, target, mirror = world()
    source.script("commits", "h", Script(REFUSED))
    with pytest.raises(ClusterError, match="refused the commits of 1 group, first 'h'"):
        selected(source, target, mirror)
    source.script("commits", "h", Script(REFUSED))
    assert sum(map(len, selected(source, target, mirror, WITHOUT_H).read.values())) == 2
    silent = SimpleNamespace(commits=lambda groups, require_stable=True: {"g": {}})
    with pytest.raises(ClusterError, match="no answer about the commits of group 'h'"):
        selected(*world(), reader=silent)


def test_while_the_source_is_down_the_newest_checkpoints_are_its_commits():
    reading = CheckpointReading({CheckpointKey("g", "A.t", 1): CheckpointRecord(40, 35, "m", 0, 0)}, {})
    found = from_checkpoints(reading, request(commits=FROM_CHECKPOINTS))
    assert found.commits == {GroupPartition("g", "t", 1): Commit(40, "m")} and found.groups_seen == {"g"}


EARLIEST = request(policies=Policies(uncommitted=Uncommitted.EARLIEST))


@pytest.mark.parametrize(
    ("asked", "uncommitted"),
    [(request(), set()), (EARLIEST, {0}), (replace(EARLIEST, commits=FROM_CHECKPOINTS), {0, 2})],
)
def test_partitions_without_a_commit_get_a_row_where_that_is_asked_for_or_the_source_is_down(asked, uncommitted):
    commits = {GroupPartition("g", "t", 1): Commit(40)}
    rows = with_uncommitted(commits, {"t": 2}, {"A.t": 3}, asked)
    assert {key.partition: commit for key, commit in rows.items()} == {1: Commit(40)} | dict.fromkeys(uncommitted)


def test_what_a_group_has_on_the_target_must_be_known_and_may_be_nothing():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 7)
    clusters = Clusters(source, target, mirror)
    priors, unstable = read_priors(clusters, ["g", "h"], timer())
    assert {group: len(commits) for group, commits in priors.items()} == {"g": 1, "h": 0} and not unstable
    target.script("commits", "h", Script(REFUSED))
    with pytest.raises(ClusterError, match="B refused the commits of group 'h'"):
        read_priors(clusters, ["g", "h"], timer())


T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)


def committed() -> FakeCluster:
    cluster = FakeCluster()
    cluster.commit("g", "t", 0, 60)
    return cluster


def moved(cluster: FakeCluster, before, states=None, filters=None):
    return commits_that_moved(cluster, before, states or {"g": EMPTY}, timer(), filters)


@pytest.mark.parametrize(("before", "told"), [
    ({T0: Commit(55)}, ("t-0: 55 to 60",)),
    ({T0: Commit(60, "other metadata")}, ()),
    ({U0: Commit(5)}, ("t-0: none to 60", "u-0: 5 to none")),
])  # fmt: skip
def test_a_commit_that_changed_between_two_readings_is_named_with_both_offsets(before, told):
    assert moved(committed(), {"g": before}) == ({"g": told} if told else {}, {})
    without_t = Filters.from_options(exclude_topics=["t"])
    assert moved(committed(), {}, filters=without_t) == ({}, {}), "what the filters took first they take again"


@pytest.mark.parametrize(("state", "is_read"), [(EMPTY, True), (GroupState("Absent"), True), (ALIVE, False)])
def test_only_groups_without_members_are_read_again_and_one_that_could_not_be_says_why(state, is_read):
    cluster = committed()
    assert bool(moved(cluster, {}, {"g": state})[0]) is is_read
    assert cluster.calls["commits"] == is_read
    cluster.script("commits", "g", Script(REFUSED))
    assert moved(cluster, {}, {"g": state}) == ({}, {"g": str(REFUSED)} if is_read else {})


def test_groups_that_are_no_consumer_groups_are_named_as_far_as_the_filters_go():
    kinds = {"g": "consumer", "s": "share", "x": "streams"}
    assert other_kinds(kinds, Filters.from_options(exclude_groups=["x"])) == {"s": "share"}
    assert other_kinds(REFUSED, Filters()) is REFUSED


def test_records_are_read_only_of_groups_whose_clock_they_tell():
    reader = FakeGroupFacts()
    states = {"empty": EMPTY, "alive": ALIVE, "absent": GroupState("Absent")}
    assert read_expiry_facts(FakeCluster(told=reader), states, {}, timer()) == (reader.brokers, reader.records)
    assert reader.asked == ["empty"]


def test_right_before_a_write_expiry_is_told_of_stopped_groups_by_the_brokers_clock_where_ours_is_behind():
    records = {"g": GroupRecord(GroupKind.CLASSIC, "consumer", 9_000)}
    watch = ExpiryWatch(FakeCluster(told=FakeGroupFacts(records=records)), timer(), now_ms=5_000)
    rows = {group: [make_row(group, "t")] for group in "gh"}
    expiries, now_ms = watch.look(rows, {"g", "h"}, {"g": EMPTY, "h": ALIVE, "other": EMPTY}, {})
    assert expiries.keys() == {"g"} and now_ms == 9_000


def test_the_livelier_of_two_looks_counts_and_only_what_neither_listing_shows_is_absent() -> None:
    failed = Failure("X", "y")
    before = ClusterSurvey(listed=frozenset({"first"}), states=dict.fromkeys(["first", "second", "none", "up"], EMPTY))
    now = {"first": EMPTY, "second": EMPTY, "none": EMPTY, "up": ALIVE, "lost": failed}
    looked = both_looks(before, Listing(frozenset({"second"}), 3.0), now, ["first", "second", "none", "up", "lost"])
    states = {group: getattr(state, "state", "unknown") for group, state in looked.states.items()}
    assert states == {"first": "Empty", "second": "Empty", "none": "Absent", "up": ALIVE.state, "lost": "unknown"}
    assert looked.seconds_apart == 3.0 and looked.listed == before.listed


def test_checkpoints_are_read_on_the_target_and_syncs_where_mm2_writes_them_if_they_are_there():
    source, target, mirror = world()
    edges = Clusters(source, target, mirror)
    _, checkpoints = read_checkpoints_topic(edges, FLOW, target.topics(), timer())
    assert checkpoints == Mm2Topic(Side.TARGET, CHECKPOINTS, True, LogRange(0, 5))
    reading, syncs = read_syncs_topic(edges, FLOW, source.topics(), timer())
    assert syncs == Mm2Topic(Side.SOURCE, SYNCS, True, LogRange(0, 30))
    assert reading.counts and not reading.windows
    reading, checkpoints = read_checkpoints_topic(edges, FLOW, {}, timer())
    assert checkpoints == Mm2Topic(Side.TARGET, CHECKPOINTS, False, None) and not reading.latest
    assert read_syncs_topic(edges, FLOW, {}, timer())[1] == Mm2Topic(Side.SOURCE, SYNCS, False, None)


def test_checkpoints_that_are_compacted_meanwhile_are_read_up_to_a_later_end():
    source, target, mirror = world()
    read, pins = mirror.checkpoints, []

    def compacted_once(topic, pinned):
        pins.append(pinned)
        if len(pins) == 1:
            target.ranges[TopicPartition(topic, 0)] = LogRange(0, 6)
            raise CompactedMeanwhileError(topic)
        return read(topic, pinned)

    mirror.checkpoints = compacted_once
    _, checkpoints = read_checkpoints_topic(Clusters(source, target, mirror), FLOW, target.topics(), timer())
    assert pins == [LogRange(0, 5), LogRange(0, 6)]
    assert checkpoints == Mm2Topic(Side.TARGET, CHECKPOINTS, True, LogRange(0, 6))


def test_a_topic_that_is_there_and_may_not_be_read_is_an_error_that_names_the_right():
    source, target, mirror = world()
    target.ranges[TopicPartition(CHECKPOINTS, 0)] = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")
    with pytest.raises(ClusterError, match=f"{CHECKPOINTS} .*TOPIC_AUTHORIZATION_FAILED.* Grant DESCRIBE and READ"):
        read_checkpoints_topic(Clusters(source, target, mirror), FLOW, target.topics(), timer())
