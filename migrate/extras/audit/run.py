"""The `audit run` command: pin both logs of each topic, read what is new, compare what differs, judge, print."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from migrate.apply.assess import refuse_other_cluster
from migrate.cli.choices import TopicOptions
from migrate.cli.console import Terminal
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, ParsedBy, flag, option, time_of
from migrate.clock import SystemClock, iso
from migrate.errors import ClusterError, UsageError
from migrate.extras.audit.judge import LogReading, judged, with_order
from migrate.extras.audit.owed import Owed
from migrate.extras.audit.pin import PinnedTopic, pin_topics, with_current_starts
from migrate.extras.audit.state import NamedFile, State, named_file, opened_state
from migrate.extras.audit.stretches import Cut, Ranges, TopicSums, offsets_of, steps
from migrate.extras.audit.text import document_of, print_result
from migrate.extras.audit.verdict import TopicAudit
from migrate.match.calibration import Calibration, calibrate_topics, topic_questions
from migrate.match.log_reader import LogReader
from migrate.match.protocol import Unreadable, Work
from migrate.mm2.flow import Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import Side, TopicPartition
from migrate.plan.file import read_plan
from migrate.progress import LineProgress, Timer
from migrate.session.clusters import endpoints, starting_spark
from migrate.session.options import SessionOptions, SparkOptions
from migrate.session.status import StatusSession, status_session
from migrate.spark.dataframes import reading_topic
from migrate.spark.java_settings import JavaSettings
from migrate.survey.filters import Filters
from migrate.survey.mm2_topics import read_syncs_topic
from migrate.text import many, parse_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate.spark.background import BackgroundSpark

T = TypeVar("T")

# What a kill costs at most: so many offsets are read again, and of a rate that is held so many seconds.
STEP_OFFSETS, STEP_SECONDS = 20_000_000, 60
# How often a log is read again whose records are removed meanwhile: each time there is less of it.
TRIES = 10
# Records at either end of a log that tell how much time it spans, and in how many of a topic's partitions.
SPAN_RECORDS, SPAN_PARTITIONS = 20, 4


def rate_of(text: str) -> int:
    """Read "50MB/s", "50MB" or "500K" as bytes a second; raises `ValueError` for anything else, and for none at all."""
    if rate := parse_bytes(text.lower().removesuffix("/s")):
        return rate
    raise ValueError("at 0 bytes a second nothing is ever read.")


@dataclass(frozen=True, kw_only=True)
class RunOptions(OnClusters):
    """What is audited, and where what was read is kept."""

    state: Path = option(
        "Folder for what was read: a later run reads only what is new. It is made, and yours alone.",
        required=True, metavar="FOLDER")  # fmt: skip
    form: str = option(
        "json: one document.", name="--format", default="table", type=click.Choice(["table", "json"]))  # fmt: skip
    plan: Path | None = option(
        "Only what the groups of this plan are owed: the records from their commits on, and the copies from their "
        "planned offsets on. Says which group would miss what.", metavar="PLAN", envvar=None)  # fmt: skip
    since: str | None = option(
        "Only records with timestamps of this time or later: 2026-11-23T22:00:00Z. What is older is not looked at.",
        metavar="TIME", envvar=None)  # fmt: skip
    max_rate: int | None = option(
        "Read about this much a second at most, from both clusters together: 50MB/s, 500K. Keys, values and headers "
        "count, before compression; it holds on average over some seconds.  [default: no limit]",
        type=ParsedBy(rate_of), metavar="BYTES/S")  # fmt: skip
    order: bool = flag(
        "Also look whether copies stand in the order of their originals. Reads all of both logs again, and sorts it: "
        "several times the cost.")  # fmt: skip
    topics: TopicOptions = TopicOptions()
    spark: SparkOptions = SparkOptions()


def run(options: RunOptions) -> int:
    """Read both logs of every topic that is copied, each once, and say whether every record has its copy.

    Logs are read up to ends that are pinned first, by Spark, as sums of fingerprints; only stretches whose sums differ
    are read again, and what has no counterpart there is looked at record by record. Exits 0 if all is there (COMPLETE),
    1 if records are missing (INCOMPLETE), 4 where that could not be decided (NOT PROVEN). docs/audit.md says what that
    proves.
    """
    flow = reached_flow(options.clusters, options.form != "table")
    progress = options.log.progress(*filter(None, [options.plan]))
    since_ms = time_of("--since", options.since)
    if options.plan and since_ms is not None:
        raise UsageError("--plan and --since exclude each other: groups are owed records of any time.", "Omit one.")
    filters = Filters.from_options(topics=options.topics.topics, exclude_topics=options.topics.exclude_topics)
    if options.plan and filters != Filters():
        raise UsageError("--plan says which topics are audited.", "Omit --topic and --exclude-topic.")
    owed = Owed.of(read_plan(options.plan)) if options.plan else None
    with audit_session(flow, options) as session:
        choices = Choices(owed=owed, since_ms=since_ms, max_rate=options.max_rate, order=options.order)
        result = Audit(session, progress, filters, options.state, choices).run()
    progress.end()
    return print_result(result, options.form, Terminal.here())


@dataclass(frozen=True)
class AuditSession:
    """What an audit reads through."""

    flow: Flow
    looking: StatusSession
    source_records: LogReader
    target_records: LogReader
    spark: "BackgroundSpark"
    java: Mapping[Side, JavaSettings]


@contextmanager
def audit_session(flow: Flow, options: RunOptions) -> Iterator[AuditSession]:
    """Yield what an audit reads through; Spark starts meanwhile."""
    deadline = options.clusters.request_timeout
    source, target = endpoints(flow, deadline)
    settings = SessionOptions(deadline, options.spark, no_match=True)
    with (
        starting_spark(options.spark, flow.source, flow.target, small=False) as spark,
        status_session(flow, SystemClock(), settings) as looking,
        closing(source.records()) as on_source,
        closing(target.records()) as on_target,
    ):
        java = {Side.SOURCE: source.java, Side.TARGET: target.java}
        yield AuditSession(flow, looking, on_source, on_target, spark, java)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Which part of the logs is audited, how fast (bytes a second), and whether their order is looked at too."""

    owed: Owed | None = None
    since_ms: int | None = None
    max_rate: int | None = None
    order: bool = False

    @property
    def part(self) -> str:
        """What a folder is about, as `State.part`."""
        if self.owed:
            return f"plan {self.owed.fingerprint}"
        return "" if self.since_ms is None else f"records since {iso(self.since_ms)}"


class Audit:
    """One run: `folder` keeps what it reads."""

    def __init__(
        self,
        session: AuditSession,
        progress: LineProgress,
        filters: Filters,
        folder: Path,
        choices: Choices,
    ) -> None:
        self._session = session
        self._flow = session.flow
        self._progress = progress
        self._filters = filters
        self._folder = folder
        self._choices = choices
        self._timer = Timer(SystemClock(), progress)
        self._clusters = session.looking.clusters()
        self._source, self._target = session.looking.source, session.looking.target

    def run(self) -> Mapping[str, object]:
        """Read and judge everything; returns the result's document, which is kept too."""
        self._progress.step(f"reaching {self._source.alias} and {self._target.alias}")
        owed, since_ms = self._choices.owed, self._choices.since_ms
        if owed:
            refuse_other_cluster(self._source, owed.header.source_cluster_id)
            refuse_other_cluster(self._target, owed.header.target_cluster_id)
        ids = self._source.facts().cluster_id, self._target.facts().cluster_id
        with opened_state(self._folder, ids, self._choices.part) as state:
            partitions = owed.partitions if owed else None
            pinned, left_out = pin_topics(self._flow, self._clusters, self._filters, self._timer, partitions)
            if owed:
                pinned = [owed.part(topic) for topic in pinned]
            if since_ms is not None:
                pinned = self._from(since_ms, pinned)
            taken_at = SystemClock().now_ms()
            calibrations = self._calibrated(pinned)
            with named_file(self._folder) as found:
                audits = [self._audit(state, topic, calibrations, found) for topic in pinned]
            looked_at = {
                "plan": owed.told(audits) if owed else None,
                "since_ms": since_ms,
                "order_looked_at": self._choices.order,
            }
            result = document_of(audits, left_out, self._source.alias, self._target.alias, taken_at, looked_at)
            state.end(result)
        return result

    @cached_property
    def _spark(self) -> "SparkSession":
        self._progress.step("waiting for Spark")
        return self._session.spark()

    def _from(self, since_ms: int, pinned: list[PinnedTopic]) -> list[PinnedTopic]:
        """Return the topics with the offsets at which records of that time begin, on either side.

        What a cluster does not tell, or tells too low, costs reading.
        """
        self._progress.step(f"finding out where records since {iso(since_ms)} begin")
        readers = {Side.SOURCE: self._session.source_records, Side.TARGET: self._session.target_records}
        first = {}
        for side, reader in readers.items():
            places = {TopicPartition(topic.name(side), p): [since_ms] for topic in pinned for p in topic.logs(side)}
            first[side] = reader.first_offsets(places) if places else {}

        def begins(topic: PinnedTopic, side: Side, p: int) -> int:
            found = first[side][TopicPartition(topic.name(side), p)]
            offset = 0 if isinstance(found, Unreadable) else found[since_ms]
            return topic.logs(side)[p].end if offset is None else offset

        return [
            replace(
                topic,
                begins={p: (begins(topic, Side.SOURCE, p), begins(topic, Side.TARGET, p)) for p in topic.source_logs},
            )
            for topic in pinned
        ]

    def _calibrated(self, pinned: list[PinnedTopic]) -> dict[str, Calibration]:
        """Find out what survives in each topic."""
        flow, mirror = self._flow, self._session.looking.mirror
        if flow.by_mm2:
            on_side = self._source if flow.syncs_side is Side.SOURCE else self._target
            read_syncs_topic(self._clusters, flow, on_side.topics(), self._timer)
        works = [_with_syncs(mirror, topic, p) for topic in pinned for p in topic.source_logs]
        self._progress.step(f"finding out which parts of records survive in {many(len(pinned), 'topic')}")
        readers = self._session.source_records, self._session.target_records
        return {each.topic: each for each in calibrate_topics(*readers, topic_questions(works))}

    def _audit(
        self, state: State, topic: PinnedTopic, calibrations: Mapping[str, Calibration], found: NamedFile
    ) -> TopicAudit:
        if not topic.source_logs:
            return TopicAudit(topic.topic, topic.target, None, unproven=topic.unproven)
        calibration = calibrations[topic.topic]
        if calibration.equality is None:
            why = "records and their copies agree in nothing: they are changed on the way"
            return TopicAudit(topic.topic, topic.target, None, unproven=(*topic.unproven, why))
        if self._choices.since_ms is not None and not calibration.equality.keeps_time:
            why = "timestamps do not survive, so that --since does not tell which copies to look at"
            return TopicAudit(topic.topic, topic.target, None, unproven=(*topic.unproven, why))
        held = state.topics.get(topic.topic)
        # Without ids nothing tells a topic from one that was created anew.
        if not (
            held is not None
            and all(topic.ids)
            and (held.source_id, held.target_id) == topic.ids
            and held.cut.equality is calibration.equality
            and not any(held.contradicts(side, topic.logs(side)) for side in Side)
        ):
            topic = with_current_starts(topic, self._clusters)
            held = TopicSums(topic.topic, topic.target, *topic.ids, self._cut(topic, calibration))
            state.begin(held)
        reading = LogReading(
            self._spark,
            self._session.java,
            state.salt,
            partial(with_current_starts, clusters=self._clusters),
            max_rate=self._choices.max_rate,
            since_ms=self._choices.since_ms,
        )
        try:
            sizes = calibration.source_size, calibration.target_size
            for side, size in zip(Side, sizes, strict=True):
                most = step_offsets(self._choices.max_rate, size)
                self._retried(reading, topic, partial(self._read_new, reading, state, side, most))
            self._progress.step(f"judging the records of {topic.topic}")
            lasts = calibration.lasts
            audit, settled = self._retried(reading, topic, lambda now: judged(reading, now, held, lasts, found))
        except ClusterError as error:
            # The next run goes on; what other topics lack is worth knowing now.
            unproven = (*topic.unproven, f"not all was read: {error.problem}")
            return TopicAudit(topic.topic, topic.target, held.cut.equality, unproven=unproven)
        if settled:
            state.settle(topic.topic, settled)
        if self._choices.order:
            self._progress.step(f"reading {topic.topic} and its copy again, for their order")
            audit = with_order(reading, topic, held, audit, found)
        return audit

    def _retried(self, reading: LogReading, topic: PinnedTopic, read: Callable[[PinnedTopic], T]) -> T:
        """Read a topic: `TRIES` times at most, while retention takes what is about to be read."""
        for _ in range(TRIES - 1):
            try:
                return read(topic)
            except ClusterError:
                before, topic = topic, reading.with_current_starts(topic)
                if topic == before:
                    raise
                self._progress.step(f"trying again: records of {topic.topic}, or of its copy, were removed meanwhile")
        return read(topic)

    def _cut(self, topic: PinnedTopic, calibration: Calibration) -> Cut:
        """Cut a topic by the timestamps at the ends of its longest partitions."""
        assert calibration.equality is not None
        logs = topic.logs(Side.SOURCE)
        lengths = {p: log.end - log.start for p, log in logs.items()}
        longest = sorted(lengths, key=lambda p: -lengths[p])[:SPAN_PARTITIONS]
        ends = {
            TopicPartition(topic.topic, p): [
                *range(log.start, min(log.end, log.start + SPAN_RECORDS)),
                *range(max(log.start, log.end - SPAN_RECORDS), log.end),
            ]
            for p in longest
            if (log := logs[p]).start < log.end
        }
        read = self._session.source_records.contents(ends) if ends else {}
        times = [
            content.timestamp
            for contents in read.values()
            if not isinstance(contents, Unreadable)
            for content in contents.values()
        ]
        return Cut.of(calibration.equality, max(lengths.values()), times)

    def _read_new(self, reading: LogReading, state: State, side: Side, most: int, topic: PinnedTopic) -> None:
        from migrate.extras.audit.records import summed

        held, name, settings = state.topics[topic.topic], topic.name(side), reading.java[side]
        if not held.unread(side, topic.logs(side)):
            return

        def unread() -> Ranges:
            return held.unread(side, reading.with_current_starts(topic).logs(side))

        left = unread()
        # Retention may have taken what was there when the topic was pinned.
        if total := offsets_of(left):
            self._progress.step(f"reading {many(total, 'offset')} of {name} on {settings.name}")
        while left:
            ranges = next(steps(left, most))
            with reading_topic(settings, name):
                found = summed(reading.looked_at(topic, side, [ranges], held.cut))
            state.add(topic.topic, side, ranges, found)
            left = unread()
            self._progress.advance(total - offsets_of(left), total)


def step_offsets(max_rate: int | None, record_bytes: float | None) -> int:
    """Return how many offsets to read before what was read is kept, of records of this size, None where not known."""
    if max_rate is None or not record_bytes:
        return STEP_OFFSETS
    return max(1, min(STEP_OFFSETS, int(STEP_SECONDS * max_rate / record_bytes)))


def _with_syncs(mirror: ConsumedMm2Topics, topic: PinnedTopic, p: int) -> tuple[Work, tuple[tuple[int, int], ...]]:
    source, target = TopicPartition(topic.topic, p), TopicPartition(topic.target, p)
    work = Work(source, target, topic.source_logs[p], topic.target_logs[p], ())
    return work, mirror.sync_pairs(source, work.source_log.end, work.target_log.end)
