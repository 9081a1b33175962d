"""The report's charts as pure numbers: shares of a full width in percent, which the template draws. Pure.

A chart names the groups that stand out; the others are added up in one line, so that none is silently absent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from migrate.model import Grade, Row
from migrate.plan.totals import Mm2Comparison, compare_with_mm2, group_totals
from migrate.text import many, name

LANES = 15
LEAST_VISIBLE = 0.4


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: what it stands for ("plan", "mm2", "lag", a grade), where it begins and how long it is, in percent."""

    kind: str
    start: float
    length: float
    value: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One group's bars, below each other, and a remark on what the bars leave out."""

    label: str
    bars: tuple[Bar, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lanes, longest first; `rest` tells of the groups that have none."""

    lanes: tuple[Lane, ...]
    rest: str = ""


def rereads_chart(groups: Mapping[str, Sequence[Row]], beside_mm2: bool) -> Chart:
    """Return re-reads per group: this plan's, and below what following MM2's newest checkpoints would read again."""
    numbers: dict[str, tuple[int, int]] = {}
    compared: dict[str, Mm2Comparison] = {}
    for group, rows in groups.items():
        own = group_totals(rows).rereads
        found = compare_with_mm2(rows)
        if own is not None:
            numbers[group] = (own, own + found.behind_records)
            compared[group] = found
    named = sorted(numbers, key=lambda g: (-max(numbers[g]), g))
    shown = named[:LANES]
    most = max((max(numbers[g]) for g in shown), default=0)
    lanes = []
    for group in shown:
        own, mm2 = numbers[group]
        bars = [Bar("plan", 0, share(own, most), f"{group_totals(groups[group]).sign}{own:,}")]
        if beside_mm2:
            bars.append(Bar("mm2", 0, share(mm2, most), f"{mm2:,}"))
        lanes.append(Lane(name(group), tuple(bars), _left_out(compared[group]) if beside_mm2 else ""))
    rest, told = named[LANES:], []
    if rest:
        told.append(f"{many(len(rest), 'more group')}: {sum(numbers[g][0] for g in rest):,} by this plan")
        if beside_mm2:
            told.append(f"{sum(numbers[g][1] for g in rest):,} by MM2's checkpoints")
    unknown = len(groups) - len(numbers)
    if unknown:
        told.append(f"unknown for {many(unknown, 'group')}")
    return Chart(tuple(lanes), "; ".join(told))


def lag_chart(groups: Mapping[str, Sequence[Row]]) -> Chart:
    """Return how many source records each group had not read when the plan was made."""
    lags = {group: behind for group, rows in groups.items() if (behind := group_totals(rows).lag) is not None}
    named = sorted(lags, key=lambda g: (-lags[g], g))
    shown, rest = named[:LANES], named[LANES:]
    most = max((lags[g] for g in shown), default=0)
    lanes = tuple(Lane(name(g), (Bar("lag", 0, share(lags[g], most), f"{lags[g]:,}"),)) for g in shown)
    told = [f"{many(len(rest), 'more group')}: {sum(lags[g] for g in rest):,}"] if rest else []
    if len(groups) > len(lags):
        told.append(f"unknown for {many(len(groups) - len(lags), 'group')}")
    return Chart(lanes, "; ".join(told))


def grades_bar(grades: Mapping[Grade | None, int]) -> tuple[Bar, ...]:
    """Return the rows by grade as parts of one bar, best first; the last is rows without a grade."""
    total = sum(grades.values())
    bars, start = [], 0.0
    for grade in (*Grade, None):
        count = grades.get(grade, 0)
        if count:
            length = 100 * count / total
            bars.append(Bar(str(grade or "none"), round(start, 3), round(length, 3), f"{count:,}"))
            start += length
    return tuple(bars)


def share(value: int, most: int) -> float:
    """Return `value` in percent of `most`; what is not nothing can be seen."""
    if value <= 0 or most <= 0:
        return 0.0
    return round(max(LEAST_VISIBLE, 100 * value / most), 3)


def _left_out(found: Mm2Comparison) -> str:
    told = []
    if found.absent_rows:
        told.append(f"no checkpoint for {many(found.absent_rows, 'row')}")
    if found.skipping_rows:
        told.append(f"checkpoints would skip {found.skipping_records:,} records on {many(found.skipping_rows, 'row')}")
    if found.beyond_rows:
        told.append(f"checkpoints lie {found.beyond_records:,} beyond on {many(found.beyond_rows, 'row')}")
    return "; ".join(told)
