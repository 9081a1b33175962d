"""The tables of the inventory's notebook: what exported files say, and nothing that they do not."""

import json

import pytest

from migrate.extras.inventory import review as inventory
from migrate.extras.inventory.waves import waves_by_topics
from migrate.show.review import ReviewStopped
from tests.extras.inventory.unit.exportedfiles import FIELDS, GROUPS, MINUTE_MS, START_MS, history_rows, write_inventory


def nobody(path):
    raise AssertionError(f"{path} is no Parquet")


@pytest.fixture
def files(tmp_path):
    write_inventory(tmp_path)
    return inventory.open_history(tmp_path / "history.csv", nobody), inventory.open_groups(tmp_path / "groups.json")


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
    assert (line.group, line.offset, line.commits) == ("g", 5, 1) and line.lag is inventory.extra_module("pandas").NA


def test_what_is_something_else_is_one_line(tmp_path):
    with pytest.raises(ReviewStopped, match="x is not a history"):
        inventory.open_history("x", lambda path: (["key"], [("k",)]))
    (tmp_path / "groups.json").write_text("{}")
    with pytest.raises(ReviewStopped, match="cannot be read"):
        inventory.open_groups(tmp_path / "groups.json")
    (tmp_path / "groups.json").write_text("not JSON")
    with pytest.raises(ReviewStopped, match="cannot be read"):
        inventory.open_groups(tmp_path / "groups.json")


def test_every_group_has_one_use(files):
    uses = dict(files[1]["use"])
    assert uses == {
        "billing": "consumer", "crm-sync": "consumer", "fraud": "consumer", "long-idle$$": "consumer",
        "shop-streams": "Streams", "connect-archive": "Connect sink", "_internal-monitor": "vendor's own",
        "sharers": "share",
    }  # fmt: skip
    assert inventory.uses_table(files[1])["groups"].sum() == len(GROUPS)


def test_groups_of_either_file_are_told_by_their_last_commit(files):
    table = inventory.last_commits(*files)
    assert set(table.index) == {group["group"] for group in GROUPS} | {"NA"}
    assert table.index[0] in ("billing", "crm-sync", "fraud") and table.index[-1] == "sharers"
    assert table.loc["billing", "commits"] == 2 * 60 * 12 and table.loc["billing", "partitions"] == 2
    assert 9 < table.loc["long-idle$$", "days_ago"] < 9.1


def test_cadence_is_the_time_and_the_records_between_commits_and_not_made_up_of_one():
    steady, one = [(1, "g", 0, 100, 4, 0), (3, "g", 0, 400, 10, 0)], [(1, "once", 0, 5, 1, 0)]
    made = history(*steady, *one, (1, "back", 0, 9, 1, 0), (2, "back", 0, 3, 2, 0))
    table = inventory.cadence(made)
    assert (table.loc["g", "seconds_between_commits"], table.loc["g", "records_between_commits"]) == (12.0, 30.0)
    missing = inventory.extra_module("pandas").NA
    assert table.loc["once", "seconds_between_commits"] is missing
    assert table.loc["back", "seconds_between_commits"] == 30.0
    assert table.loc["back", "records_between_commits"] is missing


def test_the_lag_of_a_group_is_that_of_all_its_partitions_or_none():
    of_g = [(1, "g", 0, 1, 1, 10), (2, "g", 1, 1, 1, 5), (3, "g", 0, 1, 1, 1)]
    table = inventory.lag_over_time(history(*of_g, (3, "h", 0, 1, 1, None)))
    assert [None if value != value else value for value in table["g"]] == [None, 15.0, 6.0]
    assert list(table.columns) == ["g"]
    assert inventory.lag_over_time(history((1, "g", 0, 1, 1, None))).empty


def test_waves_are_those_of_groups_waves(files):
    table = inventory.waves_table(files[1], 2)
    reads = {group["group"]: group["topics"] for group in GROUPS if group["topics"]}
    for number, wave in enumerate(waves_by_topics(reads, 2).waves, 1):
        assert set(table[table["wave"] == number].index) == {name for part in wave for name in part.groups}
    assert "sharers" not in table.index
    assert len(set(table.loc[["billing", "fraud", "shop-streams", "connect-archive"], "part"])) == 1


def test_a_list_without_groups_and_a_history_without_rows_have_no_rows(tmp_path):
    (tmp_path / "groups.json").write_text(json.dumps({"groups": []}))
    groups, empty = inventory.open_groups(tmp_path / "groups.json"), history()
    assert inventory.waves_table(groups).empty and inventory.last_commits(empty, groups).empty
    assert inventory.cadence(empty).empty and inventory.uses_table(groups).empty
