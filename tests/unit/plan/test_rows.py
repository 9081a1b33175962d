"""Every commit becomes one row: its decision, reason and sentence, and where it stands by what comparing said."""

import pytest

from migrate.match.protocol import Limits, Matched, Unmatched, Why, WhyUnmatched
from migrate.mm2.chain import Window
from migrate.model import Commit, Decision, Failure, Grade, LogRange, Method, OffsetSync, TopicPartition
from migrate.plan.rows import with_blocks
from migrate.plan.translate import Place, Rules, place
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, Rewind, Untranslatable
from tests.fakes import FakeComparer
from tests.unit.planscene import planned, world
from tests.unit.rowfacts import ABOVE, facts_with
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


def test_one_blocked_row_and_a_check_block_a_whole_group_and_no_other_and_keep_the_translation():
    rows = [
        row(),
        row(source=TopicPartition("t", 1), target_partitions=1, target_log=None),
        row(source=TopicPartition("u", 0), target=TopicPartition("A.u", 0)),
        row(group="other"),
        row(group="alive"),
    ]
    checked = {"alive": ("target-group-empty", "Stable with 2 members; expected none.")}
    laid = {r.key: (r.decision, r.reason, r.target_offset) for r in with_blocks(PlanRows.of(rows), checked)}
    assert laid == {
        ("alive", "t", 0): (BLOCK, "target-group-empty", 111),
        ("g", "t", 0): (BLOCK, "group-blocked", 111),
        ("g", "t", 1): (BLOCK, "target-partition-missing", None),
        ("g", "u", 0): (BLOCK, "group-blocked", 111),
        ("other", "t", 0): (SET, "translated", 111),
    }


PROVEN = Matched(160, Why.PROVEN, 0)


def placed(answer, **changes) -> Place:
    found = place(facts_with(answer=answer, **changes), Rules(Policies()))
    assert isinstance(found, Place)
    return found


def unread(guard=None, **more) -> Unmatched:
    return Unmatched(WhyUnmatched.MATCH_LIMIT, guard, **more)


def test_what_is_not_proven_is_bounded_and_every_reason_has_a_sentence_which_tells_of_re_reads_and_missing_records():
    by_reason = {why: placed(Matched(160, why, 7)) for why in Why}
    for why, found in by_reason.items():
        grade = Grade.EXACT if why is Why.PROVEN else Grade.BOUNDED
        bound = "7 records from there on" if grade is Grade.EXACT else "At most 7 records"
        assert (found.grade, found.rereads_at_most, found.reason) == (grade, 7, str(why))
        assert found.sentence.endswith(f". {bound} are read twice.")
    assert len({found.sentence for found in by_reason.values()}) == len(Why)
    assert {w for w, found in by_reason.items() if found.missing is None} == {Why.NOT_ALL_READ, Why.LEAST_TIMESTAMP}
    by_time = by_reason[Why.LEAST_TIMESTAMP]
    assert (by_time.method, by_time.lower_kind) == (Method.TIMESTAMP, "timestamp")
    exact = placed(Matched(160, Why.PROVEN, 0, missing_on_target=1))
    assert "twice" not in exact.sentence and "1 record of those owed has no copy" in exact.sentence


@pytest.mark.parametrize(("by_timestamp", "stands"), [(True, 0), (False, 51)])
def test_by_timestamps_no_sync_places_what_was_not_read_for_nothing_would_guard_it(by_timestamp, stands):
    comparer, limits = FakeComparer({("t", 0, 55): unread()}), Limits(1_000_000, None, by_timestamp)
    made = planned(*world(), comparer=comparer, limits=limits).groups()["g"][0]
    assert (made.target_offset, made.lower_kind) == (stands, "log-start" if by_timestamp else "sync")
    # None was asked for: one may well lie below.
    assert ("no sync counts with --by timestamp" in made.sentence.lower()) == by_timestamp
    assert "No sync lies" not in made.sentence


def test_the_method_says_what_stands_at_the_place():
    for offset, lower, method in (
        (160, None, Method.MATCH),
        (160, (150, 160), Method.SYNC),
        (160, (150, 159), Method.MATCH),
        (160, (149, 160), Method.MATCH),
        (1100, (140, 150), Method.END),
    ):
        assert placed(Matched(offset, Why.PROVEN, 0, lower=lower)).method is method


def test_law_2_takes_the_smaller_of_the_window_and_the_timestamp():
    above, below = placed(unread(180)), placed(unread(90))
    assert (above.target_offset, above.method, above.grade) == (111, Method.WINDOW, Grade.ESTIMATED)
    assert above.reason == above.why == "match-limit" and above.rereads_at_most is None
    assert (below.target_offset, below.method, below.lower_kind) == (90, Method.TIMESTAMP, "timestamp")
    assert below.rereads_estimate == 49 + 21
    assert placed(unread(3), target_log=LogRange(20, 1100)).target_offset == 20, "retention has passed the guard"
    dark = placed(Unmatched.not_readable("TOPIC_AUTHORIZATION_FAILED"))
    assert (dark.target_offset, dark.reason) == (111, "not-readable"), "without a guard the window stands"
    assert dark.sentence.startswith("The records could not be read (TOPIC_AUTHORIZATION_FAILED).")


def test_a_sync_whose_records_differ_bounds_nothing_and_a_proven_one_takes_the_place_of_the_nearest():
    for guard in (None, 90):
        found = placed(unread(guard, refuted=True), target_log=LogRange(0, 1100))
        assert (found.target_offset, found.lower_kind) == (0, "log-start")
        assert "two records that differ" in found.sentence
    found = placed(unread(lower=(80, 70)))
    assert (found.target_offset, found.lower, found.lower_kind) == (71, (80, 70), "proven-sync")


def test_a_matched_row_is_subject_to_the_same_policies_as_any_other_and_what_no_law_translates_stays_so():
    ahead = row(answer=PROVEN, prior=Commit(170))
    assert (ahead.decision, ahead.reason) == (Decision.BLOCK, "rewind")
    assert (ahead.why, ahead.grade) == ("proven", Grade.EXACT)
    kept = row(Policies(rewind=Rewind.KEEP), answer=PROVEN, prior=Commit(170))
    assert (kept.decision, kept.reason) == (Decision.KEEP, "ahead-kept")
    made = row(answer=PROVEN, source_log=Failure("X", "y"))
    assert (made.reason, made.why, made.missing_on_target, made.equality) == ("log-not-visible", "", None, "")
