"""The charts by group as values, the longest bar first. The report and the notebook only draw them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrate.plan.totals import Mm2Comparison, compare_with_mm2, group_totals
from migrate.row_table import GroupRows
from migrate.text import many


@dataclass(frozen=True, slots=True)
class GroupBar:
    """One group's bar, in records: the plan's own number, None where a row does not tell it, and what MM2 adds.

    `sign` goes before the plan's number, as in `GroupTotals`; `note` says what MM2's number leaves out.
    """

    group: str
    own: int | None
    sign: str = ""
    mm2_adds: int = 0
    note: str = ""

    @property
    def total(self) -> int:
        """The bar's whole length; an unknown number has none."""
        return (self.own or 0) + self.mm2_adds


@dataclass(frozen=True, slots=True)
class Chart:
    """The bars to draw, the longest first, how long the longest is, and a sentence on the groups that have none."""

    bars: Sequence[GroupBar]
    most: int
    rest: str = ""


def chart_of(bars: Sequence[GroupBar], count: int, by_plan: str = "", beside_mm2: bool = False) -> Chart:
    """Return a chart of the first `count` bars whose number is known; `by_plan` follows the sum of the others."""
    known = [bar for bar in bars if bar.own is not None]
    parts = []
    if rest := known[count:]:
        parts.append(f"{many(len(rest), 'more group')}: {sum(bar.own or 0 for bar in rest):,}{by_plan}")
        if beside_mm2:
            parts.append(f"{sum(bar.total for bar in rest):,} by MM2's checkpoints")
    if len(bars) > len(known):
        parts.append(f"unknown for {many(len(bars) - len(known), 'group')}")
    return Chart(known[:count], max((bar.total for bar in known), default=0), "; ".join(parts))


def rereads_bars(groups: Mapping[str, GroupRows]) -> list[GroupBar]:
    """Return re-reads per group: by this plan, and what following MM2's newest checkpoints would add."""
    bars = []
    for group, rows in groups.items():
        own, mm2 = group_totals(rows), compare_with_mm2(rows)
        bars.append(GroupBar(group, own.rereads, own.sign, mm2.behind_records, _left_out(mm2)))
    return _longest_first(bars)


def lag_bars(groups: Mapping[str, GroupRows]) -> list[GroupBar]:
    """Return how many source records each group had not read when the plan was made."""
    return _longest_first(GroupBar(group, group_totals(rows).lag) for group, rows in groups.items())


def _longest_first(bars: Iterable[GroupBar]) -> list[GroupBar]:
    # What is not known may be the longest of all.
    return sorted(bars, key=lambda bar: (bar.own is not None, -bar.total, bar.group))


def _left_out(mm2: Mm2Comparison) -> str:
    skipping, beyond = many(mm2.skipping_rows, "row"), many(mm2.beyond_rows, "row")
    parts = (
        (mm2.absent_rows, f"no checkpoint for {many(mm2.absent_rows, 'row')}"),
        (mm2.other_commit_rows, f"checkpoints of a later commit for {many(mm2.other_commit_rows, 'row')}"),
        (mm2.skipping_rows, f"checkpoints would skip {mm2.skipping_records:,} records on {skipping}"),
        (mm2.beyond_rows, f"checkpoints lie {mm2.beyond_records:,} beyond on {beyond}"),
    )
    return "; ".join(text for rows, text in parts if rows)
