"""From the journal of `follow` to the plan that undoes it: each place back to what stood there first. Pure.

Only our own writes are taken back: a place where something else stands by now is drift, as after an apply.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from migrate.apply.history import JournalState
from migrate.apply.undo import undo_of, way_back
from migrate.extras.follow.journal import FollowMemory, GroupMemory, OwnWrites
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


def groups_in_doubt(memory: FollowMemory) -> tuple[str, ...]:
    """Return the groups with a write that has no certain answer: what stands there decides what is undone."""
    return tuple(sorted(g for g, m in memory.groups.items() if any(o.has_doubt for o in m.own.values())))


def undo_of_follow(
    plan: Plan, memory: FollowMemory, state: JournalState, standing: Mapping[str, Commits], names: SourceTopicOf,
    now_ms: int, moved: str,
) -> Plan:  # fmt: skip
    """Return the undo of all that was, or may have been, written under a mandate; without rows if nothing was.

    `standing` is what the groups in doubt have committed now. `names` gives the source topic that a topic is the copy
    of; what groups are called on the target says the mandate's own map. `moved` is what to do with offsets that
    consumers have moved since: `REFUSE_MOVED` or `RESTORE_MOVED`.
    """
    called = renamed(mandate_of(plan).names(), memory.groups)
    rows = [
        _row(group, place, own, memory.of(group), standing.get(group, {}), names)._replace(
            target_group=called.get(group, "")
        )
        for group in sorted(memory.groups)
        for place, own in sorted(memory.of(group).written().items())
    ]
    rows.sort(key=lambda row: row.key)
    settings = {MOVED_SETTING: moved, SET_BY_SETTING: FOLLOW}
    return undo_of(plan, state, PlanRows.of(rows), now_ms, settings, plan.header.tool_version)


def _row(
    group: str, place: TopicPartition, own: OwnWrites, memory: GroupMemory, standing: Commits, names: SourceTopicOf
) -> Row:
    stands = standing.get(place)
    ours = stands if stands is not None and own.is_ours(stands) else own.last
    assert ours is not None, "a place without a write of ours is not undone"
    known = _NOTHING_KNOWN._replace(
        group=group, source_topic=names(place.topic) or place.topic, target_topic=place.topic, partition=place.partition
    )
    return way_back(known, ours[:2], memory.prior.get(place), not own.has_doubt, "`follow`")
