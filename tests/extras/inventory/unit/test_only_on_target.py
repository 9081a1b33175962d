"""Commits that only the target has: named if the source was seen to have none, else undecided."""

import re

import pytest

from migrate.extras.inventory.compare import CompareVerdict, Loss
from migrate.mm2.config_file import Overrides, client_flow
from migrate.model import LogRange, TopicPartition
from migrate.survey.filters import Filters
from tests.extras.inventory.unit.comparedscene import compared, during_the_look, rows_of, verdict
from tests.unit.planscene import world


@pytest.fixture
def clusters():
    """Group g has committed on t-0 and t-1, h on u-0; the target has nothing yet."""
    return world()


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


def test_filters_hold_for_what_only_the_target_has(clusters):
    clusters[1].commit("stranger", "A.u", 0, 3)
    for filters in (Filters(exclude_groups=(re.compile("str.*"),)), Filters(exclude_topics=(re.compile("u"),))):
        assert ("stranger", "u", 0) not in rows_of(compared(*clusters, filters=filters))


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
