"""One pass of `follow`: look, judge each group, write what is to be written, read it back.

Invariants:
- Without a journal to write to, all is judged and nothing written.
- What stands on the target is read once more right before it is written, and then the ids of its topics: a group that
  has changed, or reads a topic that was created anew, is left to the next pass. So is one whose topic on the source was
  created anew after its commits were read. The broker itself refuses a commit to a group with members.
- What stood in each place first is on disk before our first write there, an intent before each write.
- A row counts as set only if a fresh client read it back; one that stood there before, only if the cluster said so too.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from migrate.apply.drift import is_other_cluster
from migrate.apply.history import SET, JournalState
from migrate.apply.journal import Journal
from migrate.apply.outcome import Answer, is_committed_as_planned
from migrate.apply.read_back import read_commits
from migrate.apply.write import GroupWriter, PendingRows
from migrate.checks.check import is_without_members
from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.extras.follow.delay import Delay, DelayWatch, Waiting, waits_for_copy
from migrate.extras.follow.journal import Followed, FollowWriter, carries_metadata, same
from migrate.extras.follow.judge import (
    Allowed,
    GroupSight,
    Refusal,
    WhyNot,
    judge,
    own_clocks,
    refuse,
)
from migrate.extras.follow.sights import (
    of_another_log,
    others_on_target,
    sights_of,
    survey_of_the_others,
)
from migrate.extras.follow.undo import renamed
from migrate.model import Commits, Decision, Failure, Grade, GroupState, Row, TopicPartition
from migrate.ports import Progress
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.renamed import TargetNames
from migrate.survey.survey import Clusters, PlanRequest, Survey
from migrate.survey.take import take_survey

# What blocks a cutover and no pass: everything runs on, and what is not copied yet comes right later.
NO_BLOCK_HERE = ("source-group-stopped", "producers-stopped", "not-drained", "mm2-tasks")


@dataclass(frozen=True)
class FollowEdges:
    """What passes go through. `clusters` gives what one look reads through; `writing` a client of the target that holds
    a lock while it may write, and writes the metadata of the groups that it is given byte for byte, under the names
    that groups have there. `forget` makes the next look read all records anew. `source_topic_ids` asks the source for
    the ids of topics again.
    """

    clusters: Callable[[], Clusters]
    writing: Callable[[int, Collection[str], TargetNames], ClusterAdmin]
    forget: Callable[[], None]
    source_topic_ids: Callable[[Collection[str]], Mapping[str, str]]


@dataclass(frozen=True)
class FollowChoices:
    """How passes are made: what is asked for, what may be written, and how writing goes on.

    `cluster_ids` are those of the mandate's source and target: what has another id is never read for, nor written.
    `moving_groups` are those that are written although their commits move without a member. Nothing is begun to be
    written from `until_ms` on (ms since 1970).
    """

    request: PlanRequest
    cluster_ids: tuple[str, str]
    grades: frozenset[Grade]
    concurrency: int
    group_timeout_seconds: float
    until_ms: int
    moving_groups: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True)
class PassResult:
    """What one pass did. `rows_changed` have another commit on the source than in the pass before; `rows_set` were
    written and read back, `rows_to_set` would be in a dry run. `trouble` is what ended it early, "" if nothing;
    `is_stopped` says that it was asked to stop before it wrote, `has_lost_journal` that its journal takes no more.
    `target_names` are what the target calls those of the refused groups that have another name there. `uncovered` says
    of groups that are not refused which of their partitions no row covers. `waiting` are the rows that MM2 has to copy
    records for.
    """

    number: int
    at_ms: int
    seconds: float = 0.0
    groups: int = 0
    rows: int = 0
    rows_changed: int = 0
    rows_to_set: int = 0
    rows_set: int = 0
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    target_names: Mapping[str, str] = field(default_factory=dict)
    uncovered: Mapping[str, str] = field(default_factory=dict)
    waiting: Waiting = Waiting()
    delays: tuple[Delay, ...] = ()
    source_bytes: int = 0
    target_bytes: int = 0
    trouble: str = ""
    is_stopped: bool = False
    has_lost_journal: bool = False

    @property
    def unsafe(self) -> tuple[str, ...]:
        """The groups whose consumers would skip records, or may, if they started on the target now."""
        refused = {group for group, refusal in self.refused.items() if refusal.is_unsafe}
        return tuple(sorted(refused | self.uncovered.keys()))

    @property
    def is_empty(self) -> bool:
        """True if no group was seen at all: most likely the filters are wrong, or the source lists none to us."""
        return not (self.trouble or self.groups or self.refused)


@dataclass(frozen=True)
class _Writing:
    """What came of writing: the groups that are not written after all, and what ended it early, as in `PassResult`."""

    refused: Mapping[str, Refusal] = field(default_factory=dict)
    trouble: str = ""
    has_lost_journal: bool = False


class Follower:
    """Makes passes, and remembers from one to the next what delays are measured from, and when it wrote what.

    `writer` is None in a dry run. `last_written_ms` is when an earlier process wrote at the latest: ms since 1970.
    """

    def __init__(
        self, choices: FollowChoices, edges: FollowEdges, journal: Journal, writer: FollowWriter | None, clock: Clock,
        progress: Progress, last_written_ms: int = 0,
    ) -> None:  # fmt: skip
        self._choices = choices
        self._edges = edges
        self._journal = journal
        self._writer = writer
        self._last_written_ms = last_written_ms
        self._written_ms: dict[str, dict[TopicPartition, int]] = {}
        self._clock = clock
        self._progress = progress
        self._delays = DelayWatch()
        self._topic_ids: Mapping[str, Mapping[str, str]] = {}
        self._own_clocks: Mapping[str, int] = {}
        self._passes = 0

    def look_and_write(self, is_wanted: Callable[[], bool] = lambda: True) -> PassResult:
        """Make one pass; nothing is begun to be written once it is not wanted any more.

        Raises `ClusterError` where a cluster does not answer, `JournalLost` where the journal takes no more.
        """
        self._passes += 1
        began, began_ms = self._clock.monotonic(), self._clock.now_ms()
        state, (survey, not_seen) = self._journal.read(), self._survey()
        sights, refused = sights_of(
            survey, state, self._own_clocks, self._choices.moving_groups, self._edges.source_topic_ids,
        )  # fmt: skip
        sights = [
            replace(s, written_ms=self._written_ms.get(s.group, {}), known_since_ms=self._last_written_ms)
            for s in sights
        ]
        refused |= not_seen
        allowed = Allowed.by(survey.group_facts.target_settings, self._choices.grades)
        now_ms = self._clock.now_ms()
        verdicts = {s.group: judge(s, Followed.by(state, s.group), allowed, now_ms) for s in sights}
        rows = [row for sight in sights for row in sight.rows if row.decision is not Decision.SKIP]
        changed = self._delays.look(rows, survey.group_facts.source_records, began_ms)
        uncopied = {row.key for row in rows if waits_for_copy(row, survey.answers)}
        waiting = self._delays.uncopied((row for row in rows if row.key in uncopied), began_ms)
        refused |= {group: verdict for group, verdict in verdicts.items() if isinstance(verdict, Refusal)}
        to_set = {g: verdict for g, verdict in verdicts.items() if verdict and not isinstance(verdict, Refusal)}
        is_stopped = not is_wanted() or self._seconds_left() <= 0
        is_written = self._writer is not None and not is_stopped
        writing = self._written(state, sights, to_set, refused, survey.target_names) if is_written else _Writing()
        refused |= writing.refused
        followed = [sight for sight in sights if sight.group not in refused]
        stands = [row for sight in followed for row in sight.rows if row.key not in uncopied]
        written = to_set.keys() - refused.keys() if is_written else ()
        records = survey.group_facts.target_records
        self._own_clocks = own_clocks(self._own_clocks, records, allowed.retention_ms, written)
        return PassResult(
            number=self._passes,
            at_ms=began_ms,
            seconds=round(self._clock.monotonic() - began, 3),
            groups=len(sights),
            rows=len(rows),
            rows_changed=changed,
            rows_to_set=sum(map(len, to_set.values())),
            rows_set=sum(len(to_set[group]) for group in written),
            refused=dict(sorted(refused.items())),
            target_names=renamed(self._choices.request.group_map, refused),
            uncovered={sight.group: sight.uncovered for sight in followed if sight.uncovered},
            waiting=waiting,
            delays=self._delays.reached(stands, self._clock.now_ms()) if is_written else (),
            source_bytes=survey.comparison.source_bytes if survey.comparison else 0,
            target_bytes=survey.comparison.target_bytes if survey.comparison else 0,
            trouble=writing.trouble,
            is_stopped=is_stopped,
            has_lost_journal=writing.has_lost_journal,
        )

    def _survey(self) -> tuple[Survey, dict[str, Refusal]]:
        """Look at both clusters; twice where a topic was created anew, of which records were remembered.

        Also return the groups that were left out because nobody can look at them.
        """
        survey, refused = self._look()
        ids_now = {"source": survey.source.topic_ids, "target": survey.target.topic_ids}
        before, self._topic_ids = self._topic_ids, ids_now
        if any(ids.get(topic, known) != known for side, ids in self._topic_ids.items()
               for topic, known in before.get(side, {}).items()):  # fmt: skip
            self._edges.forget()
            return self._look()
        return survey, refused

    def _look(self) -> tuple[Survey, dict[str, Refusal]]:
        survey, refused = survey_of_the_others(
            self._choices.request,
            lambda request: take_survey(request, self._edges.clusters(), self._clock, self._progress),
        )
        try:
            refuse_other_clusters(self._choices, survey)
        except ClusterError:
            self._edges.forget()  # what was read there is nothing of ours
            raise
        return survey, refused

    def _written(
        self, state: JournalState, sights: Collection[GroupSight], rows: Mapping[str, tuple[Row, ...]],
        refused: Mapping[str, Refusal], names: TargetNames,
    ) -> _Writing:  # fmt: skip
        """Write, and read back."""
        journal = self._writer
        assert journal is not None
        journal.shorten(state)
        for group, refusal in refused.items():
            if refusal.is_final and group not in state.notes:
                journal.note(group, refusal.reason)
        journal.sync()
        if not rows:
            return _Writing()
        seen = {sight.group: (sight, Followed.by(state, sight.group)) for sight in sights}
        with_metadata = [group for group in rows if _needs_java(rows[group], *seen[group])]
        target = self._edges.writing(journal.lock, with_metadata, names)
        try:
            return self._write(journal, target, rows, seen)
        finally:
            target.close()

    def _write(
        self, journal: FollowWriter, target: ClusterAdmin, rows: Mapping[str, tuple[Row, ...]],
        seen: Mapping[str, tuple[GroupSight, Followed]],
    ) -> _Writing:  # fmt: skip
        looked_at = self._clock.monotonic()
        refused, before = self._look_again(target, rows, seen)
        for group, refusal in refused.items():
            if refusal.is_final:
                journal.note(group, refusal.reason)
        journal.sync()
        choices, left_seconds = self._choices, self._seconds_left()
        if left_seconds <= 0:
            return _Writing({g: refuse(seen[g][0], WhyNot.NOT_SET, "The mandate has ended.") for g in rows} | refused)
        going = {g: of_group for g, of_group in rows.items() if g not in refused}
        pending = {group: PendingRows(of_group) for group, of_group in going.items()}
        journal.backup({g: before[g] for g in going if _is_new(seen[g][1], going[g])}, pending)
        begun_ms = self._clock.now_ms()
        for group, places in pending.items():
            self._written_ms[group] = dict.fromkeys(places, begun_ms) | self._written_ms.get(group, {})
        timeout, has_ended = min(choices.group_timeout_seconds, left_seconds), lambda: self._seconds_left() <= 0
        writer = GroupWriter(target, journal, self._clock, timeout, choices.concurrency, has_ended=has_ended)
        written = writer.write_offsets(going, {g: before[g] for g in going}, looked_at)
        # Those that were not begun are the next pass's.
        asked = [group for group in going if group in written.answers]
        read_back = read_commits(target, asked, self._clock, choices.group_timeout_seconds)
        for group, of_group in going.items():
            sight = seen[group][0]
            if group not in written.answers:
                refused[group] = refuse(sight, WhyNot.NOT_SET, "Its write was not begun: the pass ended before.")
                continue
            answers, commits = written.answers[group], read_back.get(group)
            if commits is None or isinstance(commits, Failure):
                refused[group] = refuse(sight, WhyNot.NOT_SET, f"It could not be read back: {commits or 'no answer'}.")
                continue
            there = {row for row in of_group if _is_set(row, answers.get(row.target_partition), commits)}
            set_now = (row.target_partition for row in there if answers.get(row.target_partition) == SET)
            self._written_ms[group] |= dict.fromkeys(set_now, begun_ms)
            failed = [row for row in of_group if row not in there]
            if failed:
                answer = answers.get(failed[0].target_partition, "it stands elsewhere by now")
                sight = replace(sight, standing=commits)
                refused[group] = refuse(sight, WhyNot.NOT_SET, f"{failed[0].subject}: {answer}.")
        if written.journal_gap:
            return _Writing(refused, f"{written.trouble}; missing in the journal: {written.journal_gap}", True)
        journal.sync()
        return _Writing(refused, written.trouble)

    def _seconds_left(self) -> float:
        return (self._choices.until_ms - self._clock.now_ms()) / 1000

    def _look_again(
        self,
        target: ClusterAdmin,
        rows: Mapping[str, tuple[Row, ...]],
        seen: Mapping[str, tuple[GroupSight, Followed]],
    ) -> tuple[dict[str, Refusal], dict[str, Commits]]:
        """Read what is about to be written once more; return the groups that have changed, and what stands there."""
        # Its client is a new one, and its brokers' names may lead elsewhere by now.
        _refuse_other(target.alias, self._choices.cluster_ids[1], target.facts().cluster_id)
        states, commits = target.group_states(list(rows)), target.commits(list(rows))
        others = others_on_target([seen[group][0] for group in rows], target.topic_ids)
        refused: dict[str, Refusal] = {}
        before: dict[str, Commits] = {}
        for group, of_group in rows.items():
            (sight, known), state, now = seen[group], states.get(group), commits.get(group)
            if now is None or isinstance(now, Failure):
                refused[group] = refuse(sight, WhyNot.CHANGED, f"It could not be read again: {now or 'no answer'}.")
            elif not isinstance(state, GroupState):
                refused[group] = refuse(sight, WhyNot.STATE, f"Its state was not read again: {state or 'no answer'}.")
            elif not is_without_members(state):
                refused[group] = Refusal(WhyNot.ALIVE, f"It is {state.state} on the target: {state.some_members()}.")
            else:
                before[group] = now
                places = {row.target_partition for row in of_group} | known.written
                moved = sorted(p for p in places if not same(now.get(p), sight.standing.get(p)))
                if moved:
                    sight = replace(sight, standing=now)
                    refused[group] = refuse(sight, WhyNot.CHANGED, f"{moved[0]} changed while the pass was made.")
                elif (another := of_another_log((row.target_topic for row in sight.rows), others)) is not None:
                    refused[group] = another
        return refused, before


def refuse_other_clusters(choices: FollowChoices, survey: Survey) -> None:
    """Raise `ClusterError` where a survey is of other clusters than the mandate."""
    flow, read = choices.request.flow, (survey.source, survey.target)
    for cluster, planned_id, seen in zip((flow.source, flow.target), choices.cluster_ids, read, strict=True):
        _refuse_other(cluster.alias, planned_id, seen.facts.cluster_id)


def _refuse_other(alias: str, planned_id: str, cluster_id: str) -> None:
    if is_other_cluster(planned_id, cluster_id):
        raise ClusterError(
            f"{alias} is cluster {cluster_id} now, and the mandate is for {planned_id}: nothing was written.",
            "Check bootstrap.servers. Each pass looks again.",
        )


def _needs_java(rows: Collection[Row], sight: GroupSight, known: Followed) -> bool:
    """True for a group with metadata: it is read as it was at first, also in places that are not written now."""
    return (
        known.has_metadata
        or any(row.target_metadata for row in rows)
        or any(map(carries_metadata, sight.standing.values()))
    )


def _is_set(row: Row, answer: Answer | None, commits: Commits) -> bool:
    """True if a row was read back, and that shows that it was written: what stood there before shows in any case."""
    return is_committed_as_planned(row, commits) and (not row.needs_acknowledgement or answer == SET)


def _is_new(known: Followed, rows: Collection[Row]) -> bool:
    """True if what stands in one of these places may not be saved yet; what is saved counts once."""
    return any(row.target_partition not in known.prior.keys() | known.written for row in rows)
