"""Which commits a plan is about: every one that was read is a row or is counted, and a gap is never a smaller plan."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from migrate.errors import ClusterError
from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord
from migrate.model import Commit, Failure, GroupPartition
from migrate.survey.commits import from_checkpoints, from_source, read_priors, with_uncommitted
from migrate.survey.commits_source import FROM_CHECKPOINTS
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Uncommitted
from migrate.survey.survey import Clusters
from tests.fakes import Script
from tests.unit.planscene import world
from tests.unit.surveyscene import request, timer

REFUSED = Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")
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
