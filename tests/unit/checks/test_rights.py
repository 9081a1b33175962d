"""Rights: what each command needs, what is missing, what the doctor says, and that docs/rights.md says the same."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.checks.rights import (
    CLUSTER_NAME,
    COMMANDS,
    RIGHTS,
    Health,
    ResourceKind,
    Resources,
    Seen,
    examine_rights,
    grant_text,
    missing,
    names_to_ask,
    needed,
    resources_of,
    subjects_of,
    unread_commits,
)
from migrate.mm2.flow import Mm2Home, Mm2Runtime
from migrate.model import Commit, Failure, Side, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import READER_GROUP_PREFIX
from tests.unit.rightscene import FLOW, REFUSED, granted, seen

RIGHTS_PAGE = Path(__file__).parents[3] / "docs" / "rights.md"


def grants(*asked):
    return [grant_text(right, names) for right, names in missing(*asked).items()]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("side", Side)
def test_with_all_rights_none_is_missing_and_without_any_each_is_named(command, side):
    resources = resources_of(FLOW, side, ["g"], ["t"], reads_offsets=True)
    assert missing(command, side, resources, granted(resources)) == {}
    lacking = missing(command, side, resources, granted(resources, frozenset()))
    wanted = [r for r in needed(command, side) if r.resources in resources]
    assert {right.command for right in needed(command, side)} <= {command}
    assert list(lacking) == wanted
    assert all(str(right.operation) in grant_text(right, names) for right, names in lacking.items())


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
    assert grants("plan", Side.TARGET, resources, granted(resources, frozenset({"DESCRIBE"}))) == [
        "READ on topic t",
        "READ on topic mm2-offset-syncs.B.internal",
    ]


def test_what_a_cluster_refuses_to_describe_is_missing():
    resources = resources_of(FLOW, Side.SOURCE, ["g"], ["t"])
    silent = Seen(None, {"g": Failure("GROUP_AUTHORIZATION_FAILED", "no")}, {"t": REFUSED})
    assert grants("apply", Side.SOURCE, resources, silent) == [
        "DESCRIBE on group g",
        "DESCRIBE on topic t",
    ]


def test_what_a_cluster_does_not_report_is_not_visible_and_neither_granted_nor_missing():
    resources = resources_of(FLOW, Side.SOURCE, ["g"], ["t"])
    late = Failure("REQUEST_TIMED_OUT", "no answer", retriable=True)
    silent = Seen(None, {"g": late}, {"t": late})
    assert grants("apply", Side.SOURCE, resources, silent) == []
    assert grants("apply", Side.SOURCE, resources, silent, None) == ["DESCRIBE on group g", "DESCRIBE on topic t"]
    assert "DESCRIBE on the cluster" in grants("plan", Side.SOURCE, resources, silent, None)


def test_where_no_offsets_topic_of_mm2_is_known_no_right_on_it_is_asked_for():
    in_worker = replace(FLOW, runtime=Mm2Runtime(home=Mm2Home.CONNECT))
    assert in_worker.connect_offsets_topics == ()
    assert resources_of(in_worker, Side.TARGET, [], [])[Resources.POSITIONS] == []


def test_the_page_of_rights_lists_exactly_these():
    text = RIGHTS_PAGE.read_text()
    listed = set(re.findall(r"^\| `([^`]+)` \| (source|target) \| ([A-Z_]+) \| ([^|]+?) \|", text, re.MULTILINE))
    wanted = {(r.command, str(r.side), str(r.operation), str(r.resources)) for r in RIGHTS}
    assert listed == wanted


def test_every_kind_of_resource_is_one_that_acls_know():
    assert {resource.kind for resource in Resources} == set(ResourceKind)


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


def test_what_only_the_way_back_lacks_is_a_warning():
    resources = resources_of(FLOW, Side.SOURCE, ["g"], ["t"])
    told = granted(resources, frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "READ"}))
    (line,) = [each for each in examine_rights(Side.SOURCE, "A", resources, told) if each.health is not Health.OK]
    assert (line.health, line.what) == (Health.WARN, "rights for failback on source A")
    assert line.seen.startswith("missing: DELETE on group g (where a group") and "only the way back" in line.todo


def test_what_a_plan_does_without_is_a_warning_that_says_what_is_lost():
    resources = resources_of(FLOW, Side.TARGET, ["g"], ["t"])
    resources[Resources.POSITIONS] = []
    told = granted(resources, frozenset({"DESCRIBE", "READ", "DELETE"}))
    (line,) = [each for each in examine_rights(Side.TARGET, "B", resources, told) if each.health is not Health.OK]
    assert (line.health, line.what) == (Health.WARN, "rights for plan (optional) on target B")
    assert line.seen == (
        "missing: DESCRIBE_CONFIGS on the cluster (when offsets expire); "
        "DESCRIBE_CONFIGS on topic A.t (which topics are compacted)"
    )
    assert line.todo.startswith("Grant them") and "plan does without them" in line.todo


def test_a_right_that_was_not_reported_is_not_visible_and_fails():
    resources = resources_of(FLOW, Side.TARGET, ["g"], ["t"])
    late = Failure("REQUEST_TIMED_OUT", "no answer", retriable=True)
    told = seen(groups={"g": late}, topics={"A.t": frozenset({"DESCRIBE"})})
    (line,) = [each for each in examine_rights(Side.TARGET, "B", resources, told) if "for apply on" in each.what]
    assert line.health is Health.FAIL
    assert line.seen == (
        "missing: READ on topic A.t (to commit on them); not-visible: READ on group g (to commit for them)"
    )
    assert line.todo.startswith("Grant them") and "Run doctor again" in line.todo


def test_a_topic_that_is_nowhere_is_no_missing_right_but_one_that_is_hidden_is():
    resources = {Resources.CLUSTER: [CLUSTER_NAME], Resources.GROUPS: [], Resources.CHECKPOINTS: ["c"]}
    gone = Failure("UNKNOWN_TOPIC_OR_PARTITION", "gone")
    assert {health for health, _, _ in lines(Side.TARGET, resources, seen(topics={"c": gone}))} == {Health.OK}
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
    assert subjects == (["g", "h"], ["t"])
    assert names_to_ask(FLOW, Side.TARGET, *subjects, {"A.other"})[Resources.TOPICS] == []


def test_groups_whose_commits_were_not_read_are_named_unless_it_is_for_want_of_rights():
    commits = {
        "g": {TopicPartition("t", 0): Commit(1)},
        "h": Failure("GROUP_AUTHORIZATION_FAILED", "no"),
        "k": Failure("COORDINATOR_LOAD_IN_PROGRESS", "later", retriable=True),
    }
    (line,) = unread_commits("A", ("g", "h", "k"), commits)
    assert line.health is Health.WARN and "1 group on A not read, COORDINATOR_LOAD_IN_PROGRESS: k" in line.seen
    assert not list(unread_commits("A", ("g", "h"), commits))


def test_the_offsets_topic_is_needed_only_where_commits_are_to_be_read_there():
    what = "rights for plan --commits-from consumer-offsets on source A"

    def told(answer, reads_offsets=True, reader=frozenset({"DESCRIBE"})):
        resources = names_to_ask(FLOW, Side.SOURCE, [], [], {}, reads_offsets)
        topics = dict.fromkeys([name for kind, names in resources.items() if kind.is_topic for name in names], answer)
        shown = seen(groups={READER_GROUP_PREFIX: reader}, topics=topics)
        return {line: health for health, line, _ in lines(Side.SOURCE, resources, shown)}

    assert what not in told(frozenset({"READ"}), reads_offsets=False)
    assert told(frozenset({"READ"}))[what] == "ok"
    assert told(frozenset({"READ"}), reader=frozenset())[what] == "FAIL"
    assert told(frozenset({"DESCRIBE"}))[what] == "FAIL"
    # Brokers say of a topic that they hide that it is not there, and every cluster with groups has this one.
    assert told(Failure("UNKNOWN_TOPIC_OR_PARTITION", "gone"))[what] == "FAIL"
