"""What plans of one run remember of a source: the first question of each, and never the second."""

from migrate.extras.flows.source_memory import SourceMemory
from migrate.model import Commit, Level, LogRange, Side, TopicPartition
from migrate.plan.plan import Plan
from tests.fakes import FakeCluster
from tests.unit.planscene import planned, rows_of, world

T0 = TopicPartition("t", 0)


def moving(plan: Plan) -> list[str]:
    return [c.subject for c in plan.header.checks if c.check == "commits-moving" and c.level is Level.WARN]


def source() -> FakeCluster:
    cluster = FakeCluster(Side.SOURCE, "A")
    cluster.commit("g", "t", 0, 1)
    cluster.commit("h", "t", 0, 2)
    cluster.ids = {"t": "first"}
    return cluster


def test_the_first_question_of_a_later_plan_costs_the_cluster_nothing_but_for_groups_that_nobody_asked_about():
    cluster, memory = source(), SourceMemory()
    first = memory.source(cluster).commits(["g"])
    assert cluster.calls["commits"] == 1
    assert memory.source(cluster).commits(["g"]) == first and cluster.calls["commits"] == 1
    assert memory.source(cluster).commits(["g", "h"])["h"][T0] == Commit(2)


def test_a_plan_that_asks_again_sees_what_is_committed_by_then():
    cluster, target, mirror = world()
    memory = SourceMemory()
    assert not moving(planned(memory.source(cluster), target, mirror))
    cluster.commit("g", "t", 0, 99)
    plan = planned(memory.source(cluster), target, mirror)
    assert rows_of(plan)["g", "t", 0][1] == 51 and moving(plan) == ["g"]


def test_a_group_that_gave_no_answer_or_no_stable_one_is_asked_again_by_the_next_plan():
    cluster, memory = source(), SourceMemory()
    cluster.unstable.add("g")
    first = memory.source(cluster)
    assert not isinstance(first.commits(["g"])["g"], dict)
    first.commits(["g"], require_stable=False)
    assert not isinstance(memory.source(cluster).commits(["g"])["g"], dict)
    cluster.unstable.clear()
    assert memory.source(cluster).commits(["g"])["g"][T0] == Commit(1)


def test_ids_are_as_old_as_the_first_plan_so_that_no_commit_is_given_the_id_of_a_topic_made_after_it():
    cluster, memory = source(), SourceMemory()
    cluster.ranges[T0] = LogRange(0, 9)
    memory.source(cluster).topic_ids([])
    memory.source(cluster).commits(["g"])
    cluster.ids["t"] = "made anew"
    assert memory.source(cluster).topic_ids(["t", "newer"]) == {"t": "first"}
