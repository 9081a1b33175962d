"""A commit of another log: a topic id tells both ways, a leader epoch that the log has never reached proves it."""

import pytest

from migrate.model import Commit, Decision, Level, LogRange, TopicPartition
from migrate.survey.offsets_topic import CommitTopic, GroupKind, GroupRecord
from migrate.survey.other_log import other_log, other_topic
from migrate.survey.policies import Policies, Untranslatable
from tests.fakes import FakeGroupFacts
from tests.unit.planscene import planned, rows_of, world

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


GREATER = "has leader epoch 4, and the log there has not come further than 3"


@pytest.mark.parametrize(
    ("commit", "log", "told"),
    [(4, 3, GREATER), (3, 3, None), (0, 3, None), (None, 3, None), (4, None, None), (None, None, None)],
)
def test_a_commit_with_a_greater_epoch_than_its_logs_end_is_of_another_log(commit, log, told):
    assert other_log(Commit(55, "", commit), LogRange(0, 100, log)) == told


@pytest.mark.parametrize(
    ("made_on", "topic_id", "told"),
    [
        (CommitTopic(55, "a-b_c"), "a-b_c", ""),
        # The client library prints ids in other digits than Kafka.
        (CommitTopic(55, "a-b_c"), "a+b/c", ""),
        # Without a record or an id, and by the record of a later commit, nobody can tell.
        (None, "x", None),
        (CommitTopic(55, "x"), None, None),
        (CommitTopic(56, "y"), "x", None),
    ],
)
def test_the_id_of_the_topic_that_a_commit_was_made_on_tells_both_ways(made_on, topic_id, told):
    assert other_topic(Commit(55), made_on, topic_id) == told
    proof = other_topic(Commit(55), CommitTopic(55, "an-id_of-the-old-topic"), "an-id_of-the-new-topic")
    assert proof and "an-id_of-the-old-topic" in proof and proof.endswith("an-id_of-the-new-topic")


def with_epochs(**world_changes):
    """The sound world, whose group g has committed t-0 with leader epoch 4; every log's end has epoch 3."""
    source, target, mirror = world()
    source.offsets["g"][T0] = Commit(55, "", 4)
    for cluster in (source, target):
        cluster.ranges = {p: LogRange(log.start, log.end, 3) for p, log in cluster.ranges.items()}
    return source, target, mirror


def results(plan):
    return {(c.level, c.counts_as): c for c in plan.header.checks if c.check == "commit-of-another-log"}


def test_such_a_commit_blocks_its_group_and_the_two_epochs_are_said():
    plan = planned(*with_epochs())
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "commit-of-another-log")
    assert rows_of(plan)["g", "t", 1][2] == "group-blocked" and rows_of(plan)["h", "u", 0][0] is Decision.SET
    block = results(plan)[Level.BLOCK, Level.BLOCK]
    assert block.subject == "g/t/0" and "epoch 4" in block.seen and "than 3" in block.seen
    assert "--accept commit-of-another-log:" in block.todo
    assert "2 commits" in results(plan)[Level.NOT_VISIBLE, Level.PASS].seen


@pytest.mark.parametrize(
    ("offset", "options"),
    [
        (500, {"policies": Policies(untranslatable=Untranslatable.EARLIEST)}),
        (500, {"policies": Policies(untranslatable=Untranslatable.SKIP)}),
        (55, {"down": True}),
    ],
    ids=["the offset is chosen", "the row is skipped", "no log of the source to compare with"],
)
def test_where_the_commit_decides_nothing_or_has_no_log_it_blocks_nothing(offset, options):
    source, target, mirror = with_epochs()
    source.offsets["g"][T0] = Commit(offset, "", 4)
    assert (Level.BLOCK, Level.BLOCK) not in results(planned(source, target, mirror, **options))


def test_an_offset_that_is_kept_on_the_target_must_not_be_of_another_log_either():
    source, target, mirror = with_epochs()
    source.commit("g", "t", 0, 55)
    target.commit("g", "A.t", 0, 51)
    assert rows_of(planned(source, target, mirror))["g", "t", 0] == (Decision.KEEP, 51, "already-there")
    target.offsets["g"][TopicPartition("A.t", 0)] = Commit(51, "", 9)
    plan = planned(source, target, mirror)
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "commit-of-another-log")
    assert "its commit on B has leader epoch 9" in results(plan)[Level.BLOCK, Level.BLOCK].seen
    # One that is set anew is replaced.
    target.offsets["g"][TopicPartition("A.t", 0)] = Commit(40, "", 9)
    assert rows_of(planned(source, target, mirror))["g", "t", 0][:2] == (Decision.SET, 51)


def told(*made_on: CommitTopic) -> FakeGroupFacts:
    """What the offsets topic says of the topics that group g has committed on: that of t-0, and that of t-1."""
    places = dict(zip((T0, T1), made_on, strict=True))
    return FakeGroupFacts(commits={"g": GroupRecord(GroupKind.CLASSIC, "consumer", made_on=places)})


def test_what_ids_prove_passes_what_nothing_refutes_is_counted_beside_it_and_a_row_that_is_skipped_is_neither():
    proven = CommitTopic(55, "id-of-source-t")
    plan = planned(*world(), source_groups=told(proven, CommitTopic(59, "gone")))
    found = results(plan)
    assert plan.is_clean() and found.keys() == {(Level.PASS, Level.PASS), (Level.NOT_VISIBLE, Level.PASS)}
    assert found[Level.PASS, Level.PASS].subject == "1 commit"
    assert "2 commits" in found[Level.NOT_VISIBLE, Level.PASS].seen
    source, target, mirror = world()
    source.offsets["g"][T1] = Commit(500)
    skip = Policies(untranslatable=Untranslatable.SKIP)
    groups = told(proven, CommitTopic(500, "id-of-source-t"))
    found = results(planned(source, target, mirror, policies=skip, source_groups=groups))
    assert found[Level.PASS, Level.PASS].subject == "1 commit"
    assert "1 commit was" in found[Level.NOT_VISIBLE, Level.PASS].seen
