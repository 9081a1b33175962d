"""Checks on the two clusters, on MM2's topics, and on the topics of the plan."""

import pytest

from migrate.checks.check import HiddenTopics, TopicShape
from migrate.model import Level
from migrate.survey.policies import Policies, Waiver
from tests.unit.checkscene import blocked, found, levels, row, shape


def test_one_cluster_on_both_sides_blocks_everything():
    assert levels("clusters-differ", target_cluster_id="id-a") == {"B": Level.BLOCK}
    assert blocked(target_cluster_id="id-a") == {"g", "h"}


def test_a_listing_that_may_be_cut_short_blocks_everything_and_not_knowing_is_no_pass():
    assert levels("listing-complete", may_describe={"A": False, "B": True}) == {"A": Level.BLOCK, "B": Level.PASS}
    unsure = found("listing-complete", may_describe={"A": None, "B": True})[0]
    assert (unsure.level, unsure.counts_as) == (Level.NOT_VISIBLE, Level.BLOCK)
    assert blocked(may_describe={"A": None, "B": True}) == {"g", "h"}


def test_a_missing_mm2_topic_warns_unless_it_was_named():
    missing = (shape(found=False), shape("offset-sync", offset_sync=1))
    assert levels("mm2-checkpoints-topic", shapes=missing) == {"checkpoints-topic": Level.WARN}
    named = (shape(found=False, named=True), shape("offset-sync", offset_sync=1))
    assert levels("mm2-checkpoints-topic", shapes=named) == {"checkpoints-topic": Level.BLOCK}


@pytest.mark.parametrize("exists", [False, True], ids=["missing", "empty"])
def test_an_mm2_topic_without_records_is_told_with_the_setting_that_lets_mm2_write_none(exists):
    why = "emit.checkpoints.enabled=false lets MM2 write no checkpoints"
    silent = (TopicShape("B", "cp", "checkpoint", exists, False, {}, why), shape("offset-sync", offset_sync=1))
    (told,) = found("mm2-checkpoints-topic", shapes=silent)
    assert told.level is Level.WARN and told.seen.endswith(why) and "alias" not in told.todo


def test_a_missing_mm2_topic_that_was_named_blocks_with_what_to_do_whatever_lets_mm2_write_none():
    silent = TopicShape("B", "cp", "checkpoint", False, True, {}, "a setting lets MM2 write no checkpoints")
    (told,) = found("mm2-checkpoints-topic", shapes=(silent, shape("offset-sync", offset_sync=1)))
    assert told.level is Level.BLOCK and "--checkpoints-topic" in told.todo and "goes on" not in told.todo


def test_a_wrong_topic_is_recognised_by_its_records_and_named():
    wrong = (shape(offset_sync=70, tombstone=2), shape("offset-sync", offset_sync=5))
    result = found("mm2-checkpoints-topic", shapes=wrong)[0]
    assert result.level is Level.BLOCK and "70 offset-sync" in result.seen
    assert "offset syncs" in result.todo and "--checkpoints-topic" in result.todo


def test_a_few_foreign_records_are_counted_and_warned_of():
    mixed = (TopicShape("B", "cp", "checkpoint", True, False, {"checkpoint": 9, "undecodable:bad-length": 1}),)
    result = found("mm2-checkpoints-topic", shapes=mixed)[0]
    assert result.level is Level.WARN and "1 undecodable:bad-length" in result.seen


def test_a_missing_target_topic_blocks_only_the_groups_on_it():
    rows = (row("g", "t", target_partitions=None, target_log=None), row("h", "u"))
    missing = {"t": (2, "A.t", None), "u": (1, "A.u", 1)}
    assert levels("target-topic-exists", rows=rows, partitions=missing) == {"t": Level.BLOCK}
    assert blocked(rows=rows, partitions=missing) == {"g"}


def test_fewer_partitions_on_the_target_block_and_more_warn():
    assert levels("target-partitions", partitions={"t": (3, "A.t", 2)})["t"] is Level.BLOCK
    assert levels("target-partitions", partitions={"t": (2, "A.t", 3)})["t"] is Level.WARN
    assert blocked(partitions={"t": (3, "A.t", 2), "u": (1, "A.u", 1)}) == {"g"}


def test_groups_only_mm2_remembers_are_named():
    (result,) = found("checkpointed-groups-listed", checkpointed_only=("billing", "orders"))
    assert result.level is Level.WARN and result.seen == "2 are not: billing, orders"


def test_topics_that_a_cluster_does_not_show_block_if_the_flow_has_them_and_warn_otherwise():
    def level(**hidden):
        (result,) = found("topics-visible", hidden={"A": HiddenTopics(**hidden)})
        return result

    assert level().level is Level.PASS
    blocked = level(concerned=("orders",), others=("x",))
    assert blocked.counts_as is Level.BLOCK
    assert "DESCRIBE, and READ to read their records, on topic orders on A" in blocked.todo
    assert level(others=("x",)).counts_as is Level.WARN
    unknown = level(unknown="CLUSTER_AUTHORIZATION_FAILED (no)")
    assert (unknown.level, unknown.counts_as) == (Level.NOT_VISIBLE, Level.WARN)
    waived = found(
        "topics-visible", hidden={"A": HiddenTopics(("orders",))}, policies=Policies((Waiver("topics-visible"),))
    )
    assert waived[0].accepted
