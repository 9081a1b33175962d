"""Where a cutover stands: how far MM2 is, who still writes and reads, and what is missing for a clean plan. Pure.

The verdicts are those of `plan`: the same survey, the same checks. What only comparing records around every commit can
show (`ONLY_PLAN_SHOWS`) is left to it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from migrate.checks.check import is_without_members
from migrate.checks.checklist import CHECKS
from migrate.checks.topics import NOT_JUDGED
from migrate.commit_table import partitions_of_keys
from migrate.match.protocol import ChainOf
from migrate.mm2.connect_offsets import Positions
from migrate.mm2.flow import NOT_MM2, Flow
from migrate.mm2.topic_reader import News
from migrate.model import CheckResult, Failure, GroupState, Level, LogRange, Side, TopicPartition
from migrate.plan.build import checked
from migrate.survey.drain import UNKNOWN, Drained, Lag, drains, lag_of, total
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.offsets_topic import GroupRecord
from migrate.survey.producers import Growth
from migrate.survey.survey import Survey, copy_of

ONLY_PLAN_SHOWS = frozenset(check.name for check in CHECKS if check.needs_records)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition and its copy; logs are None where that cluster is down, or did not report them.

    `last_copied_offset` is MM2's own position (the last source record copied), None where it has none.
    """

    source: TopicPartition
    target: TopicPartition
    source_log: LogRange | None
    target_log: LogRange | None
    last_copied_offset: int | None
    lag: Lag
    drained: Drained
    growth: Growth | Failure | None


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """All partitions of one topic that groups of the plan have commits on."""

    source_topic: str
    target_topic: str
    partitions: tuple[PartitionStatus, ...]

    @property
    def lag(self) -> Lag:
        """What MM2 has still to copy of the topic."""
        return total(p.lag for p in self.partitions)

    @property
    def source_start(self) -> int | None:
        """The source's log starts, added up; None where one is not known."""
        return _sum(p.source_log.start if p.source_log else None for p in self.partitions)

    @property
    def source_end(self) -> int | None:
        """The source's log ends, added up; None where one is not known."""
        return _sum(p.source_log.end if p.source_log else None for p in self.partitions)

    @property
    def target_end(self) -> int | None:
        """The target's log ends, added up; None where one is not known."""
        return _sum(p.target_log.end if p.target_log else None for p in self.partitions)

    @property
    def copied(self) -> int | None:
        """How far MM2 has come, in the source's offsets: its end less the lag; by MM2's own positions if it is down."""
        if self.source_end is not None and self.lag.records is not None:
            return self.source_end - self.lag.records
        if self.source_end is None:
            return _sum(None if p.last_copied_offset is None else p.last_copied_offset + 1 for p in self.partitions)
        return None

    @property
    def drained(self) -> bool | None:
        """True if all is copied, None where nobody can tell."""
        verdicts = [p.drained.verdict for p in self.partitions]
        return False if False in verdicts else None if None in verdicts else True

    @property
    def written(self) -> Growth | None:
        """How far its log ends moved between two readings; None where one was not read twice."""
        growths = [p.growth for p in self.partitions if isinstance(p.growth, Growth)]
        if not growths or len(growths) < len(self.partitions):
            return None
        return Growth(sum(g.offsets for g in growths), min(g.seconds for g in growths))


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group on both sides; `on_source` is None while the source is down. `target_offsets` counts its commits.

    `source_record` tells when it committed on the source, and how often, or why nobody can tell. `target_group` is what
    it is called on the target, "" where it keeps its name.
    """

    group: str
    on_source: GroupState | Failure | None
    on_target: GroupState | Failure | None
    target_offsets: int
    source_record: GroupRecord | Failure = NOT_ASKED
    target_group: str = ""

    @property
    def is_stopped_on_source(self) -> bool:
        """True if the group is known to have no member on the source."""
        return is_without_members(self.on_source)


@dataclass(frozen=True, slots=True)
class Mm2TopicStatus:
    """One of MM2's topics: `news` tells how new its newest record is. `found` is None where nobody looked."""

    what: str
    topic: str
    alias: str
    found: bool | None
    news: News


@dataclass(frozen=True)
class Status:
    """One look at a flow. `source_down` says why the source was not asked, "" where it was.

    `checks` are those of `plan`, but for what only `plan` can tell. `commits` counts commits inside the filters.
    `mm2_topics` are none where it is not MM2 that copies.
    """

    time_ms: int
    source_alias: str
    target_alias: str
    source_down: str
    topics: tuple[TopicStatus, ...]
    groups: tuple[GroupStatus, ...]
    mm2_topics: tuple[Mm2TopicStatus, ...]
    positions_unknown: str
    checks: tuple[CheckResult, ...]
    commits: int

    @property
    def is_ready(self) -> bool:
        """True if nothing is known that keeps `plan` from being clean.

        Never where no commit is inside the filters: then nothing was looked at, and most likely they are wrong. Nor
        while the source does not answer, whatever was accepted: that all is copied, and nobody writes, was not seen.
        """
        return not self.blocks and self.commits > 0 and not self.source_down

    @property
    def blocks(self) -> tuple[CheckResult, ...]:
        """The results that block and were not accepted."""
        return tuple(c for c in self.checks if c.counts_as is Level.BLOCK)

    @property
    def lag(self) -> Lag:
        """What MM2 has still to copy of all topics; unknown where none was looked at."""
        return total(topic.lag for topic in self.topics) if self.topics else UNKNOWN


NewsOf = Callable[[Side, str], News]


def status_of(
    survey: Survey,
    positions: Positions,
    news: NewsOf,
    sync_pairs: ChainOf,
    source_down: str = "",
) -> Status:
    """Return the status of a survey.

    `positions` are MM2's own (the survey has none while the source is down), `news` how new its topics' newest records
    are, `sync_pairs` its chains.
    """
    flow = survey.flow
    _, checks = checked(survey)
    judged = drains(survey)
    places = sorted(partitions_of_keys(survey.keys))
    replicated = [p for p in places if not flow.why_not_replicated(p.topic)]
    partitions = [_partition(flow, survey, p, judged, positions, sync_pairs) for p in replicated]
    topics = tuple(
        TopicStatus(topic, flow.policy.target_topic(topic), tuple(same))
        for topic, same in groupby(partitions, key=lambda p: p.source.topic)
    )
    groups = tuple(
        GroupStatus(
            g,
            survey.source.states.get(g),
            survey.target.states.get(g),
            len(survey.priors.get(g, {})),
            survey.group_facts.source_record(g),
            survey.target_names.renamed.get(g, ""),
        )
        for g in survey.groups
    )
    aliases = {Side.SOURCE: flow.source.alias, Side.TARGET: flow.target.alias}
    mm2_topics = tuple(
        Mm2TopicStatus(what, read.topic, aliases[read.side], read.found, news(read.side, read.topic))
        for what, read in (("offset sync", survey.mm2.syncs_topic), ("checkpoint", survey.mm2.checkpoints_topic))
        if read.topic
    )
    return Status(
        time_ms=survey.taken_at_ms,
        source_alias=flow.source.alias,
        target_alias=flow.target.alias,
        source_down=source_down,
        topics=topics,
        groups=groups,
        mm2_topics=mm2_topics,
        positions_unknown=positions.unknown if mm2_topics else NOT_MM2,
        checks=tuple(c for c in checks if c.check not in ONLY_PLAN_SHOWS),
        commits=len(survey.selected.commits),
    )


def _partition(
    flow: Flow,
    survey: Survey,
    source: TopicPartition,
    judged: Mapping[TopicPartition, Drained],
    positions: Positions,
    sync_pairs: ChainOf,
) -> PartitionStatus:
    target = copy_of(flow, source)
    source_log, target_log = survey.logs.source.get(source), survey.logs.target.get(target)
    drained, last_copied_offset, lag = judged.get(source, NOT_JUDGED), positions.last_copied_offset.get(source), UNKNOWN
    if isinstance(source_log, LogRange) and isinstance(target_log, LogRange):
        answer = survey.answers.get(source)
        chain = sync_pairs(source, source_log.end, target_log.end)
        newest = chain[-1] if chain else None
        tail = answer.tail if answer else None
        lag = lag_of(source_log, target_log, bool(drained.verdict), tail, newest, last_copied_offset)
        if (end := survey.copy_ends.get(source)) and end.is_below_newest_sync:
            # It was created anew, or cut: that MM2 is at the end says nothing of what lies in it.
            drained, lag = Drained(None, "the copy ends before MM2's newest sync"), UNKNOWN
    return PartitionStatus(
        source=source,
        target=target,
        source_log=source_log if isinstance(source_log, LogRange) else None,
        target_log=target_log if isinstance(target_log, LogRange) else None,
        last_copied_offset=last_copied_offset,
        lag=lag,
        drained=drained,
        growth=survey.growth.get(source),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    listed = list(numbers)
    return None if None in listed or not listed else sum(n for n in listed if n is not None)
