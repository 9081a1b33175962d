"""Charts of the page and of the notebooks: one order, no group silently absent, and no name a formula."""

import pytest
from matplotlib import pyplot

from migrate.model import Grade
from migrate.show.charts import chart_of, lag_bars, rereads_bars
from migrate.show.review import ReviewStopped
from migrate.show.review_charts import grades_chart, lag_chart, places_chart, rereads_chart
from tests.builders import make_plan, make_row
from tests.unit.goldenplan import golden_plan


def test_bars_are_the_longest_first_and_equal_ones_by_name():
    rows = [make_row(g, source_committed=90, source_log_end=90 + n) for g, n in (("b", 1), ("c", 5), ("a", 1))]
    assert [(bar.group, bar.own) for bar in lag_bars(make_plan(rows).groups())] == [("c", 5), ("a", 1), ("b", 1)]


def test_a_group_whose_number_nobody_tells_has_a_bar_without_one():
    (bar,) = lag_bars(make_plan([make_row("g", source_log_end=None)]).groups())
    assert (bar.own, bar.total) == (None, 0)


def test_what_mm2_adds_lengthens_the_bar_and_what_it_leaves_out_is_noted():
    placed = make_row("g", target_offset=600, checkpoint_target_offset=560, rereads_at_most=3, grade=Grade.BOUNDED)
    without = make_row("g", partition=1, target_offset=600, checkpoint_target_offset=None)
    (bar,) = rereads_bars(make_plan([placed, without]).groups())
    assert bar.mm2_adds == 40 and bar.own is not None and bar.total == bar.own + 40
    assert bar.note == "no checkpoint for 1 row"


def test_a_chart_leaves_no_group_out():
    rows = [make_row(f"g{i:02}", rereads_estimate=i, target_offset=600) for i in range(10)]
    groups = make_plan([*rows, make_row("unknown", rereads_estimate=None, source_log_end=None)]).groups()
    for chart in (chart_of(rereads_bars(groups), 3, " by this plan", True), chart_of(lag_bars(groups), 3)):
        assert len(chart.bars) == 3 and chart.most == chart.bars[0].total
        assert "7 more groups" in chart.rest and "unknown for 1 group" in chart.rest


@pytest.fixture(autouse=True)
def closed():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def test_the_bars_are_those_of_the_report_from_the_bottom_up():
    bars = rereads_bars(golden_plan().groups())
    (axes,) = rereads_chart(golden_plan()).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [bar.group for bar in bars][::-1]
    widths = [patch.get_width() for patch in axes.patches]
    assert widths == [bar.own or 0 for bar in bars][::-1] + [bar.mm2_adds for bar in bars][::-1]


def test_bars_beyond_the_limit_are_counted_in_the_title_and_every_row_is_in_a_bar_of_grades():
    (axes,) = lag_chart(golden_plan(), 3).axes
    assert len(axes.patches) == 3
    assert axes.get_title().endswith(f"(the 3 highest of {len(golden_plan().groups())})")
    (axes,) = grades_chart(golden_plan()).axes
    assert sum(patch.get_width() for patch in axes.patches) == len(golden_plan().rows)


def test_a_dollar_sign_in_a_name_begins_no_formula():
    (axes,) = lag_chart(make_plan([make_row("$x$")])).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [r"\$x\$"]


def test_a_partition_without_rows_is_told_with_some_that_have_them():
    with pytest.raises(ReviewStopped, match="orders:0"):
        places_chart(make_plan([make_row()]), "orders", 9)
