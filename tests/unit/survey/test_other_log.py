"""A commit of another log: a leader epoch that the log has never reached proves it, and nothing proves the contrary."""

import pytest

from migrate.model import Commit, Decision, Failure, Level, LogRange, TopicPartition
from migrate.show.plan_table import Page, table
from migrate.survey.other_log import OtherLog, other_log
from migrate.survey.policies import Policies, Untranslatable, Waiver
from tests.unit.planscene import planned, rows_of, world

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def epochs(commit: int | None, log: int | None) -> OtherLog | None:
    return other_log(Commit(55, "", commit), LogRange(0, 100, log))


def test_a_commit_with_a_greater_epoch_than_its_logs_end_is_of_another_log():
    assert epochs(4, 3) == OtherLog(4, 3)


@pytest.mark.parametrize(("commit", "log"), [(3, 3), (0, 3), (None, 3), (4, None), (None, None)])
def test_an_equal_a_smaller_and_an_absent_epoch_say_nothing(commit, log):
    assert epochs(commit, log) is None


def test_where_there_is_no_commit_or_no_log_nothing_is_said():
    assert other_log(None, LogRange(0, 100, 3)) is None
    assert other_log(Commit(55, "", 4), Failure("X", "y")) is None
    assert other_log(Commit(55, "", 4), None) is None


def test_a_range_is_the_same_whoever_leads_its_log():
    assert LogRange(0, 100, 3) == LogRange(0, 100, 4)


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


@pytest.mark.parametrize("subject", ["g/t/0", None])
def test_it_can_be_accepted_by_name(subject):
    plan = planned(*with_epochs(), policies=Policies(waivers=(Waiver("commit-of-another-log", subject),)))
    assert plan.is_clean() and plan.accepted("commit-of-another-log", "g/t/0")


def test_commits_that_nothing_refutes_are_counted_and_are_neither_a_pass_nor_a_warning():
    plan = planned(*world())
    (silent,) = results(plan).values()
    assert silent.level is Level.NOT_VISIBLE and "3 commits" in silent.seen and plan.is_clean()
    told = "\n".join(table(plan, plan.rows, Page("", 200)))
    assert "Not ruled out: commit-of-another-log" in told
    assert "WARN  commit-of-another-log" not in told
    assert "commit-of-another-log" not in told.partition("Passed:")[2].partition("\n")[0]


def test_where_a_reviewer_chose_the_offset_or_skips_the_row_the_commit_decides_nothing():
    source, target, mirror = with_epochs()
    source.offsets["g"][T0] = Commit(500, "", 4)
    for choice in (Untranslatable.EARLIEST, Untranslatable.SKIP):
        plan = planned(source, target, mirror, policies=Policies(untranslatable=choice))
        assert (Level.BLOCK, Level.BLOCK) not in results(plan)


def test_an_offset_that_is_kept_on_the_target_must_not_be_of_another_log_either():
    source, target, mirror = with_epochs()
    source.commit("g", "t", 0, 55)
    target.commit("g", "A.t", 0, 51)
    assert rows_of(planned(source, target, mirror))["g", "t", 0] == (Decision.KEEP, 51, "already-there")
    target.offsets["g"][TopicPartition("A.t", 0)] = Commit(51, "", 9)
    plan = planned(source, target, mirror)
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "commit-of-another-log")
    assert "its commit on B has leader epoch 9" in results(plan)[Level.BLOCK, Level.BLOCK].seen


def test_with_the_source_down_there_is_no_log_to_compare_with():
    plan = planned(*with_epochs(), down=True)
    assert (Level.BLOCK, Level.BLOCK) not in results(plan)
