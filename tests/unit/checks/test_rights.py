"""Rights: what each command needs, what is missing, and that docs/rights.md says the same."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.checks.rights import (
    CLUSTER_NAME,
    COMMANDS,
    RIGHTS,
    ResourceKind,
    Resources,
    Seen,
    missing,
    needed,
    resources_of,
)
from migrate.checks.rights_check import examine_rights, names_to_ask, subjects_of
from migrate.mm2.flow import Cluster, Flow, Mm2Home, Mm2Runtime
from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from migrate.model import Commit, Failure, Side, TopicPartition
from migrate.survey.filters import Filters

RIGHTS_PAGE = Path(__file__).parents[3] / "docs" / "rights.md"
POLICY = ReplicationPolicy(PolicyKind.DEFAULT, "A", "B")
FLOW = Flow(
    Cluster(Side.SOURCE, "A", {}), Cluster(Side.TARGET, "B", {}), POLICY, Side.SOURCE,
    "A.checkpoints.internal", "mm2-offset-syncs.B.internal",
)  # fmt: skip
ALL = frozenset({"DESCRIBE", "READ", "DELETE"})
REFUSED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")


def seen(cluster=ALL, groups=None, topics=None, hidden=None):
    return Seen(cluster, groups or {"g": ALL}, topics or {}, hidden)


def granted(resources, operations=ALL):
    names = [name for kind, found in resources.items() if kind.is_topic for name in found]
    return seen(operations, dict.fromkeys(resources[Resources.GROUPS], operations), dict.fromkeys(names, operations))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("side", Side)
def test_with_all_rights_none_is_missing_and_without_any_each_is_named(command, side):
    resources = resources_of(FLOW, side, ["g"], ["t"])
    assert missing(command, side, resources, granted(resources)) == ()
    lacking = missing(command, side, resources, granted(resources, frozenset()))
    wanted = [r for r in needed(command, side) if r.resources in resources]
    assert [lack.right for lack in lacking] == wanted
    assert all(str(lack.right.operation) in lack.grant for lack in lacking)


def test_resources_are_called_what_their_side_calls_them():
    source, target = (resources_of(FLOW, side, ["g"], ["t"]) for side in (Side.SOURCE, Side.TARGET))
    assert (source[Resources.TOPICS], target[Resources.TOPICS]) == (["t"], ["A.t"])
    assert source[Resources.SYNCS] == ["mm2-offset-syncs.B.internal"]
    assert Resources.SYNCS not in target
    assert target[Resources.POSITIONS] == ["mm2-offsets.A.internal"]
    assert source[Resources.CLUSTER] == [CLUSTER_NAME]


def test_on_the_way_back_mm2s_syncs_lie_on_the_side_that_is_written():
    back = FLOW.reversed()
    resources = resources_of(back, Side.TARGET, ["g"], ["A.t"])
    assert resources[Resources.TOPICS] == ["t"]
    assert Resources.SYNCS in resources
    assert [
        lack.grant for lack in missing("plan", Side.TARGET, resources, granted(resources, frozenset({"DESCRIBE"})))
    ] == [
        "READ on topic t",
        "READ on topic mm2-offset-syncs.B.internal",
    ]


def test_what_a_cluster_did_not_tell_is_missing():
    resources = resources_of(FLOW, Side.SOURCE, ["g"], ["t"])
    silent = Seen(None, {"g": Failure("GROUP_AUTHORIZATION_FAILED", "no")}, {"t": REFUSED})
    assert [lack.grant for lack in missing("apply", Side.SOURCE, resources, silent)] == [
        "DESCRIBE on group g",
        "DESCRIBE on topic t",
    ]
    assert "DESCRIBE on the cluster" in [lack.grant for lack in missing("plan", Side.SOURCE, resources, silent)]


def lines(side, resources, told):
    return [(line.health, line.what, line.seen) for line in examine_rights(side, "A", resources, told)]


def test_the_doctor_names_what_is_missing_per_command():
    resources = resources_of(FLOW, Side.SOURCE, ["g"], ["t"])
    told = granted(resources, frozenset({"DESCRIBE"}))
    report = {what: (health, text) for health, what, text in lines(Side.SOURCE, resources, told)}
    assert report["rights for apply on source A"][0] == "ok"
    health, text = report["rights for plan on source A"]
    assert health == "FAIL"
    assert text == ("missing: READ on topic t (to compare their records); READ on topic mm2-offset-syncs.B.internal")


def test_a_topic_that_is_nowhere_is_no_missing_right_but_one_that_is_hidden_is():
    resources = {Resources.CLUSTER: [CLUSTER_NAME], Resources.GROUPS: [], Resources.CHECKPOINTS: ["c"]}
    gone = Failure("UNKNOWN_TOPIC_OR_PARTITION", "gone")
    assert "FAIL" not in {health for health, _, _ in lines(Side.TARGET, resources, seen(topics={"c": gone}))}
    for hidden, expected in ((frozenset(), False), (frozenset({"c"}), True), (None, True)):
        told = seen(topics={"c": REFUSED}, hidden=hidden)
        assert any("READ on topic c" in text for _, _, text in lines(Side.TARGET, resources, told)) is expected


def test_subjects_are_the_groups_that_the_filters_leave_and_what_they_have_committed_on():
    filters = Filters.from_options(exclude_groups=["x.*"], exclude_topics=["u"])
    commits = {
        "g": {TopicPartition("t", 0): Commit(1), TopicPartition("u", 0): Commit(1)},
        "x1": {TopicPartition("v", 0): Commit(1)},
        "h": Failure("GROUP_AUTHORIZATION_FAILED", "no"),
    }
    subjects = subjects_of(["h", "g", "x1"], commits, filters)
    assert (subjects.groups, subjects.source_topics) == (("g", "h"), ("t",))
    assert names_to_ask(FLOW, Side.TARGET, subjects, {"A.other"})[Resources.TOPICS] == []


def test_where_no_offsets_topic_of_mm2_is_known_no_right_on_it_is_asked_for():
    in_worker = replace(FLOW, runtime=Mm2Runtime(home=Mm2Home.CONNECT))
    assert in_worker.connect_offsets_topic == ""
    assert resources_of(in_worker, Side.TARGET, [], [])[Resources.POSITIONS] == []


def test_the_page_of_rights_lists_exactly_these():
    text = RIGHTS_PAGE.read_text()
    listed = set(re.findall(r"^\| `([^`]+)` \| (source|target) \| ([A-Z]+) \| ([^|]+?) \|", text, re.MULTILINE))
    wanted = {(r.command, str(r.side), str(r.operation), str(r.resources)) for r in RIGHTS}
    assert listed == wanted


def test_every_kind_of_resource_is_one_that_acls_know():
    assert {resource.kind for resource in Resources} == set(ResourceKind)
