"""Several plans and their journals added up: which groups have moved, which are left, which were undone.

A group may be in more than one plan (blocked in the first wave, moved in the second): over all plans of a flow
it counts once, by the furthest that any of them has come. A wave is read from its files: the plan, its journal, and the
journals of the undo plans that spent it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from migrate.apply.history import JournalState
from migrate.apply.journal import history_beside
from migrate.model import Decision, Row
from migrate.plan.plan import UNDO, Plan

Flow = tuple[str, str]
"""The two clusters' ids (aliases where a plan has none), the one that the groups leave first."""


class GroupStanding(StrEnum):
    """How far a group has come, the furthest first.

    `moved`: every planned offset was written. `uncertain`: some were, or may have been; run the command again.
    `undone`: written, then taken back. `left`: nothing was written. `as-it-is`: the plan has nothing to write.
    """

    MOVED = "moved"
    UNCERTAIN = "uncertain"
    UNDONE = "undone"
    LEFT = "left"
    AS_IT_IS = "as-it-is"


# An undo plan moves nothing forward: what it has written is undone, what it has not leaves the plan before it as it is.
_UNDOING = {GroupStanding.MOVED: GroupStanding.UNDONE, GroupStanding.LEFT: GroupStanding.AS_IT_IS}


@dataclass(frozen=True)
class Wave:
    """A plan, and what its journal and those of the undo plans that spent it tell together."""

    path: str
    plan: Plan
    journal: JournalState

    @property
    def flow(self) -> Flow:
        """The clusters that it moves groups between."""
        header = self.plan.header
        return header.source_cluster_id or header.source_alias, header.target_cluster_id or header.target_alias

    @cached_property
    def groups(self) -> dict[str, GroupStanding]:
        """How far each group has come."""
        standings = {group: _standing(group, rows, self) for group, rows in self.plan.groups().items()}
        if self.plan.header.kind != UNDO:
            return standings
        return {group: _UNDOING.get(standing, standing) for group, standing in standings.items()}

    @property
    def offsets(self) -> int:
        """How many rows were written and not undone."""
        return sum(
            trace.is_certain(partition)
            for group, trace in self.journal.applied.items()
            if self.groups.get(group) in (GroupStanding.MOVED, GroupStanding.UNCERTAIN)
            for partition in trace.results
        )


def of_flows(waves: Iterable[Wave]) -> dict[Flow, dict[str, GroupStanding]]:
    """Return each flow's groups, each once: where several plans have it, by the furthest that one has come."""
    flows: dict[Flow, dict[str, GroupStanding]] = {}
    order = list(GroupStanding)
    for wave in waves:
        groups = flows.setdefault(wave.flow, {})
        for group, standing in wave.groups.items():
            groups[group] = min(groups.get(group, standing), standing, key=order.index)
    return flows


Locations = tuple[dict[str, list[str]], list[str]]
"""Groups on each of two clusters, by its alias in their first plan, and those of which the journals do not tell.

Of the latter only some offsets were written, or may have been, or the plan found nothing to write. All are called what
they are called there, sorted.
"""


def group_locations(waves: Iterable[Wave]) -> list[Locations]:
    """Return where groups are, for each pair of clusters that waves go between both ways, by their first plan."""
    in_time = sorted(waves, key=lambda wave: wave.plan.header.created_at_ms)
    flows = list(dict.fromkeys(wave.flow for wave in in_time))
    both_ways = [flow for number, flow in enumerate(flows) if flow[::-1] in flows[number + 1 :]]
    return [_locations([wave for wave in in_time if wave.flow in (flow, flow[::-1])]) for flow in both_ways]


def _locations(in_time: Sequence[Wave]) -> Locations:
    """Follow each group from wave to wave; a wave that did not move it leaves it where it was."""
    is_certain: dict[tuple[str, str], bool] = {}
    for wave in in_time:
        # By id: another plan may call the same cluster otherwise.
        source, target = wave.flow
        called = wave.plan.rows.renamed()
        for group, standing in wave.groups.items():
            here = source, group
            there = target, called.get(group, group)
            if standing in (GroupStanding.MOVED, GroupStanding.UNCERTAIN):
                is_certain.pop(here, None)
                is_certain[there] = standing is GroupStanding.MOVED
            elif there not in is_certain:
                is_certain.setdefault(here, standing is not GroupStanding.AS_IT_IS)
    first = in_time[0].plan.header
    on = {
        alias: sorted(group for (where, group), certain in is_certain.items() if where == cluster and certain)
        for cluster, alias in zip(in_time[0].flow, (first.source_alias, first.target_alias), strict=True)
    }
    return on, sorted({group for (_, group), certain in is_certain.items() if not certain})


def _standing(group: str, rows: Sequence[Row], wave: Wave) -> GroupStanding:
    trace = wave.journal.applied.get(group)
    if trace is None or not trace.written():
        blocked = any(row.decision is Decision.BLOCK for row in rows)
        writes = any(row.decision in (Decision.SET, Decision.REMOVE) for row in rows)
        return GroupStanding.LEFT if writes or blocked else GroupStanding.AS_IT_IS
    back = wave.journal.rolled_back.get(group)
    if back is not None and back.written():
        # Taken back whole, or it is somewhere between the two clusters.
        return GroupStanding.UNDONE if back.is_whole else GroupStanding.UNCERTAIN
    return GroupStanding.MOVED if trace.is_whole else GroupStanding.UNCERTAIN


def wave_of(path: Path, plan: Plan) -> Wave:
    """Return the wave of a plan that was read from `path`; raises as `history_beside` does."""
    return Wave(str(path), plan, history_beside(path, plan.fingerprint))
