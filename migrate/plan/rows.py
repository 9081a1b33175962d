"""From a survey to its rows: what is known of each commit is gathered, group by group, and decided. Pure.

A row is the translation (`migrate.plan.translate`), then what the policies make of it. Every commit becomes exactly one
row with a decision, a reason code and a sentence (promise 3). Blocks that come from checks on groups, topics and
clusters are laid over the rows afterwards (`with_blocks`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from types import MappingProxyType

from migrate.commit_table import GroupCommits
from migrate.match.place_table import PlaceTable
from migrate.match.protocol import OffsetPair
from migrate.mm2.chain import NO_WINDOW, Window
from migrate.mm2.checkpoint_table import checkpoints_at
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import (
    AHEAD_KEPT,
    GROUP_BLOCKED,
    LOG_EARLIEST,
    LOG_LATEST,
    LOG_START,
    Commit,
    Commits,
    Decision,
    Failure,
    GroupPartition,
    LogRange,
    Method,
    Row,
    TopicPartition,
)
from migrate.plan.translate import Nowhere, PartitionFacts, Place, RowFacts, Rules, not_visible, place, sync_pair
from migrate.row_table import GroupRows, Known, PlanRows
from migrate.survey.names import refuse_doubled_places
from migrate.survey.policies import PARTITION_MISSING, Policies, Rewind, Untranslatable
from migrate.survey.survey import Survey, copy_of, window_questions

METADATA_CARRIED = "metadata-carried"
_NO_PAIR = (None, None)
_LOG_ENDS = {Untranslatable.EARLIEST: LOG_EARLIEST, Untranslatable.LATEST: LOG_LATEST}


def build_row(facts: RowFacts, rules: Rules) -> Row:
    """Return the row for one commit, before the checks on its group, topic and clusters are laid over it.

    Without a commit, while the source is up, it is that of a partition for `--uncommitted earliest`.
    """
    if facts.commit is None and rules.commits.asks_source and not facts.missing_then:
        placed = _never_committed(facts.shared.target_log)
    else:
        placed = place(facts, rules)
    if isinstance(placed, Nowhere):
        return _untranslatable(facts, placed, rules.policies)
    return _decide(facts, placed, rules.policies)


def _never_committed(target_log: LogRange | Failure | None) -> Place | Nowhere:
    if isinstance(target_log, Failure):
        return not_visible("target", target_log)
    if target_log is None:
        return Nowhere(PARTITION_MISSING, "The target has no such partition.")
    return Place(
        target_log.start,
        Method.EXPLICIT,
        None,
        "never-committed",
        "The group never committed this partition; --uncommitted earliest sets it to the target's log start.",
        LOG_START,
    )


def _untranslatable(facts: RowFacts, nowhere: Nowhere, policies: Policies) -> Row:
    choice = Untranslatable.BLOCK if nowhere.always_blocks else policies.for_reason(nowhere.reason)
    if choice is Untranslatable.SKIP:
        sentence = f"{nowhere.sentence} Left alone, as --untranslatable says."
        return _row(facts, Decision.SKIP, None, nowhere.reason, sentence)
    if choice is Untranslatable.BLOCK or not isinstance(facts.shared.target_log, LogRange):
        return _row(facts, Decision.BLOCK, None, nowhere.reason, nowhere.sentence)
    offset = facts.shared.target_log.start if choice is Untranslatable.EARLIEST else facts.shared.target_log.end
    sentence = f"{nowhere.sentence} Set to the target's {choice} offset, as --untranslatable says."
    placed = Place(offset, Method.EXPLICIT, None, nowhere.reason, sentence, _LOG_ENDS[choice])
    return _decide(facts, placed, policies)


def _decide(facts: RowFacts, placed: Place, policies: Policies) -> Row:
    """Lay the prior target offset over a place (docs/translation.md, "Rewinds"): there, ahead, behind, or new."""
    assert isinstance(facts.shared.target_log, LogRange)
    log = facts.shared.target_log
    if not log.start <= placed.target_offset <= log.end:
        sentence = f"Offset {placed.target_offset} lies outside the target's log [{log.start}, {log.end}]."
        return _row(facts, Decision.BLOCK, placed, "inside-target-log", sentence)
    prior = facts.prior.offset if facts.prior else None
    if prior == placed.target_offset:
        if facts.prior and facts.prior.metadata != _carried(facts, placed):
            sentence = "The target group is already there, with other metadata: it gets the source commit's."
            return _row(facts, Decision.SET, placed, METADATA_CARRIED, sentence)
        return _row(facts, Decision.KEEP, placed, "already-there", "The target group is already there.")
    if prior is not None and prior > log.end and policies.rewind is not Rewind.SET:
        sentence = (
            f"The target group is at {prior}, beyond the target's log [{log.start}, {log.end}): it is of another log, "
            f"or a transaction is open there. --rewind set sets {placed.target_offset}."
        )
        return _row(facts, Decision.BLOCK, placed, "inside-target-log", sentence)
    if prior is not None and prior > placed.target_offset and policies.rewind is not Rewind.SET:
        beyond = f"{prior - placed.target_offset} beyond the planned {placed.target_offset}"
        ahead = f"The target group is at {prior}, {beyond}"
        if policies.rewind is Rewind.KEEP:
            sentence = f"{ahead}; kept by --rewind keep, which may skip records."
            return _row(facts, Decision.KEEP, placed, AHEAD_KEPT, sentence)
        sentence = f"{ahead}: setting it would rewind. Choose --rewind set or --rewind keep."
        return _row(facts, Decision.BLOCK, placed, "rewind", sentence)
    if prior is not None and prior > placed.target_offset:
        sentence = f"{placed.sentence} Rewinds the target group from {prior}, as --rewind set says."
        return _row(facts, Decision.SET, placed, "rewound", sentence)
    return _row(facts, Decision.SET, placed, placed.reason, placed.sentence)


def _carried(facts: RowFacts, placed: Place | None) -> str:
    """Return the metadata that goes with a place: the source commit's; without one, the target's own there."""
    if placed is None:
        return ""
    # An offset that a reviewer chose is not the commit's translation: Kafka Streams would take its time for reached.
    if facts.commit is None or placed.method is Method.EXPLICIT:
        return facts.prior.metadata if facts.prior and facts.prior.offset == placed.target_offset else ""
    return facts.commit.metadata


def _row(facts: RowFacts, decision: Decision, placed: Place | None, reason: str, sentence: str) -> Row:
    shared, commit, prior = facts.shared, facts.commit, facts.prior
    source_log = shared.source_log if isinstance(shared.source_log, LogRange) else None
    target_log = shared.target_log if isinstance(shared.target_log, LogRange) else None
    chosen = placed is not None and placed.method is Method.EXPLICIT
    if placed is None or chosen:
        lower, upper = sync_pair(facts.around.lower), sync_pair(facts.around.upper)
    else:
        lower, upper = placed.lower, placed.upper
    estimate = placed.rereads_estimate if placed else None
    if placed and chosen and target_log:
        # No law bounds it: all that the group will read from there on.
        estimate = target_log.end - placed.target_offset
    checkpoint_source, checkpoint_target = facts.checkpoint or _NO_PAIR
    lower_source, lower_target = lower or _NO_PAIR
    upper_source, upper_target = upper or _NO_PAIR
    return Row(
        group=facts.group,
        source_topic=facts.source.topic,
        target_topic=shared.target.topic,
        partition=facts.source.partition,
        source_committed=commit.offset if commit else None,
        source_metadata=commit.metadata if commit else "",
        source_log_start=source_log.start if source_log else None,
        source_log_end=source_log.end if source_log else None,
        target_log_start=target_log.start if target_log else None,
        target_log_end=target_log.end if target_log else None,
        target_prior=prior.offset if prior else None,
        target_prior_metadata=prior.metadata if prior else "",
        decision=decision,
        target_offset=placed.target_offset if placed else None,
        method=placed.method if placed else None,
        grade=placed.grade if placed else None,
        rereads_at_most=placed.rereads_at_most if placed else None,
        rereads_estimate=estimate,
        reason=reason,
        sentence=sentence,
        lower_kind=placed.lower_kind if placed else "",
        lower_source_offset=lower_source,
        lower_target_offset=lower_target,
        upper_source_offset=upper_source,
        upper_target_offset=upper_target,
        checkpoint_source_offset=checkpoint_source,
        checkpoint_target_offset=checkpoint_target,
        equality=str(shared.equality or "") if placed and placed.why else "",
        why=placed.why if placed else "",
        missing_on_target=placed.missing if placed else None,
        target_metadata=_carried(facts, placed),
        live_source_offset=facts.live_source_offset,
        target_group=facts.target_group,
    )


def with_blocks(
    rows: PlanRows,
    blocked_groups: Mapping[str, tuple[str, str]],
    blocked_rows: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> PlanRows:
    """Lay the checks' blocks over the rows: a group is set whole or not at all.

    `blocked_groups` maps a group, `blocked_rows` a row's subject, to the (check, sentence) that blocks it. Rows
    that block by themselves keep their own reason; the other rows of a group with such a row become blocks with
    reason `group-blocked`, so that a plan's `set` rows are exactly what `apply` writes. `target_offset` still
    shows the translation.
    """

    known: Known = {}

    def laid(group: str, of_group: GroupRows) -> GroupRows:
        by_itself = Decision.BLOCK in of_group.column("decision")
        named = blocked_rows and any(row.subject in blocked_rows for row in of_group)
        if group not in blocked_groups and not by_itself and not named:
            return of_group
        listed = [_blocked(r, *blocked_rows[r.subject]) if r.subject in blocked_rows else r for r in of_group]
        block = blocked_groups.get(group) or _because_of(next(r for r in listed if r.decision is Decision.BLOCK))
        return GroupRows.of_rows((_blocked(row, *block) for row in listed), known)

    return PlanRows(laid(group, of_group) for group, of_group in rows.groups().items())


def _because_of(row: Row) -> tuple[str, str]:
    """Return the block that a blocked row is for the others of its group."""
    return GROUP_BLOCKED, (
        f"{row.source_topic}-{row.partition} of this group is blocked ({row.reason}), "
        "and a group is set whole or not at all."
    )


def _blocked(row: Row, reason: str, sentence: str) -> Row:
    if row.decision is Decision.BLOCK:
        return row
    return row._replace(decision=Decision.BLOCK, reason=reason, sentence=sentence)


Checkpoints = Mapping[CheckpointKey, CheckpointRecord]


@dataclass(frozen=True)
class GroupCase:
    """One group whose rows are to be decided; `commits` has an item for each row, None where nothing is committed.

    `priors` are its commits on the target. In a plan of commits as of an earlier time, `live` are those of now, None
    in any other; `missing` says why there is no commit of then. `target_group` is as in a row; `shares_name` is True
    where a group of the source has that name too.
    """

    group: str
    commits: Mapping[TopicPartition, Commit | None]
    priors: Commits
    live: Commits | None = None
    missing: Mapping[TopicPartition, str] = field(default_factory=dict)
    target_group: str = ""
    shares_name: bool = False

    @property
    def checkpointed_as(self) -> tuple[str, ...]:
        """The names under which MM2 may have checkpointed the group: that on its source before that on its target."""
        # As KIP-1378 has it, checkpoints of a renamed group bear the target's name. No released MM2 does so, and what
        # bears the name of a group of the source is that group's: this one may stand far behind it.
        return (self.group, self.target_group) if self.target_group and not self.shares_name else (self.group,)


def decide(survey: Survey) -> Iterator[GroupRows]:
    """Yield the rows of each group of a survey, in the plan's order; of groups that have any.

    Raises `UsageError` where two commits of a group would be one on the target.
    """
    refuse_doubled_places(survey.request, survey.keys)
    return _decided(survey, survey.mm2.checkpoints.latest, _cases(survey))


def translate(survey: Survey, places: GroupCommits) -> Iterator[GroupRows]:
    """Yield the rows of offsets that no group has committed, by owner: as of a group that is nowhere on the target.

    `places` are of those that the survey was asked for. Raises `UsageError` as `decide` does.
    """
    refuse_doubled_places(survey.request, places)
    # What a group of an owner's name has, commits or checkpoints, is not the owner's.
    cases = (GroupCase(owner, offsets, {}) for owner, offsets in places.groups().items())
    return _decided(survey, {}, cases)


def _decided(survey: Survey, checkpoints: Checkpoints, cases: Iterable[GroupCase]) -> Iterator[GroupRows]:
    request = survey.request
    syncs_read = survey.mm2.syncs.counts.get("offset-sync", 0) > 0
    rules = Rules(request.policies, request.commits, syncs_read, request.limits.by_timestamp)
    shared_by = cache(_facts_of_partitions(request.flow, survey))
    known: Known = {}
    # Each group is a table as soon as it is decided: a million rows need not be there at once.
    for case in cases:
        yield GroupRows.of_rows((build_row(facts, rules) for facts in _facts(case, shared_by, checkpoints)), known)


def _facts(
    case: GroupCase, shared_by: Callable[[TopicPartition], PartitionFacts], checkpoints: Checkpoints
) -> Iterator[RowFacts]:
    shared = [shared_by(source) for source in case.commits]
    pairs = _checkpointed(checkpoints, case.checkpointed_as, [of_partition.target for of_partition in shared])
    for (source, commit), of_partition, checkpoint in zip(case.commits.items(), shared, pairs, strict=True):
        live = None if case.live is None else case.live.get(source)
        yield RowFacts(
            group=case.group,
            source=source,
            shared=of_partition,
            commit=commit,
            answer=None if commit is None else of_partition.places.get(commit.offset),
            around=NO_WINDOW if commit is None else of_partition.window_at(commit.offset),
            prior=case.priors.get(of_partition.target),
            checkpoint=checkpoint,
            live_source_offset=None if live is None else live.offset,
            missing_then=case.missing.get(source, ""),
            target_group=case.target_group,
        )


def _checkpointed(
    checkpoints: Checkpoints, names: Iterable[str], copies: Sequence[TopicPartition]
) -> Iterable[OffsetPair | None]:
    """Return what MM2's checkpoints say of each place, under the first of a group's names that has one."""
    by_name = (checkpoints_at(checkpoints, name, copies) for name in names)
    return (next(filter(None, found), None) for found in zip(*by_name, strict=True))


def _cases(survey: Survey) -> Iterator[GroupCase]:
    now, missing = survey.selected.now, dict[str, dict[TopicPartition, str]]()
    for key, why in survey.selected.missing.items():
        missing.setdefault(key.group, {})[key.source_partition] = why
    for group, commits in _commits_by_group(survey.keys):
        live = None if now is None else now.get(group, {})
        name = survey.target_names.renamed.get(group, "")
        is_others = name in survey.selected.groups_seen or name in survey.target_names.renamed
        yield GroupCase(group, commits, survey.priors.get(group, {}), live, missing.get(group, {}), name, is_others)


def _commits_by_group(
    keys: Mapping[GroupPartition, Commit | None],
) -> Iterable[tuple[str, Mapping[TopicPartition, Commit | None]]]:
    if isinstance(keys, GroupCommits):
        return keys.groups().items()
    by_group = groupby(keys.items(), lambda item: item[0].group)
    return ((group, {key.source_partition: commit for key, commit in items}) for group, items in by_group)


def _facts_of_partitions(flow: Flow, survey: Survey) -> Callable[[TopicPartition], PartitionFacts]:
    compared, windows = survey.comparison, survey.mm2.syncs.windows
    question_of = window_questions(flow, survey.logs)
    why_not_replicated = cache(flow.why_not_replicated)

    def window_at(source: TopicPartition) -> Callable[[int], Window]:
        # Where records place every commit no window was asked for.
        if not windows:
            return lambda committed: NO_WINDOW
        place = GroupPartition("", *source)

        def of_commit(committed: int) -> Window:
            question = question_of(place, Commit(committed))
            return windows.get(question, NO_WINDOW) if question else NO_WINDOW

        return of_commit

    def facts(source: TopicPartition) -> PartitionFacts:
        target, answer = copy_of(flow, source), survey.answers.get(source)
        return PartitionFacts(
            target=target,
            source_log=survey.logs.source.get(source),
            target_log=survey.logs.target.get(target),
            target_partitions=survey.target.topics.get(target.topic),
            not_replicated=why_not_replicated(source.topic),
            places=PlaceTable.of(answer.places if answer else {}),
            window_at=window_at(source),
            equality=compared.equalities.get(source.topic) if compared else None,
        )

    return facts
