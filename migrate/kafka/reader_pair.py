"""How a task of Spark's comes by its two readers: what travels to it are settings, never clients.

Imports no Kafka client before it is called, so that an executor without one can say so.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from migrate.errors import EnvironmentLacks
from migrate.match.log_reader import LogReader


@dataclass(frozen=True)
class ReaderSettings:
    """One cluster for the record reader: its name in messages, what may hold secrets, and how it is read."""

    name: str
    config: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    isolation_level: str = "read_committed"


@dataclass(frozen=True)
class KafkaReaders:
    """Opens a reader of the source and one of the target."""

    source: ReaderSettings
    target: ReaderSettings
    deadline_seconds: float

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
        readers = [
            RecordReader(side.name, side.config, self.deadline_seconds, side.secrets, side.isolation_level)
            for side in (self.source, self.target)
        ]
        try:
            yield readers[0], readers[1]
        finally:
            for reader in readers:
                reader.close()
