"""What is exported, as records of a Kafka topic: by Spark's Kafka sink, with idempotent producers.

A producer's own retries write nothing twice. A task that Spark runs again does, and so does a run that is repeated.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from migrate.errors import ClusterError, Refused
from migrate.mm2.secrets import redact
from migrate.spark.java_errors import root_cause
from migrate.spark.java_settings import JavaSettings
from migrate.spark.machine import log_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's sink rejects the serializers. A partitioner of the user's might part the records of one key, or not be there;
# a producer with a transactional id sends nothing outside a transaction.
_NOT_FOR_SINK = {"kafka.key.serializer", "kafka.value.serializer", "kafka.partitioner.class", "kafka.transactional.id"}
# What "written" means: every replica in sync has it, in order, and no try of the producer's has it there twice.
FIXED = {
    "kafka.enable.idempotence": "true",
    "kafka.acks": "all",
    "kafka.retries": str(2**31 - 1),
    "kafka.max.in.flight.requests.per.connection": "5",
}


def producer_options(settings: JavaSettings) -> Mapping[str, str]:
    """Return the options of Spark's Kafka sink; no property of the user's changes what "written" means."""
    return {key: value for key, value in settings.source.items() if key not in _NOT_FOR_SINK} | FIXED


def refuse_showing_secrets(spark: "SparkSession", settings: JavaSettings) -> None:
    """Raise `Refused` where Spark would show what a producer logs in with: in its event log, or in its UI.

    The sink's options are part of the plan that both have, and Spark hides secrets in those of its readers alone.
    """
    telling = {"spark.eventLog.enabled": "false", "spark.ui.enabled": "true"}
    on = [key for key, default in telling.items() if str(spark.conf.get(key, default)).lower() == "true"]
    if settings.secrets and on:
        raise Refused(
            f"--to-config holds secrets, and Spark would show them to whoever reads its plans: {' and '.join(on)}.",
            f"Add {' '.join(f'--spark-conf {key}=false' for key in on)} (or --conf to spark-submit), or write Parquet "
            "with --out, and produce that with a tool of your own.",
        )


class TopicWriter:
    """Writes records to one topic, which is there. `sent` is how many it has written, over all calls."""

    def __init__(self, settings: JavaSettings, topic: str, secrets: Collection[str] = ()) -> None:
        self._settings = settings
        self._topic = topic
        self._secrets = settings.secrets | frozenset(secrets)
        self.sent = 0

    def write(self, records: "DataFrame") -> int:
        """Write records (`key`, `value`), each task's in its order; return how many, once brokers have them all.

        Raises `ClusterError`, without a secret, if they cannot be read or written; some may be in the topic then.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import Observation
        from pyspark.sql.functions import expr

        seen = Observation()
        counted = records.observe(seen, expr("count(1)").alias("records"))
        try:
            counted.write.format("kafka").options(**producer_options(self._settings), topic=self._topic).mode(
                "append"
            ).save()
            written = int(seen.get["records"])
        except (Py4JError, PySparkException) as error:
            raise ClusterError(
                f"Not all could be read and written to topic {self._topic} of {self._settings.name}: "
                f"{redact(root_cause(error), self._secrets)}.",
                "Lines that were written before are there, and a later run writes them again; check that this "
                f"principal may WRITE to the topic. Spark's own log is {log_file()}.",
            ) from error
        self.sent += written
        return written
