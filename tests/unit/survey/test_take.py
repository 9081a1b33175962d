"""Everything is read in the order that is safe: what is read first bounds what is read later; hidden topics last."""

import pytest

from migrate.errors import ClusterError, UsageError
from migrate.match.protocol import Tail
from migrate.mm2.name_map import NameMap
from migrate.model import Failure, LogRange, TopicPartition
from migrate.progress import Timer
from migrate.survey.hidden_topics import hosted_ahead, in_full, with_hidden
from migrate.survey.survey import Clusters, ClusterSurvey
from migrate.survey.take import take_survey
from tests.fakes import FakeClock, FakeComparer, NoProgress
from tests.unit.planscene import world
from tests.unit.surveyscene import request

REFUSED = Failure("CLUSTER_AUTHORIZATION_FAILED", "not allowed")
T1 = TopicPartition("t", 1)


def taken(source, target, mirror, clock=None, comparer=None, **changes):
    clusters = Clusters(source, target, mirror, comparer)
    return take_survey(request(**changes), clusters, clock or FakeClock(), NoProgress())


def clock_that(acts):
    """A clock while whose waiting something happens."""

    class Clock(FakeClock):
        def wait(self, seconds):
            super().wait(seconds)
            acts()

    return Clock()


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
    clock = clock_that(lambda: target.watermarks.update(later))
    survey = taken(source, target, mirror, clock, comparer, settle_seconds=settle)
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


def test_log_directories_that_lack_a_topic_that_is_shown_tell_not_all():
    assert in_full(frozenset({"t", "hidden"}), {"t"}) == {"t", "hidden"}
    partial = in_full(frozenset({"hidden"}), {"t", "u"})
    assert isinstance(partial, Failure) and partial.code == "PARTIAL_ANSWER" and "2 topics" in partial.message
    assert in_full(REFUSED, {"t"}) is REFUSED


def test_a_topic_that_was_shown_and_is_deleted_meanwhile_is_not_hidden():
    source, target, mirror = world()
    everything = frozenset(target.topics()) | {"deleted", "secret"}
    target.hosted = lambda: everything
    clusters = Clusters(None, target, mirror, looks_for_hidden=True)
    before = ClusterSurvey(topics=target.topics() | {"deleted": 1})
    after = with_hidden(clusters, ClusterSurvey(), before, hosted_ahead(clusters), Timer(FakeClock(), NoProgress()))
    assert after[1].hidden == {"secret"}
