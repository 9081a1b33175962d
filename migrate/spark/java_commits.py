"""Committed offsets through Kafka's Java Admin in Spark's JVM: exact metadata, many groups in one call.

librdkafka's Python client cannot tell a NUL in metadata from its end; Java's reads what is stored. Values cross
between the two languages as one JSON document per batch: a py4j call per field would take minutes.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from sys import intern
from typing import Any

from migrate.commit_table import CommitTable
from migrate.errors import ClusterError
from migrate.model import Commits, Failure, TopicPartition
from migrate.spark.java_client import GRACE_SECONDS, TIMED_OUT, JavaClient
from migrate.spark.java_errors import java_exception
from migrate.spark.java_settings import JAVA_ADDRESSES
from migrate.survey.groups import NO_ANSWER, answer_of_each

GROUPS_PER_CALL = 1000
# Transactions of consumers last for fractions of a second; a call for stable offsets that takes longer than this,
# where one without that wish was answered, is waiting for one that does not end.
STABLE_WAIT_SECONDS = 15.0
NOTHING_READ: tuple[str, dict[str, Commits]] = ("", {})
UNSTABLE = "UNSTABLE_OFFSET_COMMIT"

_SPEC_CLASS = "org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec"


class JavaCommitReader:
    """Reads groups' committed offsets (`migrate.ports.CommitReader`); `client` is made when first asked for."""

    def __init__(self, client: Callable[[], JavaClient]) -> None:
        self._made = client
        # The answer to a batch's first question, also as text: to its second, nearly every group answers the same.
        self._last = NOTHING_READ

    @cached_property
    def _client(self) -> JavaClient:
        return self._made()

    def close(self) -> None:
        """Close the client, if one was made."""
        if "_client" in self.__dict__:
            self._client.close()

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, with metadata as stored and leader epochs.

        A group on whose offsets a transaction stays pending is `Failure("UNSTABLE_OFFSET_COMMIT", ...)` unless
        `require_stable` is False: then its last committed offsets come. Raises `ClusterError` if the cluster
        refuses us, or answers for none of the groups in time.
        """
        distinct = list(dict.fromkeys(groups))
        answers: dict[str, Commits | Failure] = {}
        for start in range(0, len(distinct), GROUPS_PER_CALL):
            answers.update(self._batch(distinct[start : start + GROUPS_PER_CALL], require_stable))
            self._last = NOTHING_READ
        return answers

    def _batch(self, groups: Sequence[str], require_stable: bool) -> dict[str, Commits | Failure]:
        plain = self._ask(groups, False, self._client.deadline_seconds)
        if all(_is_timeout(answer) for answer in plain.values()):
            first = plain[groups[0]]
            raise ClusterError(
                f"{self._client.name} did not say in {self._client.deadline_seconds:g} s what {len(groups)} groups "
                f"have committed: {first.message if isinstance(first, Failure) else ''}.",
                "Check bootstrap.servers, the network and the brokers, or allow more time with --request-timeout. "
                + JAVA_ADDRESSES,
            )
        answered = [group for group, answer in plain.items() if not isinstance(answer, Failure)]
        if not require_stable or not answered:
            return plain
        # Java's Admin leaves out partitions with a pending transaction in silence (seen with 3.9.0): only beside
        # what was committed before do they show.
        stable = self._ask(answered, True, min(self._client.deadline_seconds, STABLE_WAIT_SECONDS))
        return {group: _settled(plain[group], stable.get(group)) for group in groups}

    def _ask(self, groups: Sequence[str], require_stable: bool, seconds: float) -> dict[str, Commits | Failure]:
        from py4j.protocol import Py4JJavaError

        options = self._client.jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions()
        options.requireStable(require_stable).timeoutMs(int(seconds * 1000))
        result = self._client.admin.listConsumerGroupOffsets(self._specs(groups), options)
        try:
            answered = self._client.get(result.all(), seconds + GRACE_SECONDS)
        except Py4JJavaError:
            # At least one failed: what the others say is there, and is asked for one by one.
            return {g: self._one(result.partitionsToOffsetAndMetadata(g), g) for g in groups}
        document = self._mapper.writeValueAsString(answered)
        if document != self._last[0]:
            commits = json.loads(document)
            self._last = document, {group: _commits(of_group or {}) for group, of_group in commits.items()}
        return answer_of_each(groups, self._last[1])

    def _one(self, future: Any, group: str) -> Commits | Failure:
        from py4j.protocol import Py4JJavaError

        try:
            return _commits(json.loads(self._mapper.writeValueAsString(self._client.get(future, GRACE_SECONDS))))
        except Py4JJavaError as error:
            return self._client.failure(java_exception(error), f"committed offsets of group {group}")

    def _specs(self, groups: Sequence[str]) -> Any:
        """A Java map from each group to "all its partitions", made by Jackson in one call."""
        types = self._mapper.getTypeFactory()
        map_type = types.constructMapType(
            self._client.java_class("java.util.HashMap"),
            self._client.java_class("java.lang.String"),
            self._client.java_class(_SPEC_CLASS),
        )
        return self._mapper.readValue(json.dumps(dict.fromkeys(groups, {})), map_type)

    @cached_property
    def _mapper(self) -> Any:
        """Spark's Jackson, reading and writing private fields: Kafka's classes are no beans."""
        jackson = self._client.jvm.com.fasterxml.jackson
        mapper = jackson.databind.ObjectMapper()
        visibility = "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility"
        mapper.setVisibility(
            jackson.annotation.PropertyAccessor.FIELD, self._client.java_class(visibility).getField("ANY").get(None)
        )
        escape = "com.fasterxml.jackson.core.JsonGenerator$Feature"
        mapper.getFactory().enable(self._client.java_class(escape).getField("ESCAPE_NON_ASCII").get(None))
        return mapper


def _settled(plain: Commits | Failure, stable: Commits | Failure | None) -> Commits | Failure:
    """Choose between the answers to the same question asked without and with `requireStable`."""
    if isinstance(plain, Failure):
        return plain
    if stable is None:
        return NO_ANSWER
    if isinstance(stable, Failure):
        return _unstable("its offsets") if _is_timeout(stable) else stable
    missing = sorted(plain.keys() - stable.keys())
    return _unstable(", ".join(map(str, missing[:5]))) if missing else stable


def _unstable(what: str) -> Failure:
    return Failure(UNSTABLE, f"a transaction that commits {what} is still open", retriable=True)


def _is_timeout(answer: Commits | Failure) -> bool:
    return isinstance(answer, Failure) and answer.code == TIMED_OUT


def _commits(values: Mapping[str, Mapping[str, Any] | None]) -> Commits:
    """Read one group's map as Jackson writes it; a key is "topic-partition". NULL is a commit of -1."""
    places, commits, without = [], [], []
    for name, value in values.items():
        topic, _, partition = name.rpartition("-")
        place = TopicPartition(intern(topic), int(partition))
        if value is None:
            without.append(place)
        else:
            places.append(place)
            commits.append(value)
    offsets, metadata, epochs = ([commit[f] for commit in commits] for f in ("offset", "metadata", "leaderEpoch"))
    return CommitTable(places, offsets, metadata, epochs, without)
