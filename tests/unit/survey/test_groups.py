"""What is asked about groups beyond states and commits: a second look, commits that move, kinds, and records."""

import pytest

from migrate.model import Commit, Failure, GroupState, TopicPartition
from migrate.progress import Timer
from migrate.survey.filters import Filters
from migrate.survey.groups import (
    ExpiryWatch,
    Listing,
    both_looks,
    commits_that_moved,
    list_again,
    other_kinds,
    read_expiry_facts,
)
from migrate.survey.offsets_topic import GroupKind, GroupRecord
from migrate.survey.survey import ClusterSurvey
from tests.builders import make_row
from tests.fakes import ALIVE, EMPTY, FakeClock, FakeCluster, FakeGroupFacts, NoProgress, Script
from tests.unit.surveyscene import timer

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
REFUSED = Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")


def committed() -> FakeCluster:
    cluster = FakeCluster()
    cluster.commit("g", "t", 0, 60)
    return cluster


def moved(cluster: FakeCluster, before, states=None, filters=None):
    return commits_that_moved(cluster, before, states or {"g": EMPTY}, timer(), filters)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ({T0: Commit(55)}, ("t-0: 55 to 60",)),
        ({T0: Commit(60, "other metadata")}, ()),
        ({U0: Commit(5)}, ("t-0: none to 60", "u-0: 5 to none")),
    ],
)
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


def test_a_second_listing_says_how_long_after_the_first_it_came() -> None:
    clock = FakeClock()
    clock.wait(2.0)
    assert list_again(FakeCluster(states={"g": EMPTY}), 0.0, Timer(clock, NoProgress())) == Listing(frozenset("g"), 2.0)
