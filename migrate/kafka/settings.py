"""What travels to client processes and to Spark's tasks: settings of librdkafka's clients, resolved once; no client.

Imports neither a Kafka client nor what resolving settings needs: an executor may lack both, and has to say so.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from migrate.errors import EnvironmentLacks
from migrate.match.log_reader import LogReader
from migrate.model import Side


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Where a cluster is and who we are there.

    `name` is the cluster's in messages, "source A (broker:9092)"; `config` a ready librdkafka configuration; `secrets`
    what no message may show.
    """

    side: Side
    alias: str
    name: str
    config: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(frozen=True)
class KafkaReaders:
    """Opens in a task of Spark's a reader of the source, which is read_committed, and one of the target."""

    source: ClientSettings
    target: ClientSettings
    deadline_seconds: float
    target_isolation_level: str = "read_committed"

    @contextmanager
    def __call__(self) -> Iterator[tuple[LogReader, LogReader]]:
        """Yield (source, target); raises `EnvironmentLacks` where there is no confluent-kafka."""
        try:
            from migrate.kafka.record_reader import RecordReader
        except ImportError as error:
            raise EnvironmentLacks(
                f"Spark's executors cannot read Kafka: {error.msg}.",
                "Install confluent-kafka into the Python that they use: pip install 'confluent-kafka>=2.14.2'.",
            ) from None
        with (
            closing(RecordReader(self.source, self.deadline_seconds)) as source,
            closing(RecordReader(self.target, self.deadline_seconds, self.target_isolation_level)) as target,
        ):
            yield source, target


def prepare() -> None:
    """Import what the readers are made of, before they are needed; raises `ImportError` where something is missing."""
    import migrate.kafka.record_reader
    import migrate.match.task  # noqa: F401
