"""The notebooks' charts, drawn with matplotlib. Each returns its figure; nothing is shown or saved here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from migrate.model import Grade
from migrate.plan.plan import Plan
from migrate.show.charts import GroupBar, lag_bars, rereads_bars
from migrate.show.review import ReviewStopped, extra_module
from migrate.text import safe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 30
# Told apart in greyscale and by people who do not see red and green (Okabe and Ito).
PLAN_COLOUR, MM2_COLOUR, LOG_COLOUR = "#0072B2", "#E69F00", "#999999"
GRADE_COLOURS = {
    Grade.EXACT: "#009E73", Grade.BOUNDED: "#56B4E9", Grade.ESTIMATED: "#E69F00", None: "#999999",
}  # fmt: skip


def rereads_chart(plan: Plan, most: int = MOST_BARS) -> "Figure":
    """Draw records read twice per group: by this plan, and what MM2's newest checkpoints, if any, add to that."""
    figure, axes, shown = _bars("Records read twice, by group", rereads_bars(plan.groups()), most)
    names, plans = [drawn(bar.group) for bar in shown], [bar.own or 0 for bar in shown]
    axes.barh(names, plans, color=PLAN_COLOUR, label="this plan")
    if plan.header.has_checkpoints:
        axes.barh(names, [bar.mm2_adds for bar in shown], left=plans, color=MM2_COLOUR,
                  label="more from MM2's checkpoints")  # fmt: skip
    axes.legend(loc="lower right")
    return figure


def grades_chart(plan: Plan, most: int = MOST_BARS) -> "Figure":
    """Draw rows by grade, a bar for each group."""
    groups = sorted(plan.groups().items(), key=lambda item: (-len(item[1]), item[0]))
    figure, axes = bar_figure(f"Rows by grade{how_many(len(groups), most)}", len(groups[:most]))
    shown = groups[:most][::-1]
    names, left = [drawn(group) for group, _ in shown], [0] * len(shown)
    for grade, colour in GRADE_COLOURS.items():
        if any(row.grade == grade for row in plan.rows):
            values = [sum(row.grade == grade for row in rows) for _, rows in shown]
            axes.barh(names, values, left=left, color=colour, label=str(grade or "no grade"))
            left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_xlabel("rows")
    axes.legend(loc="lower right")
    return figure


def lag_chart(plan: Plan, most: int = MOST_BARS) -> "Figure":
    """Draw how many records each group had still to read on the source when the plan was made."""
    figure, axes, shown = _bars("Lag at the cutover, by group", lag_bars(plan.groups()), most)
    axes.barh([drawn(bar.group) for bar in shown], [bar.own or 0 for bar in shown], color=PLAN_COLOUR)
    return figure


def places_chart(plan: Plan, topic: str, partition: int, most: int = MOST_BARS) -> "Figure":
    """Draw where each group is in both logs of one partition: committed, planned, and by MM2's checkpoint.

    `topic` is the source's name. Raises `ReviewStopped` if no row of the plan is on that partition.
    """
    rows = [row for row in plan.rows if (row.source_topic, row.partition) == (topic, partition)]
    if not rows:
        known = sorted({f"{row.source_topic}:{row.partition}" for row in plan.rows})
        raise ReviewStopped(
            f"No row of this plan is on {topic}:{partition}.", f"Some that are: {', '.join(known[:5]) or 'none'}."
        )
    shown = rows[:most]
    size = (11, 1.6 + 0.3 * max(len(shown), 2))
    figure, (left, right) = extra_module("matplotlib.pyplot").subplots(
        1, 2, figsize=size, sharey=True, layout="constrained"
    )
    figure.suptitle(f"{drawn(topic)}, partition {partition}")
    names = [drawn(row.group) for row in shown]
    of_mm2 = ("checkpoint_target_offset", "MM2's checkpoint", MM2_COLOUR, "x")
    checkpoint = [of_mm2] if plan.header.has_checkpoints else []
    for axes, title, starts, ends, sets in (
        (left, plan.header.source_alias, "source_log_start", "source_log_end",
         (("source_committed", "committed", PLAN_COLOUR, "o"),)),
        (right, plan.header.target_alias, "target_log_start", "target_log_end",
         (("target_offset", "this plan", PLAN_COLOUR, "o"), *checkpoint)),
    ):  # fmt: skip
        logs = [(i, getattr(r, starts), getattr(r, ends)) for i, r in enumerate(shown)]
        pinned = [(i, start, end) for i, start, end in logs if start is not None and end is not None]
        axes.hlines([i for i, _, _ in pinned], [s for _, s, _ in pinned], [e for _, _, e in pinned], color=LOG_COLOUR,
                    linewidth=6, alpha=0.4, label="log")  # fmt: skip
        for field, label, colour, marker in sets:
            points = [(getattr(r, field), i) for i, r in enumerate(shown) if getattr(r, field) is not None]
            axes.scatter([p[0] for p in points], [p[1] for p in points], color=colour, marker=marker, label=label,
                         zorder=3)  # fmt: skip
        axes.set_title(f"log on {drawn(title)}")
        axes.set_xlabel("offset")
        axes.legend(fontsize="small")
    left.set_yticks(range(len(names)), names)
    return figure  # type: ignore[no-any-return]


def _bars(title: str, bars: Sequence[GroupBar], most: int) -> "tuple[Figure, Axes, list[GroupBar]]":
    """Return figure, axes, and the bars to draw from the bottom up."""
    figure, axes = bar_figure(f"{title}{how_many(len(bars), most)}", len(bars[:most]))
    axes.set_xlabel("records")
    return figure, axes, [*bars[:most]][::-1]


def bar_figure(title: str, bars: int) -> "tuple[Figure, Axes]":
    """Return a figure with a title and room for so many bars, and its axes."""
    figure, axes = extra_module("matplotlib.pyplot").subplots(
        figsize=(9, 1.2 + 0.3 * max(bars, 2)), layout="constrained"
    )
    axes.set_title(title)
    return figure, axes


def how_many(bars: int, most: int) -> str:
    """Return what a title says where not all bars are drawn."""
    return f" (the {most} highest of {bars})" if bars > most else ""


def drawn(text: str) -> str:
    """Return a name that matplotlib draws as it is: a dollar sign would begin a formula."""
    text = safe(text)
    shown = text if len(text) <= 40 else f"{text[:25]}...{text[-12:]}"
    return shown.replace("$", r"\$")
