"""Each check finds its trouble, names it, and touches exactly the groups it concerns."""

from dataclasses import replace

from migrate import checklist
from migrate.checks import CheckFacts, HiddenTopics, TopicShape
from migrate.drain import Drained
from migrate.model import (
    Commit,
    Decision,
    Failure,
    GroupPartition,
    GroupState,
    Level,
    LogRange,
    OffsetSync,
    TopicPartition,
)
from migrate.place import RowFacts
from migrate.policies import Policies, Waiver
from migrate.rows import build_row, with_blocks
from migrate.translation import Window


def shape(wanted="checkpoint", found=True, named=False, **counts):
    return TopicShape(
        "B", f"{wanted}s-topic", wanted, found, named, {k.replace("_", "-"): n for k, n in counts.items()}
    )


FACTS = CheckFacts(
    source_alias="A",
    target_alias="B",
    source_cluster_id="id-a",
    target_cluster_id="id-b",
    source_down=False,
    may_describe={"A": True, "B": True},
    shapes=(shape(checkpoint=3), shape("offset-sync", offset_sync=5)),
    source_states={"g": GroupState("Empty"), "h": GroupState("Empty")},
    target_states={"g": GroupState("Absent"), "h": GroupState("Empty")},
    topic_partitions={"t": (2, "A.t", 2), "u": (1, "A.u", 1)},
    drains={TopicPartition(topic, partition): Drained(True) for topic in "tu" for partition in (0, 1)},
)


def row(group="g", topic="t", partition=0, policies=None, **changes):
    facts = RowFacts(
        GroupPartition(group, topic, partition), f"A.{topic}", Commit(50), LogRange(0, 100), LogRange(0, 100), 2,
        "", None, Window(OffsetSync(0, 40, 40), None), None,
    )  # fmt: skip
    return build_row(replace(facts, **changes), policies or Policies(), False)


ROWS = (row("g", "t"), row("h", "u"))


def found(check, rows=ROWS, policies=None, **changes):
    results = checklist.run(replace(FACTS, **changes), rows, policies or Policies())
    return [r for r in results if r.check == check]


def levels(check, **arguments):
    return {r.subject: r.level for r in found(check, **arguments)}


def blocked(rows=ROWS, policies=None, **changes):
    results = checklist.run(replace(FACTS, **changes), rows, policies or Policies())
    laid = with_blocks(rows, checklist.blocked_groups(results, rows))
    return {r.group for r in laid if r.decision is Decision.BLOCK}


def test_a_sound_cutover_has_no_block_and_says_that_its_rows_are_estimated():
    results = checklist.run(FACTS, ROWS, Policies())
    assert not [r for r in results if r.counts_as is Level.BLOCK]
    assert [r.check for r in results if r.level is Level.WARN] == ["estimated-rows"]


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


def test_a_wrong_topic_is_recognised_by_its_records_and_named():
    wrong = (shape(offset_sync=70, tombstone=2), shape("offset-sync", offset_sync=5))
    result = found("mm2-checkpoints-topic", shapes=wrong)[0]
    assert result.level is Level.BLOCK and "70 offset-sync" in result.seen
    assert "offset syncs" in result.todo and "--checkpoints-topic" in result.todo


def test_a_few_foreign_records_are_counted_and_warned_of():
    mixed = (TopicShape("B", "cp", "checkpoint", True, False, {"checkpoint": 9, "undecodable:bad-length": 1}),)
    result = found("mm2-checkpoints-topic", shapes=mixed)[0]
    assert result.level is Level.WARN and "1 undecodable:bad-length" in result.seen


def test_a_live_group_on_the_target_blocks_itself_and_no_waiver_helps():
    live = {"g": GroupState("Stable", 2, ("c1@10.0.0.1", "c2@10.0.0.2")), "h": GroupState("Empty")}
    result = found("target-group-empty", target_states=live)[0]
    assert result.level is Level.BLOCK and "c1@10.0.0.1" in result.seen
    waived = Policies(waivers=(Waiver("target-group-empty"),))
    assert blocked(policies=waived, target_states=live) == {"g"}


def test_a_live_group_on_the_source_can_be_accepted_by_name_and_the_report_says_so():
    live = {"g": GroupState("Stable", 1), "h": GroupState("Stable", 1)}
    policies = Policies(waivers=(Waiver("source-group-stopped", "g"),))
    by_subject = {r.subject: r for r in found("source-group-stopped", policies=policies, source_states=live)}
    assert by_subject["g"].accepted and by_subject["g"].level is Level.WARN
    assert not by_subject["h"].accepted and by_subject["h"].level is Level.BLOCK
    assert blocked(policies=policies, source_states=live) == {"h"}


def test_a_group_whose_state_is_unknown_or_could_not_be_read_never_counts_as_stopped():
    for state in (GroupState("Unknown"), GroupState("Empty", 1), Failure("GROUP_AUTHORIZATION_FAILED", "no")):
        assert blocked(target_states={"g": state, "h": GroupState("Empty")}) == {"g"}


def test_a_missing_target_topic_blocks_only_the_groups_on_it():
    rows = (row("g", "t", target_partitions=None, target_log=None), row("h", "u"))
    missing = {"t": (2, "A.t", None), "u": (1, "A.u", 1)}
    assert levels("target-topic-exists", rows=rows, topic_partitions=missing) == {"t": Level.BLOCK}
    assert blocked(rows=rows, topic_partitions=missing) == {"g"}


def test_fewer_partitions_on_the_target_block_and_more_warn():
    assert levels("target-partitions", topic_partitions={"t": (3, "A.t", 2)})["t"] is Level.BLOCK
    assert levels("target-partitions", topic_partitions={"t": (2, "A.t", 3)})["t"] is Level.WARN
    assert blocked(topic_partitions={"t": (3, "A.t", 2), "u": (1, "A.u", 1)}) == {"g"}


def test_pending_transactional_offsets_block_their_group():
    assert blocked(unstable_groups=frozenset({"g"})) == {"g"}


def test_too_many_rereads_block_their_group_and_can_be_accepted():
    far = (row("g", around=Window(OffsetSync(0, 1, 1), None)), row("h", "u"))
    strict = Policies(max_rereads=20)
    assert blocked(rows=far, policies=strict) == {"g"}
    assert blocked(rows=far, policies=replace(strict, waivers=(Waiver("re-read-limit", "g"),))) == set()


def test_a_rewind_and_a_commit_beyond_the_log_end_are_named_by_row():
    rows = (row("g", "t", prior=Commit(90)), row("h", "u", commit=Commit(101)))
    assert levels("rewind", rows=rows) == {"g/t/0": Level.BLOCK}
    assert levels("commit-beyond-log-end", rows=rows) == {"h/u/0": Level.BLOCK}


def test_partitions_never_committed_are_named_with_what_decides_there():
    result = found("partitions-never-committed", never_committed={"g": ("t-1",)})[0]
    assert result.level is Level.WARN and "t-1" in result.seen and "auto.offset.reset" in result.todo


def test_a_misspelt_group_name_is_a_block_though_it_has_no_row():
    result = found("named-groups-exist", unknown_names=("ordrs",))[0]
    assert result.level is Level.BLOCK and result.subject == "ordrs"


def test_with_the_source_down_every_group_waits_for_a_reviewer():
    assert blocked(source_down=True) == {"g", "h"}
    policies = Policies(waivers=(Waiver("source-down", "g"),))
    assert blocked(policies=policies, source_down=True) == {"h"}
    unknown = found("groups-unknown", source_down=True, unknown_when_down=("connect-.*",))[0]
    assert unknown.level is Level.NOT_VISIBLE and unknown.subject == "connect-.*"


def test_what_a_rollback_could_not_restore_is_said_before_the_first_write():
    rows = (row("g", "t", 0, prior=Commit(10)), row("g", "t", 1))
    assert "single offsets" in found("rollback-limits", rows=rows)[0].seen
    assert not found("rollback-limits", rows=(row("g", "t", 0), row("g", "t", 1)))


def test_groups_that_mm2_leaves_out_are_named():
    assert "connect-s3" in found("mm2-group-filter", left_out_by_mm2=("connect-s3",))[0].seen


def test_groups_only_mm2_remembers_are_named():
    assert "gone" in found("checkpointed-groups-listed", checkpointed_only=("gone",))[0].seen


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
