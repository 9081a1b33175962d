"""What a target commit is worth beside its group's source commit: never equal unless it was seen to be."""

import re
from dataclasses import replace

import pytest

from migrate.extras.inventory.compare import CompareVerdict, GroupComparison, Loss, Stretch, stretches
from migrate.match.equality import Equality
from migrate.match.protocol import Matched, Unmatched, Why, WhyUnmatched
from migrate.mm2.config_file import Overrides, client_flow
from migrate.model import (
    CheckResult,
    Commit,
    Failure,
    GroupState,
    Level,
    LogRange,
    OffsetSync,
    Scope,
    TopicPartition,
)
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from tests.builders import make_row
from tests.extras.inventory.unit.comparedscene import compared, during_the_look, row, rows_of, verdict
from tests.fakes import FakeComparer, Script
from tests.unit.planscene import world

DENIED = Failure("GROUP_AUTHORIZATION_FAILED", "no")
T0 = TopicPartition("A.t", 0)
EXACT_G = Matched(45, Why.PROVEN, 0)
BOUNDED_G = Matched(45, Why.LOOK_ALIKES, 9, lower=(40, 40), upper=(60, 52))


@pytest.fixture
def clusters():
    """Group g has committed on t-0 and t-1, h on u-0; the target has nothing yet."""
    return world()


def of_g(committed, clusters, place=EXACT_G, **more):
    """The row of g on t-0, whose source commit 55 is translated to 45, with this commit on the target."""
    source, target, mirror = clusters
    target.commit("g", "A.t", 0, committed)
    comparer = FakeComparer({("t", 0, 55): place})
    return rows_of(compared(source, target, mirror, comparer, **more))["g", "t", 0]


def test_the_same_number_is_not_equal_and_the_translated_one_is(clusters):
    at_the_same_number, translated = of_g(55, clusters), of_g(45, clusters)
    assert verdict(at_the_same_number) == (CompareVerdict.AHEAD, Loss.LIKELY, "")
    assert (at_the_same_number.translated, at_the_same_number.difference) == (45, 10)
    assert verdict(translated) == (CompareVerdict.EQUAL, Loss.NONE, "") and translated.difference == 0


def test_below_the_translation_nothing_is_lost_and_so_many_are_read_twice(clusters):
    row = of_g(40, clusters, Matched(45, Why.LOOK_ALIKES, 9))
    assert verdict(row) == (CompareVerdict.BEHIND, Loss.NONE, "")
    assert (row.difference, row.difference_is_records, row.rereads_at_most) == (-5, False, 14)
    counted = of_g(40, clusters, records={Stretch(T0, 40, 45): 3})
    assert (counted.difference, counted.difference_is_records, counted.rereads_at_most) == (-3, True, 3)


@pytest.mark.parametrize("committed", [40, 50])
def test_where_no_record_lies_between_the_group_reads_the_same_from_both(clusters, committed):
    row = of_g(committed, clusters, BOUNDED_G, records={Stretch(T0, *sorted((committed, 45))): 0})
    assert verdict(row) == (CompareVerdict.EQUAL, Loss.NONE, "no-record-between") and row.difference == 0


def test_above_a_lower_bound_a_loss_is_neither_certain_nor_ruled_out_and_past_the_copy_of_an_owed_record_that_is_said(
    clusters,
):
    row = of_g(50, clusters, BOUNDED_G)
    assert verdict(row) == (CompareVerdict.UNDECIDED, Loss.POSSIBLE, "above-lower-bound")
    assert row.difference == 5 and "not above 52" in row.sentence
    assert verdict(of_g(52, clusters, BOUNDED_G))[2] == "above-lower-bound"
    assert verdict(of_g(53, clusters, BOUNDED_G)) == (CompareVerdict.UNDECIDED, Loss.POSSIBLE, "past-a-sync")


@pytest.mark.parametrize(
    "state", [GroupState("Stable", 2), *(GroupState(s, 0) for s in ("Unknown", "PreparingRebalance"))]
)
def test_members_on_the_target_may_have_read_what_the_commit_has_passed(clusters, state):
    target = clusters[1]
    target.states["g"] = state
    assert verdict(of_g(50, clusters)) == (CompareVerdict.AHEAD, Loss.POSSIBLE, "alive-on-target")
    target.script("states", "g", Script(failure=DENIED))
    assert verdict(of_g(50, clusters)) == (CompareVerdict.AHEAD, Loss.POSSIBLE, "not-visible")


def test_a_target_without_the_commit_leaves_it_to_the_consumers_reset(clusters):
    rows = rows_of(compared(*clusters))
    assert {row.verdict for row in rows.values()} == {CompareVerdict.MISSING} and len(rows) == 3
    assert all(row.target_committed is None and row.difference is None for row in rows.values())


def test_a_commit_outside_the_targets_log_is_no_place_however_near_it_is(clusters):
    source, target, mirror = clusters
    target.ranges[T0] = LogRange(44, 100)
    assert verdict(of_g(43, clusters)) == (CompareVerdict.BEHIND, Loss.POSSIBLE, "below-log-start")
    assert not of_g(43, clusters).is_within(1000)
    assert verdict(of_g(101, clusters)) == (CompareVerdict.AHEAD, Loss.POSSIBLE, "beyond-log-end")
    target.watermarks[T0] = 105
    at_the_end = Matched(100, Why.PROVEN, 0)
    assert verdict(of_g(101, clusters, at_the_end)) == (CompareVerdict.UNDECIDED, Loss.POSSIBLE, "open-transaction")
    assert verdict(of_g(101, clusters)) == (CompareVerdict.AHEAD, Loss.LIKELY, "")
    # Nothing is said to end before a commit if its length was not told.
    target.high_watermarks = lambda partitions: dict.fromkeys(partitions, DENIED)
    assert verdict(of_g(101, clusters)) == (CompareVerdict.UNDECIDED, Loss.POSSIBLE, "not-visible")


def test_a_commit_that_no_law_translates_is_named_with_the_reason(clusters):
    source, target, mirror = clusters
    del target.ranges[TopicPartition("A.u", 0)]
    source.commit("g", "t", 0, 55)
    row = rows_of(compared(*clusters))["h", "u", 0]
    assert verdict(row) == (CompareVerdict.UNTRANSLATED, Loss.POSSIBLE, "target-topic-missing")
    assert row.translated is None and row.grade is None


@pytest.mark.parametrize("side", [0, 1])
def test_a_commit_of_another_log_is_never_equal_whatever_its_number(clusters, side):
    place = (TopicPartition("t", 0), T0)[side]
    of_g(45, clusters)
    cluster = clusters[side]
    cluster.offsets["g"][place] = Commit(cluster.offsets["g"][place].offset, "", 7)
    cluster.ranges[place] = LogRange(0, 100, 5)
    row = rows_of(compared(*clusters, FakeComparer({("t", 0, 55): EXACT_G})))["g", "t", 0]
    assert verdict(row) == (CompareVerdict.UNTRANSLATED, Loss.POSSIBLE, "commit-of-another-log")


def test_a_translation_that_a_check_refutes_is_none(clusters):
    guardless = FakeComparer({("t", 0, 55): Unmatched(WhyUnmatched.MATCH_LIMIT)}, equality=Equality.WITHOUT_TIMESTAMP)
    clusters[1].commit("g", "A.t", 0, 51)
    row = rows_of(compared(*clusters, guardless))["g", "t", 0]
    assert verdict(row) == (CompareVerdict.UNTRANSLATED, Loss.POSSIBLE, "timestamps-not-kept")


@pytest.mark.parametrize(("place", "reason", "words"), [
    (Matched(45, Why.PROVEN, 0, missing_on_target=7), "missing-on-target", "7 owed records without a copy"),
    (Matched(45, Why.NOT_ALL_READ, 9, lower=(40, 40)), "not-all-compared", "Not all records"),
    (Matched(45, Why.LEAST_TIMESTAMP, 9, lower=(40, 40)), "not-all-compared", "placed by timestamps"),
])  # fmt: skip
@pytest.mark.parametrize("committed", [45, 40])
def test_records_that_lack_or_were_not_compared_may_be_lost_wherever_the_commit_is(
    clusters, committed, place, reason, words
):
    row = of_g(committed, clusters, place)
    assert (row.loss, row.reason) == (Loss.POSSIBLE, reason) and not row.is_within(1000)
    assert words in row.sentence and "none is lost" not in row.sentence
    assert "Not all records" not in row.sentence or place.why is Why.NOT_ALL_READ


def test_a_group_that_is_owed_nothing_lacks_nothing_however_little_was_compared(clusters):
    source, target, mirror = clusters
    source.commit("g", "t", 0, 100)
    target.commit("g", "A.t", 0, 100)
    comparer = FakeComparer({("t", 0, 100): Matched(100, Why.LEAST_TIMESTAMP, 0)})
    row = rows_of(compared(source, target, mirror, comparer))["g", "t", 0]
    assert (row.verdict, row.loss) == (CompareVerdict.EQUAL, Loss.NONE)


def test_where_syncs_are_stale_an_estimate_that_agrees_with_the_target_is_no_proof(clusters):
    clusters[1].commit("g", "A.t", 0, 51)
    comparison = compared(*clusters, no_match=True)
    assert verdict(rows_of(comparison)["g", "t", 0]) == (CompareVerdict.EQUAL, Loss.POSSIBLE, "not-proven")
    assert not comparison.is_good(1000)


# What the source commits during the look


@pytest.mark.parametrize(
    ("committed", "expected"),
    [(40, CompareVerdict.BEHIND), (45, CompareVerdict.BEHIND), (50, CompareVerdict.UNDECIDED)],
)
def test_a_group_that_reads_on_meanwhile_is_never_equal_and_never_ahead(clusters, committed, expected):
    during_the_look(clusters, lambda source: source.commit("g", "t", 0, 58))
    row = of_g(committed, clusters)
    assert (row.verdict, row.reason, row.source_moved_to) == (expected, "source-moved", 58)
    assert row.is_within(2 + 45 - committed) is False
    assert committed > 45 or row.rereads_at_most is None


@pytest.mark.parametrize(("change", "reason"), [
    (lambda source: source.commit("g", "t", 0, 20), "source-moved"),
    (lambda source: source.offsets.pop("g", None), "source-moved"),
    (lambda source: source.script("commits", "g", Script(failure=DENIED)), "not-visible"),
], ids=["set back", "removed", "no answer"])  # fmt: skip
def test_a_group_that_was_set_back_meanwhile_or_is_not_seen_again_is_undecided_even_at_the_translation(
    clusters, change, reason
):
    during_the_look(clusters, change)
    assert verdict(of_g(45, clusters)) == (CompareVerdict.UNDECIDED, Loss.POSSIBLE, reason)


# Without comparing records


def test_without_records_a_sync_at_the_commit_is_its_translation_and_above_it_a_bound(clusters):
    source, target, mirror = clusters
    mirror.history["t", 1] = [OffsetSync(0, 0, 0), OffsetSync(1, 60, 40), OffsetSync(2, 90, 70)]
    found = {}
    for committed in (39, 40, 41):
        target.commit("g", "A.t", 1, committed)
        found[committed] = rows_of(compared(*clusters, no_match=True))["g", "t", 1]
    assert [verdict(found[c])[0::2] for c in (39, 40, 41)] == [
        (CompareVerdict.BEHIND, "not-proven"), (CompareVerdict.EQUAL, "not-proven"),
        (CompareVerdict.UNDECIDED, "past-a-sync"),
    ]  # fmt: skip
    assert {row.loss for row in found.values()} == {Loss.POSSIBLE}
    assert all(row.grade == "estimated" and row.rereads_at_most is None for row in found.values())
    for committed, expected in (50, "behind"), (51, "equal"), (52, "undecided"), (61, "undecided"):
        target.commit("g", "A.t", 0, committed)
        between = rows_of(compared(*clusters, no_match=True))["g", "t", 0]
        assert (between.verdict, between.translated, between.loss) == (expected, 51, Loss.POSSIBLE)


# The whole


def all_equal(clusters):
    target = clusters[1]
    for group, topic, partition, offset in (("g", "A.t", 0, 55), ("g", "A.t", 1, 60), ("h", "A.u", 0, 100)):
        target.commit(group, topic, partition, offset)


def test_a_listing_that_may_be_short_or_a_name_that_nobody_has_is_not_good(clusters):
    all_equal(clusters)
    named = compared(*clusters, filters=Filters(groups_file=frozenset({"g", "nobody"})))
    assert not named.is_good(0) and [c.subject for c in named.blocks] == ["nobody"]
    facts = clusters[1].facts()
    clusters[1].facts = lambda: replace(facts, may_describe=None)
    assert not compared(*clusters).is_good(0)


def test_one_cluster_that_is_compared_with_itself_is_no_success(clusters):
    all_equal(clusters)
    facts = clusters[0].facts()
    clusters[1].facts = lambda: facts
    assert "clusters-differ" in {c.check for c in compared(*clusters).blocks}


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_groups_that_no_listing_of_consumer_groups_shows_are_no_part_of_equal(clusters, kind):
    all_equal(clusters)
    comparison = compared(*clusters, kinds={"sharers": kind})
    assert not comparison.is_good(0) and [c.subject for c in comparison.blocks] == ["sharers"]


BEHIND = row("b", CompareVerdict.BEHIND, difference=-7)


@pytest.mark.parametrize(("of", "least"), [
    (row(), 0),
    (BEHIND, 7),
    (row("b", CompareVerdict.BEHIND, difference=-7, source_moved_to=123), 10),
    *((row(verdict=v, loss=Loss.POSSIBLE), None) for v in (CompareVerdict.EQUAL, CompareVerdict.BEHIND)),
    *((row(verdict=v), None) for v in {*CompareVerdict} - {CompareVerdict.EQUAL, CompareVerdict.BEHIND}),
])  # fmt: skip
def test_only_equal_rows_and_rows_a_little_behind_that_lose_nothing_are_within(of, least):
    assert [n for n in (0, 6, 7, 9, 10, 10**9) if of.is_within(n)][:1] == ([] if least is None else [least])


def test_a_comparison_adds_up_to_counts_and_to_what_is_beyond():
    made = GroupComparison(0, "A", "B", (row(), BEHIND), (), frozenset())
    assert made.counts() == {"equal": 1, "behind": 1}
    assert made.beyond(0) == (BEHIND,) and made.is_good(7) and not made.is_good(0)
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


def test_commits_on_copies_that_the_source_has_none_for_are_named(clusters):
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


def test_a_commit_that_the_source_may_only_hide_is_undecided(clusters):
    source, target, _ = clusters
    target.commit("g", "A.gone", 0, 3)
    target.commit("late", "A.u", 0, 3)
    during_the_look(clusters, lambda source: source.commit("late", "u", 0, 9))
    rows = rows_of(compared(*clusters))
    assert verdict(rows["g", "gone", 0]) == (CompareVerdict.UNDECIDED, Loss.POSSIBLE, "source-topic-missing")
    assert verdict(rows["late", "u", 0]) == (CompareVerdict.UNDECIDED, Loss.POSSIBLE, "source-moved")


def test_under_equal_names_a_topic_that_the_source_lacks_is_the_targets_own():
    source, target, mirror = world()
    properties = {"bootstrap.servers": "x:1"}
    flow = client_flow(properties, properties, "A", "B", Overrides(replication_policy="identity"))
    target.ranges |= {TopicPartition(topic, 0): LogRange(0, 100) for topic in ("t", "local")}
    target.commit("stranger", "local", 0, 3)
    target.commit("stranger", "t", 0, 3)
    assert [key for key in rows_of(compared(source, target, mirror, flow=flow)) if key[0] == "stranger"] == [
        ("stranger", "t", 0)
    ]
