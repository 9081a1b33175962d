"""From a survey to its rows: what is known of each commit is gathered, group by group, and decided. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

from migrate.commit_table import GroupCommits
from migrate.match.place_table import PlaceTable
from migrate.match.protocol import OffsetPair
from migrate.mm2.chain import NO_WINDOW, Window
from migrate.mm2.checkpoint_table import checkpoints_at
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Commit, Commits, GroupPartition, TopicPartition
from migrate.plan.rows import build_row
from migrate.plan.translate import PartitionFacts, RowFacts, Rules
from migrate.row_table import GroupRows, Known
from migrate.survey.names import refuse_doubled_places
from migrate.survey.survey import Survey, copy_of, window_questions

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
    refuse_doubled_places(survey.request, survey.keys, "group")
    return _decided(survey, survey.mm2.checkpoints.latest, _cases(survey))


def decide_positions(survey: Survey, held: GroupCommits) -> Iterator[GroupRows]:
    """Yield the rows of each holder of positions outside Kafka, as of a group that is nowhere on the target.

    Raises `UsageError` as `decide` does.
    """
    refuse_doubled_places(survey.request, held, "holder")
    # What a group of a holder's name has, commits or checkpoints, is not the holder's.
    cases = (GroupCase(holder, commits, {}) for holder, commits in held.groups().items())
    return _decided(survey, {}, cases)


def _decided(survey: Survey, checkpoints: Checkpoints, cases: Iterable[GroupCase]) -> Iterator[GroupRows]:
    request = survey.request
    syncs_read = survey.mm2.syncs.counts.get("offset-sync", 0) > 0
    rules = Rules(request.policies, request.source_down, syncs_read, request.limits.by_timestamp)
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
    as_of = survey.selected.as_of
    missing: dict[str, dict[TopicPartition, str]] = {}
    for key, why in as_of.missing.items() if as_of else ():
        missing.setdefault(key.group, {})[key.source_partition] = why
    for group, commits in _commits_by_group(survey.keys):
        live = None if as_of is None else as_of.live.get(group, {})
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
