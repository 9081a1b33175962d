"""`doctor`: find out weeks before the night what would stop a cutover on the night.

Each examination is a line: what was looked at, what was seen, what to do. Only the cache of jars is written.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from migrate.checks.group_kinds import CONNECT_TODO, HIDDEN_TODO
from migrate.checks.rights import (
    Examined,
    Health,
    ResourceKind,
    examine_rights,
    is_infrastructure,
    names_to_ask,
    subjects_of,
    unread_commits,
)
from migrate.cli.choices import MovedGroupOptions, commits_from
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import clusters_of
from migrate.cli.options import OnClusters, ReachedClusters, flag, resolve_flow
from migrate.errors import EXIT_DONE, EXIT_FAILED, MigrateError
from migrate.kafka.admin import ConfluentAdmin
from migrate.kafka.msk_iam import MskIam
from migrate.mm2.flow import NOT_MM2, Flow
from migrate.mm2.jaas import MSK_CLASSES
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.ports import Progress
from migrate.session.clusters import Endpoint, endpoints, mm2_worker_of, parse_spark_conf, starting_spark
from migrate.session.options import SparkOptions
from migrate.show.lines import headed, wrapped
from migrate.spark.background import BackgroundSpark, Session
from migrate.spark.executors import refuse_lacking
from migrate.spark.jars import MSK_COORDINATE, connector_coordinate, connector_jars, msk_jars
from migrate.spark.java import java_executable, java_version, refuse_java_too_new
from migrate.spark.java_admin import KafkaJava
from migrate.spark.java_settings import JAVA_ADDRESSES
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.connect_topics import read_connect_topics, without_copy
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.hidden_topics import in_full
from migrate.survey.policies import CommitsFrom
from migrate.survey.records import ASK_FOR_TOPIC
from migrate.text import Colour, capital, many, some

CONNECT_TOPICS = "Connect's own topics"
OWN_POSITIONS = "MM2's own positions"


@dataclass(frozen=True)
class ClusterViews:
    """What either cluster showed us so far, by side; one that did not answer is missing.

    `topics` are partition counts by name; `hosted` are all topics that it has, also those that it hides from us.
    """

    clients: dict[Side, ConfluentAdmin] = field(default_factory=dict)
    topics: dict[Side, Mapping[str, int]] = field(default_factory=dict)
    groups: dict[Side, frozenset[str]] = field(default_factory=dict)
    hosted: dict[Side, frozenset[str] | Failure] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(OnClusters):
    """What is examined."""

    source_down: bool = flag("Do not contact the source.")
    commits_from: CommitsFrom = commits_from()
    clusters: ReachedClusters = ReachedClusters()
    groups: MovedGroupOptions = MovedGroupOptions()
    spark: SparkOptions = SparkOptions()


def doctor(options: DoctorOptions) -> int:
    """Check, now and not on the night: Java, Spark's jars (fetched into the cache), both clusters, MM2's topics.

    Also checks this principal's rights: for each command and side, it lists those that are missing, by resource. The
    filters choose the groups and topics; without any, it checks all groups and the topics they have committed on.
    Exits 1 if something that the cutover needs is missing; what only a failback needs is a warning.
    """
    options = replace(options, clusters=clusters_of(options.clusters))
    return printed(*examine(options, options.log.progress(), Terminal.here()))


def examine(options: DoctorOptions, progress: Progress, terminal: Terminal) -> tuple[list[str], int]:
    """Examine everything that the other commands need; return the report and the exit code."""
    # Wrong use is said before anything is looked at: it is no finding.
    conf = parse_spark_conf(options.spark.spark_conf)
    options.groups.filters(), options.groups.names()
    lines: list[Examined] = []
    progress.step("looking for Java")
    lines += _try("Java", _java)
    progress.step("looking for Spark's Kafka connector (fetched once into the cache)")
    lines += _try("Spark's jars", lambda: _jars(conf))
    if options.clusters.says_where:
        flow = resolve_flow(options.clusters)
        named = (value for side in (flow.source, flow.target) for value in side.properties.values())
        if any(MSK_CLASSES in value for value in named):
            progress.step("looking for Amazon's jar (fetched once into the cache)")
            lines += _try("Amazon's jar", lambda: _msk_jar(conf))
        with ExitStack() as running:
            spark = None
            if all(line.health is Health.OK for line in lines):
                spark = running.enter_context(starting_spark(options.spark, flow.source, flow.target))
            lines += _clusters(flow, spark, progress, options)
    else:
        lines.append(
            Examined(
                Health.WARN, "clusters", "not asked",
                "Give --mm2-config FILE --source ALIAS --target ALIAS to examine them too.",
            )
        )  # fmt: skip
    failed = any(line.health is Health.FAIL for line in lines)
    return list(_report(lines, terminal.colour, terminal.width)), EXIT_FAILED if failed else EXIT_DONE


def _clusters(flow: Flow, spark: BackgroundSpark | None, progress: Progress, options: DoctorOptions) -> list[Examined]:
    """Examine both clusters: reached by both clients, rights per command, MM2's topics."""
    lines: list[Examined] = []
    views = ClusterViews()
    source, target = endpoints(flow, options.clusters.request_timeout)
    sides = [target] if options.source_down else [source, target]
    for side in sides:
        progress.step(f"asking {side.cluster.alias}")
        what = f"{side.cluster.side} {side.cluster.alias}"
        lines += _try(what, partial(_cluster, what, side, views))
        lines += _try(f"{what}, by AWS", partial(_signer, f"{what}, by AWS", side))
    if spark is not None:
        progress.step("looking at Spark's executors")
        lines += _try("Spark's executors", lambda: _executors(spark))
    for side in sides:
        if spark is not None:
            progress.step(f"asking {side.cluster.alias} by Kafka's Java client")
            what = f"{side.cluster.side} {side.cluster.alias}, by Kafka's Java client"
            lines += _try(what, partial(_java_client, what, spark, side, views))
    progress.step("asking what we may do")
    lines += _try("rights", lambda: _rights(flow, views, options))
    lines += _mm2_itself(flow, views, target.deadline_seconds)
    if len(views.topics) == len(list(Side)):
        progress.step("looking for Connect's own topics")
        lines += _try(CONNECT_TOPICS, lambda: _connect_topics(flow, views, source.admin()))
    return lines


def _executors(session: Session) -> Iterator[Examined]:
    """Name the hosts where Spark runs tasks, where that is not here: their Python has what reading records takes."""
    if hosts := refuse_lacking(session()):
        yield Examined(Health.OK, "Spark's executors", f"a Python with confluent-kafka on {some(hosts)}")


def _connect_topics(flow: Flow, views: ClusterViews, source: ClusterAdmin) -> Iterator[Examined]:
    """Name what source connectors take up from and the target lacks, weeks before one is started there."""
    names = {side: set(topics) for side, topics in views.topics.items()}
    for side, hosted in views.hosted.items():  # also what is not shown to us
        names[side] |= hosted if isinstance(hosted, frozenset) else frozenset()
    topics = read_connect_topics(source, names[Side.SOURCE], views.groups[Side.SOURCE], flow.runtime.offsets_topics)
    missing = without_copy(topics, names[Side.TARGET])
    for each in missing:
        yield Examined(
            Health.WARN, CONNECT_TOPICS, f"{each.topic} on {flow.source.alias} is {each}; {flow.target.alias} has no "
            "topic of that name: a source connector started there takes a new snapshot", CONNECT_TODO,
        )  # fmt: skip
    hidden = in_full(views.hosted.get(Side.SOURCE, NOT_ASKED), views.topics[Side.SOURCE])
    if isinstance(hidden, Failure):
        seen = (
            f"{flow.source.alias} may have more of them: a cluster does not say which topics it hides ({hidden.code})"
        )
        yield Examined(Health.WARN, CONNECT_TOPICS, seen, HIDDEN_TODO)
    elif not missing:
        seen = f"{many(len(topics), 'topic')} on {flow.source.alias}, all of that name on {flow.target.alias} too"
        seen = seen if topics else f"none is known by its name on {flow.source.alias}"
        yield Examined(Health.OK, CONNECT_TOPICS, seen)


def _java_client(what: str, spark: BackgroundSpark, side: Endpoint, views: ClusterViews) -> Iterator[Examined]:
    topics = views.hosted[side.cluster.side] = KafkaJava(
        spark.machine, side.java, side.deadline_seconds
    ).hosted_topics()
    if not isinstance(topics, Failure):
        yield Examined(Health.OK, what, f"reached, with {many(len(topics), 'topic')}")
    elif topics.code == "CLUSTER_AUTHORIZATION_FAILED":
        yield Examined(Health.OK, what, "reached; without DESCRIBE on the cluster it does not list all its topics")
    else:
        todo = "plan reads through this client: check the settings that only Java reads (stores, callback handlers)."
        todo += f" {JAVA_ADDRESSES}" if topics.code == "REQUEST_TIMED_OUT" else ""
        yield Examined(Health.FAIL, what, str(topics), todo)


def _rights(flow: Flow, views: ClusterViews, options: DoctorOptions) -> Iterator[Examined]:
    """Examine the rights that each command needs on either side."""
    filters, reads_offsets = options.groups.filters(), options.commits_from is not CommitsFrom.ADMIN
    group_map, groups, topics = options.groups.names(), list[str](), list[str]()
    if Side.SOURCE in views.topics:
        listed = [group for group in views.groups[Side.SOURCE] if filters.group_verdict(group) is None]
        commits = views.clients[Side.SOURCE].commits(listed, require_stable=False)
        groups, topics = subjects_of(listed, commits, filters)
        yield from unread_commits(flow.source.alias, groups, commits)
    for side, shown in views.topics.items():
        hosted = in_full(views.hosted.get(side, NOT_ASKED), shown)
        known = shown if isinstance(hosted, Failure) else hosted
        called = groups if side is Side.SOURCE else group_map.all_mapped(groups).values()
        resources = names_to_ask(flow, side, called, topics, known, reads_offsets)
        client = views.clients[side]
        asked_groups, asked_topics = (
            [name for kind, names in resources.items() if kind.kind is wanted for name in names]
            for wanted in (ResourceKind.GROUP, ResourceKind.TOPIC)
        )
        rights = client.rights(asked_groups, asked_topics)
        if not isinstance(hosted, Failure):
            hidden = (topic for topic in hosted - shown.keys() if not is_infrastructure(topic))
            rights = replace(rights, hidden=frozenset(hidden))
        yield from examine_rights(side, client.alias, resources, rights)


def _try(what: str, examination: Callable[[], Iterator[Examined]]) -> list[Examined]:
    """Turn what an examination raises into its line, so that one fault does not hide the next."""
    lines: list[Examined] = []
    try:
        lines.extend(examination())  # what it yields before it raises is kept
    except MigrateError as error:
        lines.append(Examined(Health.FAIL, what, error.problem, error.todo))
    return lines


def _java() -> Iterator[Examined]:
    refuse_java_too_new()
    yield Examined(Health.OK, "Java", f"{java_version()} at {java_executable()}")


def _jars(conf: dict[str, str]) -> Iterator[Examined]:
    jars = connector_jars(conf)
    where = f"{len(jars)} jars in {jars[0].parent}" if jars else "brought by your own Spark settings"
    yield Examined(Health.OK, "Spark's jars", f"{connector_coordinate()}, {where}")


def _msk_jar(conf: dict[str, str]) -> Iterator[Examined]:
    jars = msk_jars(conf, fetch=True)
    where = f"in {jars[0].parent}" if jars else "brought by your own Spark settings"
    yield Examined(Health.OK, "Amazon's jar", f"{MSK_COORDINATE}, {where}")


def _signer(what: str, side: Endpoint) -> Iterator[Examined]:
    """Name whose keys sign what logs in to MSK, for which region; brokers do not say why they refuse it."""
    login = side.kafka.config.get("oauth_cb")
    if not isinstance(login, MskIam):
        return
    signer, of_java = login.signer(), os.environ.get("AWS_REGION", login.region)
    if isinstance(signer, Failure):
        seen = f"whose keys sign for the region {login.region} is not known: {signer.message}"
        yield Examined(Health.WARN, what, seen, "Where AWS's STS can be reached, aws sts get-caller-identity tells.")
    else:
        yield Examined(Health.OK, what, f"{signer} signs for the region {login.region}")
    if of_java != login.region and side.cluster.properties.get("sasl.mechanism", "").strip() == "OAUTHBEARER":
        seen = f"the brokers' names say {login.region}, and AWS_REGION, by which Amazon's jar signs, says {of_java}"
        todo = f"Set AWS_REGION={login.region}, or log in by AWS_MSK_IAM, for which it goes by the names, too."
        yield Examined(Health.FAIL, what, seen, todo)


def _cluster(what: str, side: Endpoint, views: ClusterViews) -> Iterator[Examined]:
    admin = views.clients[side.cluster.side] = ConfluentAdmin(side.kafka, side.deadline_seconds)
    facts = admin.facts()
    yield Examined(Health.OK, what, f"cluster {facts.cluster_id}, {many(facts.brokers, 'broker')}")
    if facts.may_describe:
        yield Examined(Health.OK, what, "we may DESCRIBE the cluster: listings are complete")
    else:
        yield Examined(
            Health.FAIL, what, "we may not DESCRIBE the cluster, or it does not say so: listings may be cut short",
            f"Grant DESCRIBE on the cluster {admin.alias} to this principal.",
        )  # fmt: skip
    listed, shown = admin.topics(), admin.groups()
    # Both or none: who finds the one looks for the other.
    views.topics[admin.side], views.groups[admin.side] = listed, shown
    yield Examined(Health.OK, what, f"{many(len(listed), 'topic')} and {many(len(shown), 'consumer group')} listed")


def _mm2_itself(flow: Flow, views: ClusterViews, deadline_seconds: float) -> Iterator[Examined]:
    if not flow.by_mm2:
        yield Examined(Health.OK, "MM2's topics", NOT_MM2)
        return
    for side, topic, what in (
        (Side.TARGET, flow.checkpoints_topic, "checkpoints topic"),
        (flow.syncs_side, flow.offset_syncs_topic, "offset-syncs topic"),
    ):
        if side not in views.topics:
            continue
        admin = views.clients[side]
        why = flow.why_not_emitted(topic)
        if topic not in views.topics[side] and why and topic not in flow.named:
            yield Examined(Health.WARN, f"MM2's {what}", f"{admin.alias} shows us no topic {topic}: {why}")
            continue
        if topic not in views.topics[side]:
            yield Examined(
                Health.FAIL, f"MM2's {what}", f"{admin.alias} shows us no topic {topic}",
                "Check the aliases, the separator, --offset-syncs-location and READ on that topic; is MM2 running?",
            )  # fmt: skip
            continue
        yield from _try(f"MM2's {what}", partial(_log_of, admin, topic, what))
    if Side.TARGET in views.topics:
        yield from _own_positions(flow, views, deadline_seconds)


def _own_positions(flow: Flow, views: ClusterViews, deadline_seconds: float) -> Iterator[Examined]:
    """Examine where MM2 keeps its own positions: without them only the records tell whether a topic is drained."""
    topics = flow.connect_offsets_topics
    for topic in topics:
        if topic in views.topics[Side.TARGET]:
            yield Examined(Health.OK, OWN_POSITIONS, f"topic {topic} on {flow.target.alias}")
        else:
            seen = f"{flow.target.alias} has no topic {topic}"
            yield Examined(Health.WARN, OWN_POSITIONS, seen, f"{capital(ASK_FOR_TOPIC)}.")
    if not topics and flow.runtime.url:
        yield from _try(OWN_POSITIONS, lambda: _from_worker(flow, deadline_seconds))
    elif not topics:
        seen = "the worker's offsets topic is not given"
        yield Examined(Health.WARN, OWN_POSITIONS, seen, f"{capital(ASK_FOR_TOPIC)}.")


def _from_worker(flow: Flow, deadline_seconds: float) -> Iterator[Examined]:
    reader = mm2_worker_of(flow, deadline_seconds)
    if reader is not None:
        seen = f"{reader.where} holds positions of {many(len(reader.positions()), 'partition')}"
        yield Examined(Health.OK, OWN_POSITIONS, seen)


def _log_of(admin: ConfluentAdmin, topic: str, what: str) -> Iterator[Examined]:
    log = admin.log_ranges([TopicPartition(topic, 0)]).get(TopicPartition(topic, 0))
    if isinstance(log, LogRange):
        health = Health.OK if log.end > log.start else Health.WARN
        seen = f"{topic} on {admin.alias}, offsets {log.start} to {log.end}"
        yield Examined(health, f"MM2's {what}", seen, "" if health is Health.OK else "It is empty.")
    else:
        why = log or "no answer"
        yield Examined(Health.FAIL, f"MM2's {what}", f"{topic} on {admin.alias}: {why}", "Grant DESCRIBE on it.")


_COLOURS = {Health.OK: Colour.GREEN, Health.WARN: Colour.YELLOW, Health.FAIL: Colour.RED}


def _report(lines: list[Examined], colour: bool, width: int) -> Iterator[str]:
    for line in lines:
        word = f"{line.health:<4}"
        text = wrapped(f"{line.what}: {line.seen}", width, f"{word}  ")
        yield from headed(word, _COLOURS[line.health] if colour else None, text)
        if line.todo:
            yield from wrapped(line.todo, width, "      > ", "        ")
    failed = sum(e.health is Health.FAIL for e in lines)
    warned = sum(e.health is Health.WARN for e in lines)
    well = f"Nothing failed; {many(warned, 'warning')}." if warned else "All is well."
    yield f"{failed} of {len(lines)} examinations failed." if failed else well
