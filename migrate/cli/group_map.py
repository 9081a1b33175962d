"""`--group-map`: what groups are called on the target, from a file of names or from the plan that has moved them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate.errors import UsageError
from migrate.mm2.name_map import MapLine, NameMap, read_name_map
from migrate.plan.file import MAGIC, read_plan
from migrate.plan.plan import Plan

OPTION = "--group-map"


def group_map_of(options: Mapping[str, Any], failback: bool = False) -> NameMap:
    """Return the map that a command was given, as its groups go; an empty one where it was given none.

    On the way back (`failback`) a map of names is read backwards, and so is a plan that went the other way. Raises
    `UsageError` for a map that is wrong, or that cannot be read backwards.
    """
    path: Path | None = options.get("group_map")
    if path is None:
        return NameMap()
    if _is_plan(path):
        plan = read_plan(path)
        names = _map_of_plan(path, plan)
        return names.reversed() if plan.header.failback is not failback else names
    names = read_name_map(OPTION, path, "group")
    return names.reversed() if failback else names


def _is_plan(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False  # who reads it says why it cannot


def _map_of_plan(path: Path, plan: Plan) -> NameMap:
    """Return a map with the groups of a plan that have another name on its target."""
    renamed = plan.rows.renamed()
    if not renamed:
        raise UsageError(
            f"{OPTION} {path}: every group of this plan keeps its name.",
            f"Omit {OPTION}, or name the plan that renames.",
        )
    lines = {group: MapLine(number, group, target) for number, (group, target) in enumerate(renamed.items(), 1)}
    clusters = frozenset(filter(None, (plan.header.source_cluster_id, plan.header.target_cluster_id)))
    return NameMap(OPTION, str(path), "group", lines, clusters=clusters)
