"""From two clusters and MM2's topics to a plan: every commit one row, in the order that safety needs."""

from dataclasses import replace
from threading import Event

import pytest

from migrate.commit_table import GroupCommits
from migrate.errors import UsageError
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks
from migrate.mm2.connectors import Role
from migrate.mm2.name_map import NameMap
from migrate.mm2.other_names import MappedNames
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Commit, Decision, Failure, GroupState, Level, LogRange, TopicPartition
from migrate.plan.build import pinned_ranges, planned_states, reading_cost
from migrate.plan.plan import PlannedActivity
from migrate.plan.rows import decide, translate
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from migrate.survey.policies import Policies, Rewind, Uncommitted, parse_untranslatable
from migrate.survey.survey import Clusters, PlanRequest
from migrate.survey.take import take_survey
from tests.fakes import FakeClock, FakeCluster, FakeComparer, FakeGroupFacts, NoProgress
from tests.randomsurveys import KINDS, random_survey
from tests.unit.planscene import CHECKPOINTS, SYNCS, FakeMirror, checks_of, planned, planned_flow, rows_of, world
from tests.unit.surveyscene import request


def test_what_a_worker_tells_of_mm2s_tasks_is_in_the_plan():
    class Worker:
        where = "the worker"

        def tasks(self):
            return {
                "src": ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "RUNNING"), ConnectorPart(0, "FAILED", "Boom")))
            }

    plan = planned(*world(), worker=Worker())
    assert [row.decision for row in plan.rows] == [Decision.BLOCK] * 3
    assert checks_of(plan, "mm2-tasks") == ["src"]


def test_connects_own_topics_without_a_copy_of_the_same_name_are_in_the_plan():
    source, target, mirror = world()
    for topic in ("my-offsets", "my-configs", "app-offsets", "app-configs"):
        source.ranges[TopicPartition(topic, 0)] = LogRange(0, 1)
    target.ranges[TopicPartition("my-configs", 0)] = LogRange(0, 1)
    facts = FakeGroupFacts(compacted=frozenset({"my-offsets", "my-configs"}))
    plan = planned(source, target, mirror, source_groups=facts)
    assert checks_of(plan, "connect-internal-topics") == ["my-offsets"] and plan.is_clean()


def test_every_commit_becomes_one_row_of_a_plan_that_is_clean_in_a_sound_world():
    plan = planned(*world())
    assert rows_of(plan) == {
        ("g", "t", 0): (Decision.SET, 51, "translated"),
        ("g", "t", 1): (Decision.SET, 60, "translated"),
        ("h", "u", 0): (Decision.SET, 91, "translated"),
    }
    assert plan.is_clean()
    assert plan.header.target_topic_ids == {"A.t": "id-of-t", "A.u": "id-of-u"}
    assert plan.header.source_topic_ids == {"t": "id-of-source-t", "u": "id-of-source-u"}


def test_a_commit_at_offset_0_is_a_commit():
    source, target, mirror = world()
    source.commit("g", "t", 0, 0)
    made = planned(source, target, mirror)
    assert rows_of(made).keys() == {("g", "t", 0), ("g", "t", 1), ("h", "u", 0)}
    assert [row.source_committed for row in made.rows] == [0, 60, 100]


def test_the_same_world_and_clock_give_the_same_fingerprint_and_any_difference_another():
    source, target, mirror = world()
    first = planned(source, target, mirror).fingerprint
    assert planned(*world()).fingerprint == first
    source.commit("h", "u", 0, 99)
    assert planned(source, target, mirror).fingerprint != first


def test_rows_and_filtered_add_up_to_the_commits_read_and_connect_groups_are_rows_though_mm2_leaves_them_out():
    source, target, mirror = world()
    source.commit("console-consumer-7", "t", 0, 1)
    source.commit("__internal", "t", 0, 1)
    source.commit("connect-sink", "t", 0, 5)
    plan = planned(source, target, mirror, Filters.from_options(exclude_groups=["h"]))
    assert plan.header.counts.items() >= {
        "commits_read": 6, "rows": 3, "filtered:default-exclude": 2, "filtered:exclude-group": 1,
    }.items()  # fmt: skip
    assert ("connect-sink", "t", 0) in rows_of(plan)


def test_a_missing_target_topic_is_a_row_and_not_a_gap():
    source, target, mirror = world()
    source.ranges[TopicPartition("new", 0)] = LogRange(0, 9)
    source.commit("h", "new", 0, 3)
    plan = planned(source, target, mirror)
    assert rows_of(plan)["h", "new", 0] == (Decision.BLOCK, None, "target-topic-missing")
    assert rows_of(plan)["h", "u", 0] == (Decision.BLOCK, 91, "target-topic-exists")
    assert rows_of(plan)["g", "t", 0][0] is Decision.SET


@pytest.mark.parametrize("rewind", [Rewind.BLOCK, Rewind.KEEP])
def test_a_prior_offset_beyond_the_targets_log_blocks_its_group_and_the_check_does_not_pass(rewind):
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 4100)
    plan = planned(source, target, mirror, policies=Policies(rewind=rewind))
    (found,) = (c for c in plan.header.checks if c.check == "inside-target-log")
    assert (found.level, found.subject) == (Level.BLOCK, "g/t/0") and "--rewind set" in found.todo
    assert "g" in plan.blocked_groups()
    assert not planned(source, target, mirror, policies=Policies(rewind=Rewind.SET)).blocked_groups()


def test_partitions_never_committed_are_named_or_given_a_row():
    source, target, mirror = world()
    del source.offsets["g"][TopicPartition("t", 1)]
    assert checks_of(planned(source, target, mirror), "partitions-never-committed") == ["g"]
    plan = planned(source, target, mirror, policies=Policies(uncommitted=Uncommitted.EARLIEST))
    assert rows_of(plan)["g", "t", 1] == (Decision.SET, 0, "never-committed")
    assert plan.header.counts["uncommitted_added"] == 1
    assert checks_of(plan, "partitions-never-committed") == []


class Meanwhile(FakeClock):
    """A clock while whose waits something happens."""

    def __init__(self, happens):
        super().__init__()
        self.happens = happens

    def wait(self, seconds):
        super().wait(seconds)
        self.happens()


@pytest.mark.parametrize("side", ["source", "target"])
def test_commits_that_move_while_nobody_is_a_member_are_found_by_the_second_reading(side):
    def moving(**more):
        source, target, mirror = world()
        target.commit("g", "A.t", 0, 5)
        cluster, topic = (source, "t") if side == "source" else (target, "A.t")
        clock = Meanwhile(lambda: cluster.commit("g", topic, 1, 61))
        plan = planned(source, target, mirror, clock=clock, **more)
        return [(c.subject, c.seen) for c in plan.header.checks if c.check == "commits-moving"]

    ((subject, seen),) = moving()
    assert subject == "g" and ("t-1: 60 to 61" if side == "source" else "A.t-1: none to 61") in seen
    assert "A.t-0" not in seen and not moving(filters=Filters.from_options(topics=("v",))), "the filters take it"
    assert not checks_of(planned(*world()), "commits-moving")


def test_what_the_clusters_tell_of_their_groups_reaches_the_checks():
    source, target, mirror = world()
    target.commit("h", "A.u", 0, 1)
    since = FakeClock().now_ms() - 7 * 24 * 3_600_000
    on_target = FakeGroupFacts(records={"h": GroupRecord(GroupKind.CLASSIC, "consumer", since)})
    on_source = FakeGroupFacts({"g": "consumer", "sharers": "share", "__hidden": "share"}, newest_ms=1)
    source.states["g"] = GroupState("Stable", 1, kind="classic", assignor="stream")
    source.ranges[TopicPartition("g-store-changelog", 0)] = LogRange(0, 1)
    plan = planned(source, target, mirror, source_groups=on_source, target_groups=on_target)
    assert on_target.asked == ["h"]
    assert checks_of(plan, "share-group") == ["sharers"]
    assert checks_of(plan, "kafka-streams") == ["g"]
    assert rows_of(plan)["h", "u", 0][2] == "offsets-expiry"
    assert [c.level for c in plan.header.checks if c.check == "old-offset-syncs"] == [Level.WARN]


def down_world() -> tuple[FakeCluster, FakeCluster, FakeMirror]:
    source, target, mirror = world()
    mirror.latest = {
        CheckpointKey("g", "A.t", 0): CheckpointRecord(55, 51, "", 1, 1000),
        CheckpointKey("h", "A.u", 0): CheckpointRecord(90, 90, "", 2, 1000),
    }
    return source, target, mirror


def test_with_the_source_down_checkpoints_stand_in_and_every_group_waits_for_a_reviewer():
    plan = planned(*down_world(), down=True)
    rows = rows_of(plan)
    assert rows["h", "u", 0] == (Decision.BLOCK, 90, "source-down")
    assert rows["g", "t", 1] == (Decision.BLOCK, None, "source-gone-without-checkpoint")
    assert plan.header.source_down and plan.header.source_cluster_id == ""
    assert checks_of(plan, "groups-unknown")
    (syncs,) = [c for c in plan.header.checks if c.check == "mm2-offset-syncs-topic"]
    assert syncs.level is Level.NOT_VISIBLE and "not checked" in syncs.seen, "nobody says that it is missing"


def test_waiting_for_a_jvm_and_for_spark_is_timed_by_itself():
    source, target, mirror = world()
    clock = FakeClock()
    request = PlanRequest(planned_flow(), Filters(), Policies(), 0.0, {})

    class Late(Clusters):
        def wait_for_commits(self):
            clock.wait(2.0)

        def wait_for_records(self):
            clock.wait(7.0)

    clusters = Late(source, target, mirror, starts_late=True)
    timings = take_survey(request, clusters, clock, NoProgress()).timings
    assert (timings["spark"], timings["commits"], timings["positions"]) == (9.0, 0.0, 0.0)


def test_offsets_that_no_group_has_committed_are_placed_as_commits_and_no_groups_commits_are_read():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 99)
    asked: list[str] = []
    source.on_call = asked.append
    clock, places = FakeClock(), GroupCommits({"g": {TopicPartition("t", 0): Commit(55)}})
    request = PlanRequest(planned_flow(), Filters(), Policies(), 15.0, {}, places=(places,))
    survey = take_survey(request, Clusters(source, target, mirror), clock, NoProgress())
    (table,) = translate(survey, places)
    commits = rows_of(planned(*world()))
    assert [(row.group, row.target_offset, row.target_prior) for row in table] == [("g", commits["g", "t", 0][1], None)]
    assert "commits" not in asked and not survey.groups and not survey.keys
    assert set(survey.growth) == {TopicPartition("t", 0)} and clock.monotonic() >= 15.0, "whether producers still write"


def test_what_reads_records_ends_when_no_record_is_to_be_read_any_more_and_before_the_second_look():
    source, target, mirror = world()
    order: list[str] = []
    for alias, cluster in (("A", source), ("B", target)):
        cluster.on_call = lambda call, alias=alias: order.append(f"{alias} {call}")
    mirror.on_call = lambda call: order.append(call)
    request = PlanRequest(planned_flow(), Filters(), Policies(), 0.0, {})

    def hosted():
        # As late as can be: whoever ends the JVM before it is told does so by then.
        ended.wait(0.5)
        order.append("hosted")
        return frozenset(target.topics())

    class Watched(Clusters):
        def end_records(self):
            order.append("end of records")

        def end(self):
            order.append("end")
            ended.set()

    ended, target.hosted = Event(), hosted
    clusters = Watched(source, target, mirror, looks_for_hidden=True)
    take_survey(request, clusters, FakeClock(), NoProgress())
    assert "hosted" in order and "end" not in order, "a JVM that is asked goes on until it has answered"
    assert order.index("A commits") < order.index("positions"), "no older than what they are compared with"
    assert order.count("positions") == 1
    of_records = {"checkpoints", "windows", "positions"}
    before, after = set(order[: order.index("end of records")]), set(order[order.index("end of records") :])
    assert of_records <= before and not of_records & after
    assert {"A groups", "B groups"} <= after, "the second look"


def test_the_plan_keeps_when_its_groups_committed_last_and_how_often_as_far_as_their_records_tell():
    at = {TopicPartition("t", 0): 40_000, TopicPartition("t", 1): 50_000}
    newest = {TopicPartition("t", 0): (PastCommit(35_000, 8), PastCommit(40_000, 20))}
    told = FakeGroupFacts(
        commits={
            "g": GroupRecord(GroupKind.CLASSIC, committed_ms=at, newest=newest),
            "h": GroupRecord(GroupKind.CLASSIC),
            "not-in-the-plan": GroupRecord(GroupKind.CLASSIC, committed_ms=at),
        }
    )
    assert planned(*world(), source_groups=told).header.activity == (PlannedActivity("g", 50_000, 5_000, 12),)
    refused = FakeGroupFacts(commits=Failure("TOPIC_AUTHORIZATION_FAILED", "no"))
    assert planned(*world(), source_groups=refused).header.activity == ()


def surveyed(comparer=None):
    source, target, mirror = world()
    clusters = Clusters(source, target, mirror, comparer)
    return take_survey(request(), clusters, FakeClock(), NoProgress())


def test_every_range_that_was_pinned_is_there_sorted():
    ranges = [(r.side, r.topic, r.partition, r.end) for r in pinned_ranges(surveyed())]
    of_plan = [(side, topic, p, 100) for side, name in (("source", "{}"), ("target", "A.{}"))
               for topic, p in ((name.format("t"), 0), (name.format("t"), 1), (name.format("u"), 0))]  # fmt: skip
    mm2 = [("source", SYNCS, 0, 30), ("target", CHECKPOINTS, 0, 5), ("target", "mm2-offsets.A.internal", 0, 7)]
    assert ranges == sorted(of_plan + mm2)


def test_states_are_those_of_both_sides():
    states = [(s.side, s.group, s.state) for s in planned_states(surveyed())]
    assert states == [
        ("source", "g", "Empty"), ("source", "h", "Empty"), ("target", "g", "Absent"), ("target", "h", "Absent"),
    ]  # fmt: skip


def test_what_was_not_compared_cost_nothing():
    assert reading_cost(None) == {}
    cost = reading_cost(surveyed(FakeComparer()).comparison)
    assert cost["partitions"] == 3 and cost["source_bytes_fetched"] == 1_100_000_000


@pytest.mark.parametrize("kind", KINDS)
def test_every_commit_becomes_one_row_in_the_order_of_their_places(kind):
    for seed in range(10):
        _, survey = random_survey(seed, kind)
        rows = PlanRows(decide(survey))
        assert [(r.group, r.source_topic, r.partition) for r in rows] == [tuple(key) for key in survey.keys]
        assert [r.source_committed for r in rows] == [c and c.offset for c in survey.keys.values()]


def test_a_group_that_would_get_two_offsets_for_one_place_has_no_plan_and_neither_has_another_owner():
    """Topics t and u share a name on the target, and whoever has read both would have two rows for one partition."""
    names = NameMap.from_lines("--topic-map", "m.csv", "topic", ["source_topic,target_topic", "t,x", "u,x"])
    shared = replace(planned_flow(), policy=MappedNames("A", "B", names).knowing(["t", "u"]))
    chosen = Policies((), *parse_untranslatable(["earliest"]))
    source, target, mirror = world()
    target.ranges[TopicPartition("x", 0)] = LogRange(0, 100)
    planned(source, target, mirror, flow=shared, policies=chosen)
    source.commit("g", "u", 0, 5)
    with pytest.raises(UsageError, match="g has offsets on t and u, which would both be x on B"):
        planned(source, target, mirror, flow=shared, policies=chosen)
    request, survey = random_survey(1, KINDS[0])
    places = GroupCommits({"job": {TopicPartition("t", 0): Commit(1), TopicPartition("u", 0): Commit(1)}})
    with pytest.raises(UsageError, match="job has offsets on t and u, which would both be x on B"):
        translate(replace(survey, request=replace(request, flow=shared, policies=chosen)), places)
