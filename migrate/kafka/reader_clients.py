"""The consumers of one cluster for the record reader: how they fetch, what they received, what they say of trouble."""

import time
from collections.abc import Collection
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from migrate.errors import ClusterError
from migrate.kafka.closing import close_consumers
from migrate.kafka.errors import HOPELESS, code_of, note_cause, on_one_line, refused_settings
from migrate.kafka.read_pass import READS_ONLY
from migrate.kafka.settings import ClientSettings
from migrate.match.log_reader import SHORT_FETCH

# Up to how many offsets a run is short or long. A fetch brings more than is asked for, and the rest is thrown away.
SHORT_RUN = 500
LONG_RUN = 10_000
STATISTICS_MS = 500
# By then the client has asked for the leaders by itself.
LEADERS_SECONDS = 1.0

_SETTINGS: dict[str, Any] = {
    **READS_ONLY,
    # Nothing resets a position in silence.
    "auto.offset.reset": "error",
    "max.poll.interval.ms": 86_400_000,
    "fetch.wait.max.ms": 5,
    # librdkafka's own default is to wait a second whenever its queue is full.
    "fetch.queue.backoff.ms": 5,
    "fetch.max.bytes": 16 << 20,
    "queued.max.messages.kbytes": 32 << 10,
    "log_level": 0,
}
_RECEIVED = '"rx_bytes":'


class Reach(Enum):
    """How far a run goes, and how much is fetched at once for it; librdkafka's names."""

    # With more records waiting, the client fetches beyond a short run's end before it is told to stop.
    SHORT = (SHORT_FETCH, 1)
    LONG = (512 << 10, 20_000)
    WHOLE = (2 << 20, 20_000)

    @classmethod
    def of(cls, offsets: int) -> "Reach":
        """Return the reach of a run of so many offsets."""
        return cls.SHORT if offsets <= SHORT_RUN else cls.LONG if offsets <= LONG_RUN else cls.WHOLE

    def settings(self) -> dict[str, Any]:
        """Return how a consumer reads such runs."""
        at_once, waiting = self.value
        return _SETTINGS | {"fetch.message.max.bytes": at_once, "queued.min.messages": waiting}


class ReaderClients:
    """One consumer per reach, each made when it is first needed; parameters are those of `RecordReader`.

    `causes` is what the consumers have said of trouble so far, by code. A cluster that did not answer is asked by new
    consumers after that, which have said nothing yet: who reads for days outlives a token that ended on the way.
    """

    def __init__(self, settings: ClientSettings, deadline_seconds: float, isolation_level: str) -> None:
        self.causes: dict[str, str] = {}
        self._deadline_seconds = deadline_seconds
        self._name = settings.name
        self._config = {**settings.config, "isolation.level": isolation_level}
        self._secrets = settings.secrets
        self._consumers: dict[Reach, Consumer] = {}
        self._received: dict[Reach, int] = {}
        self._received_before = 0
        self._is_silent = False
        # By reach, the topics whose leaders its consumer knows.
        self._known: dict[Reach, set[str]] = {}

    def close(self) -> None:
        """Close the clients."""
        close_consumers(self._consumers.values())

    @property
    def received_bytes(self) -> int:
        """Bytes received, by librdkafka's own count, which it reports twice a second."""
        return self._received_before + sum(self._received.values())

    def of(self, reach: Reach) -> Consumer:
        """Return the consumer for runs of this reach; raises `ClusterError` if librdkafka refuses its settings."""
        if self._is_silent:
            self._begin_anew()
        if reach not in self._consumers:
            settings = {
                **self._config,
                **reach.settings(),
                "statistics.interval.ms": STATISTICS_MS,
                "error_cb": partial(note_cause, self.causes),
                "stats_cb": partial(self._count, reach),
            }
            try:
                self._consumers[reach] = Consumer(settings)
            except (KafkaException, ValueError, TypeError) as error:
                raise refused_settings(self._name, "read", error, self._secrets) from None
        return self._consumers[reach]

    def introduce(self, reach: Reach, topics: Collection[str]) -> None:
        """Have a consumer find the leaders of topics that are new to it, before it is assigned any of them.

        As it connects it asks by itself, and after that once a second, in which nothing would be read.
        """
        known = self._known.get(reach)
        new = set() if known is None else set(topics) - known
        self._known.setdefault(reach, set()).update(topics)
        end = time.monotonic() + LEADERS_SECONDS
        with suppress(KafkaException):  # what is wrong, the reading tells
            for topic in sorted(new):
                # One by one, and a cluster may be far away.
                if (left := end - time.monotonic()) <= 0:
                    break
                self.of(reach).list_topics(topic, timeout=left)

    def _begin_anew(self) -> None:
        close_consumers(self._consumers.values(), seconds=0)
        self._received_before = self.received_bytes
        for forgotten in (self._consumers, self._received, self.causes, self._known):
            forgotten.clear()
        self._is_silent = False

    def silent(self, problem: KafkaError | None) -> ClusterError:
        """Return the error of a cluster that does not answer, with the best cause that the clients have reported."""
        code, text = (code_of(problem), problem.str()) if problem else ("", "")
        for known in (*sorted(HOPELESS), "_RESOLVE", "_TRANSPORT"):
            if known in self.causes and code not in HOPELESS:
                code, text = known, self.causes[known]
                break
        cause = f": {on_one_line(text, self._secrets)}" if text else ""
        self._is_silent = True
        what = "refused" if code in HOPELESS else f"did not answer within {self._deadline_seconds:g} s"
        return ClusterError(
            f"{self._name} {what} while its records were read{cause}.",
            "Check that all its brokers run and can be reached from where Spark's tasks run, then run again. Where "
            "quotas throttle clients, raise --request-timeout.",
        )

    def _count(self, reach: Reach, statistics: str) -> None:
        """Take the client's own count of bytes: the last of that name in its JSON, which may be a megabyte long."""
        at = statistics.rfind(_RECEIVED)
        if at >= 0:
            digits = statistics[at + len(_RECEIVED) : at + len(_RECEIVED) + 20]
            self._received[reach] = int(digits.split(",")[0].rstrip("} \n"))
