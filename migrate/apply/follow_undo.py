"""From the journal of `follow` to the plan that undoes it: each place back to what stood there first. Pure.

Only our own writes are taken back: a place where something else stands by now is drift, as after an apply.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from migrate.apply.follow_memory import FollowMemory, GroupMemory, OwnWrites
from migrate.apply.follow_names import renamed
from migrate.apply.history import JournalState
from migrate.apply.undo import digest_of
from migrate.model import UNACKNOWLEDGED, Commits, Decision, Row, TopicPartition
from migrate.plan.plan import FORMAT_VERSION, MOVED_SETTING, SET_BY_FOLLOW, SET_BY_SETTING, UNDO, Plan
from migrate.plan.standing import group_map_of_mandate
from migrate.row_table import PlanRows

SourceTopicOf = Callable[[str], str | None]


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
    called = renamed(group_map_of_mandate(plan), memory.groups)
    rows = [
        _row(group, place, own, memory.of(group), standing.get(group, {}), names)._replace(
            target_group=called.get(group, "")
        )
        for group in sorted(memory.groups)
        for place, own in sorted(memory.of(group).written().items())
    ]
    rows.sort(key=lambda row: row.key)
    header = replace(
        plan.header,
        format_version=FORMAT_VERSION,
        kind=UNDO,
        created_at_ms=now_ms,
        settings={MOVED_SETTING: moved, SET_BY_SETTING: SET_BY_FOLLOW},
        waivers=(),
        counts={"commits_read": len(rows), "rows": len(rows), "uncommitted_added": 0},
        undoes=plan.fingerprint,
        undoes_events=state.events,
        undoes_digest=digest_of(state),
        mandate=None,
    )
    return Plan(header, PlanRows.of(rows))


def _row(
    group: str, place: TopicPartition, own: OwnWrites, memory: GroupMemory, standing: Commits, names: SourceTopicOf
) -> Row:
    stands = standing.get(place)
    ours = stands if stands is not None and own.is_ours(stands) else own.last
    assert ours is not None, "a place without a write of ours is not undone"
    first = memory.prior.get(place)
    if first is None:
        decision, reason, sentence = Decision.REMOVE, "was-absent", "Nothing was committed before `follow` began: "
        sentence += "the offset is removed."
    else:
        decision, reason = Decision.SET, "was-there"
        sentence = f"Back to {first.offset}, which was committed before `follow` began."
    if own.has_doubt:
        reason = UNACKNOWLEDGED
        sentence += " A write of `follow` got no certain answer: it is written whatever is there now."
    return Row(
        group=group,
        source_topic=names(place.topic) or place.topic,
        target_topic=place.topic,
        partition=place.partition,
        source_committed=None,
        source_metadata="",
        source_log_start=None,
        source_log_end=None,
        target_log_start=None,
        target_log_end=None,
        target_prior=ours.offset,
        target_prior_metadata=ours.metadata,
        decision=decision,
        target_offset=None if first is None else first.offset,
        method=None,
        grade=None,
        rereads_at_most=None,
        rereads_estimate=None,
        reason=reason,
        sentence=sentence,
        target_metadata="" if first is None else first.metadata,
    )
