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

from migrate.apply.history import REMOVED, GroupTrace
from migrate.apply.outcome import State, committed, is_as_before, is_as_planned, offset_text, state_of
from migrate.checks.groups import offsets_expiry, source_group_stopped
from migrate.checks.mm2 import group_sync
from migrate.checks.topics import producers_stopped
from migrate.commit_table import commits_at
from migrate.model import (
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
from migrate.plan.plan import UNDO, Header, Plan
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
    where nobody asked.
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

    @property
    def may_pass(self) -> bool:
        """True if the same command may find it gone later; else only a new plan helps."""
        return self.is_unread or self.what.endswith("group state") or self.what == group_sync.name

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}: expected {self.expected}, seen {self.seen}"


_WRITTEN = frozenset({Decision.SET, Decision.REMOVE})
_HELD = _WRITTEN | {Decision.KEEP}
TARGET_OFFSET, TARGET_STATE, TARGET_TOPIC = "target committed offset", "target group state", "target topic id"
_NOTHING_TO_DO = (State.AS_PLANNED, State.MOVED_ON, State.NOT_HELD)


def to_write(rows: GroupRows) -> Sequence[Row]:
    """Return the rows of a group that change the target."""
    return rows.where("decision", _WRITTEN.__contains__)


def compared(rows: GroupRows) -> Sequence[Row]:
    """Return the rows of a group that a plan holds on the target: what it sets, removes, or found there and keeps.

    The group's move rests on their facts; a skipped row is the reviewer's own choice.
    """
    return rows.where("decision", _HELD.__contains__)


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A group of a plan beside what the target has committed for it now, and what an earlier run of the command did.

    `pending` are the rows still to be written. `moved` says where those are that somebody else has moved, `hidden`
    which topics of offsets to be removed the target does not show.
    """

    rows: GroupRows
    trace: GroupTrace | None
    pending: Sequence[Row] = ()
    moved: tuple[Drift, ...] = ()
    hidden: tuple[Drift, ...] = ()

    @property
    def writes(self) -> bool:
        """True if the plan writes to the group, done or not."""
        return not _WRITTEN.isdisjoint(self.rows.column("decision"))

    @property
    def needs_comparison(self) -> bool:
        """True if the group's move is still to come, or nobody has confirmed yet that all of it may stay as it is."""
        return bool(self.pending) if self.writes else self.trace is None or not self.trace.read_back


def group_now(plan: Plan, group: str, world: "World", trace: GroupTrace | None = None) -> GroupNow | Failure:
    """Look at a group's rows one after the other; a failure where the target did not show what it has committed.

    `trace` is what earlier runs of the same command did to the group.
    """
    rows, commits = plan.groups()[group], world.target.commits.get(group, _NOT_READ)
    if isinstance(commits, Failure):
        return commits
    pending, moved, header = list[Row](), list[Drift](), plan.header
    restores = header.restores_moved
    for row, commit in zip(rows, commits_at(commits, rows.target_partitions()), strict=True):
        state = state_of(row, trace, commit)
        if state in _NOTHING_TO_DO:
            continue
        if row.decision is not Decision.KEEP:
            pending.append(row)
        is_ours = state is State.PENDING or (
            state is State.UNKNOWN and (is_as_before(row, commit) or is_as_planned(row, commit))
        )
        if not is_ours and not restores:
            moved.append(_moved(header, row, commit, trace))
    hidden = tuple(_hidden(rows, commits, world.target_topics, trace))
    return GroupNow(rows, trace, rows if len(pending) == len(rows) else pending, tuple(moved), hidden)


def _moved(header: Header, row: Row, commit: Commit | None, trace: GroupTrace | None) -> Drift:
    """Return where a row is, and how far from where it was expected; one that we wrote has gone from there."""
    undo = header.kind == UNDO
    origin = f"what {header.set_by} set" if undo else "as planned from"
    if row.decision is Decision.KEEP:
        origin = "kept"
    now, ours = None if commit is None else commit.offset, row.target_prior if undo else row.target_offset
    seen = offset_text(now)
    if now == row.target_prior:
        seen += _other_metadata(row.target_prior_metadata, commit)
    elif now is not None and ours is not None and (undo or (trace and trace.is_written(row.target_partition))):
        way = f"on by {now - ours}" if now > ours else f"back by {ours - now}"
        seen += f": moved {way} since: a consumer or another client has committed there"
    return Drift(row.subject, TARGET_OFFSET, f"{offset_text(row.target_prior)} ({origin})", seen)


def seem_gone(rows: GroupRows, commits: Commits | Failure) -> Sequence[Row]:
    """Return the rows to remove that have nothing committed any more, as far as the target shows."""
    if isinstance(commits, Failure):
        return ()
    removed = rows.where("decision", Decision.REMOVE.__eq__)
    return [row for row in removed if committed(row, commits) is None]


def _hidden(
    rows: GroupRows, commits: Commits, shown: Collection[str] | None, trace: GroupTrace | None
) -> Iterator[Drift]:
    """Yield the topics of a group's offsets to be removed that the target does not show, where that was asked.

    Brokers leave what is committed on a topic that we may not DESCRIBE out of their answer without a word, and the
    topic out of every listing. What an earlier run removed and read back needs no topic.
    """
    if shown is None:
        return
    removed = trace.results if trace is not None and trace.read_back else {}
    gone = seem_gone(rows, commits)
    topics = {row.target_topic for row in gone if removed.get(row.target_partition) != REMOVED}
    for topic in sorted(topics.difference(shown)):
        expected = "listed, so that what is committed on it shows"
        yield Drift(topic, "target topic", expected, "deleted, or the principal lacks DESCRIBE on it", True)


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


def group_drift(plan: Plan, group: str, now: GroupNow | Failure, world: World) -> tuple[Drift, ...]:
    """Return what differs for one group; of one whose rows are all done, only what was to be kept."""
    if isinstance(now, Failure):
        return (_unreadable(group, "target committed offsets", now),)
    if not now.needs_comparison:
        return (*now.hidden, *now.moved)
    rows = now.rows
    drifts = [*_topic_ids(plan.header, rows, world), *now.moved]
    if now.writes:
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
            source = _source(group, rows, world.source, grows, every_topic, bool(plan.header.as_of))
            drifts += [drift for drift in source if not (world.source_optional and drift.is_unread)]
    return (*now.hidden, *drifts)


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


def _other_metadata(expected: str, commit: Commit | None) -> str:
    """Return how a commit's metadata differs, as the end of a sentence; "" where it does not, or nothing is there."""
    if commit is None or commit.metadata == expected:
        return ""
    return " with other metadata: another client has committed there since"


def _logs(
    side: Side, rows: GroupRows, ranges: Mapping[TopicPartition, LogRange | Failure], grows: Collection[str]
) -> Iterator[Drift]:
    """Yield what differs of the logs of one side; those of `grows`, source topics, may have grown."""
    on_target, held = side is Side.TARGET, compared(rows)
    table = GroupRows.of(held) if held else None
    if table is None:
        return
    partitions = table.target_partitions() if on_target else table.source_partitions()
    logs = table.values(f"{side}_log_start", f"{side}_log_end", "source_topic")
    for partition, (start, end, source_topic) in zip(partitions, logs, strict=True):
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
    what = "source committed offset"
    planned = rows.values("decision", "live_source_offset" if is_as_of else "source_committed", "source_metadata")
    found = zip(planned, commits_at(commits, rows.source_partitions()), strict=True)
    for place, ((decision, offset, metadata), commit) in enumerate(found):
        now = None if commit is None else commit.offset
        # The metadata of then says nothing of that of now.
        other = "" if is_as_of else _other_metadata(metadata, commit)
        if (now != offset or other) and decision in _HELD:
            yield Drift(rows[place].subject, what, offset_text(offset), offset_text(now) + other)
    topics = set(rows.column("source_topic"))
    # A new commit has no row: its partition would fall to auto.offset.reset.
    for partition in sorted(set(commits).difference(rows.source_partitions())):
        if every_topic or partition.topic in topics:
            subject = f"{group}/{partition.topic}/{partition.partition}"
            yield Drift(subject, what, "none", str(commits[partition].offset))
