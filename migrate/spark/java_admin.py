"""Kafka's Java Admin client inside a JVM that py4j speaks to: what librdkafka cannot do, for one cluster.

It reads metadata of commits as it is stored, where librdkafka's Python client cannot tell a NUL from its end; writes
metadata byte for byte; removes single offsets; and names topics that the cluster does not show us. Calls of a batch are
all in flight before the first answer is waited for. Java's client finds coordinators that have moved by itself; what it
gives up on comes back as a `Failure`, never as a success of the whole. Values cross between the two languages as one
JSON document per batch: a py4j call per field would take minutes.

The JVM may die. Where there can be another:

- What was asked is asked again of a new JVM, `DEATHS_BORNE` times in a row.
- What was being written is `outcome_unknown`: the caller reads it back.
- A later error does not make it certain: an append that nobody acknowledged can show up after it.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property
from sys import intern
from threading import Lock
from typing import Any, TypeVar

from migrate.commit_table import CommitTable
from migrate.errors import ClusterError
from migrate.mm2.jaas import KERBEROS_ADVICE, MSK_CLASSES
from migrate.mm2.secrets import redact
from migrate.model import Commits, Failure, TopicPartition
from migrate.ports import Outcomes, Progress
from migrate.progress import in_background
from migrate.silence import asking
from migrate.spark.dead_jvm import LostMachine, asking_machine
from migrate.spark.java_errors import causes, described, innermost, java_exception
from migrate.spark.java_settings import JAVA_ADDRESSES, JavaSettings, allow_token_endpoint
from migrate.spark.machine import java_machine, log_file, stop_java_machine
from migrate.survey.groups import NO_ANSWER, answer_of_each
from migrate.text import many
from migrate.write_outcome import PASSING

# The client itself gives up first: its own reason is better than ours.
GRACE_SECONDS = 10.0
TIMED_OUT = "REQUEST_TIMED_OUT"
_KAFKA = "org.apache.kafka"
_AUTHENTICATION_CLASS = f"{_KAFKA}.common.errors.AuthenticationException"
_RETRIABLE_CLASS = f"{_KAFKA}.common.errors.RetriableException"
_GIVE_MSK_JAR = (
    "Run mm2-migrate doctor with the options of these clusters: it fetches Amazon's jar into the cache, where every "
    "command finds it."
)
# Where a KDC gives no ticket for the brokers, as clocks disagree, Kafka's client tries again until a time-out, and says
# no more.
_OF_KERBEROS = frozenset({"LoginException", "KrbException", "TimeoutException"})
GROUPS_PER_CALL = 1000
# Transactions of consumers last for fractions of a second; a call for stable offsets that takes longer than this,
# where one without that wish was answered, is waiting for one that does not end.
STABLE_WAIT_SECONDS = 15.0
UNSTABLE = "UNSTABLE_OFFSET_COMMIT"
_SPEC_CLASS = "org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec"
# One request becomes one batch in the offsets topic, which takes 1 MiB by default.
BATCH_CHARACTERS = 128 * 1024
BATCH_PARTITIONS = 2000
RECORD_OVERHEAD = 64
_NOT_THERE = frozenset({"GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION"})
DEATHS_BORNE = 3
LOST = "JAVA_CLIENT_DIED"
T = TypeVar("T")
Submit = Callable[[str, Collection[TopicPartition]], Any]


class JavaClient:
    """One open Admin client of one cluster.

    `jvm` is py4j's view of a JVM that has Kafka's classes; `deadline_seconds` is how long one call may take.
    """

    def __init__(self, jvm: Any, settings: JavaSettings, deadline_seconds: float) -> None:
        """Open the client; raises `ClusterError` if Kafka will not have its settings."""
        from py4j.protocol import Py4JJavaError

        self.jvm = jvm
        self.deadline_seconds = deadline_seconds
        self.name = settings.name
        self._secrets = settings.secrets
        self._by_kerberos = settings.admin.get("sasl.mechanism", "GSSAPI").strip() == "GSSAPI"
        self._loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self.kafka: Any = jvm.org.apache.kafka
        allow_token_endpoint(jvm, settings.admin)
        try:
            self.admin: Any = self.kafka.clients.admin.Admin.create(java_properties(jvm, settings.admin))
        except Py4JJavaError as error:
            raise self.unusable(java_exception(error)) from error
        # Each made once: a call into the JVM costs a tenth of a millisecond.
        make = self.kafka.common.TopicPartition
        self._place = cache(lambda place: make(place.topic, place.partition))

    def reach(self) -> None:
        """Ask the cluster for its id; raises `ClusterError` if it does not answer, or does not let us in."""
        from py4j.protocol import Py4JJavaError

        options = self.kafka.clients.admin.DescribeClusterOptions().timeoutMs(int(self.deadline_seconds * 1000))
        try:
            self.get(self.admin.describeCluster(options).clusterId(), self.deadline_seconds + GRACE_SECONDS)
        except Py4JJavaError as error:
            raise self.unusable(java_exception(error)) from error

    def close(self) -> None:
        """Close the client at once: a JVM waits a while, at its end, for what an open one's thread may still do."""
        self.admin.close(self.jvm.java.time.Duration.ZERO)

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
        return answers

    def alter(self, offsets: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets with their metadata, in requests that fit the offsets topic's batches."""
        admin, options = self.admin, self._options("AlterConsumerGroupOffsetsOptions")
        make = self.kafka.clients.consumer.OffsetAndMetadata

        def submit(group: str, partitions: Collection[TopicPartition]) -> Any:
            request = self.jvm.java.util.HashMap()
            for place in partitions:
                commit = offsets[group][place]
                # Without a leader epoch: the source's own would feed the consumer's truncation check on the target.
                request.put(self._place(place), make(commit.offset, commit.metadata))
            return admin.alterConsumerGroupOffsets(group, request, options)

        outcomes: dict[str, dict[TopicPartition, Failure | None]] = {group: {} for group in offsets}
        remaining = {group: _requests(commits) for group, commits in offsets.items()}
        while parts := {group: part for group, rest in remaining.items() if (part := next(rest, None))}:
            for group, answers in self._carry_out(parts, submit).items():
                outcomes[group] |= answers
        return outcomes

    def delete_offsets(self, partitions: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets; what is not there any more is done."""
        admin, options = self.admin, self._options("DeleteConsumerGroupOffsetsOptions")

        def submit(group: str, places: Collection[TopicPartition]) -> Any:
            request = self.jvm.java.util.HashSet()
            for place in places:
                request.add(self._place(place))
            return admin.deleteConsumerGroupOffsets(group, request, options)

        return {
            group: {p: None if a is None or a.code in _NOT_THERE else a for p, a in answers.items()}
            for group, answers in self._carry_out(partitions, submit).items()
        }

    def topics_in_log_directories(self) -> frozenset[str] | Failure:
        """Return the names of all topics with a replica on any broker; a `Failure` where a part is missing.

        Metadata, and groups' commits, lack in silence what we may not DESCRIBE. `DescribeLogDirs` asks for DESCRIBE on
        the cluster only, so that beside it what is hidden shows. Java's Admin has it, librdkafka has not.
        """
        from py4j.protocol import Py4JJavaError

        patience = self.deadline_seconds + GRACE_SECONDS
        try:
            # A list: Python cannot walk through what is only a Java collection.
            nodes = self.jvm.java.util.ArrayList(self.get(self.admin.describeCluster().nodes(), patience))
            brokers = self.jvm.java.util.ArrayList()
            for node in nodes:
                brokers.add(node.id())
            descriptions = self.get(self.admin.describeLogDirs(brokers).allDescriptions(), patience)
            return topics_of(descriptions, set(brokers), self.code)
        except Py4JJavaError as error:
            throwable = java_exception(error)
            return Failure(self.code(throwable), redact(described(throwable), self._secrets))

    def get(self, future: Any, seconds: float) -> Any:
        """Return a Java future's value; raises `Py4JJavaError` with what it ended in, or after `seconds`."""
        with asking(self.name, seconds):
            return future.get(int(seconds * 1000), self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS)

    def failure(self, throwable: Any, what: str) -> Failure:
        """Return a call's error under Kafka's name of it; raises `ClusterError` if we were not let in."""
        inner, refused = innermost(throwable), self.java_class(_AUTHENTICATION_CLASS)
        # Not the innermost one, where Kerberos says why.
        if any(refused.isInstance(each) for each in causes(throwable)):
            raise self.unusable(throwable)
        code = self.code(inner)
        retriable = code == TIMED_OUT or bool(self.java_class(_RETRIABLE_CLASS).isInstance(inner))
        return Failure(code, f"{what}: {redact(described(inner), self._secrets)}", retriable)

    def code(self, throwable: Any) -> str:
        """Return Kafka's name of a Java throwable's innermost cause."""
        inner = innermost(throwable)
        # A future's own deadline: Kafka would call what it does not know an error of the server.
        if inner.getClass().getName() == "java.util.concurrent.TimeoutException":
            return TIMED_OUT
        return str(self.kafka.common.protocol.Errors.forException(inner).name())

    def unusable(self, throwable: Any) -> ClusterError:
        """Return the error that says that this client cannot be used, and why."""
        why = redact(described(throwable), self._secrets)
        todo = f"Check the security settings in its client properties; Spark's own log is {log_file()}."
        if MSK_CLASSES in why:
            todo = _GIVE_MSK_JAR
        elif self._by_kerberos and any(each.getClass().getSimpleName() in _OF_KERBEROS for each in causes(throwable)):
            todo = KERBEROS_ADVICE
        return ClusterError(f"{self.name} cannot be used by Kafka's Java client: {why}.", todo)

    def java_class(self, name: str) -> Any:
        """Return a Java class by its full name, by the loader that has Kafka's."""
        return self.jvm.java.lang.Class.forName(name, True, self._loader)

    def _batch(self, groups: Sequence[str], require_stable: bool) -> dict[str, Commits | Failure]:
        plain = self._ask(groups, False, self.deadline_seconds)
        if all(_is_timeout(answer) for answer in plain.values()):
            first = plain[groups[0]]
            raise ClusterError(
                f"{self.name} did not say in {self.deadline_seconds:g} s what {many(len(groups), 'group')} "
                f"have committed: {first.message if isinstance(first, Failure) else ''}.",
                "Check bootstrap.servers, the network and the brokers, or allow more time with --request-timeout. "
                + JAVA_ADDRESSES,
            )
        answered = [group for group, answer in plain.items() if not isinstance(answer, Failure)]
        if not require_stable or not answered:
            return plain
        # Java's Admin leaves out partitions with a pending transaction in silence (seen with 3.9.0): only beside
        # what was committed before do they show.
        stable = self._ask(answered, True, min(self.deadline_seconds, STABLE_WAIT_SECONDS))
        return {group: _settled(plain[group], stable.get(group)) for group in groups}

    def _ask(self, groups: Sequence[str], require_stable: bool, seconds: float) -> dict[str, Commits | Failure]:
        from py4j.protocol import Py4JJavaError

        options = self.jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions()
        options.requireStable(require_stable).timeoutMs(int(seconds * 1000))
        result = self.admin.listConsumerGroupOffsets(self._specs(groups), options)
        try:
            answered = self.get(result.all(), seconds + GRACE_SECONDS)
        except Py4JJavaError:
            # At least one failed: what the others say is there, and is asked for one by one.
            return {g: self._of_group(result.partitionsToOffsetAndMetadata(g), g) for g in groups}
        commits = json.loads(self._mapper.writeValueAsString(answered))
        return answer_of_each(groups, {group: _commits(of_group or {}) for group, of_group in commits.items()})

    def _of_group(self, future: Any, group: str) -> Commits | Failure:
        from py4j.protocol import Py4JJavaError

        try:
            return _commits(json.loads(self._mapper.writeValueAsString(self.get(future, GRACE_SECONDS))))
        except Py4JJavaError as error:
            return self.failure(java_exception(error), f"committed offsets of group {group}")

    def _specs(self, groups: Sequence[str]) -> Any:
        """A Java map from each group to "all its partitions", made by Jackson in one call."""
        types = self._mapper.getTypeFactory()
        map_type = types.constructMapType(
            self.java_class("java.util.HashMap"),
            self.java_class("java.lang.String"),
            self.java_class(_SPEC_CLASS),
        )
        return self._mapper.readValue(json.dumps(dict.fromkeys(groups, {})), map_type)

    @cached_property
    def _mapper(self) -> Any:
        """Spark's Jackson, reading and writing private fields: Kafka's classes are no beans."""
        jackson = self.jvm.com.fasterxml.jackson
        mapper = jackson.databind.ObjectMapper()
        visibility = "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility"
        mapper.setVisibility(
            jackson.annotation.PropertyAccessor.FIELD, self.java_class(visibility).getField("ANY").get(None)
        )
        escape = "com.fasterxml.jackson.core.JsonGenerator$Feature"
        mapper.getFactory().enable(self.java_class(escape).getField("ESCAPE_NON_ASCII").get(None))
        return mapper

    def _options(self, name: str) -> Any:
        return getattr(self.kafka.clients.admin, name)().timeoutMs(int(self.deadline_seconds * 1000))

    def _carry_out(
        self, parts: Mapping[str, Collection[TopicPartition]], submit: Submit
    ) -> dict[str, dict[TopicPartition, Failure | None]]:
        running = {group: submit(group, places) for group, places in parts.items()}
        return {group: self._answers(group, parts[group], result) for group, result in running.items()}

    def _answers(
        self, group: str, places: Collection[TopicPartition], result: Any
    ) -> dict[TopicPartition, Failure | None]:
        from py4j.protocol import Py4JJavaError

        try:
            self.get(result.all(), self.deadline_seconds + GRACE_SECONDS)
            return dict.fromkeys(places)
        except Py4JJavaError:
            # One partition's error is the whole call's: each is asked for its own.
            return {place: self._of_place(group, place, result) for place in places}

    def _of_place(self, group: str, place: TopicPartition, result: Any) -> Failure | None:
        from py4j.protocol import Py4JJavaError

        try:
            self.get(result.partitionResult(self._place(place)), GRACE_SECONDS)
            return None
        except Py4JJavaError as error:
            try:
                failure = self.failure(java_exception(error), f"{place} of group {group}")
            except ClusterError as refused:
                return Failure("SASL_AUTHENTICATION_FAILED", refused.problem, outcome_unknown=True)
            # Java's client tries again by itself and reports only the last answer. That one may prove that nothing was
            # written by its own try; it proves nothing for a try before it, which the broker may have appended.
            return Failure(failure.code, failure.message, failure.code in PASSING, outcome_unknown=True)


def java_properties(jvm: Any, settings: Mapping[str, str]) -> Any:
    """Return settings as a `java.util.Properties`."""
    properties = jvm.java.util.Properties()
    for key, value in settings.items():
        properties.put(key, value)
    return properties


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


def _requests(commits: Commits) -> Iterator[list[TopicPartition]]:
    """Split a group's commits into requests, each of a size that the offsets topic takes as one batch."""
    part: list[TopicPartition] = []
    size = 0
    for place, commit in sorted(commits.items(), key=lambda entry: entry[0]):
        length = RECORD_OVERHEAD + len(place.topic) + len(commit.metadata)
        if part and (size + length > BATCH_CHARACTERS or len(part) == BATCH_PARTITIONS):
            yield part
            part, size = [], 0
        part.append(place)
        size += length
    if part:
        yield part


class JavaMachine:
    """A JVM with Kafka's classes, started when it is first asked for, or in the background where it will be."""

    def __init__(self, progress: Progress, at_once: bool) -> None:
        self._progress = progress
        self._one_change = Lock()
        self._jvm = in_background(java_machine, "java-start") if at_once else None

    def jvm(self) -> Any:
        """Return py4j's view of the JVM, waiting for its start; raises `EnvironmentLacks` where that fails.

        A start that failed is tried again when it is asked for again: a process of days outlives a full disk.
        """
        with self._one_change:
            if self._jvm is None or (self._jvm.done() and self._jvm.exception() is not None):
                self._progress.step("starting Kafka's Java client")
                self._jvm = in_background(java_machine, "java-start")
            starting = self._jvm
        return starting.result()

    def lost(self, jvm: Any) -> None:
        """Give up a JVM that does not answer; the next call of `jvm` starts another."""
        with self._one_change:
            # The other cluster's client may have noticed before, and another JVM may be there, or be starting.
            now = self._jvm
            if now is not None and now.done() and now.exception() is None and now.result() is jvm:
                stop_java_machine()
                self._jvm = None

    def close(self) -> None:
        """End the JVM, if it was started."""
        if self._jvm is not None:
            wait([self._jvm])
            stop_java_machine()


class KafkaJava:
    """Kafka's Java client to one cluster, made when first asked for.

    `machine` gives py4j's view of a JVM that has Kafka's classes. `lost` is told of a JVM that did not answer: what was
    asked is asked again of the one that `machine` gives then. None where there is no other: Spark's own.
    """

    def __init__(
        self,
        machine: Callable[[], Any],
        settings: JavaSettings,
        deadline_seconds: float,
        lost: Callable[[Any], None] | None = None,
    ) -> None:
        self._machine = machine
        self._settings = settings
        self._deadline_seconds = deadline_seconds
        self._lost = lost
        self._made: JavaClient | None = None

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, with metadata as it is stored."""
        try:
            return self._asked(lambda client: client.commits(groups, require_stable))
        except LostMachine as lost:
            return dict.fromkeys(groups, Failure(LOST, lost.problem, retriable=True))

    def prove(self) -> None:
        """Start the JVM, if it does not run, and reach the cluster."""
        self._asked(lambda client: client.reach())

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets with their metadata."""
        return self._written(commits, lambda client: client.alter(commits))

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets of groups."""
        return self._written(offsets, lambda client: client.delete_offsets(offsets))

    def hosted_topics(self) -> frozenset[str] | Failure:
        """Return the names of all topics with a replica on any broker, through a client of its own."""
        jvm, millis = self._machine(), str(int(self._deadline_seconds * 1000))
        timed = {**self._settings.admin, "default.api.timeout.ms": millis, "request.timeout.ms": millis}
        try:
            client = JavaClient(jvm, replace(self._settings, admin=timed), self._deadline_seconds)
        except ClusterError as refused:
            return Failure("JAVA_CLIENT_UNUSABLE", refused.problem)
        with closing(client):
            return client.topics_in_log_directories()

    def close(self) -> None:
        """Close the client, if one was made."""
        if self._made is not None:
            with suppress(Exception):  # a JVM that is gone has nothing to close, and we have all its answers
                self._made.close()

    def _written(
        self, partitions: Mapping[str, Collection[TopicPartition]], write: Callable[[JavaClient], Outcomes]
    ) -> Outcomes:
        client = self._asked(lambda client: client)
        try:
            with self._asking(client.jvm):
                return write(client)
        except LostMachine as lost:
            unknown = Failure(LOST, lost.problem, retriable=True, outcome_unknown=True)
            return {group: dict.fromkeys(places, unknown) for group, places in partitions.items()}

    def _asked(self, ask: Callable[[JavaClient], T]) -> T:
        """Ask, and ask again in a new JVM where one died over the question; raises `LostMachine` in the end."""
        for deaths in range(1, DEATHS_BORNE + 1):
            jvm = self._machine()
            if self._lost is None:
                return ask(self._in(jvm))
            try:
                with self._asking(jvm):
                    return ask(self._in(jvm))
            except LostMachine:
                if deaths == DEATHS_BORNE:
                    raise
        raise AssertionError("unreachable")

    @contextmanager
    def _asking(self, jvm: Any) -> Iterator[None]:
        try:
            with asking_machine():
                yield
        except LostMachine:
            self._made = None
            if self._lost is not None:
                self._lost(jvm)
            raise

    def _in(self, jvm: Any) -> JavaClient:
        if self._made is None or self._made.jvm is not jvm:
            self._made = JavaClient(jvm, self._settings, self._deadline_seconds)
        return self._made
