"""What `groups export` does: pin the offsets topic, read it through Spark, write it. What is read is not changed.

It goes to a file, a folder of Parquet, or a topic of another cluster.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from migrate.cli.flows import reached_flow
from migrate.cli.inventory import OneClusterFilters, OnOneCluster
from migrate.cli.options import ParsedBy, SparkOptions, flag, option, refuse_password, time_of
from migrate.clock import Clock, SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED, UsageError
from migrate.inventory.new_file import new_file, refuse_existing
from migrate.mm2.config_providers import resolved
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.java_properties import read_properties
from migrate.mm2.topics import MOST_HELD
from migrate.model import Failure, LogRange, Side
from migrate.ports import Progress
from migrate.progress import LineProgress
from migrate.session.clusters import DAEMON, Endpoint, endpoint_of, endpoints, parse_spark_conf
from migrate.show.offsets_export import announcement, missing_lines, short_topic_lines, summary_lines, topic_lines
from migrate.spark.background import BackgroundSpark, SparkPurpose, Wishes, background_spark
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.json_topic import growth, log_ends, refuse_destination, refuse_internal
from migrate.survey.offsets_export import (
    Exported,
    ExportKinds,
    ExportRequest,
    OffsetsPin,
    named_groups,
    past_open_transactions,
    pin_offsets_topic,
    refuse_beyond,
)
from migrate.text import is_url, many, parse_bytes

if TYPE_CHECKING:
    from migrate.spark.consumer_offsets import ChosenRecords

JSONL, CSV, PARQUET = "jsonl", "csv", "parquet"
Written = Callable[["ChosenRecords"], int]


@dataclass(frozen=True, kw_only=True)
class ExportOptions(OnOneCluster):
    """What of the offsets topic is exported, and where to."""

    since: str | None = option(
        "Only records that the broker took at this time or later: 2026-11-23T22:00:00Z, or ms since 1970.",
        metavar="TIME")  # fmt: skip
    until: str | None = option(
        "Only records from before this time: the newest of each key is that of then.", metavar="TIME")  # fmt: skip
    latest: bool = option(
        "The newest record of each key, or every record that is still there.",
        name="--latest/--history", default=True)  # fmt: skip
    tombstones: bool = flag("Also records that take a commit or a group away.")
    kinds: ExportKinds = option("Commits, groups with their members, or both.", default=ExportKinds.COMMITS)
    form: str = option("What to write.", name="--format", type=click.Choice([JSONL, CSV, PARQUET]), required=True)
    out: str | None = option(
        "A file (jsonl, csv), or a folder or URL (parquet); what exists is refused (exit 3).",
        metavar="PATH")  # fmt: skip
    to_topic: str | None = option(
        "Instead of --out: a topic, which exists, of a cluster that groups do not leave; needs --format jsonl and "
        "--to-config.", metavar="TOPIC")  # fmt: skip
    to_config: Path | None = option("Java client properties of the cluster of --to-topic.", metavar="FILE")
    max_fetch: int | None = option(
        "Refuse (exit 3) to fetch more than about this: 500M, 2G, 1048576.  [default: no limit]",
        type=ParsedBy(parse_bytes), metavar="BYTES")  # fmt: skip
    filters: OneClusterFilters = OneClusterFilters()
    spark: SparkOptions = SparkOptions()


def export(options: ExportOptions) -> int:
    """Read __consumer_offsets in full with Spark, and write the newest commit of every group and partition.

    --history writes every record that compaction has left. What was read, written and left out is said in the end.
    Exits 1 if something that was asked for could not be given, with a line for each: commits that an open transaction
    hides, records that cannot be decoded, a group that is named and has no record.
    """
    flow, progress = reached_flow(options.clusters, is_data=True), options.log.progress()
    request = request_of(options)
    sink = sink_of(options, flow)
    sink.refuse()
    of = endpoint_of(flow, options.session())
    wishes = Wishes(DAEMON, lambda: None, of.java.secrets | sink.secrets, lambda: None)
    with (
        background_spark(options.spark.master, parse_spark_conf(options.spark.spark_conf), wishes) as spark,
        closing(of.admin()) as admin,
    ):
        progress.step(f"reaching {admin.alias}")
        admin.facts()
        sink.prove(progress, admin)
        reading = _Reading(admin, request, options.max_fetch, progress)
        small = reading.pin().offsets <= MOST_HELD
        wishes.settle(SparkPurpose(is_small=small))
        retention = _retention(of, request)
        exported = reading.exported(spark, of, sink, None if isinstance(retention, Failure) else retention)
    why = retention if isinstance(retention, Failure) and _needs_retention(request) else None
    for line in (*summary_lines(exported, reading.pinned, sink.name, why), *sink.lines(exported.lines)):
        progress.say(line)
    missing = [*missing_lines(exported, reading.pinned), *sink.missing_lines(exported.lines)]
    for line in missing:
        progress.say(line)
    return EXIT_FAILED if missing else EXIT_DONE


@dataclass
class _Reading:
    """The topic as it was pinned last; it is pinned anew where compaction was faster than the reading."""

    admin: ClusterAdmin
    request: ExportRequest
    max_fetch: int | None
    progress: LineProgress
    fetched_bytes: int = 0

    def pin(self) -> OffsetsPin:
        """Pin what is there now; raises `Refused` if that, and what was read before, is more than may be fetched."""
        self.pinned = pin_offsets_topic(self.admin, named_groups(self.request.filters))
        self.fetched_bytes += self.pinned.fetched_bytes
        refuse_beyond(self.max_fetch, self.fetched_bytes, self.pinned.alias)
        return self.pinned

    def exported(self, spark: BackgroundSpark, of: Endpoint, sink: "ExportSink", retention_ms: int | None) -> Exported:
        """Read what is pinned, and have it written."""
        from migrate.spark.consumer_offsets import export_offsets, offsets_session

        # While Spark starts.
        self._wait()
        session = offsets_session(spark, self.pinned.offsets <= MOST_HELD)
        with sink.opened(session) as write:
            self.progress.step(announcement(self.pinned))
            return export_offsets(session, of.java, self.pinned, self.request, retention_ms, write, self._renewed)

    def _renewed(self) -> Mapping[int, LogRange]:
        self.progress.say("The topic was compacted while it was read: reading it again.")
        self.pin()
        self._wait()
        self.progress.step(announcement(self.pinned))
        return self.pinned.logs

    def _wait(self) -> None:
        self.pinned = waited_for(self.admin, self.pinned, self.progress, SystemClock())


def waited_for(admin: ClusterAdmin, pin: OffsetsPin, progress: Progress, clock: Clock) -> OffsetsPin:
    """Return a pin after a little patience with the transactions that are open at it, which is said."""
    if pin.open_ends:
        progress.step(f"waiting for transactions that are open in {many(len(pin.open_ends), 'partition')}")
    return past_open_transactions(admin, pin, clock)


def request_of(options: ExportOptions) -> ExportRequest:
    """Return what the options ask for; raises `UsageError` where they contradict each other."""
    since_ms, until_ms = period_of(options.since, options.until, "record")
    filters, history = options.filters.filters(), not options.latest
    return ExportRequest(filters, options.kinds, history, options.tombstones, since_ms, until_ms)


def period_of(since: str | None, until: str | None, what: str) -> tuple[int | None, int | None]:
    """Return --since and --until in ms, None where not given; raises `UsageError` if no `what` lies between them."""
    since_ms, until_ms = time_of("--since", since), time_of("--until", until)
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise UsageError("--since is not before --until.", f"No {what} lies between them: exchange them.")
    return since_ms, until_ms


def _retention(of: Endpoint, request: ExportRequest) -> int | Failure:
    """Return how long the brokers keep offsets."""
    if not _needs_retention(request):
        return Failure("NOT_ASKED", "not asked")
    settings = of.admin().broker_settings()
    return settings if isinstance(settings, Failure) else settings.retention_ms


def _needs_retention(request: ExportRequest) -> bool:
    return not request.history and request.kinds is not ExportKinds.GROUPS


class ExportSink:
    """Takes what is exported; `name` is the place in messages."""

    name: str

    @property
    def secrets(self) -> frozenset[str]:
        """What no message may show."""
        return frozenset()

    def refuse(self) -> None:
        """Raise if nothing can be written there, as far as it can be known without asking a cluster."""

    def prove(self, progress: Progress, read: ClusterAdmin) -> None:
        """Ask clusters whether it may be written there; `read` is the one that is exported. Raises if not."""

    def opened(self, session: Any) -> AbstractContextManager[Written]:
        """Yield what writes the records and returns how many; what it has written last counts."""
        raise NotImplementedError

    def lines(self, written: int) -> Iterator[str]:
        """Yield what there is to say of the place, when so many records were written."""
        yield from ()

    def missing_lines(self, written: int) -> Iterator[str]:
        """Yield a line for each reason to doubt that they are there."""
        yield from ()


def sink_of(options: ExportOptions, flow: Flow) -> ExportSink:
    """Return where the options say that it goes; raises `UsageError` where they do not go together."""
    out, topic, config, form = options.out, options.to_topic, options.to_config, options.form
    if (out is None) == (topic is None):
        raise UsageError("Where to?", "Give --out PATH, or --to-topic TOPIC with --to-config FILE; not both.")
    if (topic is None) != (config is None):
        raise UsageError(
            "--to-topic and --to-config go together.", "Name the topic, and the client properties of its cluster."
        )
    if topic is None or config is None:
        assert out is not None, "one of the two is given"
        refuse_password("--out", out)
        return FolderSink(out) if form == PARQUET else FileSink(out, form)
    if form != JSONL:
        raise UsageError(f"--format {form} cannot be written to a topic.", "Records there are JSON: --format jsonl.")
    if not topic:
        raise UsageError("--to-topic names no topic.", "Give the name of one that exists.")
    properties = resolved(read_properties(config), str(config))
    cluster = Cluster(Side.TARGET, "of --to-config", properties, str(config))
    deadline = options.clusters.request_timeout
    source, side = endpoints(flow, deadline)[0], endpoint_of(flow, options.session())
    source_too = [] if side.cluster.side is Side.SOURCE else [source]
    name = f"topic {topic} on {cluster.bootstrap}"
    return TopicSink(name, Endpoint(cluster, deadline), topic, tuple(source_too), side.java.secrets)


@dataclass(frozen=True)
class FileSink(ExportSink):
    """JSON lines or CSV in one file of this machine."""

    name: str
    form: str

    def refuse(self) -> None:
        """Raise `UsageError` for a URL, `Refused` for what exists."""
        if is_url(self.name):
            raise UsageError(
                f"--out {self.name} is a URL.", "JSON lines and CSV are one file here; use --format parquet."
            )
        refuse_existing(Path(self.name))

    @contextmanager
    def opened(self, session: Any) -> Iterator[Written]:
        """Yield what writes the file, which gets its name in the end."""
        with new_file(Path(self.name)) as file:
            yield lambda chosen: self._write(chosen, file)

    def _write(self, chosen: "ChosenRecords", file: IO[str]) -> int:
        file.seek(0)
        file.truncate()
        lines, count = (chosen.csv_lines(), -1) if self.form == CSV else (chosen.json_lines(), 0)
        for line in lines:
            file.write(line + "\n")
            count += 1
        return count


@dataclass(frozen=True)
class FolderSink(ExportSink):
    """Parquet in a folder, here or wherever Spark reaches: only Spark knows whether it may be written."""

    name: str

    @contextmanager
    def opened(self, session: Any) -> Iterator[Written]:
        """Yield what writes the folder, which gets its name in the end; raises `Refused` for what exists."""
        from migrate.spark.table_folder import new_folder

        with new_folder(session, self.name) as folder:
            yield lambda chosen: folder.write(chosen.table())


@dataclass
class TopicSink(ExportSink):
    """A topic of a cluster that is neither the one that is read nor the one that groups leave.

    `others` are the latter, where it is another. `read_secrets` are those of the cluster that is read.
    """

    name: str
    of: Endpoint
    topic: str
    others: tuple[Endpoint, ...]
    read_secrets: frozenset[str] = field(repr=False)
    sent: int = 0
    grown: int | Failure = 0

    @property
    def secrets(self) -> frozenset[str]:
        """Those of the topic's cluster."""
        return self.of.java.secrets

    def refuse(self) -> None:
        """Raise `Refused` for an internal topic."""
        refuse_internal(self.topic)

    def prove(self, progress: Progress, read: ClusterAdmin) -> None:
        """Raise `Refused` if the topic is missing, or on a cluster that nothing is written to."""
        progress.step(f"reaching the cluster of topic {self.topic}")
        with ExitStack() as stack:
            others = [stack.enter_context(closing(other.admin())) for other in self.others]
            with closing(self.of.admin()) as destination:
                refuse_destination(self.topic, destination, [read, *others])

    @contextmanager
    def opened(self, session: Any) -> Iterator[Written]:
        """Yield what writes to the topic; log ends are read before and after.

        Raises `Refused` where Spark would show the topic's secrets.
        """
        from migrate.spark.topic_writer import TopicWriter, refuse_showing_secrets

        refuse_showing_secrets(session, self.of.java)
        settings = replace(self.of.java, name=self.of.cluster.bootstrap)
        writer = TopicWriter(settings, self.topic, self.read_secrets)
        with closing(self.of.admin()) as destination:
            before = log_ends(self.topic, destination)
            yield lambda chosen: writer.write(chosen.records())
            self.sent, self.grown = writer.sent, growth(before, log_ends(self.topic, destination))

    def lines(self, written: int) -> Iterator[str]:
        """Yield how far the log ends have moved, and why."""
        return topic_lines(written, self.sent, self.grown)

    def missing_lines(self, written: int) -> Iterator[str]:
        """Yield a line if the log ends have moved by less than was written."""
        return short_topic_lines(self.sent, self.grown)
