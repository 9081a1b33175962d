"""Chains and works through real Spark, with readers of logs in memory: what tasks answer, and what is said before."""

from dataclasses import replace
from functools import partial

import pytest

from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.match.compare import TasksHere, compare_records
from migrate.match.equality import Equality
from migrate.match.protocol import Limits, Unmatched, no_chain
from migrate.model import TopicPartition
from migrate.spark.tasks import SparkTasks
from tests.spark.comparescene import NO_LIMITS, Heard, Scene, compare, plain, random_scene
from tests.spark.records import FLOW

BUDGET = 800_000


def compared_as_here(spark, scene, limits, held, flow=FLOW):
    """Compare, and see that this process finds the same without Spark, and both say the same before."""
    told, here = Heard(), Heard()
    found = compare(spark, scene, limits, flow, told, held)
    alone = TasksHere(lambda: scene.readers()(), partial(scene.chain_of, flow))
    expected = compare_records(alone, scene.works, limits, here.listener)
    assert found.answers.keys() == {work.source for work in scene.works}
    assert dict(found.answers) == dict(expected.answers)
    assert found.equalities == expected.equalities
    assert told.estimates == [found.estimate] == [expected.estimate] == here.estimates
    assert told.advances[-1:] == here.advances[-1:]
    assert (found.source_bytes, found.target_bytes) == (expected.source_bytes, expected.target_bytes)
    return found


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("limits", [
    NO_LIMITS, Limits(1_000_000, BUDGET), Limits(1_000_000, 0), Limits(0, None), replace(NO_LIMITS, by_timestamp=True),
])  # fmt: skip
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_every_partition_is_answered_as_it_is_without_spark(spark, seed, limits, held):
    scene = random_scene(seed)
    found = compared_as_here(spark, scene, limits, held)
    assert found.answers[TopicPartition("t", 1)].places.keys() == set(scene.works[1].source_committed)
    if limits == NO_LIMITS:
        assert found.source_bytes >= 1000 and found.target_bytes >= 1000
        refused = Unmatched.not_readable("TOPIC_AUTHORIZATION_FAILED")
        assert set(found.answers[TopicPartition("t", 1)].places.values()) == {refused}
        assert {topic: found.equalities[topic] for topic in ("reheaded", "retimed", "garbled")} == {
            "reheaded": Equality.WITHOUT_HEADERS, "retimed": Equality.WITHOUT_TIMESTAMP, "garbled": None,
        }  # fmt: skip
    if limits.fetch_bytes == BUDGET:
        assert found.estimate.partitions > 0 < found.estimate.left_out


@pytest.mark.parametrize("held", [False, True])
def test_a_failback_takes_the_syncs_the_other_way_round(spark, held):
    scene, flow = random_scene(3).turned(), FLOW.reversed()
    compared_as_here(spark, scene, NO_LIMITS, held, flow)
    assert any(scene.chain_of(flow, w.original, w.source_log.end, w.target_log.end) for w in scene.works)


def test_nothing_to_compare_is_no_work(spark):
    heard = Heard()
    found = compare_records(
        SparkTasks(lambda: spark, lambda: no_chain, Scene().readers()), [], NO_LIMITS, heard.listener
    )
    assert (dict(found.answers), len(heard.estimates)) == ({}, 1)


@pytest.mark.parametrize(
    "error", [ClusterError("B did not answer.", "Start it."), EnvironmentLacks("No client.", "Install.")]
)
def test_what_ends_a_task_ends_the_comparing_with_the_same_words(spark, error: MigrateError):
    with pytest.raises(type(error)) as raised:
        compare(spark, plain(TopicPartition("t", 0)), error=error)
    assert (raised.value.problem, raised.value.todo) == (error.problem, error.todo)


def test_a_fault_of_a_task_is_one_paragraph_that_names_sparks_log(spark):
    with pytest.raises(ClusterError, match=r"Spark could not compare records: .*a bug.*Spark's own log is") as raised:
        compare(spark, plain(TopicPartition("t", 0)), error=ZeroDivisionError("a bug"))
    assert "\n" not in str(raised.value)
