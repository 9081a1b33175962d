"""What every format adds up: commits, re-reads, what MM2's newest checkpoints would cost, how long the night takes."""

from dataclasses import replace

import pytest

from migrate.model import Decision, Grade, Method
from migrate.plan.totals import compare_with_mm2, forecast, group_totals, totals
from migrate.row_table import GroupRows, PlanRows
from migrate.text import duration_text
from tests.builders import make_plan, make_row, make_untranslated


def test_a_checkpoint_is_behind_beyond_or_equal_and_skips_only_where_the_row_is_proven_the_best():
    rows = [
        make_row(partition=0, target_offset=650, checkpoint_target_offset=560),
        make_row(partition=1, target_offset=650, checkpoint_target_offset=655),
        make_row(partition=2, target_offset=650, checkpoint_target_offset=657, grade=Grade.EXACT),
        make_row(partition=3, target_offset=960, checkpoint_target_offset=961, grade=Grade.EXACT),
        make_row(partition=4, target_offset=650, checkpoint_target_offset=650),
        make_row(partition=5, checkpoint_target_offset=None),
    ]
    mm2 = compare_with_mm2(GroupRows.of_rows(rows))
    assert (mm2.behind_rows, mm2.behind_records) == (1, 90)
    assert (mm2.beyond_rows, mm2.beyond_records) == (2, 6), "at the log's end there is none to skip"
    assert (mm2.skipping_rows, mm2.skipping_records) == (1, 7)
    assert (mm2.equal_rows, mm2.absent_rows, mm2.compared_rows) == (1, 1, 5)


@pytest.mark.parametrize("offset", [640, 650, 657], ids=["behind", "equal", "beyond"])
def test_a_checkpoint_of_a_later_commit_than_the_plan_translates_is_not_compared(offset):
    """The group went on after its commit was read, or the commit was set back since the checkpoint."""
    row = make_row(source_committed=120, checkpoint_source_offset=130, checkpoint_target_offset=offset,
                   target_offset=650, grade=Grade.EXACT)  # fmt: skip
    mm2 = compare_with_mm2(GroupRows.of_rows([row]))
    assert (mm2.other_commit_rows, mm2.compared_rows, mm2.absent_rows) == (1, 0, 0)


@pytest.mark.parametrize("committed", [120, 130])
def test_a_checkpoint_of_the_same_commit_or_of_one_before_skips_what_it_skips(committed):
    row = make_row(source_committed=committed, checkpoint_source_offset=120, checkpoint_target_offset=657,
                   target_offset=650, grade=Grade.EXACT)  # fmt: skip
    mm2 = compare_with_mm2(GroupRows.of_rows([row]))
    assert (mm2.skipping_rows, mm2.other_commit_rows) == (1, 0)


def test_an_offset_that_was_chosen_or_is_not_there_is_not_compared_with_mm2():
    rows = [make_row(method=Method.EXPLICIT, grade=None), make_untranslated(Decision.BLOCK, "no-checkpoint")]
    assert compare_with_mm2(GroupRows.of_rows(rows)) == compare_with_mm2(PlanRows(()))


def test_no_commit_is_silently_absent():
    counts = {"commits_read": 5, "rows": 2, "uncommitted_added": 1, "filtered:group": 4}
    plan = make_plan([make_row(partition=0), make_row(partition=1)], counts=counts)
    assert totals(plan).add_up and totals(plan).filtered == {"group": 4}
    assert not totals(make_plan(plan.rows, counts=counts | {"commits_read": 6})).add_up


def test_a_row_counts_as_bounded_or_as_estimated_and_never_as_both():
    rows = [
        make_row(partition=0, rereads_at_most=5, rereads_estimate=12),
        make_row(partition=1, rereads_estimate=7),
        make_row(partition=2, rereads_estimate=None),
    ]
    counted = totals(make_plan(rows))
    assert (counted.bounded_rows, counted.rereads_bounded) == (1, 5)
    assert (counted.estimated_rows, counted.rereads_estimated, counted.unknown_rows) == (1, 7, 1)


def test_a_group_with_a_blocked_row_is_blocked_and_not_one_to_write():
    rows = [make_row("a"), make_row("b"), make_row("b", partition=1, decision=Decision.BLOCK)]
    counted = totals(make_plan(rows))
    assert (counted.groups, counted.groups_to_write, counted.groups_blocked) == (2, 1, 1)


def test_an_undo_rewinds_by_its_nature_and_does_not_count_as_one_that_does():
    rewound = make_row(target_prior=700, target_offset=650)
    assert totals(make_plan([rewound])).rewinding_rows == 1
    assert totals(make_plan([rewound], kind="undo")).rewinding_rows == 0


def test_a_group_without_facts_has_neither_lag_nor_re_reads_and_a_guess_is_marked():
    nothing = make_untranslated(Decision.SKIP, "no-checkpoint", source_committed=None)
    counted = group_totals(GroupRows.of_rows([nothing]))
    assert (counted.lag, counted.rereads) == (None, None)
    beyond = make_row(source_committed=1200, rereads_at_most=3, rereads_estimate=None, grade=Grade.BOUNDED)
    counted = group_totals(GroupRows.of_rows([beyond]))
    assert (counted.lag, counted.sign) == (0, "<=")
    assert group_totals(GroupRows.of_rows([beyond, make_row(partition=1)])).sign == "~"


def test_what_one_row_of_a_group_does_not_know_is_not_known_of_the_group():
    unknown = make_row(partition=1, source_log_end=None, rereads_at_most=None, rereads_estimate=None)
    counted = group_totals(GroupRows.of_rows([make_row(), unknown]))
    assert (counted.lag, counted.rereads) == (None, None)
    left = make_untranslated(Decision.SKIP, "no-checkpoint", source_committed=None, partition=1)
    with_one_left, alone = (group_totals(GroupRows.of_rows([make_row(), *more])) for more in ([left], []))
    assert (with_one_left.lag, with_one_left.rereads) == (alone.lag, alone.rereads) != (None, None)


TIMINGS = {"reach": 1.0, "commits": 2.0, "states": 2.0, "pin": 1.0, "compare": 60.0, "settle": 15.0}


def test_plan_takes_what_it_took_and_the_others_what_they_read_again_and_write():
    told = forecast(make_plan([make_row()], timings=TIMINGS))
    assert told is not None
    assert (told.plan_seconds, told.apply_seconds, told.verify_seconds) == (82.0, 14.0, 4.0)
    assert replace(told, offsets=1000).text == "plan about 82 s, apply about 14 s, verify about 4 s"


def test_of_a_small_plan_only_what_plan_took_is_said_for_what_the_others_take_its_timings_do_not_tell():
    told = forecast(make_plan([make_row()], timings=TIMINGS))
    assert told is not None and told.text == "plan about 82 s"


def test_rows_that_are_blocked_in_a_rehearsal_are_written_on_the_night():
    rows = [
        make_row("a"),
        make_row("b", decision=Decision.BLOCK, reason="source-group-stopped"),
        make_row("c", decision=Decision.KEEP, reason="already-there"),
        make_untranslated(Decision.BLOCK, "target-topic-missing", "d"),
    ]
    told = forecast(make_plan(rows, timings=TIMINGS))
    assert told is not None and (told.offsets, told.groups) == (2, 2)


def test_an_undo_has_no_timings_and_no_forecast():
    assert forecast(make_plan([make_row()], timings={})) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"), (0.4, "0 s"), (99.4, "99 s"), (100, "1 min 40 s"), (600, "10 min"), (3599, "59 min"),
        (6000, "1 h 40 min"), (7200, "2 h"), (172800, "2 d"), (190000, "2 d 4 h"),
    ],
)  # fmt: skip
def test_spans_of_time_are_told_in_two_units_at_most(seconds, text):
    assert duration_text(seconds) == text
