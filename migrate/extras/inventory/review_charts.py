"""The charts of `inventory.ipynb`, drawn with matplotlib. Each returns its figure; nothing is shown or saved here."""

from itertools import cycle
from typing import TYPE_CHECKING, Any

from migrate.extras.inventory.review import lag_over_time
from migrate.show.review import extra_module
from migrate.show.review_charts import bar_figure, drawn, how_many
from migrate.text import duration_text, many

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_BARS, MOST_LINES, MOST_GROUPS = 30, 8, 40
# Okabe and Ito, told apart also by who does not see red and green; dashes tell apart what greyscale does not.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
DASHES = ("-", "--", ":", "-.")
_DAY = 86_400


def last_commit_chart(table: "pd.DataFrame", most: int = MOST_BARS) -> "Figure":
    """Draw how long before the newest commit of all each group committed last: the longest on top."""
    known = table[table["last_commit"].notna()].sort_values("last_commit")
    shown = known.head(most).iloc[::-1]
    figure, axes = bar_figure(f"Since the group's last commit{how_many(len(known), most)}", len(shown))
    seconds = list((known["last_commit"].max() - shown["last_commit"]).dt.total_seconds())
    unit, divisor = _unit(max(seconds, default=0))
    bars = axes.barh([drawn(group) for group in shown.index], [value / divisor for value in seconds], color=COLOURS[0])
    # A bar of minutes beside one of days is not to be seen.
    axes.bar_label(bars, [duration_text(value) for value in seconds], padding=3, fontsize="small")
    axes.margins(x=0.12)
    axes.set_xlabel(f"{unit} before the newest commit of all groups")
    return figure


def cadence_chart(table: "pd.DataFrame", most: int = MOST_BARS) -> "Figure":
    """Draw the seconds between a group's commits on a partition, on a scale of powers of ten: the rarest on top."""
    name = "seconds_between_commits"
    known = table[table[name].notna() & (table[name] > 0)].sort_values(name, ascending=False)
    shown = known.head(most).iloc[::-1]
    figure, axes = bar_figure(f"Time between commits on a partition{how_many(len(known), most)}", len(shown))
    values, names = shown[name].astype(float), [drawn(group) for group in shown.index]
    start = min(1.0, values.min() / 2 if len(values) else 1.0)
    axes.hlines(names, start, values, color=COLOURS[7], linewidth=1)
    axes.plot(values, names, "o", color=COLOURS[0])
    axes.set_xscale("log")
    axes.set_xlim(left=start)
    axes.margins(y=0.5 / max(len(names), 1))
    axes.xaxis.set_major_formatter(extra_module("matplotlib.ticker").FormatStrFormatter("%g"))
    axes.set_xlabel("seconds, median of its partitions")
    return figure


def lag_chart_over_time(history: "pd.DataFrame", most: int = MOST_LINES) -> "Figure":
    """Draw the lag of the groups that lagged furthest, over time; always an estimate."""
    lags = lag_over_time(history)
    pyplot: Any = extra_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    worst = list(lags.max().sort_values(ascending=False).index[:most]) if len(lags) else []
    axes.set_title(f"Lag over time (estimates){how_many(lags.shape[1], most)}")
    for number, (group, colour) in enumerate(zip(worst, cycle(COLOURS), strict=False)):
        line = lags[group].dropna()
        axes.plot(line.index, line, drawstyle="steps-post", color=colour, linestyle=DASHES[number % len(DASHES)],
                  marker="." if len(line) < 50 else None, label=drawn(str(group)))  # fmt: skip
    axes.set_ylabel("records")
    axes.set_ylim(bottom=min(0, *(lags[worst].min().tolist() or [0])) if worst else 0)
    dates: Any = extra_module("matplotlib.dates")
    locator = dates.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.set_xlabel("UTC")
    if worst:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        axes.text(0.5, 0.5, "no lag in this history", ha="center", transform=axes.transAxes)
    return figure  # type: ignore[no-any-return]


def waves_chart(waves: "pd.DataFrame", most: int = MOST_GROUPS) -> "Figure":
    """Draw groups (left) and the topics that they read (right), a line for each, a colour for each part.

    Parts follow each other from the top, so that lines of different parts never cross.
    """
    ordered = waves.sort_values(["wave", "part"], kind="stable")
    shown = ordered.head(most)
    topics = list(dict.fromkeys(topic for text in shown["topics"] for topic in text.split(", ")))
    pyplot: Any = extra_module("matplotlib.pyplot")
    rows = max(len(shown), len(topics), 2)
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.3 * rows), layout="constrained")
    of = f" (the first {most} of {many(len(waves), 'group')})" if len(waves) > most else ""
    axes.set_title(f"What moves together: groups and their topics{of}")
    left, right = _spread(len(shown), rows), _spread(len(topics), rows)
    places = dict(zip(topics, right, strict=True))
    for (group, line), y in zip(shown.iterrows(), left, strict=True):
        colour = COLOURS[(line["part"] - 1) % len(COLOURS)]
        axes.text(-0.03, y, f"{drawn(str(group))}  (wave {line['wave']})", ha="right", va="center", color=colour)
        axes.plot(0, y, "o", color=colour)
        for topic in line["topics"].split(", "):
            axes.plot([0, 1], [y, places[topic]], color=colour, linewidth=1, alpha=0.7)
            axes.plot(1, places[topic], "s", color=colour)
    for topic, y in places.items():
        axes.text(1.03, y, drawn(topic), ha="left", va="center")
    axes.set_xlim(-0.8, 1.7)
    axes.set_ylim(-0.2, rows + 0.3)
    axes.axis("off")
    return figure  # type: ignore[no-any-return]


def _spread(count: int, rows: int) -> list[float]:
    """Return so many heights from the top down, evenly over all rows."""
    return [rows - (number + 0.5) * rows / count for number in range(count)]


def _unit(seconds: float) -> tuple[str, int]:
    """Return the largest unit of which there are two or more."""
    return next(
        ((unit, size) for unit, size in (("days", _DAY), ("hours", 3600), ("minutes", 60)) if seconds >= 2 * size),
        ("seconds", 1),
    )
