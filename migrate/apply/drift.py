"""What has changed between a plan and the world that it is about to be applied to. Pure.

Any difference refuses its group (a difference of a whole cluster: all groups), with these readings:

- A row that is at its planned offset already is done, not drift; a group all of whose rows are done is
  left alone, alive or not: its consumers may have been started since.
- A row that an earlier run wrote and read back, and that is beyond its planned offset now, is done too.
- A source group that was alive when the plan was made, and accepted so (`--accept source-group-stopped[:GROUP]`),
  moves all the time: its source state, commits and log ends are not compared. One that was stopped then is.
- A topic whose producers were writing when the plan was made, and accepted so (`--accept producers-stopped[:TOPIC]`),
  grows on both sides: that it has grown is no difference.
- A row that is kept must hold just what it held, unless an earlier run read it back and a consumer moved on since.
- In a plan of commits as of an earlier time, the live commit that it saw is compared, not the one that it translates.
- A source that does not answer is not compared: the caller refuses what needs it, or says so.
- Offsets that would expire within 2 hours are drift as well, unless the plan said so and it was accepted.
- So is an MM2 that writes the group's offsets by its own group sync.
- An undo restores what was there: only the cluster, the topics, the group's state and its offsets count.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import eq

from migrate.apply.history import REMOVED, GroupTrace
from migrate.checks.groups import offsets_expiry, source_group_stopped
from migrate.checks.mm2 import group_sync
from migrate.checks.topics import producers_stopped
from migrate.commit_table import has_metadata, offsets_at
from migrate.model import (
    UNREAD_METADATA,
    Commit,
    Commits,
    Decision,
    Failure,
    GroupState,
    LogRange,
    Row,
    Side,
    TopicPartition,
)
from migrate.plan.plan import AS_OF_SETTING, MOVED_SETTING, RESTORE_MOVED, UNDO, Header, Plan
from migrate.row_table import GroupRows
from migrate.survey.expiry import EXPIRY_EXPECTED
from migrate.text import many


@dataclass(frozen=True, slots=True)
class SideWorld:
    """One cluster as it is now, read for the groups and partitions of a plan."""

    cluster_id: str
    ranges: Mapping[TopicPartition, LogRange | Failure]
    states: Mapping[str, GroupState | Failure]
    commits: Mapping[str, Commits | Failure]


@dataclass(frozen=True, slots=True)
class World:
    """Both clusters as they are now. `source` is None where it does not answer, or is not needed.

    `source_optional` says that a source group or log that could not be read is no difference.
    `expiring` says of groups whose offsets would be gone within 2 hours by when their consumers must be back;
    `synced` are the groups whose offsets MM2 writes as well. `target_topics` are the topics that the target shows, None
    where nobody asked (`migrate.apply.hidden`).
    """

    target: SideWorld
    source: SideWorld | None
    target_topic_ids: Mapping[str, str]
    source_topic_ids: Mapping[str, str] = field(default_factory=dict)
    source_optional: bool = False
    expiring: Mapping[str, str] = field(default_factory=dict)
    synced: frozenset[str] = frozenset()
    target_topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference: `what` names the fact that differs, `is_unread` says that it could not be read."""

    subject: str
    what: str
    expected: str
    seen: str
    is_unread: bool = False

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}: expected {self.expected}, seen {self.seen}"


_WRITTEN = frozenset({Decision.SET, Decision.REMOVE})
_HELD = _WRITTEN | {Decision.KEEP}
TARGET_OFFSET = "target committed offset"


def to_write(rows: GroupRows) -> Sequence[Row]:
    """Return the rows of a group that change the target."""
    return rows.where("decision", _WRITTEN.__contains__)


def compared(rows: GroupRows) -> Sequence[Row]:
    """Return the rows of a group that a plan holds on the target: what it sets, removes, or found there and keeps.

    The group's move rests on their facts; a skipped row is the reviewer's own choice.
    """
    return rows.where("decision", _HELD.__contains__)


def committed(row: Row, commits: Commits) -> int | None:
    """Return what the target has committed for a row now; None for nothing."""
    commit = commits.get(row.target_partition)
    return None if commit is None else commit.offset


def is_committed_as_planned(row: Row, commits: Commits) -> bool:
    """True if what is committed for a row is just what it plans."""
    return is_as_planned(row, commits.get(row.target_partition))


def is_as_planned(row: Row, commit: Commit | None) -> bool:
    """True if a commit is just what the row plans: offset and metadata (not the leader epoch), or None for nothing."""
    if commit is None or row.target_offset is None:
        return commit is None and row.target_offset is None
    return commit.offset == row.target_offset and commit.metadata == row.target_metadata


def is_done(row: Row, commits: Commits, trace: GroupTrace | None) -> bool:
    """True if a row to write needs no writing any more.

    Without a record of our own read-back, an offset beyond the planned one is somebody else's: not done.
    """
    if row.needs_acknowledgement and (trace is None or not trace.is_certain(row.target_partition)):
        # What is committed now may be what an earlier, unanswered write has not replaced yet.
        return False
    if is_committed_as_planned(row, commits):
        return True
    if trace is None or not trace.read_back or row.target_partition not in trace.planned:
        return False
    if row.decision is Decision.REMOVE:
        # It was removed and read back: what is there now is a later plan's, or a consumer's.
        return trace.results.get(row.target_partition) == REMOVED
    now = committed(row, commits)
    # At the offset with other metadata: a consumer that has started since commits where it is.
    return now is not None and row.target_offset is not None and now >= row.target_offset


def pending_rows(rows: GroupRows, commits: Commits, trace: GroupTrace | None) -> Sequence[Row]:
    """Return the rows of a group that are still to be written."""
    writes = to_write(rows)
    if trace is None and isinstance(writes, GroupRows):
        now = offsets_at(commits, writes.target_partitions())
        if not any(map(eq, now, writes.whole("target_offset"))):
            return writes
    return [row for row in writes if not is_done(row, commits, trace)]


def is_other_cluster(planned_id: str, cluster_id: str) -> bool:
    """True if a cluster is not the one that was planned for; a plan made without that one ("") cannot tell."""
    return bool(planned_id) and cluster_id != planned_id


def cluster_drift(plan: Plan, world: World) -> tuple[Drift, ...]:
    """Return what differs of a cluster as a whole: it refuses everything."""
    header = plan.header
    sides = [(Side.TARGET, header.target_alias, header.target_cluster_id, world.target)]
    if world.source is not None:
        sides.append((Side.SOURCE, header.source_alias, header.source_cluster_id, world.source))
    return tuple(
        Drift(f"{side} {alias}", "cluster id", expected, now.cluster_id)
        for side, alias, expected, now in sides
        if is_other_cluster(expected, now.cluster_id)
    )


def group_drift(
    plan: Plan, group: str, rows: GroupRows, world: World, trace: GroupTrace | None = None
) -> tuple[Drift, ...]:
    """Return what differs for one group; of one whose rows are all done, only what was to be kept.

    `trace` is what earlier runs of the same command did to the group.
    """
    commits = world.target.commits.get(group, _NOT_READ)
    if isinstance(commits, Failure):
        return (_unreadable(group, "target committed offsets", commits),)
    offsets = _target_offsets(plan.header, rows, commits, trace)
    if not needs_comparison(rows, commits, trace):
        return tuple(offsets)
    drifts = [*_topic_ids(plan.header, rows, world), *offsets]
    if to_write(rows):
        # Where nothing is written a consumer harms nothing: what it commits shows.
        drifts = [*_group_state(group, Side.TARGET, world.target.states.get(group, _NOT_READ)), *drifts]
    if plan.header.kind != UNDO:
        topics = set(rows.column("source_topic"))
        grows = frozenset(topic for topic in topics if plan.accepted(producers_stopped.name, topic))
        drifts += _logs(Side.TARGET, rows, world.target.ranges, grows)
        if group in world.expiring and not plan.accepted(offsets_expiry.name, group):
            drifts.append(Drift(group, offsets_expiry.name, EXPIRY_EXPECTED, world.expiring[group]))
        if group in world.synced and not plan.accepted(group_sync.name, group):
            expected, seen = "sync.group.offsets.enabled=false", "true: MM2 may set the group back (KAFKA-19794)"
            drifts.append(Drift(group, group_sync.name, expected, seen))
        if world.source is not None and not plan.accepted(source_group_stopped.name, group):
            # Where the plan filters topics, a commit on another topic may be what it filtered.
            every_topic = not any(map(plan.header.settings.get, ("topic", "exclude-topic")))
            source = _source(group, rows, world.source, grows, every_topic, AS_OF_SETTING in plan.header.settings)
            drifts += [drift for drift in source if not (world.source_optional and drift.is_unread)]
    return tuple(drifts)


def needs_comparison(rows: GroupRows, commits: Commits, trace: GroupTrace | None) -> bool:
    """True if the group's move is still to come, or nobody has confirmed yet that all of it may stay as it is."""
    if to_write(rows):
        return bool(pending_rows(rows, commits, trace))
    return trace is None or not trace.read_back


def unread_source(world: World) -> tuple[str, ...]:
    """Return what of the source could not be read, one phrase for each group or partition."""
    if world.source is None:
        return ()
    answers = (*world.source.states.items(), *world.source.commits.items(), *world.source.ranges.items())
    return tuple(f"{key}: {a}" for key, a in answers if isinstance(a, Failure))


_NOT_READ = Failure("NOT_READ", "it was not asked for")


def _unreadable(group: str, what: str, failure: Failure) -> Drift:
    return Drift(group, what, "an answer", str(failure), True)


def _group_state(group: str, side: Side, state: GroupState | Failure) -> Iterator[Drift]:
    what = f"{side} group state"
    if isinstance(state, Failure):
        yield _unreadable(group, what, state)
    elif not state.is_stopped:
        who = f" ({state.some_members()})" if state.members else ""
        kind = "" if state.kind in ("classic", "consumer") else ", not a consumer group"
        seen = f"{state.state}{kind}, {many(state.member_count, 'member')}{who}"
        yield Drift(group, what, "stopped (Empty, or absent)", seen)


def _topic_ids(header: Header, rows: GroupRows, world: World) -> Iterator[Drift]:
    held = compared(rows)
    if not held:
        return
    table = GroupRows.of(held)
    sides = [(Side.TARGET, set(table.column("target_topic")), header.target_topic_ids, world.target_topic_ids)]
    if world.source is not None:
        # Also of a group that was accepted alive: its offsets move, and its topics stay the same.
        topics = set(table.column("source_topic"))
        sides.append((Side.SOURCE, topics, header.source_topic_ids, world.source_topic_ids))
    for side, topics, planned, ids in sides:
        for topic in sorted(topics):
            expected, now = planned.get(topic), ids.get(topic)
            if expected and now != expected:
                seen = f"{now}: the topic was re-created" if now else "no such topic"
                yield Drift(topic, f"{side} topic id", expected, seen)


def _target_offsets(header: Header, rows: GroupRows, commits: Commits, trace: GroupTrace | None) -> Iterator[Drift]:
    undo = header.kind == UNDO
    restore = undo and header.settings.get(MOVED_SETTING) == RESTORE_MOVED
    held = compared(rows)
    if not held or _all_stand_at(held, Side.TARGET, "target_prior", "target_prior_metadata", commits):
        return
    for row in held:
        now = committed(row, commits)
        metadata = _other_metadata(row.target_prior_metadata, commits.get(row.target_partition))
        if (now == row.target_prior and not metadata) or restore:
            continue
        if row.needs_acknowledgement and is_committed_as_planned(row, commits):
            continue
        if row.decision is Decision.KEEP:
            if _moved_on(row, now, trace):
                continue
        elif is_done(row, commits, trace):
            continue
        origin = f"what {header.set_by} set" if undo else "kept" if row.decision is Decision.KEEP else "as planned from"
        expected = f"{offset_text(row.target_prior)} ({origin})"
        seen = offset_text(now) + (metadata if now == row.target_prior else _moved(row, now, trace, undo))
        yield Drift(row.subject, TARGET_OFFSET, expected, seen)


def _all_stand_at(rows: Sequence[Row], side: Side, offset: str, metadata: str, commits: Commits) -> bool:
    """True if all rows of a group are committed at their `offset`, none with metadata: what mostly holds, told quickly.

    `offset` and `metadata` are fields of a row, for commits of its `side`.
    """
    table = GroupRows.of(rows)
    if has_metadata(commits) or set(table.column(metadata)) != {""}:
        return False
    partitions = table.target_partitions() if side is Side.TARGET else table.source_partitions()
    return all(map(eq, offsets_at(commits, partitions), table.whole(offset)))


def _moved_on(row: Row, now: int | None, trace: GroupTrace | None) -> bool:
    """True if a kept row was read back by an earlier run, and is at its offset or beyond it now."""
    confirmed = trace is not None and trace.read_back
    return bool(confirmed and now is not None and row.target_prior is not None and now >= row.target_prior)


def is_kept(row: Row, commits: Commits) -> bool:
    """True if a row to keep holds just what it held when the plan was made."""
    commit = commits.get(row.target_partition)
    return committed(row, commits) == row.target_prior and not _other_metadata(row.target_prior_metadata, commit)


def _other_metadata(expected: str, commit: Commit | None) -> str:
    """Return how a commit's metadata differs, as the end of a sentence; "" where it does not, or nothing is there."""
    if commit is None or commit.metadata == expected:
        return ""
    length = "" if commit.metadata == UNREAD_METADATA else f" ({many(len(commit.metadata), 'character')})"
    return f" with other metadata{length}: somebody has committed there since"


def _moved(row: Row, now: int | None, trace: GroupTrace | None, undo: bool) -> str:
    ours = row.target_prior if undo else row.target_offset
    written = undo or (trace is not None and trace.is_written(row.target_partition))
    if now is None or ours is None or not written:
        return ""
    way = f"on by {now - ours}" if now > ours else f"back by {ours - now}"
    return f": moved {way} since: a consumer, or somebody else, has committed there"


def _logs(
    side: Side, rows: GroupRows, ranges: Mapping[TopicPartition, LogRange | Failure], grows: Collection[str]
) -> Iterator[Drift]:
    """Yield what differs of the logs of one side; those of `grows`, source topics, may have grown."""
    on_target, held = side is Side.TARGET, compared(rows)
    if not held:
        return
    table = GroupRows.of(held)
    partitions = table.target_partitions() if on_target else table.source_partitions()
    limits = f"{side}_log_start", f"{side}_log_end"
    # What mostly holds, told quickly.
    logs = zip(map(ranges.get, partitions), table.values(*limits), strict=True)
    if all(isinstance(now, LogRange) and (now.start, now.end) == then for now, then in logs):
        return
    for partition, (start, end, source_topic) in zip(partitions, table.values(*limits, "source_topic"), strict=True):
        if start is None or end is None:
            continue
        now = ranges.get(partition, _NOT_READ)
        if isinstance(now, Failure):
            yield Drift(str(partition), f"{side} log", "an answer", str(now), is_unread=not on_target)
            continue
        # Retention goes on at the source, and takes nothing that the plan rests on.
        if on_target and now.start != start:
            yield Drift(str(partition), "target log start", str(start), str(now.start))
        if now.end > end and source_topic not in grows:
            seen = f"{now.end}: {many(now.end - end, 'record')} written since the plan"
            yield Drift(str(partition), f"{side} log end", str(end), seen)
        elif now.end < end:
            yield Drift(str(partition), f"{side} log end", str(end), f"{now.end}: the log was cut or re-created")


def _source(
    group: str, rows: GroupRows, source: SideWorld, grows: Collection[str], every_topic: bool, is_as_of: bool
) -> Iterator[Drift]:
    yield from _group_state(group, Side.SOURCE, source.states.get(group, _NOT_READ))
    commits = source.commits.get(group, _NOT_READ)
    if isinstance(commits, Failure):
        yield _unreadable(group, "source committed offsets", commits)
    else:
        yield from _source_commits(group, rows, commits, every_topic, is_as_of)
    yield from _logs(Side.SOURCE, rows, source.ranges, grows)


def _source_commits(
    group: str, rows: GroupRows, commits: Commits, every_topic: bool, is_as_of: bool
) -> Iterator[Drift]:
    what, held = "source committed offset", compared(rows)
    if held and not is_as_of and _all_stand_at(held, Side.SOURCE, "source_committed", "source_metadata", commits):
        held = ()
    for row in held:
        commit = commits.get(row.source_partition)
        now = None if commit is None else commit.offset
        # The metadata of then says nothing of that of now.
        planned = row.live_source_offset if is_as_of else row.source_committed
        metadata = "" if is_as_of else _other_metadata(row.source_metadata, commit)
        if now != planned or metadata:
            yield Drift(row.subject, what, offset_text(planned), offset_text(now) + metadata)
    topics = set(rows.column("source_topic"))
    # A new commit has no row: its partition would fall to auto.offset.reset.
    for partition in sorted(set(commits).difference(rows.source_partitions())):
        if every_topic or partition.topic in topics:
            subject = f"{group}/{partition.topic}/{partition.partition}"
            yield Drift(subject, what, "none", str(commits[partition].offset))


def offset_text(offset: int | None) -> str:
    """Return a committed offset in words: "none" where there is none."""
    return "none" if offset is None else str(offset)
