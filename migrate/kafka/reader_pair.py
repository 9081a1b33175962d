"""How a task of Spark's comes by its two readers: what travels to it are settings, never clients.

Imports no Kafka client before it is called, so that an executor without one can say so.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from migrate.errors import EnvironmentLacks
from migrate.kafka.settings import ClientSettings
from migrate.match.log_reader import LogReader


@dataclass(frozen=True)
class KafkaReaders:
    """Opens a reader of the source, which is read_committed, and one of the target."""

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
