"""Names all topics of a cluster, even those that we may not DESCRIBE: it reads the brokers' log directories.

Metadata, and groups' commits, lack in silence what we may not DESCRIBE. `DescribeLogDirs` asks for DESCRIBE on the
cluster only, so that beside it what is hidden shows. Kafka's Java Admin has it, librdkafka has not.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from migrate.errors import ClusterError
from migrate.mm2.secrets import redact
from migrate.model import Failure
from migrate.spark.java_client import GRACE_SECONDS, JavaClient
from migrate.spark.java_errors import described, java_exception
from migrate.spark.java_settings import JavaSettings


def hosted_topics(
    machine: Callable[[], Any], settings: JavaSettings, deadline_seconds: float
) -> frozenset[str] | Failure:
    """Return the names of all topics with a replica on any broker; a `Failure` where a part is missing.

    `machine` gives py4j's view of a JVM that has Kafka's classes.
    """
    from py4j.protocol import Py4JJavaError

    jvm = machine()
    millis = str(int(deadline_seconds * 1000))
    timed = {**settings.admin, "default.api.timeout.ms": millis, "request.timeout.ms": millis}
    try:
        client = JavaClient(jvm, replace(settings, admin=timed), deadline_seconds)
    except ClusterError as refused:
        return Failure("JAVA_CLIENT_UNUSABLE", refused.problem)
    patience = deadline_seconds + GRACE_SECONDS
    with closing(client):
        try:
            # A list: Python cannot walk through what is only a Java collection.
            nodes = jvm.java.util.ArrayList(client.get(client.admin.describeCluster().nodes(), patience))
            brokers = jvm.java.util.ArrayList()
            for node in nodes:
                brokers.add(node.id())
            descriptions = client.get(client.admin.describeLogDirs(brokers).allDescriptions(), patience)
            return topics_of(descriptions, set(brokers), client.code)
        except Py4JJavaError as error:
            throwable = java_exception(error)
            return Failure(client.code(throwable), redact(described(throwable), settings.secrets))


def topics_of(
    descriptions: Mapping[int, Mapping[str, Any]], asked: Collection[int], code_of: Callable[[Any], str]
) -> frozenset[str] | Failure:
    """Return the topics that the brokers' log directories (Java's `LogDirDescription`) name.

    A `Failure` where a broker, or one of its directories, gave no answer: what it holds might be what is hidden.
    `code_of` names a Java exception's error.
    """
    missing = sorted(set(asked) - set(descriptions))
    if missing or not asked:
        return Failure("NO_ANSWER", f"broker {missing[0]} did not answer" if missing else "no broker is known")
    names: set[str] = set()
    for broker, folders in descriptions.items():
        if not folders:
            return Failure("NO_ANSWER", f"broker {broker} named no log directory")
        for path, folder in folders.items():
            error = folder.error()
            if error is not None:
                return Failure(code_of(error), f"broker {broker} did not report what is in {path}")
            # One text for all: a call per partition would take minutes. Topics have no comma in their names.
            partitions = folder.replicaInfos().keySet().toString()  # "[a-0, b-1]"
            names |= {place.rpartition("-")[0] for place in partitions.strip("[]").split(", ") if place}
    return frozenset(names)
