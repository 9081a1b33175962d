"""The rows of a group of which all is usual, made by columns: several times as fast as row by row. Pure.

Usual is a group whose every commit the records place, inside both logs, and that is on the target nowhere at or beyond
its place. What the rules say of such a row (`migrate.plan.translate`, `migrate.plan.rows`) is here said once for a
column. Any other group is left to them, whole.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, starmap
from operator import attrgetter, getitem, le
from typing import Any, NamedTuple

from migrate.commit_table import CommitTable
from migrate.match.place_table import NO_OFFSET, WHYS, MatchedColumns
from migrate.match.protocol import Why
from migrate.mm2.checkpoint_table import checkpoint_offsets
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import (
    LOG_START,
    PROVEN_SYNC,
    Commit,
    Commits,
    Decision,
    Grade,
    LogRange,
    Method,
    Row,
    TopicPartition,
)
from migrate.plan.translate import PartitionFacts, known_missing, matched_sentence
from migrate.row_table import GroupRows, Known

# Groups of that many applications at once; each takes about 100 bytes for a partition.
MOST_APPLICATIONS = 64
# Of a row that a timestamp places the rules say what it is.
_BY_TIME = frozenset(code for code, why in enumerate(WHYS) if why.is_by_time)


class _Application(NamedTuple):
    """What groups share that have committed on the same partitions: an item for each of these.

    `rows` are of no group, with all that is the same for any. `runs` are the copies, as a topic and its partitions.
    """

    rows: GroupRows
    copies: Sequence[TopicPartition]
    runs: Sequence[tuple[str, Sequence[int]]]
    source_ends: Sequence[int]
    target_starts: Sequence[int]
    target_ends: Sequence[int]
    places: Sequence[Sequence[Sequence[int]]]  # of each of `MatchedColumns`, that of every partition


class CaseNames(NamedTuple):
    """A group's names, as `GroupCase` has them."""

    group: str
    target_group: str
    checkpointed_as: tuple[str, ...]


class Commonplace:
    """What makes groups usual: what is known of their partitions, and MM2's checkpoints."""

    def __init__(
        self,
        partitions: Mapping[TopicPartition, PartitionFacts],
        checkpoints: Mapping[CheckpointKey, CheckpointRecord],
    ) -> None:
        self._partitions = partitions
        self.checkpoints = checkpoints
        self.application = lru_cache(maxsize=MOST_APPLICATIONS)(self._application)

    def _application(self, sources: tuple[TopicPartition, ...]) -> _Application | None:
        """Return what the groups on these partitions share; None where no row on them is usual."""
        facts = [self._partitions[source] for source in sources]
        if not all(map(_is_usual, sources, facts)):
            return None
        copies = tuple(each.target for each in facts)
        rows = _rows_of_none(sources, facts)
        return _Application(
            rows=rows,
            copies=copies,
            runs=[(topic, [copy.partition for copy in run]) for topic, run in groupby(copies, attrgetter("topic"))],
            source_ends=list(rows.whole("source_log_end")),
            target_starts=list(rows.whole("target_log_start")),
            target_ends=list(rows.whole("target_log_end")),
            places=list(zip(*(each.places.matched for each in facts), strict=True)),
        )


def _is_usual(source: TopicPartition, facts: PartitionFacts) -> bool:
    logs = facts.source_log, facts.target_log
    has_copy = not facts.not_replicated and source.partition < (facts.target_partitions or 0)
    return has_copy and all(isinstance(log, LogRange) for log in logs)


def usual_rows(
    called: CaseNames,
    commits: Mapping[TopicPartition, Commit | None],
    priors: Commits,
    commonplace: Commonplace,
    known: Known,
) -> GroupRows | None:
    """Return the rows of a group of which all is usual, with the source up; None for any other.

    `called` are the group's names.
    """
    if not isinstance(commits, CommitTable):
        return None
    application, offsets = commonplace.application(commits.partitions), commits.offsets
    if application is None:
        return None
    committed = application.places[0]
    at = [bisect_left(placed, offset) for placed, offset in zip(committed, offsets, strict=True)]
    if any(place == len(placed) for place, placed in zip(at, committed, strict=True)):
        return None
    places = MatchedColumns(*(list(map(getitem, column, at)) for column in application.places))
    targets = places.target_offsets
    if not _BY_TIME.isdisjoint(places.codes):
        return None
    prior = [priors.get(copy) for copy in application.copies] if priors else [None]
    if not (
        places.committed == list(offsets)
        and all(map(le, offsets, application.source_ends))
        and all(map(le, application.target_starts, targets))
        and all(map(le, targets, application.target_ends))
        # What is to be said of a group that is there already, or beyond, the rules say.
        and (prior == [None] or all(p is None or p.offset < t for p, t in zip(prior, targets, strict=True)))
    ):
        return None
    found = [_checkpoint_offsets(commonplace.checkpoints, called.checkpointed_as, run) for run in application.runs]
    return application.rows.replaced(
        {
            "group": (called.group,),
            "target_group": (called.target_group,),
            "source_committed": offsets,
            "source_metadata": commits.metadata or ("",),
            "target_metadata": commits.metadata or ("",),
            "target_prior": [each and each.offset for each in prior],
            "target_prior_metadata": [each.metadata if each else "" for each in prior],
            "checkpoint_source_offset": list(chain.from_iterable(sources for sources, _ in found)),
            "checkpoint_target_offset": list(chain.from_iterable(targets for _, targets in found)),
            **_placed(places, application.target_ends),
        },
        known,
    )


def _checkpoint_offsets(
    checkpoints: Mapping[CheckpointKey, CheckpointRecord], names: tuple[str, ...], run: tuple[str, Sequence[int]]
) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Return what MM2's checkpoints say of a run of partitions, each under the first of these names that has one."""
    sources, targets = checkpoint_offsets(checkpoints, names[0], *run)
    for name in names[1:]:
        more = zip(*checkpoint_offsets(checkpoints, name, *run), strict=True)
        pairs = zip(sources, targets, more, strict=True)
        sources, targets = zip(*(own if own[0] is not None else other for *own, other in pairs), strict=True)
    return sources, targets


def _placed(places: MatchedColumns, target_ends: Sequence[int]) -> dict[str, Sequence[Any]]:
    """Return the columns that say where the rows are set, and why: what `translate.place` says of a `Matched`."""
    codes, rereads, missing = map(_once, (places.codes, places.rereads_at_most, places.missing_on_target))
    whys = [WHYS[code] for code in codes]
    exact = [why is Why.PROVEN for why in whys]
    count = max(map(len, (whys, rereads, missing)))
    told = (each if len(each) == count else [each[0]] * count for each in (whys, exact, rereads, missing))
    texts = list(map(str, whys))
    sides = zip(
        places.lower_source, places.committed, places.lower_target, places.target_offsets, target_ends, strict=True
    )
    return {
        "target_offset": places.target_offsets,
        "method": [
            Method.SYNC if lower == committed and lower_target == target
            else Method.END if target == end
            else Method.MATCH
            for lower, committed, lower_target, target, end in sides
        ],
        "grade": [Grade.EXACT if each else Grade.BOUNDED for each in exact],
        "rereads_at_most": rereads,
        "missing_on_target": _known_missing(whys, missing),
        "reason": texts,
        "why": texts,
        "sentence": list(starmap(matched_sentence, zip(*told, strict=True))),
        "lower_kind": [LOG_START if each == NO_OFFSET else PROVEN_SYNC for each in places.lower_source],
        "lower_source_offset": _or_none(places.lower_source),
        "lower_target_offset": _or_none(places.lower_target),
        "upper_source_offset": _or_none(places.upper_source),
        "upper_target_offset": _or_none(places.upper_target),
    }  # fmt: skip


def _known_missing(whys: Sequence[Why], missing: Sequence[int]) -> Sequence[int | None]:
    # Most are the same in every row, and stand once.
    if Why.NOT_ALL_READ not in whys:
        return missing
    count = max(len(whys), len(missing))
    each = (column if len(column) == count else column * count for column in (list(whys), list(missing)))
    return list(starmap(known_missing, zip(*each, strict=True)))


def _once(column: Sequence[int]) -> Sequence[int]:
    return column[:1] if column.count(column[0]) == len(column) else column


def _or_none(column: Sequence[int]) -> Sequence[int | None]:
    return [None if each == NO_OFFSET else each for each in column] if NO_OFFSET in column else column


def _rows_of_none(sources: Sequence[TopicPartition], facts: Sequence[PartitionFacts]) -> GroupRows:
    """Return rows without a group, a commit and a place, with all that groups on these partitions share."""
    return GroupRows.of_rows(
        Row(
            group="",
            source_topic=source.topic,
            target_topic=each.target.topic,
            partition=source.partition,
            source_committed=None,
            source_metadata="",
            source_log_start=each.source_log.start,
            source_log_end=each.source_log.end,
            target_log_start=each.target_log.start,
            target_log_end=each.target_log.end,
            target_prior=None,
            target_prior_metadata="",
            decision=Decision.SET,
            target_offset=None,
            method=None,
            grade=None,
            rereads_at_most=None,
            rereads_estimate=None,
            reason="",
            sentence="",
            equality=str(each.equality or ""),
        )
        for source, each in zip(sources, facts, strict=True)
        if isinstance(each.source_log, LogRange) and isinstance(each.target_log, LogRange)
    )
