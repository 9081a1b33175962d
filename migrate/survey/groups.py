"""What `plan` and `apply` ask about groups beyond states and commits: kinds, expiry, commits that move."""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeVar

from migrate.commit_table import offsets_at
from migrate.mm2.flow import Flow
from migrate.model import Commits, Decision, Failure, GroupState, Row, Side, TopicPartition
from migrate.progress import Timer, in_background
from migrate.row_table import GroupRows
from migrate.survey.cluster import BrokerSettings, ClusterAdmin
from migrate.survey.expiry import Expiry, OffsetClocks, expiry_of, needs_record
from migrate.survey.filters import Filters
from migrate.survey.group_facts import MOST_RECORDS, NOT_ASKED, GroupFacts
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupRecord, newest_ms
from migrate.survey.survey import Clusters, States
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
    return in_background(lambda: source.group_records(groups, with_gaps=True, most=MOST_RECORDS), "commit-records")


def read_kinds(clusters: Clusters, timer: Timer) -> Mapping[str, str] | Failure:
    """Ask the source of what kind its groups are: no listing of consumer groups shows share and streams groups."""
    source = clusters.source
    if source is None:
        return NOT_ASKED
    return timer.run("kinds", f"listing groups of every kind on {source.alias}", source.group_kinds)


def read_expiry_facts(
    target: ClusterAdmin,
    states: States,
    priors: Mapping[str, Commits],
    timer: Timer,
    ahead: Records | None = None,
) -> tuple[BrokerSettings | Failure, Mapping[str, GroupRecord] | Failure]:
    """Ask the target what decides when offsets expire; group records only where they matter.

    `ahead` are the records, where they are being read already.
    """
    settings = timer.run("expiry", f"asking {target.alias} how long it keeps offsets", target.broker_settings)
    empty = sorted(g for g, state in states.items() if needs_record(state, bool(priors.get(g))))
    if not empty:
        return settings, {}
    are = "is" if len(empty) == 1 else "are"
    text = f"reading in {OFFSETS_TOPIC} on {target.alias} since when {many(len(empty), 'group')} {are} empty"
    return settings, timer.run("expiry", text, ahead.result if ahead else lambda: target.group_records(empty))


@dataclass(frozen=True)
class ExpiryWatch:
    """Looks again, right before offsets are written, at when they would expire."""

    target: ClusterAdmin
    timer: Timer
    now_ms: int
    records: Records | None = None

    def ahead(self, states: States) -> "ExpiryWatch":
        """Return a watch that reads group records from now on, while the caller asks for commits."""
        likely = sorted(group for group, state in states.items() if needs_record(state, True))
        if not likely:
            return self
        return replace(self, records=in_background(lambda: self.target.group_records(likely), "group-records"))

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
        settings, records = read_expiry_facts(self.target, stopped, before, self.timer, self.records)
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
