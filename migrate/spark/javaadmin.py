"""Committed offsets through Kafka's Java Admin in Spark's JVM: exact metadata, many groups in one call.

librdkafka's Python client cannot tell a NUL in metadata from its end; Java's reads what is stored. Values cross
between the two languages as one JSON document per batch: a py4j call per field would take minutes.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from migrate.clientconfig import java_properties, redact, secret_values
from migrate.errors import ClusterError
from migrate.flow import Cluster
from migrate.model import Commit, Commits, Failure, TopicPartition
from migrate.spark.failure import described, innermost, java_exception
from migrate.spark.session import log_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS_PER_CALL = 1000
# Transactions of consumers last for fractions of a second; a call for stable offsets that takes longer than this,
# where one without that wish was answered, is waiting for one that does not end.
STABLE_WAIT_SECONDS = 15.0
# The client itself gives up first: its own reason is better than ours.
GRACE_SECONDS = 10.0
UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
TIMED_OUT = "REQUEST_TIMED_OUT"

_KAFKA = "org.apache.kafka"
_SPEC_CLASS = f"{_KAFKA}.clients.admin.ListConsumerGroupOffsetsSpec"
_AUTHENTICATION_CLASS = f"{_KAFKA}.common.errors.AuthenticationException"
_RETRIABLE_CLASS = f"{_KAFKA}.common.errors.RetriableException"


class JavaCommitReader:
    """Reads groups' committed offsets (`migrate.ports.CommitReader`); needs Kafka's classes in Spark's JVM."""

    def __init__(self, spark: "SparkSession", cluster: Cluster, deadline_seconds: float) -> None:
        """Open the client. `deadline_seconds` is how long one call may take; raises `ClusterError`."""
        from py4j.protocol import Py4JJavaError

        self._cluster = cluster
        self._deadline_seconds = deadline_seconds
        self._secrets = secret_values(cluster.properties)
        self._jvm: Any = spark._jvm
        self._loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._mapper = self._object_mapper()
        properties = self._jvm.java.util.Properties()
        for key, value in java_properties(cluster.properties).items():
            properties.put(key, value)
        try:
            self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        except Py4JJavaError as error:
            raise self._unusable(java_exception(error)) from error

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, with metadata as stored and leader epochs.

        A group on whose offsets a transaction stays pending is `Failure("UNSTABLE_OFFSET_COMMIT", ...)` unless
        `require_stable` is False: then its last committed offsets come. Raises `ClusterError` if the cluster
        refuses us, or answers for none of the groups in time.
        """
        wanted = list(dict.fromkeys(groups))
        answers: dict[str, Commits | Failure] = {}
        for start in range(0, len(wanted), GROUPS_PER_CALL):
            answers.update(self._batch(wanted[start : start + GROUPS_PER_CALL], require_stable))
        return answers

    def close(self) -> None:
        """Close the client at once."""
        self._admin.close(self._jvm.java.time.Duration.ZERO)

    def _batch(self, groups: Sequence[str], require_stable: bool) -> dict[str, Commits | Failure]:
        plain = self._ask(groups, False, self._deadline_seconds)
        if all(_is_timeout(answer) for answer in plain.values()):
            first = plain[groups[0]]
            raise ClusterError(
                f"{self._name()} did not say in {self._deadline_seconds:g} s what {len(groups)} groups have "
                f"committed: {first.message if isinstance(first, Failure) else ''}.",
                "Check bootstrap.servers, the network and the brokers, or allow more time with --request-timeout.",
            )
        answered = [group for group, answer in plain.items() if not isinstance(answer, Failure)]
        if not require_stable or not answered:
            return plain
        # Java's Admin leaves out partitions with a pending transaction in silence (seen with 3.9.0): only beside
        # what was committed before do they show.
        stable = self._ask(answered, True, min(self._deadline_seconds, STABLE_WAIT_SECONDS))
        return {group: _settled(plain[group], stable.get(group)) for group in groups}

    def _ask(self, groups: Sequence[str], require_stable: bool, seconds: float) -> dict[str, Commits | Failure]:
        from py4j.protocol import Py4JJavaError

        options = self._jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions()
        options.requireStable(require_stable).timeoutMs(int(seconds * 1000))
        result = self._admin.listConsumerGroupOffsets(self._specs(groups), options)
        try:
            answered = self._get(result.all(), seconds + GRACE_SECONDS)
        except Py4JJavaError:
            # At least one failed: what the others say is there, and is asked for one by one.
            return {g: self._one(result.partitionsToOffsetAndMetadata(g), g) for g in groups}
        told = json.loads(self._mapper.writeValueAsString(answered))
        return {group: _commits(told.get(group) or {}) for group in groups}

    def _one(self, future: Any, group: str) -> Commits | Failure:
        from py4j.protocol import Py4JJavaError

        try:
            return _commits(json.loads(self._mapper.writeValueAsString(self._get(future, GRACE_SECONDS))))
        except Py4JJavaError as error:
            return self._failure(java_exception(error), group)

    def _get(self, future: Any, seconds: float) -> Any:
        return future.get(int(seconds * 1000), self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS)

    def _failure(self, throwable: Any, group: str) -> Failure:
        inner = innermost(throwable)
        if self._class(_AUTHENTICATION_CLASS).isInstance(inner):
            raise self._unusable(inner)
        if inner.getClass().getName() == "java.util.concurrent.TimeoutException":
            code, retriable = TIMED_OUT, True
        else:
            code = self._jvm.org.apache.kafka.common.protocol.Errors.forException(inner).name()
            retriable = bool(self._class(_RETRIABLE_CLASS).isInstance(inner))
        message = redact(described(inner), self._secrets)
        return Failure(code, f"committed offsets of group {group}: {message}", retriable)

    def _unusable(self, throwable: Any) -> ClusterError:
        return ClusterError(
            f"{self._name()} cannot be used by Kafka's Java client: {redact(described(throwable), self._secrets)}.",
            f"Check the security settings in its client properties; Spark's own log is {log_file()}.",
        )

    def _name(self) -> str:
        return f"{self._cluster.side} {self._cluster.alias} ({self._cluster.bootstrap})"

    def _specs(self, groups: Sequence[str]) -> Any:
        """A Java map from each group to "all its partitions", made by Jackson in one call."""
        types = self._mapper.getTypeFactory()
        map_type = types.constructMapType(
            self._class("java.util.HashMap"), self._class("java.lang.String"), self._class(_SPEC_CLASS)
        )
        return self._mapper.readValue(json.dumps(dict.fromkeys(groups, {})), map_type)

    def _object_mapper(self) -> Any:
        """Spark's Jackson, reading and writing private fields: Kafka's classes are no beans."""
        jackson = self._jvm.com.fasterxml.jackson
        mapper = jackson.databind.ObjectMapper()
        visibility = "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility"
        mapper.setVisibility(
            jackson.annotation.PropertyAccessor.FIELD, self._class(visibility).getField("ANY").get(None)
        )
        escape = "com.fasterxml.jackson.core.JsonGenerator$Feature"
        mapper.getFactory().enable(self._class(escape).getField("ESCAPE_NON_ASCII").get(None))
        return mapper

    def _class(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name, True, self._loader)


def _settled(plain: Commits | Failure, stable: Commits | Failure | None) -> Commits | Failure:
    """Choose between the answers to the same question asked without and with `requireStable`."""
    if isinstance(plain, Failure) or stable is None:
        return plain
    if isinstance(stable, Failure):
        return _unstable("its offsets") if _is_timeout(stable) else stable
    missing = sorted(plain.keys() - stable.keys())
    return _unstable(", ".join(map(str, missing[:5]))) if missing else stable


def _unstable(what: str) -> Failure:
    return Failure(UNSTABLE, f"a transaction that commits {what} is still open", retriable=True)


def _is_timeout(answer: Commits | Failure) -> bool:
    return isinstance(answer, Failure) and answer.code == TIMED_OUT


def _commits(told: Mapping[str, Mapping[str, Any] | None]) -> Commits:
    """Read one group's map as Jackson writes it; a key is "topic-partition". NULL means nothing is committed."""
    commits = {}
    for name, value in told.items():
        if value is not None:
            topic, _, partition = name.rpartition("-")
            commit = Commit(value["offset"], value["metadata"], value["leaderEpoch"])
            commits[TopicPartition(topic, int(partition))] = commit
    return commits
