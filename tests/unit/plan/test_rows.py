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

BLOCK, SET = Decision.BLOCK, Decision.SET
DOWN = {"source_down": True, "source_log": None}
NO_SYNCS = {"around": Window(None, None), "syncs_read": False}
BEYOND, FROM_7 = {"commit": Commit(1001)}, {"target_log": LogRange(7, 1100)}
KEEP, REWIND, SKIP = Policies(rewind=Rewind.KEEP), Policies(rewind=Rewind.SET), Policies((), Untranslatable.SKIP)
NO_ANSWER = Failure("LEADER_NOT_AVAILABLE", "no leader")


def chosen(choice):
    return Policies(untranslatable_by_reason={"commit-beyond-log-end": choice})


def matched(offset):
    return {"answer": Matched(offset, Why.PROVEN, 0)} | FROM_7


# The policies, the facts, what is decided with which reason and offset, and what else the row says.
CASES = {
    "between two syncs, behind the lower one": (None, {}, "set translated 111", {
        "method": Method.WINDOW, "grade": Grade.ESTIMATED, "lower_source_offset": 100, "upper_source_offset": 200,
        "checkpoint_source_offset": 150, "checkpoint_target_offset": 105,
        # No record was compared.
        "rereads_at_most": None, "rereads_estimate": 49,
    }),
    "on a sync": (None, {"commit": Commit(100)}, "set translated 110", {"method": Method.SYNC}),
    "no sync below": (None, {"around": Window(None, ABOVE)} | FROM_7, "set translated 7", {"lower_kind": "log-start"}),
    "at the source's end": (None, {"commit": Commit(1000)}, "set translated 111", {}),
    "at the target's log start": (None, matched(7), "set proven 7", {}),
    "at the target's end": (None, matched(1100), "set proven 1100", {}),
    "before the target's log": (None, matched(6), "block inside-target-log 6", {}),
    "beyond the target's log": (None, matched(1101), "block inside-target-log 1101", {}),
    "no topic": (None, {"target_partitions": None, "target_log": None}, "block target-topic-missing None", {}),
    "no partition": (
        None, {"source": TopicPartition("t", 3), "target_log": None}, "block target-partition-missing None", {},
    ),
    "not copied": (None, {"not_replicated": "MM2's filter does not take t."}, "block topic-not-replicated None", {}),
    "a commit beyond the end": (None, BEYOND, "block commit-beyond-log-end None", {"grade": None}),
    "no source topic": (None, {"source_log": None}, "block source-topic-missing None", {}),
    "a source log that nobody sees": (None, {"source_log": NO_ANSWER}, "block log-not-visible None", {}),
    "a log that nobody sees, whatever the policy": (SKIP, {"target_log": NO_ANSWER}, "block log-not-visible None", {}),
    "never committed, and a log that nobody sees": (
        SKIP, {"commit": None, "target_log": NO_ANSWER}, "block log-not-visible None", {},
    ),
    "there already": (
        None, {"commit": Commit(150, "a"), "prior": Commit(111, "a")}, "keep already-there 111", {},
    ),
    "there with other metadata": (
        None, {"commit": Commit(150, "a"), "prior": Commit(111, "b")}, "set metadata-carried 111",
        {"target_commit": Commit(111, "a")},
    ),
    "behind the planned offset": (None, {"prior": Commit(50)}, "set translated 111", {}),
    "ahead": (None, {"prior": Commit(500)}, "block rewind 111", {}),
    "ahead, kept": (KEEP, {"prior": Commit(500)}, "keep ahead-kept 111", {}),
    "ahead, set back": (REWIND, {"prior": Commit(500)}, "set rewound 111", {}),
    "ahead, at the end of the target's log": (KEEP, {"prior": Commit(1100)}, "keep ahead-kept 111", {}),
    "never committed, beyond the target's log": (
        KEEP, {"commit": None, "prior": Commit(4100)}, "block inside-target-log 0", {},
    ),
    "never committed": (
        None, {"commit": None, "target_log": LogRange(4, 9)}, "set never-committed 4", {"method": Method.EXPLICIT},
    ),
    "metadata goes with the offset, the leader epoch stays": (
        None, {"commit": Commit(150, "streams\x00time", 7), "prior": Commit(50, "old")}, "set translated 111",
        {"target_commit": Commit(111, "streams\x00time")},
    ),
    "left alone by choice": (chosen(Untranslatable.SKIP), BEYOND, "skip commit-beyond-log-end None", {}),
    "to the end by choice": (
        chosen(Untranslatable.LATEST), BEYOND, "set commit-beyond-log-end 1100", {"grade": None},
    ),
    "to the start by choice: no metadata, and all is read again": (
        chosen(Untranslatable.EARLIEST), {"commit": Commit(1001, "streams-time")}, "set commit-beyond-log-end 0",
        {"grade": None, "method": Method.EXPLICIT, "target_metadata": "", "rereads_estimate": 1100},
    ),
    "source down, the window is smaller": (
        None, DOWN | {"checkpoint": (150, 140)}, "set source-down 111", {"method": Method.WINDOW},
    ),
    "source down, the checkpoint is smaller": (None, DOWN, "set source-down 105", {"method": Method.CHECKPOINT}),
    "source down, no syncs": (None, DOWN | NO_SYNCS, "set source-down 105", {"method": Method.CHECKPOINT}),
    # The checkpoint rests on syncs that a topic created anew contradicts.
    "source down, an empty chain": (
        None, DOWN | {"around": Window(None, OffsetSync(9, 1000, 0))}, "set source-down 0", {"lower_kind": "log-start"},
    ),
    "source down, a checkpoint outside the target's log": (
        None, DOWN | NO_SYNCS | {"target_log": LogRange(0, 90)}, "block inside-target-log None", {},
    ),
    "source down, no checkpoint": (
        None, DOWN | {"commit": None, "checkpoint": None}, "block source-gone-without-checkpoint None", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_row_is_what_its_facts_and_the_policies_make_of_it(case):
    policies, facts, decided, more = CASES[case]
    made = row(policies, **facts)
    assert f"{made.decision} {made.reason} {made.target_offset}" == decided and made.sentence.endswith(".")
    assert {name: getattr(made, name) for name in more} == more


@pytest.mark.parametrize("more", [{}, {"source_log": None}, BEYOND], ids=["translated", "no source", "beyond its end"])
@pytest.mark.parametrize("rewind", Rewind)
def test_an_offset_beyond_the_targets_log_is_of_another_log_and_never_kept(rewind, more):
    """As MM2 left it where its target was created anew: consumers there start where auto.offset.reset says."""
    explicit = {"source-topic-missing": Untranslatable.EARLIEST, "commit-beyond-log-end": Untranslatable.EARLIEST}
    made = row(Policies(rewind=rewind, untranslatable_by_reason=explicit), prior=Commit(1101), **more)
    if rewind is Rewind.SET:
        assert (made.decision, made.reason) == (SET, "rewound")
    else:
        assert (made.decision, made.reason) == (BLOCK, "inside-target-log")
        assert "is at 1101, beyond the target's log [0, 1100)" in made.sentence
        assert f"--rewind set sets {made.target_offset}" in made.sentence


def test_one_blocked_row_blocks_its_whole_group_and_no_other():
    rows = [
        row(),
        row(source=TopicPartition("t", 1), target_partitions=1, target_log=None),
        row(source=TopicPartition("u", 0), target=TopicPartition("A.u", 0)),
        row(group="other"),
    ]
    laid = {r.key: (r.decision, r.reason, r.target_offset) for r in with_blocks(PlanRows.of(rows), {})}
    assert laid == {
        ("g", "t", 0): (BLOCK, "group-blocked", 111),
        ("g", "t", 1): (BLOCK, "target-partition-missing", None),
        ("g", "u", 0): (BLOCK, "group-blocked", 111),
        ("other", "t", 0): (SET, "translated", 111),
    }


def test_a_check_that_blocks_a_group_gives_its_rows_their_reason_and_keeps_the_translation():
    (laid,) = with_blocks(PlanRows.of([row()]), {"g": ("target-group-empty", "Stable with 2 members; expected none.")})
    assert (laid.decision, laid.reason, laid.target_offset) == (BLOCK, "target-group-empty", 111)
