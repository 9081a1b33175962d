"""Rights: what each command needs, what is missing, what the doctor says, and that docs/rights.md says the same."""

import re
from pathlib import Path

import pytest

from migrate.checks import rights
from migrate.checks.rights import COMMANDS, Health, ResourceKind, Resources, Seen, missing, needed, resources_of
from migrate.model import Commit, Failure, Side, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import READER_GROUP_PREFIX
from tests.unit.surveyscene import FLOW

RIGHTS_PAGE = Path(__file__).parents[3] / "docs" / "rights.md"
SOURCE, TARGET = (resources_of(FLOW, side, ["g"], ["t"]) for side in (Side.SOURCE, Side.TARGET))
BARE_TARGET = TARGET | {Resources.POSITIONS: []}
LATE = Failure("REQUEST_TIMED_OUT", "no answer", retriable=True)
GONE = Failure("UNKNOWN_TOPIC_OR_PARTITION", "gone")
FORBIDDEN = Failure("GROUP_AUTHORIZATION_FAILED", "no")
REFUSED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
ALL = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "READ", "DELETE"})


def seen(cluster=ALL, groups=None, topics=None, hidden=None):
    return Seen(cluster, groups or {"g": ALL}, topics or {}, hidden)


def granted(resources, operations=ALL):
    groups, topics = (
        dict.fromkeys([name for kind, found in resources.items() if kind.kind is wanted for name in found], operations)
        for wanted in (ResourceKind.GROUP, ResourceKind.TOPIC)
    )
    return seen(operations, groups, topics)


def grants(*asked):
    return [rights.grant_text(right, names) for right, names in missing(*asked).items()]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("side", Side)
def test_with_all_rights_none_is_missing_and_without_any_each_is_named(command, side):
    resources = resources_of(FLOW, side, ["g"], ["t"], reads_offsets=True)
    assert missing(command, side, resources, granted(resources)) == {}
    lacking = missing(command, side, resources, granted(resources, frozenset()))
    assert {right.command for right in needed(command, side)} <= {command}
    assert list(lacking) == [r for r in needed(command, side) if r.resources in resources]
    assert all(str(right.operation) in rights.grant_text(right, names) for right, names in lacking.items())


def test_on_the_way_back_mm2s_syncs_lie_on_the_side_that_is_written():
    resources = resources_of(FLOW.reversed(), Side.TARGET, ["g"], ["A.t"])
    on_topics = ["READ on topic t", "READ on topic mm2-offset-syncs.B.internal"]
    assert grants("plan", Side.TARGET, resources, granted(resources, frozenset({"DESCRIBE"}))) == on_topics


def test_what_a_cluster_refuses_to_describe_is_missing_and_what_it_does_not_report_is_neither_granted_nor_missing():
    of_both = ["DESCRIBE on group g", "DESCRIBE on topic t"]
    assert grants("apply", Side.SOURCE, SOURCE, Seen(None, {"g": FORBIDDEN}, {"t": REFUSED})) == of_both
    silent = Seen(None, {"g": LATE}, {"t": LATE})
    assert grants("apply", Side.SOURCE, SOURCE, silent) == []
    assert grants("apply", Side.SOURCE, SOURCE, silent, None) == of_both
    assert "DESCRIBE on the cluster" in grants("plan", Side.SOURCE, SOURCE, silent, None)


def test_the_page_of_rights_lists_exactly_these_and_every_kind_of_resource_is_one_that_acls_know():
    text = RIGHTS_PAGE.read_text()
    listed = set(re.findall(r"^\| `([^`]+)` \| (source|target) \| ([A-Z_]+) \| ([^|]+?) \|", text, re.MULTILINE))
    assert listed == {(r.command, str(r.side), str(r.operation), str(r.resources)) for r in rights.RIGHTS}
    assert {resource.kind for resource in Resources} == set(ResourceKind)


def examined(side, resources, told):
    """The doctor's lines that are not well."""
    lines = rights.examine_rights(side, "A", resources, told)
    return {line.what.partition(" for ")[2]: line for line in lines if line.health is not Health.OK}


@pytest.mark.parametrize(
    ("resources", "told", "what", "health", "lacking", "todo"),
    [
        (
            SOURCE, granted(SOURCE, frozenset({"DESCRIBE"})), "plan on source A", Health.FAIL,
            "missing: READ on topic t (to compare their records); READ on topic mm2-offset-syncs.B.internal", "",
        ),
        # What only the way back lacks, and what a plan does without, is a warning that says what is lost.
        (
            SOURCE, granted(SOURCE, frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "READ"})), "failback on source A",
            Health.WARN, "missing: DELETE on group g (where a group, or one of its offsets, did not exist before)",
            "only the way back",
        ),
        (
            BARE_TARGET, granted(BARE_TARGET, frozenset({"DESCRIBE", "READ", "DELETE"})), "plan (optional) on target A",
            Health.WARN, "missing: DESCRIBE_CONFIGS on the cluster (when offsets expire); "
            "DESCRIBE_CONFIGS on topic A.t (which topics are compacted)", "plan does without them",
        ),
        # What was not reported is not visible, and fails.
        (
            TARGET, seen(groups={"g": LATE}, topics={"A.t": frozenset({"DESCRIBE"})}), "apply on target A", Health.FAIL,
            "missing: READ on topic A.t (to commit on them); not-visible: READ on group g (to commit for them)",
            "Run doctor again",
        ),
    ],
)  # fmt: skip
def test_the_doctor_names_what_is_missing_per_command(resources, told, what, health, lacking, todo):
    lines = examined(Side.SOURCE if resources is SOURCE else Side.TARGET, resources, told)
    assert (lines[what].health, lines[what].seen) == (health, lacking)
    assert lines[what].todo.startswith("Grant them") and todo in lines[what].todo
    assert set(lines) == {what} or health is Health.FAIL and "apply on source A" not in lines


def test_a_topic_that_is_nowhere_is_no_missing_right_but_one_that_is_hidden_is():
    resources = {Resources.CLUSTER: [rights.CLUSTER_NAME], Resources.GROUPS: [], Resources.CHECKPOINTS: ["c"]}
    assert not examined(Side.TARGET, resources, seen(topics={"c": GONE}))
    for hidden, expected in ((frozenset(), False), (frozenset({"c"}), True), (None, True)):
        lines = examined(Side.TARGET, resources, seen(topics={"c": REFUSED}, hidden=hidden)).values()
        assert any("READ on topic c" in line.seen for line in lines) is expected


def test_subjects_are_the_groups_that_the_filters_leave_and_what_they_have_committed_on():
    filters = Filters.from_options(exclude_groups=["x.*"], exclude_topics=["u"])
    commits = {
        "g": {TopicPartition("t", 0): Commit(1), TopicPartition("u", 0): Commit(1)},
        "x1": {TopicPartition("v", 0): Commit(1)},
        "h": FORBIDDEN,
    }
    subjects = rights.subjects_of(["h", "g", "x1"], commits, filters)
    assert subjects == (["g", "h"], ["t"])
    # What could not be read is named, unless it is for want of rights.
    commits["k"] = Failure("COORDINATOR_LOAD_IN_PROGRESS", "later", retriable=True)
    (line,) = rights.unread_commits("A", ("g", "h", "k"), commits)
    assert line.health is Health.WARN and "1 group on A not read, COORDINATOR_LOAD_IN_PROGRESS: k" in line.seen
    assert rights.names_to_ask(FLOW, Side.TARGET, *subjects, {"A.other"})[Resources.TOPICS] == []


@pytest.mark.parametrize(("answer", "reader", "health"), [
    ({"READ"}, {"DESCRIBE"}, Health.OK),
    ({"READ"}, set(), Health.FAIL),
    ({"DESCRIBE"}, {"DESCRIBE"}, Health.FAIL),
    # Brokers say of a topic that they hide that it is not there, and every cluster with groups has this one.
    (GONE, {"DESCRIBE"}, Health.FAIL),
])  # fmt: skip
def test_the_offsets_topic_is_needed_only_where_commits_are_to_be_read_there(answer, reader, health):
    topics = {"__consumer_offsets": answer if isinstance(answer, Failure) else frozenset(answer)}
    told = seen(groups={READER_GROUP_PREFIX: frozenset(reader)}, topics=topics)
    for reads_offsets in (True, False):
        resources = rights.names_to_ask(FLOW, Side.SOURCE, [], [], {}, reads_offsets)
        lines = {line.what: line.health for line in rights.examine_rights(Side.SOURCE, "A", resources, told)}
        of_topic = lines.get("rights for plan --commits-from consumer-offsets on source A")
        assert of_topic is (health if reads_offsets else None)
