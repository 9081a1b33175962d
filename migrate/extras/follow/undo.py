"""From the journal of a mandate to the plan that undoes it: each place back to what stood there first. Pure.

Only our own writes are taken back: a place where something else is committed by now is drift, as after an apply.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from migrate.apply.history import JournalState
from migrate.apply.undo import undo_of, way_back
from migrate.extras.follow.journal import Followed
from migrate.extras.follow.mandate import FOLLOW, mandate_of
from migrate.mm2.name_map import NameMap, NoNameOfItsOwn
from migrate.model import Commits, Decision, Row, TopicPartition
from migrate.plan.plan import MOVED_SETTING, SET_BY_SETTING, Plan
from migrate.row_table import PlanRows

SourceTopicOf = Callable[[str], str | None]
# What a mandate knows of a row.
_NOTHING_KNOWN = Row(
    "", "", "", 0, None, "", None, None, None, None, None, "", Decision.SKIP, None, None, None, None, None, "", ""
)


def renamed(group_map: NameMap, groups: Iterable[str]) -> dict[str, str]:
    """Return what the target calls those of these groups that have another name there."""
    names: dict[str, str] = {}
    for group in groups:
        with suppress(NoNameOfItsOwn):
            if (target := group_map.mapped(group)) != group:
                names[group] = target
    return names


def undo_of_follow(
    plan: Plan, state: JournalState, restored: set[str], target_commits: Mapping[str, Commits], names: SourceTopicOf,
    now_ms: int, moved: str,
) -> Plan:  # fmt: skip
    """Return the undo of all that was, or may have been, written under a mandate; without rows if nothing was.

    `restored` are groups that were taken back already. `target_commits` is what those with a write in doubt have
    committed now. `names` gives the source topic that a topic is the copy of; what groups are called on the target
    says the mandate's own map. `moved` is what to do with offsets that consumers have moved since.
    """
    called = renamed(mandate_of(plan).names(), state.applied)
    rows = [
        _row(group, place, known, target_commits.get(group, {}), names)._replace(target_group=called.get(group, ""))
        for group in sorted(state.applied.keys() - restored)
        for known in (Followed.by(state, group),)
        for place in sorted(known.written)
    ]
    rows.sort(key=lambda row: row.key)
    settings = {MOVED_SETTING: moved, SET_BY_SETTING: FOLLOW}
    return undo_of(plan, state, PlanRows.of(rows), now_ms, settings, plan.header.tool_version)


def _row(group: str, place: TopicPartition, known: Followed, target_commits: Commits, names: SourceTopicOf) -> Row:
    now = target_commits.get(place)
    ours = now if now is not None and known.is_ours(place, now) else known.writes(place)[-1]
    row = _NOTHING_KNOWN._replace(
        group=group, source_topic=names(place.topic) or place.topic, target_topic=place.topic, partition=place.partition
    )
    return way_back(row, ours[:2], known.prior.get(place), known.trace.is_certain(place), "`follow`")
