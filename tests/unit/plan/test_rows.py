"""Every commit becomes one row with a decision, a reason and a sentence."""

import pytest

from migrate.match.protocol import Matched, Why
from migrate.mm2.chain import Window
from migrate.model import Commit, Decision, Failure, Grade, LogRange, Method, OffsetSync, TopicPartition
from migrate.plan.rows import with_blocks
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Rewind, Untranslatable
from tests.unit.rowfacts import ABOVE
from tests.unit.rowfacts import row_of as row


def test_a_commit_between_two_syncs_is_set_behind_the_lower_one_and_graded_estimated():
    made = row()
    assert (made.decision, made.target_offset, made.method, made.grade) == (
        Decision.SET, 111, Method.WINDOW, Grade.ESTIMATED,
    )  # fmt: skip
    assert (made.lower_source_offset, made.upper_source_offset) == (100, 200)
    assert (made.checkpoint_source_offset, made.checkpoint_target_offset) == (150, 105)


def test_no_row_claims_a_proven_bound_because_no_record_was_compared():
    assert row().rereads_at_most is None and row().rereads_estimate == 49


def test_a_commit_on_a_sync_is_set_to_its_target_offset():
    made = row(commit=Commit(100))
    assert (made.target_offset, made.method) == (110, Method.SYNC)


def test_a_commit_without_any_sync_below_is_set_to_the_target_log_start():
    made = row(around=Window(None, ABOVE), target_log=LogRange(7, 1100))
    assert (made.decision, made.target_offset, made.lower_kind) == (Decision.SET, 7, "log-start")


def test_a_commit_behind_the_sources_retention_is_still_owed_what_the_target_has():
    made = row(source_log=LogRange(180, 1000))
    assert (made.decision, made.target_offset) == (Decision.SET, 111)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"target_partitions": None, "target_log": None}, "target-topic-missing"),
        ({"source": TopicPartition("t", 3), "target_log": None}, "target-partition-missing"),
        ({"not_replicated": "MM2's filter does not take t."}, "topic-not-replicated"),
        ({"commit": Commit(1001)}, "commit-beyond-log-end"),
        ({"source_log": None}, "source-topic-missing"),
        ({"target_log": Failure("LEADER_NOT_AVAILABLE", "no leader")}, "log-not-visible"),
        ({"source_log": Failure("LEADER_NOT_AVAILABLE", "no leader")}, "log-not-visible"),
    ],
)
def test_what_no_law_vouches_for_is_blocked_by_name_and_has_no_grade(changes, reason):
    made = row(**changes)
    assert (made.decision, made.reason, made.target_offset, made.grade) == (Decision.BLOCK, reason, None, None)
    assert made.sentence.endswith(".")


@pytest.mark.parametrize("offset", [6, 1101])
def test_no_row_is_set_outside_the_targets_log(offset):
    made = row(answer=Matched(offset, Why.PROVEN, 0), target_log=LogRange(7, 1100))
    assert (made.decision, made.reason) == (Decision.BLOCK, "inside-target-log")
    for inside in (7, 1100):
        assert row(answer=Matched(inside, Why.PROVEN, 0), target_log=LogRange(7, 1100)).decision is Decision.SET


def test_a_commit_at_the_sources_end_is_not_beyond_it():
    assert row(commit=Commit(1000)).decision is Decision.SET


@pytest.mark.parametrize(
    ("choice", "decision", "target_offset"),
    [
        (Untranslatable.SKIP, Decision.SKIP, None),
        (Untranslatable.EARLIEST, Decision.SET, 0),
        (Untranslatable.LATEST, Decision.SET, 1100),
    ],
)
def test_a_reviewer_decides_on_an_untranslatable_commit_by_name(choice, decision, target_offset):
    policies = Policies(untranslatable_by_reason={"commit-beyond-log-end": choice})
    made = row(policies, commit=Commit(1001))
    assert (made.decision, made.target_offset, made.grade) == (decision, target_offset, None)
    assert made.reason == "commit-beyond-log-end"


def test_a_log_that_can_not_be_seen_is_blocked_whatever_the_policy():
    made = row(Policies(untranslatable=Untranslatable.SKIP), target_log=Failure("X", "y"))
    assert made.decision is Decision.BLOCK


def test_a_group_that_already_stands_there_is_kept():
    made = row(prior=Commit(111))
    assert (made.decision, made.reason) == (Decision.KEEP, "already-there")


def test_a_group_that_stands_behind_the_planned_offset_is_set():
    assert row(prior=Commit(50)).decision is Decision.SET


@pytest.mark.parametrize(
    ("rewind", "decision", "reason"),
    [
        (Rewind.BLOCK, Decision.BLOCK, "rewind"),
        (Rewind.KEEP, Decision.KEEP, "ahead-kept"),
        (Rewind.SET, Decision.SET, "rewound"),
    ],
)
def test_a_group_that_stands_beyond_the_planned_offset_is_the_reviewers_choice(rewind, decision, reason):
    made = row(Policies(rewind=rewind), prior=Commit(500))
    assert (made.decision, made.reason, made.target_offset) == (decision, reason, 111)


@pytest.mark.parametrize("more", [{}, {"source_log": None}, {"commit": Commit(1001)}])
@pytest.mark.parametrize(
    ("rewind", "prior", "decision", "reason"),
    [
        (Rewind.BLOCK, 4100, Decision.BLOCK, "inside-target-log"),
        (Rewind.KEEP, 4100, Decision.BLOCK, "inside-target-log"),
        (Rewind.SET, 4100, Decision.SET, "rewound"),
        (Rewind.KEEP, 1101, Decision.BLOCK, "inside-target-log"),
    ],
)
def test_an_offset_beyond_the_targets_log_is_of_another_log_and_never_kept(rewind, prior, decision, reason, more):
    """As MM2 left it where its target was created anew: consumers there start where auto.offset.reset says."""
    explicit = {"source-topic-missing": Untranslatable.EARLIEST, "commit-beyond-log-end": Untranslatable.EARLIEST}
    made = row(Policies(rewind=rewind, untranslatable_by_reason=explicit), prior=Commit(prior), **more)
    assert (made.decision, made.reason) == (decision, reason)
    if decision is Decision.BLOCK:
        assert f"is at {prior}, beyond the target's log [0, 1100)" in made.sentence
        assert f"--rewind set sets {made.target_offset}" in made.sentence


def test_an_offset_at_the_end_of_the_targets_log_is_kept():
    made = row(Policies(rewind=Rewind.KEEP), prior=Commit(1100))
    assert (made.decision, made.reason) == (Decision.KEEP, "ahead-kept")


def test_an_offset_below_the_targets_log_is_set_as_any_that_lies_behind():
    made = row(Policies(rewind=Rewind.KEEP), prior=Commit(3), target_log=LogRange(7, 1100))
    assert made.decision is Decision.SET


def test_a_partition_that_was_never_committed_is_held_to_the_targets_log_too():
    made = row(Policies(rewind=Rewind.KEEP), commit=None, prior=Commit(4100))
    assert (made.decision, made.reason) == (Decision.BLOCK, "inside-target-log")


def test_commit_metadata_goes_with_the_offset_and_the_leader_epoch_stays():
    made = row(commit=Commit(150, "streams\x00time", 7), prior=Commit(50, "old"))
    assert (made.decision, made.target_commit) == (Decision.SET, Commit(111, "streams\x00time"))


def test_a_group_that_stands_there_with_other_metadata_gets_the_source_commits():
    for ours, theirs in (("streams-time", ""), ("", "streams-time"), ("a", "b")):
        made = row(commit=Commit(150, ours), prior=Commit(111, theirs))
        assert (made.decision, made.reason) == (Decision.SET, "metadata-carried")
        assert made.target_commit == Commit(111, ours)
    assert row(commit=Commit(150, "same"), prior=Commit(111, "same")).decision is Decision.KEEP


def test_an_offset_that_a_reviewer_chose_carries_no_metadata():
    policies = Policies(untranslatable_by_reason={"commit-beyond-log-end": Untranslatable.EARLIEST})
    made = row(policies, commit=Commit(5000, "streams-time"))
    assert (made.method, made.target_metadata) == (Method.EXPLICIT, "")


def test_with_the_source_down_the_smaller_of_window_and_checkpoint_is_taken():
    by_window = row(source_down=True, source_log=None, checkpoint=(150, 140))
    assert (by_window.target_offset, by_window.method) == (111, Method.WINDOW)
    by_checkpoint = row(source_down=True, source_log=None)
    assert (by_checkpoint.target_offset, by_checkpoint.method) == (105, Method.CHECKPOINT)
    assert by_window.reason == by_checkpoint.reason == "source-down"


def test_with_the_source_down_and_no_syncs_the_checkpoint_is_the_last_resort():
    made = row(source_down=True, source_log=None, around=Window(None, None), syncs_read=False)
    assert (made.target_offset, made.method) == (105, Method.CHECKPOINT)


def test_with_the_source_down_an_empty_chain_beats_a_checkpoint_that_rests_on_contradicted_syncs():
    after_recreation = OffsetSync(9, 1000, 0)
    made = row(source_down=True, source_log=None, around=Window(None, after_recreation))
    assert (made.target_offset, made.lower_kind) == (0, "log-start")


def test_with_the_source_down_a_checkpoint_outside_the_target_log_is_blocked():
    made = row(
        source_down=True, source_log=None, around=Window(None, None), target_log=LogRange(0, 90), syncs_read=False
    )
    assert (made.decision, made.reason) == (Decision.BLOCK, "inside-target-log")


def test_with_the_source_down_and_no_checkpoint_the_row_is_untranslatable():
    made = row(source_down=True, source_log=None, commit=None, checkpoint=None)
    assert made.reason == "source-gone-without-checkpoint"


def test_an_uncommitted_partition_is_set_to_the_target_log_start():
    made = row(commit=None, target_log=LogRange(4, 9))
    assert (made.decision, made.target_offset, made.method) == (Decision.SET, 4, Method.EXPLICIT)


def test_a_log_that_could_not_be_read_is_never_taken_for_a_missing_partition():
    unread = Failure("LEADER_NOT_AVAILABLE", "no leader")
    made = row(Policies(untranslatable=Untranslatable.SKIP), commit=None, target_log=unread)
    assert (made.decision, made.reason) == (Decision.BLOCK, "log-not-visible")


def test_an_offset_chosen_by_a_reviewer_counts_all_that_will_be_read_from_there():
    policies = Policies(untranslatable_by_reason={"commit-beyond-log-end": Untranslatable.EARLIEST})
    assert row(policies, commit=Commit(1001)).rereads_estimate == 1100


def test_one_blocked_row_blocks_its_whole_group_and_no_other():
    rows = [
        row(),
        row(source=TopicPartition("t", 1), target_partitions=1, target_log=None),
        row(source=TopicPartition("u", 0), target=TopicPartition("A.u", 0)),
        row(group="other"),
    ]
    laid = {r.key: r for r in with_blocks(PlanRows.of(rows), {})}
    assert laid["g", "t", 0].decision is Decision.BLOCK and laid["g", "t", 0].reason == "group-blocked"
    assert laid["g", "u", 0].decision is Decision.BLOCK and laid["g", "u", 0].reason == "group-blocked"
    assert laid["g", "t", 0].target_offset == 111
    assert laid["g", "t", 1].reason == "target-partition-missing"
    assert laid["other", "t", 0].decision is Decision.SET


def test_a_check_that_blocks_a_group_gives_its_rows_their_reason_and_keeps_the_translation():
    laid = with_blocks(PlanRows.of([row()]), {"g": ("target-group-empty", "Stable with 2 members; expected none.")})
    assert (laid[0].decision, laid[0].reason, laid[0].target_offset) == (
        Decision.BLOCK, "target-group-empty", 111,
    )  # fmt: skip
