"""What `groups export` does: pin the offsets topic, read it through Spark, write it. What is read is not changed.

It goes to a file, a folder of Parquet, or a topic of another cluster.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from migrate.cli.choices import FilterOptions
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnOneCluster, ParsedBy, flag, option, refuse_password, time_of
from migrate.clock import Clock, SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED, UsageError
from migrate.extras.offsets_topic.json_topic import growth, log_ends, refuse_destination, refuse_internal
from migrate.extras.offsets_topic.request import Exported, ExportKinds, ExportRequest, is_url
from migrate.extras.offsets_topic.text import announcement, missing_lines, short_topic_lines, summary_lines, topic_lines
from migrate.mm2.config_providers import resolved
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.java_properties import read_properties
from migrate.mm2.topics import MOST_HELD
from migrate.model import Failure, LogRange, Side
from migrate.ports import Progress
from migrate.progress import LineProgress
from migrate.session.clusters import Endpoint, endpoints, starting_spark
from migrate.session.options import SparkOptions
from migrate.spark.background import BackgroundSpark
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.offsets_pin import (
    OffsetsPin,
    named_groups,
    past_open_transactions,
    pin_offsets_topic,
    refuse_beyond,
)
from migrate.text import many, parse_bytes
from migrate.whole_file import new_file, refuse_existing

JSONL, CSV, PARQUET = "jsonl", "csv", "parquet"
# Writes rows (those of an export, or of a history) and returns how many.
Written = Callable[[Any], int]


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
        "--to-config.", metavar="TOPIC", envvar=None)  # fmt: skip
    to_config: Path | None = option("Java client properties of the cluster of --to-topic.", metavar="FILE")
    max_fetch: int | None = option(
        "Refuse (exit 3) to fetch more than about this: 500M, 2G, 1048576.  [default: no limit]",
        type=ParsedBy(parse_bytes), metavar="BYTES")  # fmt: skip
    filters: FilterOptions = FilterOptions()
    spark: SparkOptions = SparkOptions()


def export(options: ExportOptions) -> int:
    """Read __consumer_offsets in full with Spark, and write the newest commit of every group and partition.

    --history writes every record that compaction has left. What was read, written and left out is said in the end.
    Exits 1 if something that was asked for could not be given, with a line for each: commits that an open transaction
    hides, records that cannot be decoded, a group that is named and has no record.
    """
    flow, progress = reached_flow(options.clusters, is_data=True), options.log.progress()
    request = request_of(options)
    topic, out = topic_of(options, flow), options.out or ""
    if topic is None:
        refuse_place(out, options.form)
    else:
        refuse_internal(topic.topic)
    of = options.endpoint(flow)
    with (
        starting_spark(options.spark, of.cluster, small=False) as spark,
        closing(of.admin()) as admin,
    ):
        progress.step(f"reaching {admin.alias}")
        admin.facts()
        if topic is not None:
            topic.prove(progress, admin)
        reading = _Reading(admin, request, options.max_fetch, progress)
        reading.pin()
        retention = _retention(of, request)
        exported = reading.exported(
            spark, of, topic.opened if topic else partial(opened_place, out=out, form=options.form), retention
        )
    why = retention if isinstance(retention, Failure) else None
    lines = list(summary_lines(exported, reading.pinned, topic.name if topic else out, why))
    missing = list(missing_lines(exported, reading.pinned))
    if topic is not None:
        lines += topic_lines(exported.lines, topic.sent, topic.grown)
        missing += short_topic_lines(topic.sent, topic.grown)
    for line in (*lines, *missing):
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

    def exported(
        self,
        spark: BackgroundSpark,
        of: Endpoint,
        opened: Callable[[Any], AbstractContextManager[Written]],
        retention: int | Failure | None,
    ) -> Exported:
        """Read what is pinned, and have it written."""
        from migrate.extras.offsets_topic.chosen import export_offsets
        from migrate.spark.consumer_offsets import offsets_session

        # While Spark starts.
        self._wait()
        session = offsets_session(spark, self.pinned.offsets <= MOST_HELD)
        retention_ms = None if isinstance(retention, Failure) else retention
        with opened(session) as write:
            self.progress.step(announcement(self.pinned, self.pinned.fetched_bytes, " in two passes"))
            return export_offsets(session, of.java, self.pinned, self.request, retention_ms, write, self._renewed)

    def _renewed(self) -> Mapping[int, LogRange]:
        self.progress.say("The topic was compacted while it was read: reading it again.")
        self.pin()
        self._wait()
        self.progress.step(announcement(self.pinned, self.pinned.fetched_bytes, " in two passes"))
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


def _retention(of: Endpoint, request: ExportRequest) -> int | Failure | None:
    """Return how long the brokers keep offsets; None where no newest commit is exported, which could expire."""
    if request.history or request.kinds is ExportKinds.GROUPS:
        return None
    settings = of.admin().broker_settings()
    return settings if isinstance(settings, Failure) else settings.retention_ms


def refuse_place(out: str, form: str) -> None:
    """Raise where a file or folder cannot be written, as far as that is known without asking a cluster.

    `UsageError` for a URL with a password in it, or of a form that is one file here; `Refused` for a file that exists.
    """
    refuse_password("--out", out)
    if form == PARQUET:  # only Spark knows what is there
        return
    if is_url(out):
        raise UsageError(f"--out {out} is a URL.", "Only --format parquet can be written to one.")
    refuse_existing(Path(out))


@contextmanager
def opened_place(session: Any, out: str, form: str) -> Iterator[Written]:
    """Yield what writes rows to a file or a folder and returns how many; that gets its name in the end.

    What is written last counts. Raises `Refused` for a folder that exists.
    """
    if form == PARQUET:
        from migrate.extras.offsets_topic.table_folder import new_folder

        with new_folder(session, out) as folder:
            yield lambda rows: folder.write(rows.table())
        return
    with new_file(Path(out)) as file:

        def write(rows: Any) -> int:
            file.seek(0)
            file.truncate()
            lines, count = (rows.csv_lines(), -1) if form == CSV else (rows.json_lines(), 0)
            for line in lines:
                file.write(line + "\n")
                count += 1
            return count

        yield write


def topic_of(options: ExportOptions, flow: Flow) -> "TopicSink | None":
    """Return the topic that is written, None for --out; raises `UsageError` where the options do not go together."""
    out, topic, config, form = options.out, options.to_topic, options.to_config, options.form
    if (out is None) == (topic is None):
        raise UsageError("Where to?", "Give --out PATH, or --to-topic TOPIC with --to-config FILE; not both.")
    if (topic is None) != (config is None):
        raise UsageError(
            "--to-topic and --to-config go together.", "Name the topic, and the client properties of its cluster."
        )
    if topic is None or config is None:
        return None
    if form != JSONL:
        raise UsageError(f"--format {form} cannot be written to a topic.", "Records there are JSON: --format jsonl.")
    if not topic:
        raise UsageError("--to-topic names no topic.", "Give the name of one that exists.")
    properties = resolved(read_properties(config), str(config))
    cluster = Cluster(Side.TARGET, "of --to-config", properties, str(config))
    deadline = options.clusters.request_timeout
    source, side = endpoints(flow, deadline)[0], options.endpoint(flow)
    source_too = [] if side.cluster.side is Side.SOURCE else [source]
    return TopicSink(Endpoint(cluster, deadline), topic, tuple(source_too), side.java.secrets)


@dataclass
class TopicSink:
    """A topic of a cluster that is neither the one that is read nor the one that groups leave.

    `others` are the latter, where it is another. `read_secrets` are those of the cluster that is read.
    """

    of: Endpoint
    topic: str
    others: tuple[Endpoint, ...]
    read_secrets: frozenset[str] = field(repr=False)
    sent: int = 0
    grown: int | Failure = 0

    @property
    def name(self) -> str:
        """The place in messages."""
        return f"topic {self.topic} on {self.of.cluster.bootstrap}"

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
        from migrate.extras.offsets_topic.topic_writer import TopicWriter, refuse_showing_secrets

        refuse_showing_secrets(session, self.of.java)
        settings = replace(self.of.java, name=self.of.cluster.bootstrap)
        writer = TopicWriter(settings, self.topic, self.read_secrets)
        with closing(self.of.admin()) as destination:
            before = log_ends(self.topic, destination)
            yield lambda chosen: writer.write(chosen.records())
            self.sent, self.grown = writer.sent, growth(before, log_ends(self.topic, destination))
