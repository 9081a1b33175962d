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

DOWN = {"source_down": True, "source_log": None}
NO_SYNCS = {"around": Window(None, None), "syncs_read": False}
KEEP, SKIP = Policies(rewind=Rewind.KEEP), Policies(untranslatable=Untranslatable.SKIP)
FROM_START = Policies(untranslatable_by_reason={"commit-beyond-log-end": Untranslatable.EARLIEST})
UNREAD = Failure("LEADER_NOT_AVAILABLE", "no leader")

# The policies, the facts, and what the row is.
CASES = {
    "between two syncs, behind the lower one": (None, {}, {
        "decision": Decision.SET, "target_offset": 111, "method": Method.WINDOW, "grade": Grade.ESTIMATED,
        "lower_source_offset": 100, "upper_source_offset": 200,
        "checkpoint_source_offset": 150, "checkpoint_target_offset": 105,
        # No record was compared.
        "rereads_at_most": None, "rereads_estimate": 49,
    }),
    "on a sync": (None, {"commit": Commit(100)}, {"target_offset": 110, "method": Method.SYNC}),
    "no sync below": (
        None, {"around": Window(None, ABOVE), "target_log": LogRange(7, 1100)},
        {"decision": Decision.SET, "target_offset": 7, "lower_kind": "log-start"},
    ),
    "behind the source's retention, still owed": (
        None, {"source_log": LogRange(180, 1000)}, {"decision": Decision.SET, "target_offset": 111},
    ),
    "at the source's end": (None, {"commit": Commit(1000)}, {"decision": Decision.SET}),
    "a log that nobody sees, whatever the policy": (SKIP, {"target_log": UNREAD}, {"decision": Decision.BLOCK}),
    "never committed, and a log that nobody sees": (
        SKIP, {"commit": None, "target_log": UNREAD}, {"decision": Decision.BLOCK, "reason": "log-not-visible"},
    ),
    "there already": (None, {"prior": Commit(111)}, {"decision": Decision.KEEP, "reason": "already-there"}),
    "behind the planned offset": (None, {"prior": Commit(50)}, {"decision": Decision.SET}),
    "at the end of the target's log": (
        KEEP, {"prior": Commit(1100)}, {"decision": Decision.KEEP, "reason": "ahead-kept"},
    ),
    "below the target's log": (
        KEEP, {"prior": Commit(3), "target_log": LogRange(7, 1100)}, {"decision": Decision.SET},
    ),
    "never committed, beyond the target's log": (
        KEEP, {"commit": None, "prior": Commit(4100)}, {"decision": Decision.BLOCK, "reason": "inside-target-log"},
    ),
    "never committed": (
        None, {"commit": None, "target_log": LogRange(4, 9)},
        {"decision": Decision.SET, "target_offset": 4, "method": Method.EXPLICIT},
    ),
    "metadata goes with the offset, the leader epoch stays": (
        None, {"commit": Commit(150, "streams\x00time", 7), "prior": Commit(50, "old")},
        {"decision": Decision.SET, "target_commit": Commit(111, "streams\x00time")},
    ),
    "chosen by a reviewer: no metadata, and all is read again": (
        FROM_START, {"commit": Commit(1001, "streams-time")},
        {"method": Method.EXPLICIT, "target_metadata": "", "rereads_estimate": 1100},
    ),
    "source down, the window is smaller": (
        None, DOWN | {"checkpoint": (150, 140)},
        {"target_offset": 111, "method": Method.WINDOW, "reason": "source-down"},
    ),
    "source down, the checkpoint is smaller": (
        None, DOWN, {"target_offset": 105, "method": Method.CHECKPOINT, "reason": "source-down"},
    ),
    "source down, no syncs": (None, DOWN | NO_SYNCS, {"target_offset": 105, "method": Method.CHECKPOINT}),
    # The checkpoint rests on syncs that a topic created anew contradicts.
    "source down, an empty chain": (
        None, DOWN | {"around": Window(None, OffsetSync(9, 1000, 0))},
        {"target_offset": 0, "lower_kind": "log-start"},
    ),
    "source down, a checkpoint outside the target's log": (
        None, DOWN | NO_SYNCS | {"target_log": LogRange(0, 90)},
        {"decision": Decision.BLOCK, "reason": "inside-target-log"},
    ),
    "source down, no checkpoint": (
        None, DOWN | {"commit": None, "checkpoint": None}, {"reason": "source-gone-without-checkpoint"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_row_is_what_its_facts_and_the_policies_make_of_it(case):
    policies, facts, expected = CASES[case]
    made = row(policies, **facts)
    assert {name: getattr(made, name) for name in expected} == expected


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


def test_a_group_that_stands_there_with_other_metadata_gets_the_source_commits():
    for ours, theirs in (("streams-time", ""), ("", "streams-time"), ("a", "b")):
        made = row(commit=Commit(150, ours), prior=Commit(111, theirs))
        assert (made.decision, made.reason) == (Decision.SET, "metadata-carried")
        assert made.target_commit == Commit(111, ours)
    assert row(commit=Commit(150, "same"), prior=Commit(111, "same")).decision is Decision.KEEP


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
