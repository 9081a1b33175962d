"""`show` over several plans: what the waves have moved so far, as text and as JSON. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from migrate.apply.waves import GroupStanding, Wave, WaveSum, group_locations, of_flows, wave_sum
from migrate.clock import iso
from migrate.plan.plan import Plan
from migrate.show.lines import names, tally, wrapped
from migrate.show.table import Column, Table
from migrate.text import Colour, many, name, safe

NAMED = 20


def _counted(standing: GroupStanding) -> Column[WaveSum]:
    return Column(standing.upper(), lambda wave: wave.counts()[standing], right=True)


PLAN: tuple[Column[WaveSum], ...] = (
    Column("PLAN", lambda counted: counted.wave.path, name),
    Column("FINGERPRINT", lambda counted: counted.wave.plan.short_fingerprint),
    Column("FLOW", lambda counted: _arrow(counted.wave.plan)),
)
COUNTS: tuple[Column[WaveSum], ...] = (
    Column("GROUPS", lambda counted: len(counted.groups), right=True),
    *map(_counted, GroupStanding),
    Column("OFFSETS", lambda counted: counted.offsets, right=True),
)


def wave_lines(waves: Sequence[Wave], width: int = 80, colour: bool = False) -> Iterator[str]:
    """Yield the sum of all waves, a line per wave, groups that are not moved, and where each is if some went back."""
    sums = [wave_sum(wave) for wave in waves]
    flows = of_flows(sums)
    arrows = {counted.wave.flow: _arrow(counted.wave.plan) for counted in sums}
    for flow, groups in flows.items():
        counts = Counter(groups.values())
        standings = tally(counts, GroupStanding) or "none"
        head = f"{safe(arrows[flow])}: {many(len(groups), 'group')}: {standings}"
        good = Colour.YELLOW if counts[GroupStanding.LEFT] else Colour.GREEN
        shade = Colour.RED if counts[GroupStanding.UNCERTAIN] else good
        yield from wrapped(head, width, "", "  ", shade if colour else None)
    yield ""
    yield from Table((*PLAN, *COUNTS), sums, width, narrow=COUNTS).lines(colour, above=_plan)
    yield ""
    yield from wrapped(
        "A group that is in several plans counts once in the sum. What the journals hold is what was written; "
        "`mm2-migrate verify` reads what is there now.",
        width,
    )
    for standing in (GroupStanding.UNCERTAIN, GroupStanding.UNDONE, GroupStanding.LEFT):
        those = sorted({group for groups in flows.values() for group, s in groups.items() if s is standing})
        if those:
            yield from wrapped(f"{standing}: {names(those, NAMED)}", width, "", "  ")
    for located in group_locations(sums):
        unknown = f"on {' or '.join(map(name, located.on))}, which these journals do not say"
        yield ""
        for where, those in [*((f"on {name(a)}", g) for a, g in located.on.items()), (unknown, located.not_certain)]:
            if those:
                yield from wrapped(f"{where}: {many(len(those), 'group')}: {names(those, NAMED)}", width, "", "  ")


def wave_document(waves: Sequence[Wave]) -> Iterator[str]:
    """Yield one JSON document: the sum per flow, every wave with its groups' standings, and where groups are."""
    sums = [wave_sum(wave) for wave in waves]
    yield json.dumps(
        {
            "flows": [
                {"source": flow[0], "target": flow[1], "counts": _counts(groups.values()), "groups": groups}
                for flow, groups in of_flows(sums).items()
            ],
            "waves": [
                {
                    "path": counted.wave.path,
                    "fingerprint": counted.wave.plan.fingerprint,
                    "kind": counted.wave.plan.header.kind,
                    "created_at": iso(counted.wave.plan.header.created_at_ms),
                    "source": counted.wave.plan.header.source_alias,
                    "target": counted.wave.plan.header.target_alias,
                    "spent": counted.wave.journal.is_spent,
                    "counts": _counts(counted.groups.values()),
                    "offsets_written": counted.offsets,
                    "groups_blocked": counted.blocked,
                    "groups": counted.groups,
                }
                for counted in sums
            ],
            "locations": [{"on": each.on, "not_certain": each.not_certain} for each in group_locations(sums)],
        },
        indent=1,
    )


def _counts(standings: Iterable[GroupStanding]) -> dict[str, int]:
    counted = Counter(standings)
    return {str(s): counted[s] for s in GroupStanding}


def _plan(counted: WaveSum) -> str:
    return "  ".join(column.cell(counted) for column in PLAN)


def _arrow(plan: Plan) -> str:
    return f"{plan.header.source_alias} -> {plan.header.target_alias}"
