"""What a target commit is worth beside its source commit: never equal unless it was seen to be; records counted."""

import re
from dataclasses import replace

import pytest

from migrate.extras.inventory.compare import (
    MOST_OFFSETS,
    CompareVerdict,
    GroupComparison,
    Loss,
    Stretch,
    count_plan,
    count_records,
    stretches,
)
from migrate.match.equality import Equality
from migrate.match.protocol import Limits, Matched, OffsetRange, Unmatched, Why, WhyUnmatched
from migrate.mm2.config_file import Overrides, client_flow
from migrate.model import CheckResult, Commit, Failure, GroupState, Level, LogRange, OffsetSync, Scope, TopicPartition
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from tests.builders import make_row
from tests.extras.inventory.unit.comparedscene import ThirdsLog, compared, during_the_look, row, rows_of, verdict
from tests.fakes import FakeComparer, Script
from tests.unit.planscene import world

DENIED = Failure("GROUP_AUTHORIZATION_FAILED", "no")
T0 = TopicPartition("A.t", 0)
EXACT = Matched(45, Why.PROVEN, 0)
BOUNDED = Matched(45, Why.LOOK_ALIKES, 9, lower=(40, 40), upper=(60, 52))
LACKING = Matched(45, Why.PROVEN, 0, missing_on_target=7)
UNREAD = Matched(45, Why.NOT_ALL_READ, 9, lower=(40, 40))
BY_TIME = Matched(45, Why.LEAST_TIMESTAMP, 9, lower=(40, 40))
EQUAL, BEHIND, AHEAD, UNDECIDED = (CompareVerdict[name] for name in ("EQUAL", "BEHIND", "AHEAD", "UNDECIDED"))


@pytest.fixture
def clusters():
    """Group g has committed on t-0 and t-1, h on u-0; the target has nothing yet."""
    return world()


def of_g(committed, clusters, place=EXACT, **more):
    """The row of g on t-0, whose source commit 55 is translated to 45, with this commit on the target."""
    source, target, mirror = clusters
    target.commit("g", "A.t", 0, committed)
    comparer = FakeComparer({("t", 0, 55): place})
    return rows_of(compared(source, target, mirror, comparer, **more))["g", "t", 0]


def goes_on(source):
    source.commit("g", "t", 0, 58)


# Where the commit on the target is, where it belongs, the verdict, and what else is so of source and target.
VERDICTS = {
    "at the number of the source": (55, EXACT, (AHEAD, Loss.LIKELY, "", 10)),
    "at the translation": (45, EXACT, (EQUAL, Loss.NONE, "", 0)),
    "below": (40, EXACT, (BEHIND, Loss.NONE, "", -5)),
    "above a bound, at the next copy": (52, BOUNDED, (UNDECIDED, Loss.POSSIBLE, "above-lower-bound", 7)),
    "past that": (53, BOUNDED, (UNDECIDED, Loss.POSSIBLE, "past-a-sync", 8)),
    "members": (50, EXACT, (AHEAD, Loss.POSSIBLE, "alive-on-target", 5),
        lambda source, target: target.states.update(g=GroupState("PreparingRebalance", 0))),
    "hidden members": (50, EXACT, (AHEAD, Loss.POSSIBLE, "not-visible", 5),
        lambda source, target: target.script("states", "g", Script(failure=DENIED))),
    "below the log": (43, EXACT, (BEHIND, Loss.POSSIBLE, "below-log-start", -2),
        lambda source, target: target.ranges.update({T0: LogRange(44, 100)})),
    "at the log's start": (44, EXACT, (BEHIND, Loss.NONE, "", -1),
        lambda source, target: target.ranges.update({T0: LogRange(44, 100)})),
    "at the log's end": (100, EXACT, (AHEAD, Loss.LIKELY, "", 55)),
    "beyond the log": (101, EXACT, (AHEAD, Loss.POSSIBLE, "beyond-log-end", 56)),
    "in a transaction": (101, EXACT, (AHEAD, Loss.LIKELY, "", 56),
        lambda source, target: target.watermarks.update({T0: 105})),
    "in a transaction, and so is its place": (105, Matched(100, Why.PROVEN, 0),
        (UNDECIDED, Loss.POSSIBLE, "open-transaction", 5),
        lambda source, target: target.watermarks.update({T0: 105})),
    # Nothing is said to end before a commit if its length was not told.
    "beyond what is known": (101, EXACT, (UNDECIDED, Loss.POSSIBLE, "not-visible", 56),
        lambda source, target: setattr(target, "high_watermarks", lambda asked: dict.fromkeys(asked, DENIED))),
    "lacking": (45, LACKING, (EQUAL, Loss.POSSIBLE, "missing-on-target", 0)),
    "below and lacking": (40, LACKING, (BEHIND, Loss.POSSIBLE, "missing-on-target", -5)),
    "not all read": (45, UNREAD, (EQUAL, Loss.POSSIBLE, "not-all-compared", 0)),
    "by time": (40, BY_TIME, (BEHIND, Loss.POSSIBLE, "not-all-compared", -5)),
    "reads on, at the translation": (45, EXACT, (BEHIND, Loss.NONE, "source-moved", 0),
        lambda source, target: during_the_look(source, target, goes_on)),
    "reads on, above": (50, EXACT, (UNDECIDED, Loss.POSSIBLE, "source-moved", 5),
        lambda source, target: during_the_look(source, target, goes_on)),
    "set back": (45, EXACT, (UNDECIDED, Loss.POSSIBLE, "source-moved", None),
        lambda source, target: during_the_look(source, target, lambda source: source.commit("g", "t", 0, 20))),
    "removed": (45, EXACT, (UNDECIDED, Loss.POSSIBLE, "source-moved", None),
        lambda source, target: during_the_look(source, target, lambda source: source.offsets.pop("g", None))),
    "no answer": (45, EXACT, (UNDECIDED, Loss.POSSIBLE, "not-visible", None), lambda source, target: during_the_look(
        source, target, lambda source: source.script("commits", "g", Script(failure=DENIED)))),
}  # fmt: skip


@pytest.mark.parametrize("case", VERDICTS.values(), ids=VERDICTS)
def test_a_commit_on_the_target_is_judged_by_its_place_and_a_loss_is_never_ruled_out_unseen(clusters, case):
    committed, place, expected, *changes = case
    for change in changes:
        change(*clusters[:2])
    row = of_g(committed, clusters, place)
    assert (*verdict(row), row.difference) == expected and row.translated == place.target_offset
    loses_nothing = row.verdict in (EQUAL, BEHIND) and row.loss is Loss.NONE
    assert row.is_within(1000) is loses_nothing
    assert ("none is lost" in row.sentence) is (loses_nothing and row.verdict is BEHIND)
    assert row.reason != "source-moved" or row.rereads_at_most is None


def test_what_is_read_twice_is_counted_in_records_where_these_are_known(clusters):
    row = of_g(40, clusters, Matched(45, Why.LOOK_ALIKES, 9))
    assert (row.difference, row.difference_is_records, row.rereads_at_most) == (-5, False, 14)
    counted = of_g(40, clusters, records={Stretch(T0, 40, 45): 3})
    assert (counted.difference, counted.difference_is_records, counted.rereads_at_most) == (-3, True, 3)
    for committed in (40, 50):
        same = of_g(committed, clusters, BOUNDED, records={Stretch(T0, *sorted((committed, 45))): 0})
        assert verdict(same) == (EQUAL, Loss.NONE, "no-record-between") and same.difference == 0


@pytest.mark.parametrize(("committed", "place", "words"), [
    (45, LACKING, "7 owed records without a copy"), (45, UNREAD, "Not all records"),
    (45, BY_TIME, "placed by timestamps"), (50, BOUNDED, "not above 52"),
])  # fmt: skip
def test_why_a_loss_is_possible_is_said(clusters, committed, place, words):
    sentence = of_g(committed, clusters, place).sentence
    assert words in sentence and ("Not all records" not in sentence or place is UNREAD)


@pytest.mark.parametrize("side", [0, 1])
def test_a_commit_of_another_log_is_never_equal_whatever_its_number(clusters, side):
    place = (TopicPartition("t", 0), T0)[side]
    of_g(45, clusters)
    cluster = clusters[side]
    cluster.offsets["g"][place] = Commit(cluster.offsets["g"][place].offset, "", 7)
    cluster.ranges[place] = LogRange(0, 100, 5)
    row = rows_of(compared(*clusters, FakeComparer({("t", 0, 55): EXACT})))["g", "t", 0]
    assert verdict(row) == (CompareVerdict.UNTRANSLATED, Loss.POSSIBLE, "commit-of-another-log")


def test_a_commit_that_no_law_translates_or_whose_translation_a_check_refutes_is_named_with_the_reason(clusters):
    source, target, mirror = clusters
    guardless = FakeComparer({("t", 0, 55): Unmatched(WhyUnmatched.MATCH_LIMIT)}, equality=Equality.WITHOUT_TIMESTAMP)
    target.commit("g", "A.t", 0, 51)
    refuted = rows_of(compared(*clusters, guardless))["g", "t", 0]
    del target.ranges[TopicPartition("A.u", 0)]
    lawless = rows_of(compared(*clusters))["h", "u", 0]
    for found, reason in (refuted, "timestamps-not-kept"), (lawless, "target-topic-missing"):
        assert verdict(found) == (CompareVerdict.UNTRANSLATED, Loss.POSSIBLE, reason)
        assert found.translated is None and found.grade is None


def test_a_group_that_is_owed_nothing_lacks_nothing_however_little_was_compared(clusters):
    source, target, mirror = clusters
    source.commit("g", "t", 0, 100)
    target.commit("g", "A.t", 0, 100)
    comparer = FakeComparer({("t", 0, 100): Matched(100, Why.LEAST_TIMESTAMP, 0)})
    row = rows_of(compared(source, target, mirror, comparer))["g", "t", 0]
    assert (row.verdict, row.loss) == (EQUAL, Loss.NONE)


def test_without_records_a_sync_at_the_commit_is_its_translation_and_above_it_a_bound(clusters):
    source, target, mirror = clusters
    mirror.history["t", 1] = [OffsetSync(0, 0, 0), OffsetSync(1, 60, 40), OffsetSync(2, 90, 70)]
    found = {}
    for committed in (39, 40, 41):
        target.commit("g", "A.t", 1, committed)
        found[committed] = rows_of(compared(*clusters, no_match=True))["g", "t", 1]
    reasons = [(row.verdict, row.reason) for row in found.values()]
    assert reasons == [(BEHIND, "not-proven"), (EQUAL, "not-proven"), (UNDECIDED, "past-a-sync")]
    assert {row.loss for row in found.values()} == {Loss.POSSIBLE}
    assert all(row.grade == "estimated" and row.rereads_at_most is None for row in found.values())
    for committed, expected in (50, "behind"), (51, "equal"), (52, "undecided"), (61, "undecided"):
        target.commit("g", "A.t", 0, committed)
        between = rows_of(compared(*clusters, no_match=True))["g", "t", 0]
        assert (between.verdict, between.translated, between.loss) == (expected, 51, Loss.POSSIBLE)


def test_what_may_hide_rows_or_is_no_other_cluster_is_not_good(clusters):
    source, target, _ = clusters
    for group, topic, partition, offset in (("g", "A.t", 0, 55), ("g", "A.t", 1, 60), ("h", "A.u", 0, 100)):
        target.commit(group, topic, partition, offset)
    assert compared(*clusters).is_good(0)
    named = compared(*clusters, filters=Filters(groups_file=frozenset({"g", "nobody"})))
    assert not named.is_good(0) and [c.subject for c in named.blocks] == ["nobody"]
    for kind in ("share", "streams"):  # no listing of consumer groups shows them
        comparison = compared(*clusters, kinds={"sharers": kind})
        assert not comparison.is_good(0) and [c.subject for c in comparison.blocks] == ["sharers"]
    facts = target.facts()
    target.facts = lambda: replace(facts, may_describe=None)
    assert not compared(*clusters).is_good(0)
    target.facts = source.facts
    assert "clusters-differ" in {c.check for c in compared(*clusters).blocks}


A_LITTLE = row("b", BEHIND, difference=-7)


@pytest.mark.parametrize(("of", "least"), [
    (row(), 0),
    (A_LITTLE, 7),
    (row("b", BEHIND, difference=-7, source_moved_to=123), 10),
    *((row(verdict=v, loss=Loss.POSSIBLE), None) for v in (EQUAL, BEHIND)),
    *((row(verdict=v), None) for v in CompareVerdict if v not in (EQUAL, BEHIND)),
])  # fmt: skip
def test_only_equal_rows_and_rows_a_little_behind_that_lose_nothing_are_within(of, least):
    assert [n for n in (0, 6, 7, 9, 10, 10**9) if of.is_within(n)][:1] == ([] if least is None else [least])


def test_a_comparison_adds_up_to_counts_and_to_what_is_beyond():
    made = GroupComparison(0, "A", "B", (row(), A_LITTLE), (), frozenset())
    assert made.counts() == {"equal": 1, "behind": 1}
    assert made.beyond(0) == (A_LITTLE,) and made.is_good(7) and not made.is_good(0)
    assert not replace(made, rows=()).is_good(0), "nothing is no success"
    assert not replace(made, unstable=frozenset({"billing"})).is_good(7), "a transaction is pending"
    for level, is_good in (Level.WARN, True), (Level.BLOCK, False):
        premise = CheckResult("topics-visible", level, Scope.CLUSTER, "A", "all", "not told", "", False, level)
        assert replace(made, premises=(premise,)).is_good(7) is is_good


def test_stretches_lie_between_a_commit_and_its_translation_where_both_are_inside_the_log(clusters):
    rows = {"behind": (40, 45), "ahead": (50, 45), "same": (45, 45), "cut-off": (3, 45), "beyond": (101, 45),
            "none": (None, 45)}  # fmt: skip
    made = PlanRows.of(
        make_row(group, target_prior=prior, target_offset=offset, target_log_start=10, target_log_end=100)
        for group, (prior, offset) in rows.items()
    )
    assert [stretch[1:] for stretch in stretches(made)] == [(40, 45), (45, 50)]


def test_commits_on_copies_that_the_source_has_none_for_are_named_unless_it_may_hide_one(clusters):
    target = clusters[1]
    target.commit("stranger", "A.u", 0, 3)
    target.commit("h", "A.t", 0, 4)
    target.commit("h", "local", 0, 4)
    target.commit("console-consumer-1", "A.u", 0, 4)
    rows = rows_of(compared(*clusters))
    named = {key for key, row in rows.items() if row.verdict is CompareVerdict.ONLY_ON_TARGET}
    assert named == {("stranger", "u", 0), ("h", "t", 0)}
    assert ("console-consumer-1", "u", 0) not in rows and rows["stranger", "u", 0].source_committed is None
    for filters in Filters(exclude_groups=(re.compile("str.*"),)), Filters(exclude_topics=(re.compile("u"),)):
        assert ("stranger", "u", 0) not in rows_of(compared(*clusters, filters=filters))
    asked_for = compared(*clusters, filters=Filters(groups_file=frozenset({"stranger"})))
    assert not asked_for.blocks and [row.group for row in asked_for.rows] == ["stranger"]
    # What the source may only hide is undecided.
    target.commit("g", "A.gone", 0, 3)
    target.commit("late", "A.u", 0, 3)
    during_the_look(*clusters[:2], lambda source: source.commit("late", "u", 0, 9))
    rows = rows_of(compared(*clusters))
    assert verdict(rows["g", "gone", 0]) == (UNDECIDED, Loss.POSSIBLE, "source-topic-missing")
    assert verdict(rows["late", "u", 0]) == (UNDECIDED, Loss.POSSIBLE, "source-moved")


def test_under_equal_names_a_topic_that_the_source_lacks_is_the_targets_own(clusters):
    source, target, mirror = clusters
    properties = {"bootstrap.servers": "x:1"}
    flow = client_flow(properties, properties, "A", "B", Overrides(replication_policy="identity"))
    target.ranges |= {TopicPartition(topic, 0): LogRange(0, 100) for topic in ("t", "local")}
    target.commit("stranger", "local", 0, 3)
    target.commit("stranger", "t", 0, 3)
    rows = rows_of(compared(source, target, mirror, flow=flow))
    assert [key for key in rows if key[0] == "stranger"] == [("stranger", "t", 0)]


P, Q = TopicPartition("A.t", 0), TopicPartition("A.t", 1)
NO_LIMITS = Limits(1_000_000, None)


def planned(*stretches, limits=NO_LIMITS):
    return count_plan(stretches, limits, 1000, 100)


@pytest.mark.parametrize(("log", "expected"), [
    (ThirdsLog(), {Stretch(P, 0, 10): 4, Stretch(P, 1, 3): 0, Stretch(P, 20, 30): 3, Stretch(Q, 3, 4): 1}),
    # What retention has begun to remove, or may not be read, takes nothing from the others.
    (ThirdsLog(cut=1), {Stretch(P, 1, 3): 0, Stretch(P, 20, 30): 3, Stretch(Q, 3, 4): 1}),
    (ThirdsLog(refused=(P,)), {Stretch(Q, 3, 4): 1}),
])  # fmt: skip
def test_records_are_counted_and_not_offsets_where_all_of_them_can_be_read(log, expected):
    stretches = [Stretch(P, 0, 10), Stretch(P, 1, 3), Stretch(P, 20, 30), Stretch(Q, 3, 4)]
    assert count_records(log, planned(*stretches), stretches) == expected


def test_what_overlaps_is_read_once():
    plan = planned(Stretch(P, 0, 10), Stretch(P, 5, 20), Stretch(P, 30, 40))
    assert plan.ranges == {P: (OffsetRange(0, 20), OffsetRange(30, 40))}
    assert (plan.offsets, plan.bytes) == (30, 300)
    assert count_plan([Stretch(P, 0, 2)], NO_LIMITS, 0, 0).bytes == 2000, "without records a size is assumed"


@pytest.mark.parametrize("limits", [Limits(9, None), Limits(1_000_000, 1090)])
def test_a_partition_beyond_a_limit_is_left_out_and_the_nearest_ones_come_first(limits):
    assert list(planned(Stretch(P, 0, 50), Stretch(Q, 0, 9), limits=limits).ranges) == [Q]


def test_what_comparing_has_read_counts_towards_the_limit_and_so_does_what_this_process_holds():
    assert not planned(Stretch(P, 0, 1), limits=Limits(1_000_000, 1000)).ranges
    assert not planned(Stretch(P, 0, MOST_OFFSETS + 1), limits=Limits(MOST_OFFSETS * 2, None)).ranges
