"""Where an export goes: a file, a folder of Parquet, or a topic of another cluster."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from migrate.cli.position_options import refuse_password
from migrate.errors import UsageError
from migrate.inventory.new_file import new_file, refuse_existing
from migrate.mm2.config_providers import resolved
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.java_properties import read_properties
from migrate.model import Failure, Side
from migrate.ports import Progress
from migrate.session.clusters import Endpoint, endpoint_of, endpoints
from migrate.show.offsets_export import short_topic_lines, topic_lines
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.json_topic import growth, log_ends, refuse_destination, refuse_internal
from migrate.text import is_url

if TYPE_CHECKING:
    from migrate.spark.consumer_offsets import ChosenRecords

JSONL, CSV, PARQUET = "jsonl", "csv", "parquet"
Written = Callable[["ChosenRecords"], int]


class ExportSink(Protocol):
    """Takes what is exported."""

    @property
    def name(self) -> str:
        """The place in messages."""

    @property
    def secrets(self) -> frozenset[str]:
        """What no message may show."""

    def refuse(self) -> None:
        """Raise if nothing can be written there, as far as it can be known without asking a cluster."""

    def prove(self, progress: Progress, read: ClusterAdmin) -> None:
        """Ask clusters whether it may be written there; `read` is the one that is exported. Raises if not."""

    def opened(self, session: Any) -> AbstractContextManager[Written]:
        """Yield what writes the records and returns how many; what it has written last counts."""

    def lines(self, written: int) -> Iterator[str]:
        """Yield what there is to say of the place, when so many records were written."""

    def missing_lines(self, written: int) -> Iterator[str]:
        """Yield a line for each reason to doubt that they are there."""


def sink_of(flow: Flow, options: Mapping[str, Any]) -> ExportSink:
    """Return where the options say that it goes; raises `UsageError` where they do not go together."""
    out, topic, config, form = (options[name] for name in ("out", "to_topic", "to_config", "form"))
    if (out is None) == (topic is None):
        raise UsageError("Where to?", "Give --out PATH, or --to-topic TOPIC with --to-config FILE; not both.")
    if (topic is None) != (config is None):
        raise UsageError(
            "--to-topic and --to-config go together.", "Name the topic, and the client properties of its cluster."
        )
    if topic is None:
        refuse_password("--out", out)
        return FolderSink(out) if form == PARQUET else FileSink(out, form)
    if form != JSONL:
        raise UsageError(f"--format {form} cannot be written to a topic.", "Records there are JSON: --format jsonl.")
    if not topic:
        raise UsageError("--to-topic names no topic.", "Give the name of one that exists.")
    properties = resolved(read_properties(config), str(config))
    cluster = Cluster(Side.TARGET, "of --to-config", properties, str(config))
    source, side = endpoints(flow, options["request_timeout"])[0], endpoint_of(flow, options)
    source_too = [] if side.cluster.side is Side.SOURCE else [source]
    return TopicSink(Endpoint(cluster, options["request_timeout"]), topic, tuple(source_too), side.java.secrets)


@dataclass(frozen=True)
class FileSink:
    """JSON lines or CSV in one file of this machine."""

    name: str
    form: str
    secrets: frozenset[str] = frozenset()

    def refuse(self) -> None:
        """Raise `UsageError` for a URL, `Refused` for what exists."""
        if is_url(self.name):
            raise UsageError(
                f"--out {self.name} is a URL.", "JSON lines and CSV are one file here; use --format parquet."
            )
        refuse_existing(Path(self.name))

    def prove(self, progress: Progress, read: ClusterAdmin) -> None:
        """No cluster has a say."""

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

    def lines(self, written: int) -> Iterator[str]:
        """Yield nothing."""
        yield from ()

    missing_lines = lines


@dataclass(frozen=True)
class FolderSink:
    """Parquet in a folder, here or wherever Spark reaches."""

    name: str
    secrets: frozenset[str] = frozenset()

    def refuse(self) -> None:
        """Only Spark knows."""

    def prove(self, progress: Progress, read: ClusterAdmin) -> None:
        """No cluster has a say."""

    @contextmanager
    def opened(self, session: Any) -> Iterator[Written]:
        """Yield what writes the folder, which gets its name in the end; raises `Refused` for what exists."""
        from migrate.spark.table_folder import new_folder

        with new_folder(session, self.name) as folder:
            yield lambda chosen: folder.write(chosen.table())

    def lines(self, written: int) -> Iterator[str]:
        """Yield nothing."""
        yield from ()

    missing_lines = lines


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
        """The topic and its cluster."""
        return f"topic {self.topic} on {self.of.cluster.bootstrap}"

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
