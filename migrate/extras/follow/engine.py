"""One pass of `follow`: look, judge each group, write what is to be written, read it back.

Invariants:
- Without a journal to write to, all is judged and nothing written.
- What a pass may set is a plan in memory, and `apply_plan` carries it out: it looks again right before it writes,
  saves, writes and reads back. A group that it finds changed is left to the next pass. So is one whose topic on the
  source was created anew after its commits were read. The broker itself refuses a commit to a group with members.
- A row counts as set only if a fresh client read it back; one that was there before, only if the cluster said so too.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from migrate.apply.assess import ApplyClusters, Fate, GroupAssessment, RunOptions
from migrate.apply.drift import TARGET_STATE, TARGET_TOPIC, is_other_cluster
from migrate.apply.engine import apply_plan
from migrate.apply.history import JournalState
from migrate.apply.journal import JournalLost
from migrate.apply.outcome import RowOutcome, RowStatus
from migrate.clock import Clock
from migrate.errors import ClusterError, MigrateError
from migrate.extras.follow.delay import Delay, DelayWatch, Waiting, waits_for_copy
from migrate.extras.follow.journal import Followed, FollowJournal, FollowWriter, PassJournal
from migrate.extras.follow.judge import (
    Allowed,
    Refusal,
    SeenGroup,
    WhyNot,
    judge,
    own_clocks,
    refuse,
)
from migrate.extras.follow.seen_groups import (
    seen_groups,
    survey_of_the_others,
)
from migrate.extras.follow.undo import renamed
from migrate.model import Commit, Decision, Grade, Row
from migrate.plan.plan import Plan
from migrate.ports import Progress
from migrate.row_table import PlanRows
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.survey import Clusters, PlanRequest, Survey
from migrate.survey.take import take_survey

# What blocks a cutover and no pass: everything runs on, and what is not copied yet comes right later.
NO_BLOCK_HERE = ("source-group-stopped", "producers-stopped", "not-drained", "mm2-tasks")
_SET = frozenset({RowStatus.SET, RowStatus.ALREADY, RowStatus.KEPT})


@dataclass(frozen=True)
class FollowEdges:
    """What passes go through. `clusters` gives what one look reads through, `target` is the cluster that is written:
    commits that carry metadata are read and written byte for byte. `forget` makes the next look read all records anew.
    `source_topic_ids` asks the source for the ids of topics again, `offsets_topic_records` says how many records of
    both clusters' `__consumer_offsets` were read so far.
    """

    clusters: Callable[[], Clusters]
    target: ClusterAdmin
    forget: Callable[[], None]
    source_topic_ids: Callable[[Collection[str]], Mapping[str, str]]
    offsets_topic_records: Callable[[], int]


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
    written and read back, `rows_already_there` were found so when the pass came to write them, `rows_to_set` would be
    written in a dry run. `trouble` is what ended it early, "" if nothing;
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
    rows_already_there: int = 0
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    target_names: Mapping[str, str] = field(default_factory=dict)
    uncovered: Mapping[str, str] = field(default_factory=dict)
    waiting: Waiting = Waiting()
    delays: tuple[Delay, ...] = ()
    source_bytes: int = 0
    target_bytes: int = 0
    offsets_topic_records: int = 0
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
    """What came of writing: rows by their end, the groups that are not written after all, and what ended it early."""

    rows: Counter[RowStatus] = field(default_factory=Counter)
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    trouble: str = ""
    has_lost_journal: bool = False


class Follower:
    """Makes passes under a mandate, and remembers from one to the next what delays are measured from.

    `writer` is None in a dry run.
    """

    def __init__(
        self, mandate: Plan, choices: FollowChoices, edges: FollowEdges, journal: FollowJournal,
        writer: FollowWriter | None, clock: Clock, progress: Progress,
    ) -> None:  # fmt: skip
        self._mandate = mandate
        self._choices = choices
        self._edges = edges
        self._journal = journal
        self._writer = writer
        self._times = journal.times() if writer is None else writer.times
        self._clock = clock
        self._began_ms = clock.now_ms()
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
        read_before = self._edges.offsets_topic_records()
        state, (survey, not_seen) = self._journal.read(), self._survey()
        groups_seen, refused = seen_groups(
            survey, state, self._own_clocks, self._choices.moving_groups, self._edges.source_topic_ids,
        )  # fmt: skip
        groups_seen = [
            replace(s, written_ms=self._times.of(s.group), watched_since_ms=self._began_ms) for s in groups_seen
        ]
        refused |= not_seen
        allowed = Allowed.by(survey.group_facts.target_settings, self._choices.grades)
        now_ms = self._clock.now_ms()
        verdicts = {s.group: judge(s, Followed.by(state, s.group), allowed, now_ms) for s in groups_seen}
        rows = [row for seen in groups_seen for row in seen.rows if row.decision is not Decision.SKIP]
        changed = self._delays.look(rows, survey.group_facts.source_records, began_ms)
        uncopied = {row.key for row in rows if waits_for_copy(row, survey.answers)}
        waiting = self._delays.uncopied((row for row in rows if row.key in uncopied), began_ms)
        refused |= {group: verdict for group, verdict in verdicts.items() if isinstance(verdict, Refusal)}
        to_set = {g: verdict for g, verdict in verdicts.items() if verdict and not isinstance(verdict, Refusal)}
        is_stopped = not is_wanted() or self._seconds_left() <= 0
        is_written = self._writer is not None and not is_stopped
        writing = self._written(state, groups_seen, to_set, refused, survey) if is_written else _Writing()
        refused |= writing.refused
        followed = [seen for seen in groups_seen if seen.group not in refused]
        copied = [row for seen in followed for row in seen.rows if row.key not in uncopied]
        written = to_set.keys() - refused.keys() if is_written else ()
        records = survey.group_facts.target_records
        self._own_clocks = own_clocks(self._own_clocks, records, allowed.retention_ms, written)
        return PassResult(
            number=self._passes,
            at_ms=began_ms,
            seconds=round(self._clock.monotonic() - began, 3),
            groups=len(groups_seen),
            rows=len(rows),
            rows_changed=changed,
            rows_to_set=sum(map(len, to_set.values())),
            rows_set=writing.rows[RowStatus.SET],
            rows_already_there=writing.rows[RowStatus.ALREADY],
            refused=dict(sorted(refused.items())),
            target_names=renamed(self._choices.request.group_map, refused),
            uncovered={seen.group: seen.uncovered for seen in followed if seen.uncovered},
            waiting=waiting,
            delays=self._delays.reached(copied, self._clock.now_ms()) if is_written else (),
            source_bytes=survey.comparison.source_bytes if survey.comparison else 0,
            target_bytes=survey.comparison.target_bytes if survey.comparison else 0,
            offsets_topic_records=self._edges.offsets_topic_records() - read_before,
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
        self, state: JournalState, groups_seen: Collection[SeenGroup], rows: Mapping[str, tuple[Row, ...]],
        refused: Mapping[str, Refusal], survey: Survey,
    ) -> _Writing:  # fmt: skip
        """Apply the plan of this pass: the rows that may be set, beside those of their groups that stay as they are."""
        journal = self._writer
        assert journal is not None
        journal.begin_pass(state)
        _note(journal, {group: refusal for group, refusal in refused.items() if group not in state.notes})
        if not rows:
            return _Writing()
        going = {seen.group: seen for seen in groups_seen if seen.group in rows}
        plan = plan_of_pass(self._mandate, going.values(), rows, survey.target.topic_ids)
        choices = self._choices
        seconds = max(0.0, min(choices.group_timeout_seconds, self._seconds_left()))
        options = RunOptions(True, allow_partial=True, concurrency=choices.concurrency, group_timeout_seconds=seconds)
        target = self._edges.target.named(survey.target_names)
        try:
            result = apply_plan(
                plan, ApplyClusters(target), PassJournal(self._journal, journal), self._clock, self._progress, options
            )
        except MigrateError as error:
            if isinstance(error.__cause__, JournalLost):
                # It ends the passes: a line may be torn, and behind it nothing can be read.
                raise error.__cause__ from None
            raise
        if result.assessment.refusals:
            raise ClusterError(f"Nothing was written: {result.assessment.refusals[0]}.", "Check bootstrap.servers.")
        by_group = {group: list(of_group) for group, of_group in groupby(result.rows, lambda row: row.key[0])}
        left = {
            each.group: refusal
            for each in result.assessment.groups
            if (refusal := refused_by_apply(going[each.group], each, by_group[each.group])) is not None
        }
        ended = Counter(row.status for row in result.rows if row.key[0] not in left)
        if result.journal_gap:
            gap = f"missing in the journal: {result.journal_gap}"
            return _Writing(ended, left, "; ".join(filter(None, (result.trouble, gap))), True)
        _note(journal, left)
        return _Writing(ended, left, result.trouble if self._seconds_left() > 0 else "")

    def _seconds_left(self) -> float:
        return (self._choices.until_ms - self._clock.now_ms()) / 1000


def _note(journal: FollowWriter, refused: Mapping[str, Refusal]) -> None:
    """Say in the journal which groups are left alone from now on."""
    for group, refusal in refused.items():
        if refusal.is_final:
            journal.note(group, refusal.reason)
    journal.sync()


def plan_of_pass(
    mandate: Plan,
    groups_seen: Iterable[SeenGroup],
    to_set: Mapping[str, Collection[Row]],
    target_ids: Mapping[str, str],
) -> Plan:
    """Return the plan of one pass: the rows to be set, and the others of their groups as kept, where they are now.

    Logs are not compared with it: producers and retention go on, and nothing of a pass rests on where a log ends.
    """
    rows = list[Row]()
    for seen in groups_seen:
        setting = {row.key: row for row in to_set[seen.group]}
        for row in seen.rows:
            if row.decision is not Decision.SKIP:
                decided = setting.get(row.key) or row._replace(decision=Decision.KEEP)
                rows.append(decided._replace(target_log_start=None, target_log_end=None))
    return Plan(replace(mandate.header, target_topic_ids=target_ids), PlanRows.of(sorted(rows, key=lambda r: r.key)))


def refused_by_apply(seen: SeenGroup, group: GroupAssessment, rows: Sequence[RowOutcome]) -> Refusal | None:
    """Return why a group of a pass was not set after all, None where it was; `rows` are what became of its rows."""
    now = {row.target_partition: Commit(row.seen) for row in rows if row.seen is not None}
    seen = replace(seen, target_commits=now)
    if group.fate is Fate.NOT_UNDOABLE:
        return refuse(seen, WhyNot.JAVA, f"{group.reasons[0]}.")
    if group.drifts:
        first = group.drifts[0]
        if first.what == TARGET_STATE:
            return refuse(seen, WhyNot.STATE if first.is_unread else WhyNot.ALIVE, f"{first}.")
        # What is committed there is of another log.
        is_of_another = any(drift.what == TARGET_TOPIC for drift in group.drifts)
        refusal = refuse(seen, WhyNot.CHANGED, f"While the pass was made: {first}.")
        return replace(refusal, is_unsafe=refusal.is_unsafe or is_of_another)
    failed = next((row for row in rows if row.status not in _SET), None)
    if failed is None:
        return None
    why = failed.detail or "its write was not begun: the pass ended before"
    return refuse(seen, WhyNot.NOT_SET, f"{failed.target_partition}: {why}.")


def refuse_other_clusters(choices: FollowChoices, survey: Survey) -> None:
    """Raise `ClusterError` where a survey is of other clusters than the mandate."""
    flow, read = choices.request.flow, (survey.source, survey.target)
    for cluster, planned_id, survey_of in zip((flow.source, flow.target), choices.cluster_ids, read, strict=True):
        if is_other_cluster(planned_id, cluster_id := survey_of.facts.cluster_id):
            raise ClusterError(
                f"{cluster.alias} is cluster {cluster_id} now, and the mandate is for {planned_id}: nothing was "
                "written.",
                "Check bootstrap.servers. Each pass looks again.",
            )
