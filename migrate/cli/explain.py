"""The `explain` command: why rows are what they are, or the fence that keeps their groups from starting again."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from migrate.errors import UsageError
from migrate.plan.file import read_plan
from migrate.plan.plan import refuse_standing
from migrate.show.explain import explanation
from migrate.show.fence import fence


def run_explain(
    path: Path,
    group: str | None,
    place: str | None,
    *,
    fenced: bool,
    principals: Sequence[str],
    width: int,
    colour: bool,
) -> Iterator[str]:
    """Return what is to be printed of the plan at `path`.

    Raises `UsageError` for options that exclude each other; its first line does where the plan has no such group or
    row.
    """
    plan = read_plan(path)
    refuse_standing(plan, "explain")
    if fenced:
        if place is not None:
            raise UsageError("--fence is about groups, not about a partition.", "Omit TOPIC:PARTITION.")
        return fence(plan, group, principals, width=width, colour=colour)
    if principals:
        raise UsageError("--principal says whom --fence keeps out.", "Give --fence too, or omit it.")
    if group is None:
        raise UsageError("explain needs a GROUP.", "`show` lists the groups of the plan; --fence takes all of them.")
    return explanation(plan, group, place, width=width, colour=colour)
