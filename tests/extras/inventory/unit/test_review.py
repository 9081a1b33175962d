"""The inventory's notebook: its tables say what exported files say and nothing else, and its charts what they say."""

import csv
import json

import matplotlib
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot

from migrate.clock import iso
from migrate.extras.inventory import review as inventory
from migrate.extras.inventory import review_charts as charts
from migrate.extras.inventory.waves import waves_by_topics
from migrate.show.review import ReviewStopped
from tests.notebooks import outputs, run

MISSING = inventory.extra_module("pandas").NA
START_MS = 1_767_225_600_000
MINUTE_MS = 60_000
FIELDS = "time,group,topic,partition,offset,commits,records_per_s,end_at_time,lag,lag_is_estimate"


def group(name, *topics, attention=(), **more):
    said = {
        "kind": "classic", "protocol_type": "consumer", "state": "Stable", "members": 2, "topics": list(topics),
        "lag": 5, "last_commit_ms": START_MS + 30 * MINUTE_MS, "attention": attention,
    }  # fmt: skip
    return {"group": name, **said, **more}


GROUPS = [
    group("billing", "orders", "pay"),
    group("crm-sync", "customers"),
    group("fraud", "pay"),
    group("shop-streams", "orders", "clicks", attention=("streams",)),
    group("connect-archive", "clicks", attention=("connect-sink",)),
    group("_internal-monitor", "metrics", attention=("vendor-internal",), state="Empty", members=0),
    group("long-idle$$", "old", state="Empty", members=0, last_commit_ms=START_MS - 9 * 1440 * MINUTE_MS),
    group("sharers", "orders", kind="share", topics=None, last_commit_ms=None, members=None),
]


def history_rows():
    """Time in ms, and the other fields of a history."""
    rows = []
    for minute in range(1, 61):
        time = START_MS + minute * MINUTE_MS
        for partition in range(2):
            lag = 40 + 30 * abs(30 - minute) * (partition + 1)
            rows.append((time, "billing", "orders", partition, 1000 * minute, 12, 16.7, 1000 * minute + lag, lag, True))
        if minute % 5 == 0:
            rows.append((time, "crm-sync", "customers", 0, 10 * minute, 1, 0.167, None, None, None))
            rows.append((time, "fraud", "pay", 0, 200 * minute, 5, None, 12_000, 12_000 - 200 * minute, True))
    rows.append((START_MS + MINUTE_MS, "NA", "old", 0, 7, 1, None, 7, 0, True))
    return rows


def write_inventory(folder):
    """Write history.csv and groups.json."""
    with (folder / "history.csv").open("w", newline="") as file:
        csv.writer(file).writerows([FIELDS.split(","), *([iso(row[0]), *row[1:]] for row in history_rows())])
    (folder / "groups.json").write_text(json.dumps({"side": "source", "cluster": "A", "groups": GROUPS}))


@pytest.fixture
def files(tmp_path):
    write_inventory(tmp_path)
    history = inventory.open_history(tmp_path / "history.csv", lambda path: pytest.fail(f"{path} is no Parquet"))
    return history, inventory.open_groups(tmp_path / "groups.json")


def history(*rows):
    """Of (minute, group, partition, offset, commits, lag)."""
    lines = [(START_MS + m * MINUTE_MS, g, "t", p, o, n, None, None, lag, None) for m, g, p, o, n, lag in rows]
    return inventory.open_history("x.parquet", lambda path: (FIELDS.split(","), lines))


def test_csv_and_parquet_give_the_same_history(files):
    parquet = inventory.open_history("h.parquet", lambda path: (FIELDS.split(","), history_rows()))
    assert files[0].equals(parquet) and len(parquet) == len(history_rows())
    assert str(parquet["time"].dt.tz) == "UTC" and str(parquet["lag"].dtype) == "Int64"
    assert "NA" in set(files[0]["group"])


def test_a_raw_export_is_a_history_without_lag_and_without_its_tombstones():
    names = ["topic", "partition", "group", "offset", "logTimestamp", "tombstone", "metadata"]
    rows = [("t", 0, "g", 5, START_MS, False, ""), ("t", 0, "g", None, START_MS + 1, True, None)]
    (line,) = inventory.open_history("x", lambda path: (names, rows)).itertuples()
    assert (line.group, line.offset, line.commits) == ("g", 5, 1) and line.lag is MISSING


def test_what_is_something_else_is_one_line(tmp_path):
    with pytest.raises(ReviewStopped, match="x is not a history"):
        inventory.open_history("x", lambda path: (["key"], [("k",)]))
    with pytest.raises(ReviewStopped, match="absent.csv cannot be read"):
        inventory.open_history(tmp_path / "absent.csv", lambda path: pytest.fail(f"{path} is no Parquet"))
    for text in ("{}", "not JSON"):
        (tmp_path / "groups.json").write_text(text)
        with pytest.raises(ReviewStopped, match="cannot be read"):
            inventory.open_groups(tmp_path / "groups.json")


def test_every_group_has_one_use(files):
    assert dict(files[1]["use"]) == {
        "billing": "consumer", "crm-sync": "consumer", "fraud": "consumer", "long-idle$$": "consumer",
        "shop-streams": "Streams", "connect-archive": "Connect sink", "_internal-monitor": "vendor's own",
        "sharers": "share",
    }  # fmt: skip
    assert inventory.uses_table(files[1])["groups"].sum() == len(GROUPS)


def test_cadence_is_the_time_and_the_records_between_commits_and_not_made_up_of_one():
    steady, one = [(1, "g", 0, 100, 4, 0), (3, "g", 0, 400, 10, 0)], [(1, "once", 0, 5, 1, 0)]
    table = inventory.cadence(history(*steady, *one, (1, "back", 0, 9, 1, 0), (2, "back", 0, 3, 2, 0)))
    told = {group: (line.seconds_between_commits, line.records_between_commits) for group, line in table.iterrows()}
    assert told["g"] == (12.0, 30.0) and told["back"] == (30.0, MISSING) and told["once"][0] is MISSING


def test_the_lag_of_a_group_is_that_of_all_its_partitions_or_none():
    of_g = [(1, "g", 0, 1, 1, 10), (2, "g", 1, 1, 1, 5), (3, "g", 0, 1, 1, 1)]
    table = inventory.lag_over_time(history(*of_g, (3, "h", 0, 1, 1, None)))
    assert [None if value != value else value for value in table["g"]] == [None, 15.0, 6.0]
    assert list(table.columns) == ["g"]
    assert inventory.lag_over_time(history((1, "g", 0, 1, 1, None))).empty


def drawn(figure, tmp_path):
    figure.savefig(tmp_path / "x.png")
    pyplot.close(figure)
    return figure.axes[0]


def names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_groups_of_either_file_are_told_by_their_last_commit_and_the_longest_silent_is_on_top(files, tmp_path):
    table = inventory.last_commits(*files)
    assert set(table.index) == {group["group"] for group in GROUPS} | {"NA"}
    assert table.index[0] in ("billing", "crm-sync", "fraud") and table.index[-1] == "sharers"
    assert table.loc["billing", "commits"] == 2 * 60 * 12 and table.loc["billing", "partitions"] == 2
    assert 9 < table.loc["long-idle$$", "days_ago"] < 9.1
    axes = drawn(charts.last_commit_chart(table), tmp_path)
    # A name never becomes a formula.
    assert names(axes)[-1] == r"long-idle\$\$" and "days" in axes.get_xlabel()
    assert axes.patches[-1].get_width() == pytest.approx(9.04, abs=0.01)
    few = drawn(charts.last_commit_chart(table, 2), tmp_path)
    assert len(few.patches) == 2 and "the 2 highest of 8" in few.get_title()


def test_lag_is_drawn_of_the_groups_that_lagged_furthest_and_cadence_where_it_is_known(files, tmp_path):
    axes = drawn(charts.lag_chart_over_time(files[0], 2), tmp_path)
    assert [line.get_label() for line in axes.get_lines()] == ["fraud", "billing"]
    assert "estimates" in axes.get_title() and "the 2 highest of 3" in axes.get_title()
    without = drawn(charts.lag_chart_over_time(files[0].assign(lag=MISSING)), tmp_path)
    assert "no lag" in without.texts[0].get_text()
    axes = drawn(charts.cadence_chart(inventory.cadence(files[0])), tmp_path)
    assert names(axes) == ["billing", "fraud", "crm-sync"] and axes.get_xscale() == "log"


def test_waves_are_those_of_groups_waves_and_every_group_has_a_line_to_each_of_its_topics(files, tmp_path):
    waves = inventory.waves_table(files[1], 2)
    reads = {group["group"]: group["topics"] for group in GROUPS if group["topics"]}
    for number, wave in enumerate(waves_by_topics(reads, 2).waves, 1):
        assert set(waves[waves["wave"] == number].index) == {name for part in wave for name in part.groups}
    assert "sharers" not in waves.index
    assert len(set(waves.loc[["billing", "fraud", "shop-streams", "connect-archive"], "part"])) == 1
    axes = drawn(charts.waves_chart(waves), tmp_path)
    edges = [line for line in axes.get_lines() if len(line.get_xdata()) == 2]
    assert len(edges) == sum(len(topics.split(", ")) for topics in waves["topics"])
    shown = " ".join(text.get_text() for text in axes.texts)
    assert r"long-idle\$\$  (wave " in shown and "orders" in shown
    assert "the first 2 of 7 groups" in drawn(charts.waves_chart(waves, 2), tmp_path).get_title()


def test_files_without_groups_or_rows_have_empty_tables_and_charts(tmp_path):
    (tmp_path / "groups.json").write_text(json.dumps({"groups": []}))
    groups, empty = inventory.open_groups(tmp_path / "groups.json"), history()
    assert inventory.uses_table(groups).empty
    for table, chart in (
        (inventory.waves_table(groups), charts.waves_chart), (inventory.cadence(empty), charts.cadence_chart),
        (inventory.last_commits(empty, groups), charts.last_commit_chart), (empty, charts.lag_chart_over_time),
    ):  # fmt: skip
        assert table.empty
        drawn(chart(table), tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_the_inventory_runs_from_a_clean_kernel_on_exported_files_alone(tmp_path):
    write_inventory(tmp_path)
    before = sorted(tmp_path.iterdir())
    notebook = run("inventory.ipynb", tmp_path, HISTORY="history.csv")
    assert sorted(tmp_path.iterdir()) == before, "it writes nothing"
    assert len(outputs(notebook, "image/png")) == 4
    everything = " ".join(outputs(notebook, "text/html"))
    assert all(word in everything for word in ("Streams", "Connect sink", "billing", "wave"))
