"""The doctor on rights: what is missing per command, and what it asks about."""

from migrate.checks.rights import (
    CLUSTER_NAME,
    Health,
    Resources,
    examine_rights,
    names_to_ask,
    resources_of,
    subjects_of,
    unread_commits,
)
from migrate.model import Commit, Failure, Side, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import READER_GROUP_PREFIX
from tests.unit.rightscene import FLOW, REFUSED, granted, seen


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
