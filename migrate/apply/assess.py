"""What applying a plan would do now, group by group: the list that a dry run prints and a run walks.

A group is written whole or not at all: one blocked row, or one difference from the plan's world, leaves out
the group, or its other partitions would fall to `auto.offset.reset`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial

from migrate.apply.drift import (
    TARGET_OFFSET,
    Drift,
    GroupNow,
    SideWorld,
    World,
    cluster_drift,
    compared,
    group_drift,
    group_now,
    is_other_cluster,
    seem_gone,
    unread_source,
)
from migrate.apply.history import APPLY, JournalState
from migrate.apply.journal import Journal
from migrate.apply.restore import goes_whole
from migrate.checks.groups import pending_transactions
from migrate.checks.mm2 import group_sync
from migrate.commit_table import commits_at
from migrate.errors import ClusterError, Refused
from migrate.model import CheckResult, Commits, Decision, Failure, Row, TopicPartition
from migrate.plan.plan import UNDO, Plan
from migrate.ports import Progress
from migrate.progress import LOGS_AT_ONCE, QuietProgress, in_background, in_batches
from migrate.row_table import GroupRows
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.expiry import BLOCK_BELOW_MS, UNKNOWN_TODO, remedy
from migrate.survey.groups import ExpiryWatch
from migrate.text import many, some

MAX_CONCURRENCY = 100


@dataclass(frozen=True)
class ApplyClusters:
    """The clusters of a run; `source` is None where the plan was made without it, or is not compared with it.

    `watches_expiry` has the target asked when offsets would expire.
    """

    target: ClusterAdmin
    source: ClusterAdmin | None = None
    watches_expiry: bool = False


def refuse_other_cluster(admin: ClusterAdmin, planned_id: str) -> None:
    """Raise `Refused` if this is not the cluster of the plan; a plan made without it ("") cannot tell."""
    cluster_id = admin.facts().cluster_id
    if is_other_cluster(planned_id, cluster_id):
        raise Refused(
            f"The plan is for {admin.side} cluster {planned_id}, and {admin.alias} is {cluster_id}.",
            "Name the clusters that the plan was made for.",
        )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The choices of one run. `details` go into the journal's `begin`, such as what was approved and who signed.

    `command` is "apply" or "rollback": an undo plan goes into the journal of the plan that it undoes, unless it is
    applied as a plan of its own; then `spends` is the journal of the plan that it undoes.
    `synced` are the groups whose offsets MM2 writes as well, by its configuration as it is now; None where none was
    given. `source_unreachable` applies the plan although the source does not answer. `begun` is called once the journal
    has begun and nothing is written yet; what it raises ends the run there.
    """

    execute: bool = False
    allow_partial: bool = False
    concurrency: int = MAX_CONCURRENCY
    group_timeout_seconds: float = 120.0
    details: Mapping[str, object] | None = None
    synced: frozenset[str] | None = frozenset()
    source_unreachable: bool = False
    command: str = APPLY
    spends: Journal | None = None
    begun: Callable[[], None] = lambda: None


class Fate(StrEnum):
    """What becomes of a group."""

    WRITE = "write"
    DONE = "done"
    NOTHING = "nothing"
    BLOCKED = "blocked"
    SPENT = "spent"
    UNREAD = "unread"
    DRIFTED = "drifted"
    NOT_UNDOABLE = "not-undoable"


REFUSED = frozenset({Fate.BLOCKED, Fate.SPENT, Fate.UNREAD, Fate.DRIFTED, Fate.NOT_UNDOABLE})
_SPENT = "a rollback of it alone was begun: this plan does not set it again"


@dataclass(frozen=True, slots=True)
class GroupAssessment:
    """One group's fate, why (empty for a group that is written or done), and its rows still to be written.

    `drifts` are the differences that refuse it, where there are any.
    """

    group: str
    fate: Fate
    reasons: tuple[str, ...] = ()
    pending: Sequence[Row] = ()
    drifts: tuple[Drift, ...] = ()

    @property
    def may_pass(self) -> bool:
        """True if the same command may find what it is refused for gone; else only a new plan helps."""
        return bool(self.drifts) and all(drift.may_pass for drift in self.drifts)

    @property
    def has_moved_on(self) -> bool:
        """True if it is committed elsewhere by now than it is expected to be."""
        return any(drift.what == TARGET_OFFSET for drift in self.drifts)


@dataclass(frozen=True)
class Assessment:
    """A plan held against the world and its journal.

    `refusals` concern everything (another cluster, a source that does not answer), `notes` are what else could not be
    looked at. `source_unseen` is why the source was not compared where that was chosen, "" otherwise. `looked_at` is
    the monotonic second at which the reading of the clusters began.
    """

    plan: Plan
    groups: tuple[GroupAssessment, ...]
    refusals: tuple[str, ...]
    notes: tuple[str, ...]
    target_commits: Mapping[str, Commits]
    journal: JournalState
    source_unseen: str = ""
    looked_at: float = 0.0

    @cached_property
    def open_blocks(self) -> tuple[CheckResult, ...]:
        """The plan's blocks that were not accepted, and that no row shows."""
        return self.plan.blocks_without_rows()

    @property
    def refused(self) -> tuple[GroupAssessment, ...]:
        """Groups that must not be written."""
        return tuple(g for g in self.groups if g.fate in REFUSED)

    @property
    def writable(self) -> tuple[GroupAssessment, ...]:
        """Groups that are to be written."""
        return () if self.refusals else tuple(g for g in self.groups if g.fate is Fate.WRITE)

    @property
    def is_clean(self) -> bool:
        """True if nothing is refused."""
        return not self.refusals and self.is_whole

    @property
    def is_whole(self) -> bool:
        """True if no group is left out, and no block is open that only `--allow-partial` passes over."""
        return not self.refused and not self.open_blocks


def assess(
    plan: Plan,
    clusters: ApplyClusters,
    journal: JournalState,
    progress: Progress,
    options: RunOptions,
    watch: ExpiryWatch | None = None,
) -> Assessment:
    """Read the world again and hold the plan against it; changes nothing.

    A source that does not answer refuses every group that still needs it, unless `options.source_unreachable`; a target
    that does not answer is a `ClusterError`. `watch` looks at when the offsets would expire.
    """
    undo, source_unreachable = plan.header.kind == UNDO, options.source_unreachable
    traces = journal.traces(options.command)
    blocked, by_group = _blocked(plan), plan.groups()
    spent = journal.spent_groups if options.command == APPLY else frozenset[str]()
    left_out = blocked.keys() | spent
    held = {group: rows for group, rows in by_group.items() if group not in left_out and compared(rows)}
    watch = None if undo else watch
    # After an earlier run most groups are done, and nobody wants to know when they expire.
    world, notes, lost = _read_world(plan, held, clusters, progress)
    world = replace(world, synced=options.synced or frozenset(), source_optional=source_unreachable)
    if options.synced is None and not undo:
        notes += (_sync_not_seen(plan),)
    other_cluster = tuple(map(str, cluster_drift(plan, world)))
    now = {group: group_now(plan, group, world, traces.get(group)) for group in held}
    if watch is not None and not other_cluster:
        world, expiry_notes = _with_expiry(world, now, watch)
        notes += expiry_notes
    blocks = (f"{c.subject}: {c.check}: expected {c.expected}, seen {c.seen}" for c in plan.cluster_blocks())
    refusals = (*other_cluster, *blocks)
    refusals += tuple(_lost_source(plan, now, lost)) if not source_unreachable else ()
    groups = []
    for group in by_group:
        if group in blocked:
            groups.append(GroupAssessment(group, Fate.BLOCKED, blocked[group]))
        elif group in spent:
            groups.append(GroupAssessment(group, Fate.SPENT, (_SPENT,)))
        elif group not in held:
            groups.append(GroupAssessment(group, Fate.NOTHING))
        elif not refusals or (lost and not _needs_source(now[group])):
            groups.append(_assess_group(plan, group, now[group], world))
        else:
            groups.append(GroupAssessment(group, Fate.UNREAD, refusals))
    unread = unread_source(world)
    unseen = lost or (f"{unread[0]}{_and_more(len(unread) - 1, 'answer')}" if unread else "")
    commits = {g: c for g, c in world.target.commits.items() if not isinstance(c, Failure)}
    # What a rollback brings back is the first backup; what an undo removes, it removes from what is there now.
    proven = _with_exact_client(groups, clusters.target, commits if undo else {**commits, **journal.prior}, undo)
    return Assessment(plan, proven, refusals, notes, commits, journal, unseen if source_unreachable else "")


def _needs_source(now: GroupNow | Failure) -> bool:
    return isinstance(now, Failure) or now.needs_comparison


def _lost_source(plan: Plan, now: Mapping[str, GroupNow | Failure], lost: str) -> Iterable[str]:
    """Yield why nothing may be written without the source, if some group still needs to be compared with it."""
    needing = any(map(_needs_source, now.values()))
    if lost and needing:
        yield (
            f"source {plan.header.source_alias}: expected an answer, seen: {lost} Its groups may be alive, or reset "
            "since the plan. If it is gone for good, --source-unreachable applies the plan without looking at it"
        )


def _sync_not_seen(plan: Plan) -> str:
    """Return the note of an apply that cannot look at MM2's group sync: what the plan saw is all there is."""
    then = some((check.seen for check in plan.header.checks if check.check == group_sync.name), 1, "; ")
    return (
        "whether the replicator sets these offsets as well (MM2's group sync) was not looked at: no configuration of a "
        f"checkpoint connector of this flow was given. When the plan was made: {then or 'not looked at either'}."
    )


def _with_expiry(
    world: World, now: Mapping[str, GroupNow | Failure], watch: ExpiryWatch
) -> tuple[World, tuple[str, ...]]:
    """Add the groups whose offsets would soon be gone, and the note by when the first consumers must be back."""
    writing = {g: group for g, group in now.items() if isinstance(group, GroupNow) and group.pending}
    pending = {g: group.rows for g, group in writing.items()}
    setting = {g for g, group in writing.items() if Decision.SET in GroupRows.of(group.pending).column("decision")}
    expiries, now_ms = watch.look(pending, setting, world.target.states, world.target.commits)
    soon = {
        group: f"{expiry.at(now_ms)}. {remedy(expiry, watch.target.alias)}, then plan again"
        for group, expiry in expiries.items()
        if (left_ms := expiry.left_ms(now_ms)) is not None and left_ms < BLOCK_BELOW_MS
    }
    known = {group: expiry.back_by_ms for group, expiry in expiries.items() if expiry.back_by_ms is not None}
    notes = []
    if known:
        first = min(known, key=known.__getitem__)
        notes.append(f"{first}: {expiries[first].sentence}." + (" No other is due earlier." if len(known) > 1 else ""))
    if unknown := sorted(expiries.keys() - known.keys()):
        sentence = expiries[unknown[0]].sentence
        notes.append(f"when offsets expire is unknown for {some(unknown)}: {sentence}. {UNKNOWN_TODO}")
    return replace(world, expiring=soon), tuple(notes)


def _assess_group(plan: Plan, group: str, now: GroupNow | Failure, world: World) -> GroupAssessment:
    drifts = group_drift(plan, group, now, world)
    if drifts or isinstance(now, Failure):
        fate = Fate.UNREAD if all(drift.is_unread for drift in drifts) else Fate.DRIFTED
        return GroupAssessment(group, fate, tuple(map(str, drifts)), drifts=drifts)
    if not now.pending:
        return GroupAssessment(group, Fate.DONE if now.writes else Fate.NOTHING)
    return GroupAssessment(group, Fate.WRITE, (), now.pending)


def _blocked(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the reasons of each blocked group, each reason once with how many rows it has."""
    blocked: dict[str, tuple[str, ...]] = {}
    for group, rows in plan.groups().items():
        if Decision.BLOCK not in rows.column("decision"):
            continue
        counted: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            if row.decision is Decision.BLOCK:
                counted.setdefault((row.reason, row.sentence), []).append(row.subject)
        blocked[group] = tuple(
            f"{subjects[0]}{_and_more(len(subjects) - 1)}: {reason}: {sentence}"
            for (reason, sentence), subjects in counted.items()
        )
    return blocked


def _and_more(count: int, noun: str = "row") -> str:
    return f" and {count} more {noun}{'s' if count > 1 else ''}" if count else ""


def _with_exact_client(
    groups: Collection[GroupAssessment], target: ClusterAdmin, before: Mapping[str, Commits], undo: bool
) -> tuple[GroupAssessment, ...]:
    """Refuse groups whose way there or back needs what the client turns out to lack. It is tried, once, if need be."""
    needs = {g.group: tuple(_needs(g.pending, before.get(g.group, {}), undo)) for g in groups if g.fate is Fate.WRITE}
    lack = target.missing_capability() if any(needs.values()) else None
    if lack is None:
        return tuple(groups)
    return tuple(
        GroupAssessment(
            g.group, Fate.NOT_UNDOABLE, tuple(f"{need}, which is not possible here ({lack})" for need in needs[g.group])
        )
        if needs.get(g.group)
        else g
        for g in groups
    )


def _needs(pending: Collection[Row], before: Commits, undo: bool) -> Iterable[str]:
    """Yield what only an exact client can do, for the rows to be written and, unless they are an undo, for their undo.

    `before` is what an undo would bring back: the first backup, or what is there now.
    """
    table, whole = GroupRows.of(pending), goes_whole(pending, before)
    removed = {row.target_partition for row in table.where("decision", Decision.REMOVE.__eq__)}
    others = not removed.issuperset(before)
    priors = commits_at(before, table.target_partitions())
    for place, ((metadata, decision), prior) in enumerate(
        zip(table.values("target_metadata", "decision"), priors, strict=True)
    ):
        if metadata:
            yield f"{table[place].subject}: it is set with metadata"
        elif decision is Decision.REMOVE and not whole:
            yield f"{table[place].subject}: this one offset of its group is removed, others stay"
        elif undo:
            continue
        elif prior is not None and prior.metadata:
            yield f"{table[place].subject}: a rollback has to write the prior offset's metadata"
        elif prior is None and others:
            yield f"{table[place].subject}: a rollback has to remove this one offset of its group"


def _read_world(
    plan: Plan,
    held: Mapping[str, GroupRows],
    clusters: ApplyClusters,
    progress: Progress,
) -> tuple[World, tuple[str, ...], str]:
    """Read both clusters at once; with the notes, and why the source was not read where it should have been, or "".

    Where the target cannot be read, nobody waits for the source.
    """
    header, target = plan.header, clusters.target
    undo, source = header.kind == UNDO, clusters.source if header.asks_source else None
    notes: tuple[str, ...] = ()
    where = f"{target.side} {target.alias}" if source is None else f"{target.alias} and {source.alias}"
    progress.step(f"reading {many(len(held), 'group')} again on {where}")
    target_id = target.facts().cluster_id
    source_id, lost = "", ""
    if source is not None:
        try:
            source_id = source.facts().cluster_id
        except ClusterError as error:
            source, lost = None, error.problem
    elif header.asks_source:
        notes = (f"source {header.source_alias} was not asked: its groups and logs were not compared",)
    is_other = source is not None and is_other_cluster(header.source_cluster_id, source_id)
    if is_other or is_other_cluster(header.target_cluster_id, target_id):
        held = {}  # what groups of the wrong cluster look like must not hide that it is the wrong one
    from_source = None
    if source is not None:
        from_source = in_background(partial(_read_source, plan, held, source, source_id), "reading the source")
    states = in_batches(list(held), target.group_states, progress)
    commits = in_batches(list(held), target.commits, progress)
    partitions = [] if undo else _partitions(held, GroupRows.target_partitions)
    ranges = in_batches(partitions, target.log_ranges, progress, LOGS_AT_ONCE)
    target_world = SideWorld(target_id, ranges, states, commits)
    source_world: SideWorld | None = None
    source_ids: Mapping[str, str] = {}
    on_target = _topics(held, "target_topic") & header.target_topic_ids.keys()
    target_ids = target.topic_ids(sorted(on_target)) if on_target else {}
    try:
        if from_source is not None:
            source_world, source_ids = from_source.result()
    except ClusterError as error:
        source_world, lost = None, error.problem
    some_seem_gone = undo and any(seem_gone(rows, commits.get(group, {})) for group, rows in held.items())
    target_topics = frozenset(target.topics()) if some_seem_gone else None
    world = World(target_world, source_world, target_ids, source_ids, target_topics=target_topics)
    return world, notes, lost


def _read_source(
    plan: Plan, held: Mapping[str, GroupRows], source: ClusterAdmin, cluster_id: str
) -> tuple[SideWorld, Mapping[str, str]]:
    """Return the source as it is now, and its topics' ids."""
    pending = {group for group in held if plan.accepted(pending_transactions.name, group)}
    stable = [group for group in held if group not in pending]
    # In batches, as on the target: a client that dies over one asks only that one again.
    commits = in_batches(stable, source.commits, QuietProgress())
    if pending:
        # The open transaction was accepted in the plan, which read what was committed so far.
        commits |= source.commits(sorted(pending), require_stable=False)
    states = in_batches(list(held), source.group_states, QuietProgress())
    partitions = _partitions(held, GroupRows.source_partitions)
    ranges = in_batches(partitions, source.log_ranges, QuietProgress(), LOGS_AT_ONCE)
    on_source = _topics(held, "source_topic") & plan.header.source_topic_ids.keys()
    ids = source.topic_ids(sorted(on_source)) if on_source else {}
    return SideWorld(cluster_id, ranges, states, commits), ids


def _partitions(
    held: Mapping[str, GroupRows], of_group: Callable[[GroupRows], Sequence[TopicPartition]]
) -> list[TopicPartition]:
    """Return the partitions on one side, of the rows that a plan holds, in order."""
    return sorted({p for rows in held.values() for p in of_group(GroupRows.of(compared(rows)))})


def _topics(held: Mapping[str, GroupRows], field: str) -> set[str]:
    return {topic for rows in held.values() for topic in rows.column(field)}
