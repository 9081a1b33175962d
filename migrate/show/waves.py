"""`show` over several plans: what the waves have moved so far, as text and as JSON. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from migrate.apply.waves import GroupStanding, Wave, group_locations, of_flows
from migrate.clock import iso
from migrate.plan.plan import Plan
from migrate.show.lines import names, tally, wrapped
from migrate.show.table import Column, Table
from migrate.text import Colour, many, name, safe

NAMED = 20


def _counted(standing: GroupStanding) -> Column[Wave]:
    return Column(standing.upper(), lambda wave: list(wave.groups.values()).count(standing), right=True)


PLAN: tuple[Column[Wave], ...] = (
    Column("PLAN", lambda wave: wave.path, name),
    Column("FINGERPRINT", lambda wave: wave.plan.short_fingerprint),
    Column("FLOW", lambda wave: _arrow(wave.plan)),
)
COUNTS: tuple[Column[Wave], ...] = (
    Column("GROUPS", lambda wave: len(wave.groups), right=True),
    *map(_counted, GroupStanding),
    Column("OFFSETS", lambda wave: wave.offsets, right=True),
)


def wave_lines(waves: Sequence[Wave], width: int = 80, colour: bool = False) -> Iterator[str]:
    """Yield the sum of all waves, a line per wave, groups that are not moved, and where each is if some went back."""
    flows = of_flows(waves)
    arrows = {wave.flow: _arrow(wave.plan) for wave in waves}
    for flow, groups in flows.items():
        counts = Counter(groups.values())
        standings = tally(counts, GroupStanding) or "none"
        head = f"{safe(arrows[flow])}: {many(len(groups), 'group')}: {standings}"
        good = Colour.YELLOW if counts[GroupStanding.LEFT] else Colour.GREEN
        shade = Colour.RED if counts[GroupStanding.UNCERTAIN] else good
        yield from wrapped(head, width, "", "  ", shade if colour else None)
    yield ""
    yield from Table((*PLAN, *COUNTS), waves, width, narrow=COUNTS).lines(colour, above=_plan)
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
    for on, not_certain in group_locations(waves):
        unknown = f"on {' or '.join(map(name, on))}, which these journals do not say"
        yield ""
        for where, those in [*((f"on {name(a)}", g) for a, g in on.items()), (unknown, not_certain)]:
            if those:
                yield from wrapped(f"{where}: {many(len(those), 'group')}: {names(those, NAMED)}", width, "", "  ")


def wave_document(waves: Sequence[Wave]) -> Iterator[str]:
    """Yield one JSON document: the sum per flow, every wave with its groups' standings, and where groups are."""
    yield json.dumps(
        {
            "flows": [
                {"source": flow[0], "target": flow[1], "counts": _counts(groups.values()), "groups": groups}
                for flow, groups in of_flows(waves).items()
            ],
            "waves": [
                {
                    "path": wave.path,
                    "fingerprint": wave.plan.fingerprint,
                    "kind": wave.plan.header.kind,
                    "created_at": iso(wave.plan.header.created_at_ms),
                    "source": wave.plan.header.source_alias,
                    "target": wave.plan.header.target_alias,
                    "spent": wave.journal.is_spent,
                    "counts": _counts(wave.groups.values()),
                    "offsets_written": wave.offsets,
                    "groups_blocked": len(wave.plan.blocked_groups()),
                    "groups": wave.groups,
                }
                for wave in waves
            ],
            "locations": [{"on": on, "not_certain": unsure} for on, unsure in group_locations(waves)],
        },
        indent=1,
    )


def _counts(standings: Iterable[GroupStanding]) -> dict[str, int]:
    counted = Counter(standings)
    return {str(s): counted[s] for s in GroupStanding}


def _plan(wave: Wave) -> str:
    return "  ".join(column.cell(wave) for column in PLAN)


def _arrow(plan: Plan) -> str:
    return f"{plan.header.source_alias} -> {plan.header.target_alias}"
