"""What `inventory.ipynb` is made of: exported histories and lists of groups as pandas tables. Writes nothing.

A history is what `groups history` writes (CSV or Parquet), or what `groups export --history --format parquet` does;
the groups are `groups list --format json`. Needs no broker. In a notebook an error is one line, as in `review`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.errors import UsageError
from migrate.extras.inventory.listing import GroupNotice
from migrate.extras.inventory.waves import waves_by_topics
from migrate.show.review import data_frame, extra_module, review_errors

if TYPE_CHECKING:
    import pandas as pd

PLACE = ["group", "topic", "partition"]
SERIES = ("time", *PLACE, "offset", "commits", "records_per_s", "end_at_time", "lag")
LISTED = (
    "group", "kind", "protocol_type", "state", "members", "topics", "lag", "last_commit_ms", "attention",
)  # fmt: skip
USES = {GroupNotice.STREAMS: "Streams", GroupNotice.CONNECT_SINK: "Connect sink", GroupNotice.VENDOR: "vendor's own"}
OTHER_USE = "consumer"

RowsOf = Callable[[str], tuple[Sequence[str], Sequence[Sequence[Any]]]]
"""Reads a Parquet table: its columns and its rows, timestamps in ms since 1970."""


def open_history(path: str | Path, rows_of: RowsOf) -> "pd.DataFrame":
    """Return a history, a line per group, partition and time, in the order of time.

    `rows_of` reads Parquet. Of an export, every commit is a line, and there is no lag: log ends are not in it.
    Raises `ReviewStopped` with one line for what is missing or is something else.
    """
    with review_errors():
        pandas = extra_module("pandas")
        pandas.set_option("display.max_columns", None)
        pandas.set_option("display.html.use_mathjax", False)
        if str(path).endswith(".csv"):
            try:
                # A group may be named NA.
                table = pandas.read_csv(path, keep_default_na=False, na_values={n: [""] for n in SERIES[4:]})
            except (OSError, ValueError) as error:
                raise UsageError(f"{path} cannot be read: {error}.", "Name what --format csv has written.") from error
        else:
            columns, rows = rows_of(str(path))
            table = pandas.DataFrame(list(rows), columns=list(columns))
        return _series(table, path)


def _series(table: "pd.DataFrame", path: str | Path) -> "pd.DataFrame":
    pandas = extra_module("pandas")
    if {"logTimestamp", "tombstone", "offset", *PLACE} <= set(table.columns):
        commits = table[~table["tombstone"].astype(bool) & table["offset"].notna()]
        table = commits.assign(time=commits["logTimestamp"], commits=1, records_per_s=None, end_at_time=None, lag=None)
    if not set(SERIES) <= set(table.columns):
        raise UsageError(
            f"{path} is not a history.",
            "Make one with `mm2-migrate groups history --format parquet`, or `groups export --history`.",
        )
    table = table[list(SERIES)]
    times = table["time"]
    is_text = len(times) and isinstance(times.iloc[0], str)
    made = pandas.to_datetime(times, utc=True) if is_text else pandas.to_datetime(times, unit="ms", utc=True)
    numbers = dict.fromkeys(("partition", "offset", "commits", "end_at_time", "lag"), "Int64")
    typed = table.assign(time=made).astype({**numbers, "records_per_s": "Float64"})
    return typed.sort_values(["time", *PLACE], ignore_index=True)


def open_groups(path: str | Path) -> "pd.DataFrame":
    """Return the groups of `groups list --format json`, a line each; what was not visible is absent."""
    with review_errors():
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            groups: list[Mapping[str, Any]] = document["groups"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{path} cannot be read: {error}.", "Make one with `mm2-migrate groups list --format json`."
            ) from error
        lines = [{field: group.get(field) for field in LISTED} | {"use": _use(group)} for group in groups]
        return data_frame(lines, [*LISTED, "use"], ["members", "lag", "last_commit_ms"]).set_index("group")


def _use(group: Mapping[str, Any]) -> str:
    said = group.get("attention") or ()
    if group.get("kind") == "share":
        return "share"
    if group.get("protocol_type") == "connect":
        return "Connect worker"
    return next((word for notice, word in USES.items() if notice in said), OTHER_USE)


def uses_table(groups: "pd.DataFrame") -> "pd.DataFrame":
    """Return how many groups there are of each use: consumers, Streams, Connect, a vendor's own."""
    return groups.groupby("use").size().sort_values(ascending=False).to_frame("groups")


def last_commits(history: "pd.DataFrame", groups: "pd.DataFrame") -> "pd.DataFrame":
    """Return a line per group of either file, the one that committed last on top; `days_ago` is before the newest.

    A group of the list that the history lacks has what the list says of it (`groups list --records`), or nothing.
    """
    pandas = extra_module("pandas")
    by_history = history.groupby("group")["time"].max()
    listed = pandas.to_datetime(groups["last_commit_ms"], unit="ms", utc=True).dropna()
    # The history's time is that of a bucket's end.
    newest = by_history.combine_first(listed)
    table = newest.to_frame("last_commit").reindex(newest.index.union(groups.index))
    table["days_ago"] = ((table["last_commit"].max() - table["last_commit"]).dt.total_seconds() / 86_400).round(2)
    table["partitions"] = history.drop_duplicates(PLACE).groupby("group").size()
    table["commits"] = history.groupby("group")["commits"].sum()
    table["use"] = groups["use"]
    table["state"] = groups["state"]
    numbers = dict.fromkeys(("partitions", "commits"), "Int64")
    return table.astype(numbers).sort_values("last_commit", ascending=False, na_position="last")


def cadence(history: "pd.DataFrame") -> "pd.DataFrame":
    """Return how often each group commits, and how much: about what a hard stop has it read twice.

    `seconds_between_commits` is the time from its first to its last commit on a partition over the commits in between,
    `records_between_commits` the same of the offsets where it never went back; each the median of its partitions.
    Absent where no partition has two times: the log cleaner leaves only the newest commit.
    """
    pandas = extra_module("pandas")
    by_place = history.sort_values("time").groupby(PLACE)
    each = by_place.agg(
        first=("time", "first"), last=("time", "last"), low=("offset", "first"), high=("offset", "last"),
        commits=("commits", "sum"), begun=("commits", "first"),
    )  # fmt: skip
    each["backwards"] = by_place["offset"].apply(lambda offsets: bool((offsets.diff() < 0).any()))
    # The first row's commits came before its time: what is measured begins with its newest one.
    between = (each["commits"] - each["begun"]).where(each["last"] > each["first"])
    each["seconds_between_commits"] = (each["last"] - each["first"]).dt.total_seconds() / between.astype("Float64")
    made = (each["high"] - each["low"]).where(~each["backwards"])
    each["records_between_commits"] = made.astype("Float64") / between.astype("Float64")
    names = ["seconds_between_commits", "records_between_commits"]
    medians = each.groupby("group")[names].median().astype("Float64").round(1)
    medians["commits"] = history.groupby("group")["commits"].sum()
    return pandas.DataFrame(medians).sort_values(names[0], na_position="last")


def lag_over_time(history: "pd.DataFrame") -> "pd.DataFrame":
    """Return the lag of each group (columns) over time (index): partitions added up.

    A partition without a commit keeps its lag until the next; a group has none before all of its partitions have one.
    """
    known = history[history["lag"].notna()]
    if known.empty:
        return extra_module("pandas").DataFrame()
    wide = known.pivot_table(index="time", columns=PLACE, values="lag", aggfunc="last").astype("float").ffill()
    return wide.T.groupby(level="group").sum(min_count=1).T.where(wide.notna().T.groupby(level="group").all().T)


def waves_table(groups: "pd.DataFrame", max_groups: int = 100) -> "pd.DataFrame":
    """Return which groups move together, as `groups waves` packs those of the list that have topics: a line each.

    `part` counts what shared topics hold together: it is never split. Share and streams groups are in no wave.
    """
    moved = groups[~groups["kind"].isin(["share", "streams"])]
    reads = {group: topics for group, topics in moved["topics"].items() if topics}
    lines, part = [], 0
    for number, wave in enumerate(waves_by_topics(reads, max_groups).waves, 1):
        for held in wave:
            part += 1
            lines += [
                {"group": g, "wave": number, "part": part, "topics": ", ".join(sorted(reads[g]))} for g in held.groups
            ]
    return data_frame(lines, ["group", "wave", "part", "topics"]).set_index("group")
