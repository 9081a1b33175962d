"""What groups have committed on the target beside what their source commits translate to: a verdict for each. Pure.

Numbers of two clusters are never compared with each other. A source commit is translated by the laws of
docs/translation.md, as `plan` does it, and the result is compared with what the target group has committed, whoever
wrote that: MM2's group sync, a tool, consumers.

- A proven translation is loss-free: a commit at it, or *below* it, passes over no record that the group is owed and
  that the target has. An estimated one is so only while MM2's syncs tell the truth.
- Only an exact translation is the greatest such offset: a commit *above* it has passed owed records. Above a lower
  bound (`bounded`, `estimated`) it may have, or not, and that is what the verdict says.
- The source was read first, then the target, then the source again: what a group has committed meanwhile moves the
  truth up. A commit below the first translation stays loss-free; one above it proves nothing any more.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, NamedTuple

from migrate.checks import clusters, group_kinds, group_names, groups, mm2, topics
from migrate.checks import rows as row_checks
from migrate.match.equality import Equality
from migrate.match.log_reader import LogReader, Wanted
from migrate.match.partial_log import merged
from migrate.match.protocol import Limits, OffsetRange, Why
from migrate.model import (
    CheckResult,
    Commit,
    Commits,
    Failure,
    Grade,
    GroupPartition,
    GroupState,
    Level,
    Row,
    Scope,
    TopicPartition,
    lag,
)
from migrate.plan.build import checked
from migrate.row_table import PlanRows
from migrate.show.table import fields_of
from migrate.survey.groups import NO_ANSWER
from migrate.survey.other_log import proofs_on_source, proofs_on_target
from migrate.survey.policies import Policies, Rewind
from migrate.survey.survey import Survey, copy_of
from migrate.text import many

# Why a row may lose records although it is equal or behind: of what it is owed not all was compared.
NOT_ALL_COMPARED = "not-all-compared"


class CompareVerdict(StrEnum):
    """How a target commit stands to the translation of the source's, the worst first."""

    AHEAD = "ahead"
    UNDECIDED = "undecided"
    MISSING = "missing-on-target"
    UNTRANSLATED = "untranslated"
    ONLY_ON_TARGET = "only-on-target"
    BEHIND = "behind"
    EQUAL = "equal"


class Loss(StrEnum):
    """What a group that starts from its target commit loses: nothing, perhaps something, or records for all that both
    clusters tell.

    It is never more than likely: consumers that ran on the target, and have stopped or were never members, may have
    read there what their commit has passed.
    """

    NONE = "none"
    POSSIBLE = "possible"
    LIKELY = "likely"


class Stretch(NamedTuple):
    """Offsets of one log of the target between a commit and a translation, `end` exclusive."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What is decided of a row.

    `difference` is the target commit less the translated offset: in records where `difference_is_records`, else in
    offsets, of which some may hold no record (markers, aborted, compacted); None where there is nothing to subtract.
    `rereads_at_most` is a proven bound on what the group reads twice from its target commit on; None where none is.
    `reason` is a code, "" where the verdict says all; `sentence` is never empty.
    """

    verdict: CompareVerdict
    loss: Loss
    sentence: str
    reason: str = ""
    difference: int | None = None
    difference_is_records: bool = False
    rereads_at_most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow(Finding):
    """One commit of a group on either side, or on both.

    `source_moved_to` is what the source had committed at the second look, None where nothing moved, or nothing is left.
    `target_group` is as in a plan's row.
    """

    group: str
    source_topic: str
    target_topic: str
    partition: int
    source_committed: int | None
    target_committed: int | None
    translated: int | None = None
    grade: Grade | None = None
    source_moved_to: int | None = None
    target_group: str = ""

    @classmethod
    def of(cls, found: Finding, **place: Any) -> "ComparedRow":
        """Return the row of a place, with what was found there."""
        return cls(**fields_of(found, *(each.name for each in fields(Finding))), **place)

    @property
    def group_on_target(self) -> str:
        """What the group is called on the target."""
        return self.target_group or self.group

    def is_within(self, records: int) -> bool:
        """True if the group is at its place, or behind it by at most so many records, as far as the look goes.

        What it has read on the source meanwhile counts too. Losing is never within.
        """
        if self.loss is not Loss.NONE:
            return False
        if self.verdict is CompareVerdict.EQUAL:
            return True
        if self.verdict is not CompareVerdict.BEHIND or self.difference is None:
            return False
        moved = 0
        if self.source_moved_to is not None and self.source_committed is not None:
            moved = self.source_moved_to - self.source_committed
        return moved - self.difference <= records


@dataclass(frozen=True)
class GroupComparison:
    """All rows, sorted, and what the look rests on: `premises` are checks on it that did not pass.

    `unstable` are groups with transactional offsets pending: of those, what was committed before is compared.
    """

    time_ms: int
    source_alias: str
    target_alias: str
    rows: tuple[ComparedRow, ...]
    premises: tuple[CheckResult, ...]
    unstable: frozenset[str]

    def counts(self) -> Mapping[CompareVerdict, int]:
        """Count rows by verdict."""
        return Counter(row.verdict for row in self.rows)

    def beyond(self, within: int) -> tuple[ComparedRow, ...]:
        """Return the rows that are not equal, and not behind by at most so many records."""
        return tuple(row for row in self.rows if not row.is_within(within))

    def is_good(self, within: int) -> bool:
        """True if something was compared, no row is beyond, and nothing is known that may hide a row or move one."""
        return bool(self.rows) and not (self.beyond(within) or self.blocks or self.unstable)

    @property
    def blocks(self) -> tuple[CheckResult, ...]:
        """The premises that do not hold: rows may be missing, or be about other logs."""
        return tuple(result for result in self.premises if result.counts_as is Level.BLOCK)


# Checks that say whether all commits were seen, and on the right clusters.
PREMISES = frozenset(
    check.name
    for check in (
        clusters.clusters_differ, clusters.listing_complete, clusters.topics_visible, group_names.named_groups_exist,
        groups.checkpointed_topics_listed, clusters.checkpointed_groups_listed, mm2.mm2_offset_syncs_topic,
        group_kinds.share_group, group_kinds.streams_group, group_names.group_under_old_name,
    )
)  # fmt: skip
# Checks on rows whose block says that the translation is no translation.
REFUTING = frozenset(
    check.name for check in (row_checks.inside_target_log, topics.timestamps_not_kept, topics.sync_unguarded)
)


# The source's commits by group, as they were after the target's had been read.
After = Mapping[str, Commits | Failure]


def translated_commits(survey: Survey) -> tuple[PlanRows, tuple[CheckResult, ...]]:
    """Return every commit of a survey, translated, before any block is laid over it, and what the checks say.

    With policies that choose nothing.
    """
    # With another choice, a commit further on the target would block the translation that it is compared with.
    request = replace(survey.request, policies=Policies(rewind=Rewind.SET))
    return checked(replace(survey, request=request))


def stretches(rows: Iterable[Row]) -> Iterator[Stretch]:
    """Yield what lies between a target commit and its translation, where both are in the target's log."""
    for row in rows:
        if row.target_prior is None or row.target_offset is None or row.target_log_end is None:
            continue
        start, end = sorted((row.target_prior, row.target_offset))
        if start < end <= row.target_log_end and start >= (row.target_log_start or 0):
            yield Stretch(row.target_partition, start, end)


def comparison_of(
    survey: Survey, after: After, translated: Iterable[Row], results: Collection[CheckResult],
    records: Mapping[Stretch, int], now_ms: int,
) -> GroupComparison:  # fmt: skip
    """Return the verdict on every commit of either side.

    `translated` and `results` are what `translated_commits` returns. `survey` has priors of the groups too that only
    the target lists. `records` tells of some stretches how many records they hold; of others only offsets are known.
    """
    judge = _Judge(
        survey,
        after,
        {r.subject: r for r in results if r.scope is Scope.ROW and r.check in REFUTING and r.counts_as is Level.BLOCK},
        proofs_on_source(survey).others,
        proofs_on_target(survey).others,
        records,
    )
    rows = [judge.row(row) for row in translated]
    rows += only_on_target(survey, after)
    groups = {row.group for row in rows}
    premises = tuple(
        result
        for result in results
        if result.check in PREMISES
        and (result.counts_as is not Level.PASS)
        and not (result.check == group_names.named_groups_exist.name and result.subject in groups)
    )
    rows.sort(key=lambda row: (row.group, row.source_topic, row.partition))
    flow = survey.flow
    return GroupComparison(now_ms, flow.source.alias, flow.target.alias, tuple(rows), premises, survey.unstable)


@dataclass(frozen=True)
class _Judge:
    """Decides about commits of the source, one by one. `refuted` is by a row's subject."""

    survey: Survey
    after: After
    refuted: Mapping[str, CheckResult]
    source_other_logs: Mapping[GroupPartition, str]
    target_other_logs: Mapping[GroupPartition, str]
    records: Mapping[Stretch, int]

    def row(self, row: Row) -> ComparedRow:
        """Return the verdict on one commit of the source."""
        moved_to = committed_after(self.after, row.group, row.source_partition)
        found = self._untranslated(row) or self._without_commit(row) or self._moved(row, moved_to)
        if found is None:
            found = self._compared(row, isinstance(moved_to, int) and moved_to != row.source_committed)
        is_translated = found.verdict is not CompareVerdict.UNTRANSLATED
        return ComparedRow.of(
            found, group=row.group, source_topic=row.source_topic, target_topic=row.target_topic,
            partition=row.partition, source_committed=row.source_committed, target_committed=row.target_prior,
            translated=row.target_offset if is_translated else None, grade=row.grade if is_translated else None,
            source_moved_to=moved_to if isinstance(moved_to, int) and moved_to != row.source_committed else None,
            target_group=row.target_group,
        )  # fmt: skip

    def _untranslated(self, row: Row) -> Finding | None:
        key = GroupPartition(row.group, row.source_topic, row.partition)
        for side, proofs in (("source", self.source_other_logs), ("target", self.target_other_logs)):
            if key in proofs:
                proof = proofs[key]
                return _untranslatable(
                    row_checks.commit_of_another_log.name,
                    f"Its commit on the {side} {proof}: it was made on another log.",
                )
        if row.subject in self.refuted:
            result = self.refuted[row.subject]
            return _untranslatable(result.check, f"Expected {result.expected}; seen: {result.seen}.")
        if row.target_offset is None:
            return _untranslatable(row.reason, row.sentence)
        return None

    def _without_commit(self, row: Row) -> Finding | None:
        if row.target_prior is not None:
            return None
        return Finding(
            CompareVerdict.MISSING,
            Loss.POSSIBLE,
            f"The target has no commit, so that auto.offset.reset decides where the group starts: its place is "
            f"{row.target_offset}.",
        )

    def _moved(self, row: Row, moved_to: int | None | Failure) -> Finding | None:
        """Return the verdict where the second look at the source leaves nothing to compare with."""
        if isinstance(moved_to, Failure):
            return _undecided("not-visible", f"What the source has committed could not be read again: {moved_to}.")
        if moved_to is None:
            return _undecided("source-moved", "The commit on the source was removed during the look.")
        assert row.source_committed is not None
        if moved_to < row.source_committed:
            return _undecided(
                "source-moved",
                f"The source was set back to {moved_to} during the look: what is owed by now was not translated.",
            )
        return None

    def _compared(self, row: Row, has_moved: bool) -> Finding:
        committed, translated, start, end = _offsets(row)
        if committed < start:
            return Finding(
                CompareVerdict.BEHIND,
                Loss.POSSIBLE,
                f"The commit lies below the target's log start {start}: auto.offset.reset decides where the group "
                "starts, and latest would pass over all that it is owed.",
                "below-log-start",
                committed - translated,
            )
        if committed > end and (found := self._beyond_end(row)):
            return found
        between = self.records.get(Stretch(row.target_partition, *sorted((committed, translated))))
        sign = 1 if committed > translated else -1
        difference = committed - translated if between is None else sign * between
        is_records = between is not None or committed == translated
        if difference == 0 and not has_moved:
            return _equal(row, committed == translated)
        if committed <= translated or difference == 0:
            return _behind(row, difference, is_records, has_moved)
        return replace(self._above(row, has_moved), difference=difference, difference_is_records=is_records)

    def _beyond_end(self, row: Row) -> Finding | None:
        """Return the verdict on a commit beyond the last stable offset; None where the records below it decide."""
        committed, translated, _, end = _offsets(row)
        high_watermark = self.survey.watermarks.target.get(row.target_partition)
        if not isinstance(high_watermark, int):
            sentence = f"The commit lies beyond {end}, and the end of the target's log is unknown."
            return _undecided("not-visible", sentence, committed - translated)
        if committed <= high_watermark:
            sentence = f"A transaction is open on the target from {end} on, and the commit lies within it."
            return None if translated < end else _undecided("open-transaction", sentence, committed - translated)
        return Finding(
            CompareVerdict.AHEAD,
            Loss.POSSIBLE,
            f"The commit lies beyond the target's log end {high_watermark}: it is of another log, and "
            "auto.offset.reset decides where the group starts.",
            "beyond-log-end",
            committed - translated,
        )

    def _above(self, row: Row, has_moved: bool) -> Finding:
        """Return what is known of a commit above its translation."""
        committed, translated, _, _ = _offsets(row)
        if has_moved:
            return _undecided(
                "source-moved",
                "The group has moved on on the source during the look: the target may be where it is by now.",
            )
        if row.grade is Grade.EXACT:
            return self._lost(row)
        bound = _upper_bound(row)
        if bound is not None and committed > bound:
            # Not ahead: a mirror that was killed copies again, and the group may be at a later copy of that record.
            return _undecided(
                "past-a-sync",
                f"By MM2's syncs a record that the group is owed was copied to {bound}, and the commit is past it: it "
                "is lost, unless MM2 has copied it once more further on.",
                rereads_at_most=row.rereads_at_most,
            )
        limit = "" if bound is None else f", and by MM2's syncs not above {bound}"
        return _undecided(
            "above-lower-bound",
            f"{translated} is a lower bound ({row.grade}): the group's place is there or above it{limit}. "
            "Whether the commit passes over records is not known.",
            rereads_at_most=row.rereads_at_most,
        )

    def _lost(self, row: Row) -> Finding:
        state = self.survey.target.states.get(row.group)
        lost = "The record at the translated offset is owed, and has no later copy: the commit is past it"
        if isinstance(state, GroupState) and state.is_stopped:
            sentence = (
                f"{lost}. Unless its consumers have run on the target already, and read it there, the group loses it "
                "and what it is owed up to the commit."
            )
            return Finding(CompareVerdict.AHEAD, Loss.LIKELY, sentence)
        if isinstance(state, GroupState):
            members = f"is {state.state} on the target, with {many(state.member_count, 'member')}"
            who, reason = f"The group {members}, and may have read on there", "alive-on-target"
        else:
            who, reason = f"Whether the group has members on the target is not visible ({state})", "not-visible"
        return Finding(CompareVerdict.AHEAD, Loss.POSSIBLE, f"{lost}. {who}: else it is lost.", reason)


def _offsets(row: Row) -> tuple[int, int, int, int]:
    """Return commit and translation on the target, and its log's start and end, of a row that has them."""
    committed, translated, start, end = row.target_prior, row.target_offset, row.target_log_start, row.target_log_end
    assert committed is not None and translated is not None and start is not None and end is not None
    return committed, translated, start, end


def _equal(row: Row, same: bool) -> Finding:
    sentence = "The commit is at the translated offset."
    if not same:
        sentence = "No record lies between the commit and the translated offset: the group reads the same from both."
    loss, reason, why = _remaining_loss(row)
    return Finding(
        CompareVerdict.EQUAL, loss, sentence + why, reason or ("" if same else "no-record-between"), 0, True,
        row.rereads_at_most,
    )  # fmt: skip


def _behind(row: Row, difference: int, is_records: bool, has_moved: bool) -> Finding:
    what = many(-difference, "record") if is_records else f"at most {many(-difference, 'record')}"
    loss, reason, why = _remaining_loss(row)
    none_lost = "" if why else "; none is lost"
    sentence = f"From the commit to the translated offset it is {what}, to be read again{none_lost}."
    if not difference:
        sentence = f"The commit is where the first look at the source puts it{none_lost}."
    if has_moved:
        sentence += " The group has moved on on the source during the look, and so is further behind."
    # What was read on the source meanwhile may have more than one copy.
    is_bounded = row.rereads_at_most is not None and not has_moved
    return Finding(
        CompareVerdict.BEHIND, loss, sentence + why, "source-moved" if has_moved else reason, difference,
        is_records, (row.rereads_at_most or 0) - difference if is_bounded else None,
    )  # fmt: skip


def _remaining_loss(row: Row) -> tuple[Loss, str, str]:
    """Return what a commit at or below the translation may lose all the same, with a reason and a sentence.

    What MM2 has not brought over no commit can give to the group; and an estimate is made of syncs alone, as MM2's
    group sync makes its own: where they are stale, both agree and both are wrong.
    """
    if row.missing_on_target:
        missing = many(row.missing_on_target, "owed record")
        return Loss.POSSIBLE, topics.missing_on_target.name, f" {missing} without a copy on the target."
    if row.grade is Grade.ESTIMATED:
        why = " The translation rests on MM2's syncs alone: it loses nothing only while they tell the truth."
        return Loss.POSSIBLE, "not-proven", why
    if row.missing_on_target is None and lag(row) != 0:
        whether = "Not all records that it is owed were compared (--match-limit, --max-fetch): whether each"
        if row.why == Why.LEAST_TIMESTAMP:
            whether = "It is placed by timestamps: whether each record that it is owed"
        return Loss.POSSIBLE, NOT_ALL_COMPARED, f" {whether} has a copy on the target is not known."
    return Loss.NONE, "", ""


def _upper_bound(row: Row) -> int | None:
    """Return the offset of the copy of a record at or after the source commit, by a sync; None where none is known."""
    if row.lower_source_offset == row.source_committed and row.lower_target_offset == row.target_offset:
        return row.target_offset
    return row.upper_target_offset


def _untranslatable(reason: str, sentence: str) -> Finding:
    return Finding(CompareVerdict.UNTRANSLATED, Loss.POSSIBLE, sentence, reason)


def _undecided(
    reason: str, sentence: str, difference: int | None = None, rereads_at_most: int | None = None
) -> Finding:
    return Finding(
        CompareVerdict.UNDECIDED, Loss.POSSIBLE, sentence, reason, difference, rereads_at_most=rereads_at_most
    )


def committed_after(after: After, group: str, source: TopicPartition) -> int | None | Failure:
    """Return what the second look at the source found committed; None for nothing."""
    commits = after.get(group, NO_ANSWER)
    if isinstance(commits, Failure):
        return commits
    commit = commits.get(source)
    return None if commit is None else commit.offset


def only_on_target(survey: Survey, after: After) -> Iterator[ComparedRow]:
    """Yield the commits on copies, inside the filters, that have no commit on the source."""
    flow = survey.flow
    originals: dict[str, str | None] = {}
    for group, commits in survey.priors.items():
        for place, commit in commits.items():
            if place.topic not in originals:
                originals[place.topic] = _original(survey, place.topic)
            topic = originals[place.topic]
            if topic is None or survey.request.filters.verdict(group, topic) is not None:
                continue
            source = TopicPartition(topic, place.partition)
            if GroupPartition(group, *source) in survey.keys or copy_of(flow, source) != place:
                continue
            yield _on_target_only(survey, group, source, commit, committed_after(after, group, source))


def _original(survey: Survey, target_topic: str) -> str | None:
    """Return the source topic that a topic of the target is a copy of; None where it is none, or may be its own."""
    flow = survey.flow
    topic = flow.policy.source_topic(target_topic)
    if topic is None or flow.why_not_replicated(topic):
        return None
    # Where copies are named as their originals are, a topic that the source lacks is the target's own.
    return None if topic == target_topic and topic not in survey.source.topics else topic


def _on_target_only(
    survey: Survey, group: str, source: TopicPartition, commit: Commit, after: int | None | Failure
) -> ComparedRow:
    verdict, reason = CompareVerdict.UNDECIDED, "not-visible"
    if isinstance(after, Failure):
        sentence = f"What the source has committed could not be read: {after}."
    elif after is not None:
        reason = "source-moved"
        sentence = (
            f"The source has {after} at a second look: the group committed it during the look, or was missing from the "
            "list of groups before."
        )
    elif source.topic not in survey.source.topics:
        reason = "source-topic-missing"
        sentence = (
            f"The source shows no topic {source.topic}: it was deleted, or this principal may not DESCRIBE it, and "
            "then commits on it are left out in silence."
        )
    else:
        verdict, reason = CompareVerdict.ONLY_ON_TARGET, ""
        sentence = "The source has no such commit: the group never made it, or it has expired or was deleted there."
    return ComparedRow.of(
        Finding(verdict, Loss.POSSIBLE, sentence, reason), group=group, source_topic=source.topic,
        target_topic=copy_of(survey.flow, source).topic, partition=source.partition, source_committed=None,
        target_committed=commit.offset, source_moved_to=after if isinstance(after, int) else None,
        target_group=survey.target_names.renamed.get(group, ""),
    )  # fmt: skip


# Offsets that are read in all: this process holds some 30 bytes of each.
MOST_OFFSETS = 2_000_000
# Bytes of a record, where none was read that would tell.
UNKNOWN_SIZE = 1000.0


@dataclass(frozen=True)
class CountPlan:
    """What is to be read to count stretches: disjoint ranges by partition, so many offsets, and about so many bytes."""

    ranges: Mapping[TopicPartition, tuple[OffsetRange, ...]]
    offsets: int
    bytes: int


def count_plan(stretches: Collection[Stretch], limits: Limits, bytes_read: int, records_read: int) -> CountPlan:
    """Return what to read: partitions with little to read come first, and what the limits do not afford is left out.

    What comparing has read of the target counts towards the limit, and says how large a record is.
    """
    budget, spent = MOST_OFFSETS, 0.0
    bytes_per_record = bytes_read / records_read if records_read else UNKNOWN_SIZE
    pieces = defaultdict[TopicPartition, list[OffsetRange]](list)
    for partition, start, end in sorted(set(stretches)):
        pieces[partition].append(OffsetRange(start, end))
    joined = {partition: tuple(merged(each)) for partition, each in pieces.items()}
    widths = {partition: sum(piece.end - piece.start for piece in each) for partition, each in joined.items()}
    ranges: dict[TopicPartition, tuple[OffsetRange, ...]] = {}
    for partition, width in sorted(widths.items(), key=lambda item: (item[1], item[0])):
        cost = width * bytes_per_record
        affordable = limits.fetch_bytes is None or bytes_read + spent + cost <= limits.fetch_bytes
        if width <= min(budget, limits.match_records) and affordable:
            ranges[partition], budget, spent = joined[partition], budget - width, spent + cost
    return CountPlan(ranges, MOST_OFFSETS - budget, round(spent))


def count_records(reader: LogReader, plan: CountPlan, stretches: Collection[Stretch]) -> dict[Stretch, int]:
    """Return how many records each stretch holds that was read in full; raises `ClusterError` as the reader does.

    Offsets may be markers, or hold nothing any more. Without a count a difference counts offsets, which is never too
    few. A stretch that cannot be read, or whose beginning retention has removed, is not in the answer.
    """
    wanted = {partition: Wanted(ranges, Equality.KEY_AND_VALUE) for partition, ranges in plan.ranges.items()}
    read = {p: slices for p, slices in reader.read(wanted).items() if isinstance(slices, tuple)} if wanted else {}
    counts = {}
    for stretch in set(stretches):
        for piece in read.get(stretch.partition, ()):
            # What retention has removed meanwhile was there when the commit was looked at: it would count as nothing.
            if max(piece.start, piece.readable_from) <= stretch.start and stretch.end <= piece.end:
                counts[stretch] = bisect_left(piece.offsets, stretch.end) - bisect_left(piece.offsets, stretch.start)
    return counts
