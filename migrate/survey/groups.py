"""What `plan` and `apply` ask about groups: who holds them, of what kind they are, when they expire, what moves.

States are looked at twice: a group that was rebalancing at the first look is alive at the second.
"""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from migrate.commit_table import offsets_at
from migrate.errors import ClusterError
from migrate.mm2.flow import Flow
from migrate.model import ABSENT, ClusterFacts, Commits, Decision, Failure, GroupState, Row, Side, TopicPartition
from migrate.progress import QuietProgress, Timer, in_background, in_batches
from migrate.row_table import GroupRows
from migrate.survey.cluster import BrokerSettings, ClusterAdmin
from migrate.survey.expiry import Expiry, OffsetClocks, expiry_of, needs_record
from migrate.survey.filters import Filters
from migrate.survey.group_facts import MOST_RECORDS, NOT_ASKED, GroupFacts
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupRecord, newest_ms
from migrate.survey.survey import Clusters, ClusterSurvey, States
from migrate.text import many

NO_ANSWER = Failure("NO_ANSWER", "the group is missing from the answer")
Records = Future[Mapping[str, GroupRecord] | Failure]
Answer = TypeVar("Answer")


def answer_of_each(groups: Iterable[str], answers: Mapping[str, Answer | Failure]) -> dict[str, Answer | Failure]:
    """Return each group's answer; one that was left out is a `Failure`."""
    return {group: answers.get(group, NO_ANSWER) for group in groups}


def read_group_facts(
    clusters: Clusters,
    flow: Flow,
    syncs_topic: str | None,
    target_states: States,
    priors: Mapping[str, Commits],
    timer: Timer,
    commit_records: Records | None,
) -> GroupFacts:
    """Ask both clusters; what neither tells stays a `Failure`. `syncs_topic` is None where there is none to ask.

    `commit_records` are being read already (`commit_records_ahead`).
    """
    kinds = read_kinds(clusters, timer)
    settings, records = read_expiry_facts(clusters.target, target_states, priors, timer)
    newest: int | None | Failure = None
    if syncs_topic is not None:
        where = clusters.source if flow.syncs_side is Side.SOURCE else clusters.target
        newest = where.newest_record_ms(syncs_topic) if where else NOT_ASKED
    committed: Mapping[str, GroupRecord] | Failure = NOT_ASKED
    if commit_records is not None:
        text = f"reading in {OFFSETS_TOPIC} on {flow.source.alias} when groups committed last"
        committed = timer.run("records", text, commit_records.result)
    return GroupFacts(kinds, settings, records, newest, source_records=committed)


def commit_records_ahead(clusters: Clusters, groups: Collection[str]) -> Records | None:
    """Begin to read when these groups committed on the source, and how often; None where nobody is to be asked."""
    source = clusters.source
    if source is None or not groups:
        return None
    return in_background(lambda: source.group_records(groups, most=MOST_RECORDS), "commit-records")


def read_kinds(clusters: Clusters, timer: Timer) -> Mapping[str, str] | Failure:
    """Ask the source of what kind its groups are: no listing of consumer groups shows share and streams groups."""
    source = clusters.source
    if source is None:
        return NOT_ASKED
    return timer.run("kinds", f"listing groups of every kind on {source.alias}", source.group_kinds)


def read_expiry_facts(
    target: ClusterAdmin, states: States, priors: Mapping[str, Commits], timer: Timer
) -> tuple[BrokerSettings | Failure, Mapping[str, GroupRecord] | Failure]:
    """Ask the target what decides when offsets expire; group records only where they matter."""
    settings = timer.run("expiry", f"asking {target.alias} how long it keeps offsets", target.broker_settings)
    empty = sorted(g for g, state in states.items() if needs_record(state, bool(priors.get(g))))
    if not empty:
        return settings, {}
    are = "is" if len(empty) == 1 else "are"
    text = f"reading in {OFFSETS_TOPIC} on {target.alias} since when {many(len(empty), 'group')} {are} empty"
    return settings, timer.run("expiry", text, lambda: target.group_records(empty))


@dataclass(frozen=True)
class ExpiryWatch:
    """Looks again, right before offsets are written, at when they would expire."""

    target: ClusterAdmin
    timer: Timer
    now_ms: int

    def look(
        self,
        pending: Mapping[str, Collection[Row]],
        setting: Collection[str],
        states: States,
        commits: Mapping[str, Commits | Failure],
    ) -> tuple[dict[str, Expiry], int]:
        """Return by group, of those with rows to be written, when its offsets expire, and the time to reckon it from.

        Live groups are left out. The time is ours, or the brokers' where their records show that ours is behind.
        `pending` are all their rows, `setting` the groups of which at least one offset is set, and not only removed.
        """
        stopped = {g: s for g, s in states.items() if g in pending and isinstance(s, GroupState) and s.is_stopped}
        before = {g: c for g, c in commits.items() if not isinstance(c, Failure)}
        settings, records = read_expiry_facts(self.target, stopped, before, self.timer)
        clocks = OffsetClocks(self.target.alias, settings, records, max(self.now_ms, newest_ms(records)))
        expiries = {
            group: expiry_of(group, state, _kept(pending[group], before.get(group, {})), group in setting, clocks)
            for group, state in sorted(stopped.items())
        }
        return expiries, clocks.now_ms


def _kept(rows: Collection[Row], commits: Commits) -> set[TopicPartition]:
    """Return the partitions of a group that keep the offset that they have, also where somebody has set it already."""
    if not commits:
        return set()
    table = GroupRows.of(rows)
    partitions, planned = table.target_partitions(), table.values("decision", "target_offset")
    return {
        partition
        for partition, now, (decision, offset) in zip(partitions, offsets_at(commits, partitions), planned, strict=True)
        if now is not None and (decision is Decision.KEEP or now == offset)
    }


def commits_that_moved(
    cluster: ClusterAdmin | None,
    before: Mapping[str, Commits],
    states: States,
    timer: Timer,
    filters: Filters | None = None,
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Read the commits of groups without members again; return by group what changed, and why others were not read.

    Groups and partitions without commits so far count too: a first commit is one that moves. `filters` are those that
    `before` went through, None where it went through none.
    """
    stopped = sorted(g for g, s in states.items() if isinstance(s, GroupState) and s.is_stopped)
    if cluster is None or not stopped:
        return {}, {}
    text = f"reading commits of {many(len(stopped), 'group')} on {cluster.alias} again"
    answers = timer.run("settle", text, lambda: cluster.commits(stopped, require_stable=False))
    moved, unread = {}, {}
    for group in stopped:
        answer = answers.get(group, NO_ANSWER)
        if isinstance(answer, Failure):
            unread[group] = str(answer)
            continue
        topics = {place.topic for place in answer} if filters is not None else ()
        taken = {topic for topic in topics if filters is not None and filters.verdict(group, topic) is not None}
        now = {p: c for p, c in answer.items() if p.topic not in taken} if taken else answer
        if changed := _moved(before.get(group, {}), now):
            moved[group] = changed
    return moved, unread


def other_kinds(kinds: Mapping[str, str] | Failure, filters: Filters) -> Mapping[str, str] | Failure:
    """Return the groups inside the filters that are no consumer groups."""
    if isinstance(kinds, Failure):
        return kinds
    return {g: kind for g, kind in kinds.items() if kind != "consumer" and filters.group_verdict(g) is None}


def _moved(before: Commits, now: Commits) -> tuple[str, ...]:
    """Return the partitions whose committed offset changed, as "t-0: 55 to 60"."""
    if before.keys() == now.keys() and offsets_at(before, now) == offsets_at(now, now):
        return ()
    offsets = {p: [c[p].offset if p in c else "none" for c in (before, now)] for p in before.keys() | now.keys()}
    return tuple(f"{p}: {old} to {new}" for p, (old, new) in sorted(offsets.items()) if old != new)


@dataclass(frozen=True)
class Listing:
    """The groups that a cluster lists, so many seconds after it was first asked."""

    groups: frozenset[str]
    seconds_apart: float


def facts_of_source(source: ClusterAdmin, flow: Flow) -> ClusterFacts:
    """Reach the source; raises `ClusterError`, which says what to do where it is lost for good."""
    try:
        return source.facts()
    except ClusterError as error:
        if not flow.mm2_delivers:
            raise  # only its checkpoints could stand in for the source
        hint = "If it is lost for good, --source-down plans from the target alone."
        raise ClusterError(error.problem, f"{error.todo} {hint}") from error


def describe(
    target: ClusterAdmin, source: ClusterAdmin | None, groups: Collection[str], timer: Timer
) -> tuple[States, States]:
    """Describe the groups on the target and on the source, both at once; nothing of a source that is down.

    Raises `ClusterError` as the clusters do.
    """

    def ask() -> tuple[States, States]:
        on_source = None
        if source is not None:
            asked = partial(in_batches, list(groups), source.group_states, QuietProgress())
            on_source = in_background(asked, "describing groups")
        on_target = in_batches(list(groups), target.group_states, timer.progress)
        return on_target, {} if on_source is None else on_source.result()

    where = target.alias if source is None else f"{target.alias} and {source.alias}"
    return timer.run("states", f"describing {many(len(groups), 'group')} on {where}", ask)


def list_again(admin: ClusterAdmin, listed_at: float, timer: Timer) -> Listing:
    """List the groups again; `listed_at` is when they were first listed, in the clock's seconds."""
    seconds_apart = timer.clock.monotonic() - listed_at
    return Listing(timer.run("groups", f"listing groups on {admin.alias} again", admin.groups), seconds_apart)


def both_looks(before: ClusterSurvey, again: Listing, now: States, groups: Collection[str]) -> ClusterSurvey:
    """Return a survey with the livelier of two descriptions of each group, `before`'s and `now`.

    Only a group that neither listing shows is "Absent": one that vanished in between was rebalancing.
    """
    listed = before.listed | again.groups
    states: dict[str, GroupState | Failure] = {}
    for group in groups:
        first = before.states.get(group)
        livelier = (now.get(group) if isinstance(first, GroupState) and first.is_stopped else first) or NO_ANSWER
        if isinstance(livelier, GroupState) and livelier.is_stopped and group not in listed:
            livelier = replace(livelier, state=ABSENT)
        states[group] = livelier
    return replace(before, states=states, seconds_apart=again.seconds_apart)
