"""One cluster, behind `migrate.survey.cluster.ClusterAdmin`: two clients, and which of them does what.

librdkafka does nearly all, in a process of its own. It hides what follows a NUL in metadata, adds one when it writes,
and cannot remove a single offset: that alone is left to Kafka's Java client, which is not even made while nothing needs
it. Group facts, on which nothing rests alone, are asked for in this process.

librdkafka 2.16 kills its process when a coordinator moves at the wrong moment: SIGSEGV where OffsetFetch answers
NOT_COORDINATOR (librdkafka #5040), SIGABRT after timeouts (#4605, #5397). Then only that process dies:

- What was asked is asked again of a new process; after `DEATHS_BORNE` deaths in a row it is a `ClusterError`.
- What was being written is `outcome_unknown`: the caller reads it back.
- The process ends when this one does, however that ends; until then it holds `lock`, if one is given.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from migrate.clock import Backoff, SystemClock
from migrate.commit_table import CommitTable, has_metadata, without_metadata
from migrate.described_group import ListedGroup
from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.kafka.frames import HEARD, NOT_EXACT, receive, send
from migrate.kafka.settings import ClientSettings
from migrate.model import Commits, Failure, GroupState, TopicPartition
from migrate.ports import Outcomes
from migrate.silence import asking, heard
from migrate.survey.cluster import BrokerSettings, ClusterAdmin, JavaAdmin
from migrate.survey.group_facts import MOST_RECORDS, AnswerMemory
from migrate.survey.offsets_topic import GroupRecord
from migrate.survey.renamed import SAME_NAMES, TargetNames

if TYPE_CHECKING:
    from migrate.kafka.group_facts import ConfluentGroupFacts, ReadRecords

DEATHS_BORNE = 10
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
ENDING_SECONDS = 5.0
MISSING = "JAVA_CLIENT_MISSING"
UNUSABLE = "JAVA_CLIENT_UNUSABLE"
P = ParamSpec("P")
V = TypeVar("V")


class ClientDied(Exception):
    """Raised when the process ended before it answered; says how."""


class HostedClient:
    """librdkafka's client of one cluster in a process of its own, which the first call starts.

    What it is asked is a method of `migrate.kafka.admin.ConfluentAdmin`, whose parameters these are. `lock` is a file
    descriptor that the process inherits: a lock on it stays until the process has ended too.
    """

    def __init__(
        self, settings: ClientSettings, deadline_seconds: float = 60.0, concurrency: int = 100, lock: int | None = None
    ) -> None:
        self.deaths = 0
        self._name = settings.name
        # What ConfluentAdmin is made with, in its order.
        self._settings = (settings, deadline_seconds, concurrency)
        self._lock = lock
        # One that holds a lock gets ready while the caller saves what was there before.
        self._process = None if lock is None else _Process(lock).begun(self._settings)
        self._one_call = threading.Lock()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The client process's id; None while there is none."""
        return self._process.pid if self._process else None

    def renew(self) -> None:
        """Have a new client in the process: librdkafka never forgets a coordinator that has moved."""
        if self._process is not None:
            self.read("renewed")

    def holding(self, lock: int) -> "HostedClient":
        """Return another one, whose process holds this file descriptor, and with it a lock on the file."""
        return HostedClient(*self._settings, lock)

    def close(self) -> None:
        """End the process, also in the middle of a call; no other is started.

        A thread that outlives its command would go on with a new one, and write without the lock that is free by then.
        """
        self._is_closed = True
        self._drop()

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def read(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Ask, and ask again of a new process where one died over the question."""
        backoff = Backoff(SystemClock(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        for _ in range(DEATHS_BORNE):
            try:
                return self.call(method, *arguments, **options)
            except ClientDied as death:
                last = death
            if self._is_closed:
                raise ClusterError(f"{self._name} is not asked any more: the command is over.", "Run it again.")
            # A coordinator that is just moving moves for a while.
            backoff.pause()
        raise ClusterError(
            f"{self._name} could not be asked: {last}, {DEATHS_BORNE} times in a row.",
            "That is what librdkafka does while coordinators move: wait until the cluster is well, then run again.",
        )

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Ask once; raises `ClientDied` where the process died over it."""
        with self._one_call:
            if self._process is None and not self._is_closed:
                self._process = _Process(self._lock).begun(self._settings)
            if self._is_closed or self._process is None:
                self._drop()
                raise ClientDied("the Kafka client is closed")
            try:
                with asking(self._name, self._settings[1]):
                    kind, value = self._process.ask(self._name, method, arguments, options)
            except BaseException as error:
                # Also where we were interrupted: the answer to this call must not be taken for the next one's.
                self.deaths += isinstance(error, ClientDied)
                self._drop()
                raise
        if kind == "error":
            cause, problem, todo = value
            raise cause(problem, todo)
        if kind == "fault":
            raise RuntimeError(f"in the client process: {value.strip().splitlines()[-1]}\n{value}")
        return value


def _asked(method: Callable[Concatenate[Any, P], V]) -> Callable[Concatenate["KafkaCluster", P], V]:
    """Return the port's method as a question to librdkafka."""

    @wraps(method)
    def ask(cluster: "KafkaCluster", /, *arguments: P.args, **options: P.kwargs) -> V:
        # As lists: a view of a dictionary cannot be sent.
        sendable = (list(value) if isinstance(value, Collection) else value for value in arguments)
        return cast(V, cluster.client.read(method.__name__, *sendable, **options))

    return ask


class ByJava(Enum):
    """Whose commits Java reads, where they are not named: all, or those that turn out to carry metadata."""

    EVERY = "every group"
    CARRYING = "groups with metadata"


class KafkaCluster:
    """One cluster. `client` is librdkafka's; `java` does what only Kafka's Java client can, None where nobody needs it.

    Java reads the commits of the groups `exact`, by their names there. `memory` keeps what was told of groups, for a
    watch. `names` are what groups are called there: they are put in right where the cluster is asked, and taken out of
    its answers, so no step can forget that a group has another name there, and read or write whatever has the old one.
    """

    def __init__(
        self,
        settings: ClientSettings,
        deadline_seconds: float = 60.0,
        concurrency: int = 100,
        java: JavaAdmin | None = None,
        exact: Collection[str] | ByJava = (),
        memory: AnswerMemory | None = None,
    ) -> None:
        self.side = settings.side
        self.alias = settings.alias
        self.client = HostedClient(settings, deadline_seconds, concurrency)
        self._config = settings.config
        self._java = java
        self._exact: ByJava | frozenset[str] = frozenset()
        if java is not None:
            self._exact = exact if isinstance(exact, ByJava) else frozenset(exact)
        self._memory = memory
        # Made when first asked for: what it is made of takes a while to import.
        self._facts = cache(lambda: _group_facts(settings, deadline_seconds))
        self._names = SAME_NAMES

    def named(self, names: TargetNames) -> "KafkaCluster":
        """Return the same cluster, asked and told by the source's names of groups."""
        return self._with(_names=names)

    def renewed(self) -> "KafkaCluster":
        """Return itself with a new librdkafka client; Java's looks up coordinators that have moved by itself."""
        self.client.renew()
        return self

    def holding(self, lock: int) -> "KafkaCluster":
        """Return one whose process keeps the lock; Java's ends as soon as this process has."""
        return self._with(client=self.client.holding(lock))

    def close(self) -> None:
        """End librdkafka's process; whoever made `java` closes it."""
        self.client.close()

    def _with(self, **changes: object) -> "KafkaCluster":
        other = object.__new__(KafkaCluster)
        other.__dict__.update(self.__dict__, **changes)
        return other

    facts = _asked(ClusterAdmin.facts)
    topics = _asked(ClusterAdmin.topics)
    topic_ids = _asked(ClusterAdmin.topic_ids)
    log_ranges = _asked(ClusterAdmin.log_ranges)
    high_watermarks = _asked(ClusterAdmin.high_watermarks)

    def groups(self) -> frozenset[str]:
        """List consumer groups. One that has the old name of a renamed group is not in the list: it is not that one."""
        return frozenset(self._names.to_source(dict.fromkeys(self.client.read("groups"))))

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        """Describe each group."""
        return self._names.to_source(self.client.read("group_states", self._names.asked(groups)))

    def described_groups(self, groups: Collection[str]) -> Mapping[str, ListedGroup]:
        """Describe each group with its members."""
        return self._names.to_source(self.client.read("described_groups", self._names.asked(groups)))

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, those that Java reads with metadata as it is stored.

        Of another group's metadata only that there is some is told, where there is Java: what librdkafka reads may go
        on into memory of ours, and would end up in a journal.
        """
        asked, exact = self._names.asked(groups), self._exact
        by_java = frozenset(asked if exact is ByJava.EVERY else () if exact is ByJava.CARRYING else exact)
        usual = [group for group in asked if group not in by_java]
        answers: dict[str, Commits | Failure] = {}
        if usual:
            answers |= self.client.read("commits", usual, require_stable)
        if self._java is not None:
            if exact is ByJava.CARRYING:
                by_java = frozenset(g for g, a in answers.items() if not isinstance(a, Failure) and has_metadata(a))
            answers = {g: a if isinstance(a, Failure) else without_metadata(a) for g, a in answers.items()}
            answers |= self._exact_commits([group for group in asked if group in by_java], require_stable)
        return self._names.to_source(answers)

    def _exact_commits(self, groups: Sequence[str], require_stable: bool) -> Mapping[str, Commits | Failure]:
        """Ask Java; where it cannot be used, nothing is told beyond what is known already, or why not."""
        try:
            return self._java.commits(groups, require_stable) if groups and self._java else {}
        except MigrateError as error:
            if self._exact is ByJava.CARRYING:
                return {}
            if self._exact is ByJava.EVERY or not isinstance(error, EnvironmentLacks):
                raise
            return dict.fromkeys(groups, failure_of(error))

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets; groups with metadata through Java. Where the process died over it, outcomes are unknown."""
        wanted = self._names.to_target(commits)
        exact = {g: offsets for g, offsets in wanted.items() if has_metadata(offsets)} if self._java else {}
        tables = {group: CommitTable.of(offsets) for group, offsets in wanted.items() if group not in exact}
        answers: dict[str, Mapping[TopicPartition, Failure | None]] = {}
        if tables:
            try:
                answers |= self.client.call("alter", tables)
            except ClientDied as death:
                answers |= {group: dict.fromkeys(offsets, _lost(death)) for group, offsets in tables.items()}
        if exact and self._java is not None:
            try:
                answers |= self._java.alter(exact)
            except MigrateError as error:
                answers |= {group: dict.fromkeys(offsets, failure_of(error)) for group, offsets in exact.items()}
        return self._names.to_source(answers)

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets, through Java: librdkafka's Python client can only delete whole groups."""
        wanted = self._names.to_target(offsets)
        try:
            if self._java is not None:
                return self._names.to_source(self._java.delete_offsets(wanted))
            why = NOT_EXACT
        except MigrateError as error:
            why = failure_of(error)
        return {group: dict.fromkeys(partitions, why) for group, partitions in offsets.items()}

    def missing_capability(self) -> Failure | None:
        """Reach the cluster through Java; None if that works."""
        if self._java is None:
            return NOT_EXACT
        try:
            self._java.prove()
        except MigrateError as error:
            return failure_of(error)
        return None

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        """Delete empty groups; where the process died over it, every outcome is unknown."""
        try:
            return self._names.to_source(self.client.call("delete_groups", self._names.asked(groups)))
        except ClientDied as death:
            return dict.fromkeys(groups, _lost(death))

    def hosted_topics(self) -> frozenset[str] | Failure:
        """Return the names of all topics, shown to us or not, through Java."""
        return NOT_EXACT if self._java is None else self._java.hosted_topics()

    def group_kinds(self) -> Mapping[str, str] | Failure:
        """Return the kind of each group."""
        found = self._answer("kinds", (), lambda facts: facts.every_group(self._kind_records()))
        if isinstance(found, Failure):
            return found
        consumers, others = found
        kinds = dict.fromkeys(consumers, "consumer")
        for name, group in others.items():
            kind = "unknown" if isinstance(group.kind, Failure) else group.kind
            kinds[name] = "other" if kind == "classic" else kind
        return self._names.to_source(kinds)

    def other_groups(self) -> Mapping[str, ListedGroup] | Failure:
        """Return what listings show of groups that are no consumer groups."""
        found = self._facts().every_group(self._kind_records(MOST_RECORDS))
        return found if isinstance(found, Failure) else self._names.to_source(found[1])

    def _kind_records(self, most: int | None = None) -> "ReadRecords":
        from migrate.kafka.group_facts import group_records

        return lambda groups: group_records(self, self._config, groups, most=most, any_will_do=True)

    def group_records(self, groups: Collection[str], most: int | None = None) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups."""
        from migrate.kafka.group_facts import group_records

        asked = self._names.asked(groups)
        memory = None if self._memory is None else self._memory.logs
        read = partial(group_records, self, self._config, asked, most, memory=memory)
        found = self._answer("records", asked, lambda _: read())
        return found if isinstance(found, Failure) else self._names.to_source(found)

    def broker_settings(self) -> BrokerSettings | Failure:
        """Return what the brokers are set to."""
        return self._answer("settings", (), lambda facts: facts.broker_settings())

    def topic_settings(self, topics: Collection[str], setting: str) -> Mapping[str, str | Failure] | Failure:
        """Return one setting of each topic."""
        return self._answer(setting, topics, lambda facts: facts.topic_settings(topics, setting))

    def newest_record_ms(self, topic: str) -> int | None | Failure:
        """Return the newest timestamp in a topic of one partition; never from memory."""
        return self._facts().newest_record_ms(topic)

    def _answer(self, what: str, about: Collection[str], ask: "Callable[[ConfluentGroupFacts], V]") -> V:
        facts = self._facts()
        return ask(facts) if self._memory is None else self._memory.answer(what, about, lambda: ask(facts))


def _group_facts(settings: ClientSettings, deadline_seconds: float) -> "ConfluentGroupFacts":
    from migrate.kafka.group_facts import ConfluentGroupFacts

    return ConfluentGroupFacts(settings, deadline_seconds)


def failure_of(error: MigrateError) -> Failure:
    """Return the `Failure` of one group or partition that Java could not even be asked about."""
    return Failure(MISSING if isinstance(error, EnvironmentLacks) else UNUSABLE, str(error).rstrip("."))


class _Process:
    """One client process and our end of the socket to it; it can be asked once it has `begun`."""

    def __init__(self, lock: int | None = None) -> None:
        ours, theirs = socket.socketpair()
        inherited = (theirs.fileno(),) if lock is None else (theirs.fileno(), lock)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            self._process = subprocess.Popen(
                # -P: what lies in the folder where somebody happens to work is not imported.
                [sys.executable, "-P", "-m", "migrate.kafka.host", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=inherited,
                env=environment,
                # Ctrl-C and a terminal that closes are for the process in charge: it stops between two writes, and
                # still needs the answers of the last.
                start_new_session=True,
            )
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._channel = ours
        # Runs also when nobody ends it: at the latest when Python ends.
        self.end: Callable[[], Any] = weakref.finalize(self, _end, self._process, ours)

    def begun(self, settings: tuple[Any, ...]) -> "_Process":
        """Tell it which cluster it is for; returns itself."""
        with suppress(OSError):  # that one is gone already is seen at its first answer
            send(self._channel, settings)
        return self

    def ask(self, name: str, *call: Any) -> tuple[str, Any]:
        """Return what the cluster of this name answers to a method's name, arguments and options.

        Raises `ClientDied`.
        """
        try:
            send(self._channel, call)
            while (answer := receive(self._channel)) == HEARD:
                heard(name)
            kind, value = answer
        except (OSError, EOFError):
            raise ClientDied(f"the Kafka client's process ended {self._ending()}") from None
        return kind, value

    def _ending(self) -> str:
        try:
            status = self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return "its work without a word"
        if status < 0:
            return f"by {signal.Signals(-status).name}"
        return f"with status {status}"


def _end(process: "subprocess.Popen[bytes]", channel: socket.socket) -> None:
    with suppress(OSError):
        # Closed alone, it would tell the process nothing while another thread of ours still waits for an answer.
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _lost(death: ClientDied) -> Failure:
    return Failure("_CLIENT_DIED", f"{death} before it answered", retriable=True, outcome_unknown=True)
