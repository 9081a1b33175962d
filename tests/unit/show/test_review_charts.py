"""The notebooks' charts draw what `charts` says, highest on top, and a name never becomes a formula."""

import matplotlib
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

from migrate.show.charts import rereads_bars
from migrate.show.review import ReviewStopped
from migrate.show.review_charts import grades_chart, lag_chart, places_chart, rereads_chart
from tests.builders import make_plan, make_row
from tests.unit.goldenplan import golden_plan


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def test_the_bars_are_those_of_the_report_from_the_bottom_up():
    bars = rereads_bars(golden_plan().groups())
    (axes,) = rereads_chart(golden_plan()).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [bar.group for bar in bars][::-1]
    widths = [patch.get_width() for patch in axes.patches]
    assert widths == [bar.own or 0 for bar in bars][::-1] + [bar.mm2_adds for bar in bars][::-1]


def test_bars_beyond_the_limit_are_counted_in_the_title():
    (axes,) = lag_chart(golden_plan(), 3).axes
    assert len(axes.patches) == 3
    assert axes.get_title().endswith(f"(the 3 highest of {len(golden_plan().groups())})")


def test_every_row_is_in_a_bar_of_grades():
    (axes,) = grades_chart(golden_plan()).axes
    assert sum(patch.get_width() for patch in axes.patches) == len(golden_plan().rows)


def test_a_dollar_sign_in_a_name_begins_no_formula():
    (axes,) = lag_chart(make_plan([make_row("$x$")])).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [r"\$x\$"]


def test_a_partition_without_rows_is_told_with_some_that_have_them():
    with pytest.raises(ReviewStopped, match="orders:0"):
        places_chart(make_plan([make_row()]), "orders", 9)
