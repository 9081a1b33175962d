"""Which topics a cluster has, whether or not we may DESCRIBE them: told by its brokers' log directories.

Metadata, and groups' commits, lack in silence what we may not DESCRIBE. `DescribeLogDirs` asks for DESCRIBE on the
cluster only, so that beside it what is hidden shows. Kafka's Java Admin has it, librdkafka has not.
"""

from typing import TYPE_CHECKING, Any

from migrate.clientconfig import java_properties, redact, secret_values
from migrate.flow import Cluster
from migrate.model import Failure
from migrate.spark.failure import described, innermost, java_exception

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The client itself gives up first: its own reason is better than ours.
GRACE_SECONDS = 10.0


def hosted_topics(spark: "SparkSession", cluster: Cluster, deadline_seconds: float) -> frozenset[str] | Failure:
    """Return the names of all topics with a replica on any broker; a `Failure` where the cluster does not tell."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    properties = jvm.java.util.Properties()
    for key, value in java_properties(cluster.properties).items():
        properties.put(key, value)
    millis = int(deadline_seconds * 1000)
    properties.put("default.api.timeout.ms", str(millis))
    properties.put("request.timeout.ms", str(millis))
    unit = jvm.java.util.concurrent.TimeUnit.MILLISECONDS
    patience = millis + int(GRACE_SECONDS * 1000)
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        try:
            # A list: Python cannot walk through what is only a Java collection.
            nodes = jvm.java.util.ArrayList(admin.describeCluster().nodes().get(patience, unit))
            brokers = jvm.java.util.ArrayList()
            for node in nodes:
                brokers.add(node.id())
            told = admin.describeLogDirs(brokers).allDescriptions().get(patience, unit)
            names: set[str] = set()
            for folders in told.values():
                for folder in folders.values():
                    # One text for all: a call per partition would take minutes. Topics have no comma in their names.
                    names |= _topics_of(folder.replicaInfos().keySet().toString())
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as error:
        throwable = java_exception(error)
        code = jvm.org.apache.kafka.common.protocol.Errors.forException(innermost(throwable)).name()
        return Failure(code, redact(described(throwable), secret_values(cluster.properties)))
    return frozenset(names)


def _topics_of(text: str) -> set[str]:
    """Read Java's text of a set of partitions: "[a-0, b-1]"."""
    return {place.rpartition("-")[0] for place in text.strip("[]").split(", ") if place}
