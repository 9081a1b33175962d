"""From two clusters and MM2's topics to a plan: every commit one row, in the order that safety needs."""

from dataclasses import replace
from functools import partial
from threading import Event
from types import SimpleNamespace

import pytest

from migrate.commit_table import GroupCommits
from migrate.errors import UsageError
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks
from migrate.mm2.connectors import Role
from migrate.mm2.name_map import NameMap
from migrate.mm2.other_names import MappedNames
from migrate.model import Commit, Decision, Failure, GroupState, Level, LogRange, TopicPartition
from migrate.plan.plan import PlannedActivity
from migrate.plan.rows import decide, translate
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupKind, GroupRecord, PastCommit
from migrate.survey.policies import Policies, Uncommitted, parse_untranslatable
from migrate.survey.survey import Clusters
from migrate.survey.take import take_survey
from tests.fakes import FakeClock, FakeComparer, FakeGroupFacts, NoProgress
from tests.randomsurveys import KINDS, random_survey
from tests.unit.planscene import checks_of, planned, planned_flow, results_of, rows_of, survey_of, world
from tests.unit.surveyscene import request


def test_every_commit_becomes_one_row_of_a_plan_that_is_clean_in_a_sound_world():
    source, target, mirror = world()
    plan = planned(source, target, mirror)
    assert rows_of(plan) == {
        ("g", "t", 0): (Decision.SET, 51, "translated"),
        ("g", "t", 1): (Decision.SET, 60, "translated"),
        ("h", "u", 0): (Decision.SET, 91, "translated"),
    }
    assert plan.is_clean() and plan.fingerprint == planned(*world()).fingerprint
    source.commit("g", "t", 0, 0)
    at_0 = planned(source, target, mirror)
    assert [row.source_committed for row in at_0.rows] == [0, 60, 100] and at_0.fingerprint != plan.fingerprint


def test_the_header_has_the_ids_the_states_and_every_range_that_was_pinned_sorted_and_what_comparing_cost():
    header = planned(*world()).header
    assert header.target_topic_ids == {"A.t": "id-of-t", "A.u": "id-of-u"}
    assert header.source_topic_ids == {"t": "id-of-source-t", "u": "id-of-source-u"}
    states = [f"{s.side} {s.group} {s.state}" for s in header.group_states]
    assert states == ["source g Empty", "source h Empty", "target g Absent", "target h Absent"]
    assert [f"{r.side} {r.topic}-{r.partition} {r.end}" for r in header.pinned] == [
        "source mm2-offset-syncs.B.internal-0 30", "source t-0 100", "source t-1 100", "source u-0 100",
        "target A.checkpoints.internal-0 5", "target A.t-0 100", "target A.t-1 100", "target A.u-0 100",
        "target mm2-offsets.A.internal-0 7",
    ]  # fmt: skip
    cost = planned(*world(), comparer=FakeComparer()).header.comparison
    assert header.comparison == {} and cost["partitions"] == 3 and cost["source_bytes_fetched"] == 1_100_000_000


def test_rows_and_filtered_add_up_to_what_was_read_and_added_and_connect_groups_are_rows_though_mm2_leaves_them_out():
    source, target, mirror = world()
    del source.offsets["g"][TopicPartition("t", 1)]
    assert checks_of(planned(source, target, mirror), "partitions-never-committed") == ["g"]
    source.commit("console-consumer-7", "t", 0, 1)
    source.commit("__internal", "t", 0, 1)
    source.commit("connect-sink", "t", 0, 5)
    earliest = Policies(uncommitted=Uncommitted.EARLIEST)
    plan = planned(source, target, mirror, Filters.from_options(exclude_groups=["h"]), earliest)
    assert plan.header.counts == {
        "commits_read": 5, "rows": 4, "uncommitted_added": 2,
        "filtered:default-exclude": 2, "filtered:exclude-group": 1,
    }  # fmt: skip
    rows = rows_of(plan)
    assert rows["g", "t", 1] == (Decision.SET, 0, "never-committed") and ("connect-sink", "t", 0) in rows
    assert not checks_of(plan, "partitions-never-committed")


@pytest.mark.parametrize("side", ["source", "target"])
def test_commits_that_move_while_nobody_is_a_member_are_found_by_the_second_reading(side):
    def moving(**more):
        source, target, mirror = world()
        target.commit("g", "A.t", 0, 5)
        cluster, topic = (source, "t") if side == "source" else (target, "A.t")
        clock = FakeClock()
        wait = clock.wait
        clock.wait = lambda seconds: (wait(seconds), cluster.commit("g", topic, 1, 61))
        results = results_of(planned(source, target, mirror, clock=clock, **more), "commits-moving")
        return [(c.subject, c.seen) for c in results]

    ((subject, seen),) = moving()
    assert subject == "g" and ("t-1: 60 to 61" if side == "source" else "A.t-1: none to 61") in seen
    assert "A.t-0" not in seen and not moving(filters=Filters.from_options(topics=("v",))), "the filters take it"
    assert not checks_of(planned(*world()), "commits-moving")


def test_what_the_clusters_and_a_worker_tell_reaches_the_checks():
    source, target, mirror = world()
    target.commit("h", "A.u", 0, 1)
    since = FakeClock().now_ms() - 7 * 24 * 3_600_000
    on_target = FakeGroupFacts(records={"h": GroupRecord(GroupKind.CLASSIC, "consumer", since)})
    kinds = {"g": "consumer", "sharers": "share", "__hidden": "share"}
    on_source = FakeGroupFacts(kinds, newest_ms=1, compacted=frozenset({"my-offsets", "my-configs"}))
    source.states["g"] = GroupState("Stable", 1, kind="classic", assignor="stream")
    for topic in ("my-offsets", "my-configs", "app-offsets", "app-configs", "g-store-changelog"):
        source.ranges[TopicPartition(topic, 0)] = LogRange(0, 1)
    target.ranges[TopicPartition("my-configs", 0)] = LogRange(0, 1)
    told = {"source_groups": on_source, "target_groups": on_target}
    plan = planned(source, target, mirror, **told)
    assert on_target.asked == ["h"]
    assert checks_of(plan, "share-group") == ["sharers"]
    assert checks_of(plan, "kafka-streams") == ["g"]
    assert checks_of(plan, "connect-internal-topics") == ["my-offsets"]
    assert rows_of(plan)["h", "u", 0][2] == "offsets-expiry"
    assert [c.level for c in results_of(plan, "old-offset-syncs")] == [Level.WARN]
    tasks = {"src": ConnectorTasks(Role.SOURCE, (ConnectorPart(None, "RUNNING"), ConnectorPart(0, "FAILED", "Boom")))}
    plan = planned(*world(), worker=SimpleNamespace(where="the worker", tasks=lambda: tasks))
    assert checks_of(plan, "mm2-tasks") == ["src"] and {row.decision for row in plan.rows} == {Decision.BLOCK}


def test_waiting_for_a_jvm_and_for_spark_is_timed_by_itself():
    clock, clusters = FakeClock(), Clusters(*world(), starts_late=True)
    clusters.wait_for_commits, clusters.wait_for_records = partial(clock.wait, 2.0), partial(clock.wait, 7.0)
    timings = take_survey(request(settle_seconds=0.0), clusters, clock, NoProgress()).timings
    assert (timings["spark"], timings["commits"], timings["positions"]) == (9.0, 0.0, 0.0)


def test_offsets_that_no_group_has_committed_are_placed_as_commits_and_no_groups_commits_are_read():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 99)
    asked: list[str] = []
    source.on_call = asked.append
    clock, places = FakeClock(), GroupCommits({"g": {TopicPartition("t", 0): Commit(55)}})
    survey = survey_of(source, target, mirror, clock=clock, places=(places,))
    (table,) = translate(survey, places)
    assert [(row.group, row.target_offset, row.target_prior) for row in table] == [("g", 51, None)]
    assert "commits" not in asked and not survey.groups and not survey.keys
    assert set(survey.growth) == {TopicPartition("t", 0)} and clock.monotonic() >= 15.0, "whether producers still write"


def test_what_reads_records_ends_when_no_record_is_to_be_read_any_more_and_before_the_second_look():
    source, target, mirror = world()
    order: list[str] = []
    for alias, cluster in (("A", source), ("B", target)):
        cluster.on_call = lambda call, alias=alias: order.append(f"{alias} {call}")
    mirror.on_call = order.append
    ended = Event()

    def hosted():
        # As late as can be: whoever ends the JVM before it is told does so by then.
        ended.wait(0.5)
        order.append("hosted")
        return frozenset(target.topics())

    target.hosted = hosted
    clusters = Clusters(source, target, mirror, looks_for_hidden=True)
    clusters.end_records, clusters.end = lambda: order.append("end of records"), ended.set
    take_survey(request(settle_seconds=0.0), clusters, FakeClock(), NoProgress())
    assert "hosted" in order and not ended.is_set(), "a JVM that is asked goes on until it has answered"
    assert order.index("A commits") < order.index("positions"), "no older than what they are compared with"
    assert order.count("positions") == 1
    of_records, end = {"checkpoints", "windows", "positions"}, order.index("end of records")
    assert of_records <= {*order[:end]} and not of_records & {*order[end:]}
    assert {"A groups", "B groups"} <= {*order[end:]}, "the second look"


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
    shared = {
        "flow": replace(planned_flow(), policy=MappedNames("A", "B", names).knowing(["t", "u"])),
        "policies": Policies((), *parse_untranslatable(["earliest"])),
    }
    source, target, mirror = world()
    target.ranges[TopicPartition("x", 0)] = LogRange(0, 100)
    survey = survey_of(source, target, mirror, **shared)
    assert planned(source, target, mirror, **shared).rows
    places = GroupCommits({"job": {TopicPartition("t", 0): Commit(1), TopicPartition("u", 0): Commit(1)}})
    with pytest.raises(UsageError, match="job has offsets on t and u, which would both be x on B"):
        translate(survey, places)
    source.commit("g", "u", 0, 5)
    with pytest.raises(UsageError, match="g has offsets on t and u, which would both be x on B"):
        planned(source, target, mirror, **shared)
