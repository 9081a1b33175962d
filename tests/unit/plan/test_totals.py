"""What every format adds up: commits, re-reads, what MM2's newest checkpoints would cost, how long the night takes."""

from dataclasses import replace

import pytest

from migrate.model import Decision, Grade, Method
from migrate.plan.totals import compare_with_mm2, forecast, group_totals, totals
from migrate.row_table import GroupRows
from migrate.text import duration_text
from tests.builders import make_plan, make_row, make_untranslated

EXACT = {"grade": Grade.EXACT}


def compared(*rows):
    return compare_with_mm2(GroupRows.of_rows(rows))


def test_a_checkpoint_is_behind_beyond_or_equal_and_skips_only_where_the_row_is_proven_the_best():
    mm2 = compared(
        make_row(partition=0, target_offset=650, checkpoint_target_offset=560),
        make_row(partition=1, target_offset=650, checkpoint_target_offset=655),
        make_row(partition=2, target_offset=650, checkpoint_target_offset=657, **EXACT),
        make_row(partition=3, target_offset=960, checkpoint_target_offset=961, **EXACT),
        make_row(partition=4, target_offset=650, checkpoint_target_offset=650),
        make_row(partition=5, checkpoint_target_offset=None),
        # What was chosen, or is not there, is not compared.
        make_row(partition=6, method=Method.EXPLICIT, grade=None),
        make_untranslated(Decision.BLOCK, "no-checkpoint", partition=7),
    )
    assert (mm2.behind_rows, mm2.behind_records) == (1, 90)
    assert (mm2.beyond_rows, mm2.beyond_records) == (2, 6), "at the log's end there is none to skip"
    assert (mm2.skipping_rows, mm2.skipping_records) == (1, 7)
    assert (mm2.equal_rows, mm2.absent_rows, mm2.compared_rows) == (1, 1, 5)


@pytest.mark.parametrize(("offset", "checkpointed"), [(640, 121), (650, 121), (657, 121), (657, 120), (657, 119)])
def test_a_checkpoint_of_a_later_commit_than_the_plan_translates_is_not_compared(offset, checkpointed):
    """The group went on after its commit was read, or the commit was set back since the checkpoint."""
    commits = {"source_committed": 120, "checkpoint_source_offset": checkpointed}
    mm2 = compared(make_row(**commits, checkpoint_target_offset=offset, target_offset=650, **EXACT))
    later = int(checkpointed > 120)
    assert (mm2.other_commit_rows, mm2.compared_rows, mm2.skipping_rows) == (later, 1 - later, 1 - later)


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


def test_a_group_with_a_blocked_row_is_not_one_to_write_and_an_undo_rewinds_by_its_nature():
    rows = [make_row("a", target_prior=700), make_row("b"), make_row("b", partition=1, decision=Decision.BLOCK)]
    counted = totals(make_plan(rows))
    assert (counted.groups, counted.groups_to_write, counted.groups_blocked) == (2, 1, 1)
    assert counted.rewinding_rows == 1 and totals(make_plan(rows, kind="undo")).rewinding_rows == 0


ROW, OTHER = make_row(), make_row(partition=1)
BEYOND = make_row(source_committed=1200, rereads_at_most=3, rereads_estimate=None, grade=Grade.BOUNDED)
LEFT = make_untranslated(Decision.SKIP, "no-checkpoint", partition=1, source_committed=None)
UNKNOWN = make_row(partition=1, source_log_end=None, rereads_at_most=None, rereads_estimate=None)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([ROW], (300, 12, "~")),
        ([LEFT], (None, None, "")),
        ([ROW, LEFT], (300, 12, "~")),
        # What one row does not know is not known of the group.
        ([ROW, UNKNOWN], (None, None, "~")),
        # A commit beyond the end is no negative lag.
        ([BEYOND], (0, 3, "<=")),
        ([BEYOND, OTHER], (300, 15, "~")),
    ],
)
def test_a_groups_lag_and_re_reads_are_sums_of_all_that_counts_or_not_known_and_a_guess_is_marked(rows, expected):
    counted = group_totals(GroupRows.of_rows(rows))
    assert (counted.lag, counted.rereads, counted.sign) == expected


TIMINGS = {"reach": 1.0, "commits": 2.0, "states": 2.0, "pin": 1.0, "compare": 60.0, "settle": 15.0}


def test_plan_takes_what_it_took_and_the_others_what_they_read_again_and_write_which_a_small_plan_does_not_tell():
    told = forecast(make_plan([make_row()], timings=TIMINGS))
    assert told is not None
    assert (told.plan_seconds, told.apply_seconds, told.verify_seconds) == (82.0, 14.0, 4.0)
    assert told.text == "plan about 82 s"
    assert replace(told, offsets=1000).text == "plan about 82 s, apply about 14 s, verify about 4 s"
    assert forecast(make_plan([make_row()], timings={})) is None, "an undo has none"
    # What is blocked in a rehearsal is written on the night.
    rows = [
        make_row("a"), make_row("b", decision=Decision.BLOCK, reason="source-group-stopped"),
        make_row("c", decision=Decision.KEEP, reason="already-there"),
        make_untranslated(Decision.BLOCK, "target-topic-missing", "d"),
    ]  # fmt: skip
    told = forecast(make_plan(rows, timings=TIMINGS))
    assert told is not None and (told.offsets, told.groups) == (2, 2)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (99.4, "99 s"), (100, "1 min 40 s"), (605, "10 min"), (3599, "59 min"), (6000, "1 h 40 min"),
     (7200, "2 h"), (172800, "2 d"), (190000, "2 d 4 h")],
)  # fmt: skip
def test_spans_of_time_are_told_in_two_units_at_most(seconds, text):
    assert duration_text(seconds) == text
