"""The charts of the inventory's notebook: what the tables say, bounded, and a name never becomes a formula."""

import matplotlib
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

from migrate.extras.inventory import review as inventory
from migrate.extras.inventory.review_charts import (
    cadence_chart,
    lag_chart_over_time,
    last_commit_chart,
    waves_chart,
)
from tests.extras.inventory.unit.exportedfiles import write_inventory


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture
def tables(tmp_path):
    write_inventory(tmp_path)
    history = inventory.open_history(tmp_path / "history.csv", lambda path: ([], []))
    return history, inventory.open_groups(tmp_path / "groups.json")


def names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def drawn(figure, tmp_path):
    figure.savefig(tmp_path / "x.png")
    return figure.axes[0]


def test_the_group_that_has_been_silent_longest_is_on_top(tables, tmp_path):
    axes = drawn(last_commit_chart(inventory.last_commits(*tables)), tmp_path)
    assert names(axes)[-1] == r"long-idle\$\$" and "days" in axes.get_xlabel()
    assert axes.patches[-1].get_width() == pytest.approx(9.04, abs=0.01)
    few = drawn(last_commit_chart(inventory.last_commits(*tables), 2), tmp_path)
    assert len(few.patches) == 2 and "the 2 highest of 8" in few.get_title()


def test_lag_is_drawn_of_the_groups_that_lagged_furthest(tables, tmp_path):
    axes = drawn(lag_chart_over_time(tables[0], 2), tmp_path)
    assert [line.get_label() for line in axes.get_lines()] == ["fraud", "billing"]
    assert "estimates" in axes.get_title() and "the 2 highest of 3" in axes.get_title()
    without = tables[0].assign(lag=inventory.extra_module("pandas").NA)
    assert "no lag" in drawn(lag_chart_over_time(without), tmp_path).texts[0].get_text()


def test_cadence_is_drawn_where_it_is_known(tables, tmp_path):
    axes = drawn(cadence_chart(inventory.cadence(tables[0])), tmp_path)
    assert names(axes) == ["billing", "fraud", "crm-sync"] and axes.get_xscale() == "log"


def test_every_group_has_a_line_to_each_of_its_topics(tables, tmp_path):
    waves = inventory.waves_table(tables[1])
    axes = drawn(waves_chart(waves), tmp_path)
    edges = [line for line in axes.get_lines() if len(line.get_xdata()) == 2]
    assert len(edges) == sum(len(topics.split(", ")) for topics in waves["topics"])
    shown = [text.get_text() for text in axes.texts]
    assert r"long-idle\$\$  (wave 1)" in shown and "orders" in shown
    assert "the first 2 of 7 groups" in drawn(waves_chart(waves, 2), tmp_path).get_title()


def test_nothing_to_draw_is_an_empty_chart(tmp_path):
    empty = inventory.open_history("x", lambda path: ([*inventory.SERIES], []))
    groups = inventory.data_frame([], [*inventory.LISTED, "use"], ["last_commit_ms"]).set_index("group")
    for figure in (
        last_commit_chart(inventory.last_commits(empty, groups)), lag_chart_over_time(empty),
        cadence_chart(inventory.cadence(empty)), waves_chart(inventory.waves_table(groups)),
    ):  # fmt: skip
        drawn(figure, tmp_path)
