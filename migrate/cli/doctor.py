"""`doctor`: find out weeks before the night what would stop a cutover on the night.

Each examination is a line: what was looked at, what was seen, what to do. Nothing here is written but the cache
of jars.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from migrate.checks.group_kinds import CONNECT_TODO, HIDDEN_TODO
from migrate.checks.rights import Resources, is_infrastructure
from migrate.checks.rights_check import Examined, Health, Subjects, examine_rights, names_to_ask, subjects_of
from migrate.cli.options import ClusterOptions, filters_of, resolve_flow
from migrate.cli.wiring import (
    BackgroundSpark,
    background_spark,
    group_facts_of,
    hosted_by,
    parse_spark_conf,
    position_reader_of,
    rights_of,
)
from migrate.errors import EXIT_DONE, EXIT_FAILED, MigrateError
from migrate.kafka.rights import ConfluentRights
from migrate.mm2.flow import Cluster, Flow
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.ports import ClusterAdmin, Progress
from migrate.show.table import wrapped
from migrate.spark.java_settings import JAVA_ADDRESSES
from migrate.survey.connect_topics import read_connect_topics, without_copy
from migrate.survey.filters import Filters
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.records import ASK_FOR_TOPIC
from migrate.survey.take import in_full
from migrate.text import Colour, capital, many, paint

CONNECT_TOPICS = "Connect's own topics"


def examine(
    given: ClusterOptions, progress: Progress, colour: bool, width: int, **options: Any
) -> tuple[list[str], int]:
    """Examine everything that the other commands need; return the report and the exit code."""
    found: list[Examined] = []
    progress.step("looking for Java")
    found += _try("Java", _java)
    progress.step("looking for Spark's Kafka connector (fetched once into the cache)")
    found += _try("Spark's jars", lambda: _jars(parse_spark_conf(options["spark_conf"])))
    if given.says_where:
        flow = resolve_flow(given)
        with ExitStack() as running:
            spark = None
            if all(line.health is Health.OK for line in found):
                conf = parse_spark_conf(options["spark_conf"])
                spark = running.enter_context(background_spark(options["master"], conf))
            found += _clusters(flow, spark, progress, options)
    else:
        found.append(
            Examined(
                Health.WARN, "clusters", "not asked",
                "Give --mm2-config FILE --source ALIAS --target ALIAS to examine them too.",
            )
        )  # fmt: skip
    return list(_report(found, colour, width)), (
        EXIT_FAILED if any(e.health is Health.FAIL for e in found) else EXIT_DONE
    )


def _clusters(flow: Flow, spark: BackgroundSpark | None, progress: Progress, options: dict[str, Any]) -> list[Examined]:
    """Examine both clusters: reached by both clients, rights per command, MM2's topics."""
    found: list[Examined] = []
    deadline = options["request_timeout"]
    sides = [flow.target] if options["source_down"] else [flow.source, flow.target]
    topics: dict[Side, dict[str, int]] = {}
    groups: dict[Side, frozenset[str]] = {}
    admins: dict[Side, ConfluentRights] = {}
    for cluster in sides:
        progress.step(f"asking {cluster.alias}")
        what = f"{cluster.side} {cluster.alias}"

        def reach(cluster: Cluster = cluster) -> Iterator[Examined]:
            admins[cluster.side] = rights_of(cluster, deadline)
            yield from _cluster(admins[cluster.side], topics, groups)

        found += _try(what, reach)
    hosted: dict[Side, frozenset[str] | Failure] = {}
    for cluster in sides if spark else []:
        assert spark is not None
        progress.step(f"asking {cluster.alias} by Kafka's Java client")
        java = f"{cluster.side} {cluster.alias}, by Kafka's Java client"
        found += _try(java, lambda c=cluster: _java_client(spark, c, deadline, hosted))  # type: ignore[misc]
    progress.step("asking what we may do")
    reached = {side: admin for side, admin in admins.items() if side in topics}
    found += _try("rights", lambda: _rights(flow, reached, topics, groups, hosted, filters_of(options)))
    found += _mm2_topics(flow, topics, admins)
    found += _own_positions(flow, topics, deadline)
    if len(topics) == len(list(Side)):
        progress.step("looking for Connect's own topics")
        found += _try(CONNECT_TOPICS, lambda: _connect_topics(flow, topics, groups, hosted, deadline))
    return found


def _connect_topics(
    flow: Flow,
    topics: dict[Side, dict[str, int]],
    groups: dict[Side, frozenset[str]],
    hosted: dict[Side, frozenset[str] | Failure],
    deadline_seconds: float,
) -> Iterator[Examined]:
    """Name what source connectors take up from and the target lacks, weeks before one is started there."""
    there = {side: set(topics[side]) for side in topics}
    for side, told in hosted.items():  # also what is not shown to us
        there[side] |= told if isinstance(told, frozenset) else frozenset()
    reader = group_facts_of(flow.source, deadline_seconds)
    found = read_connect_topics(reader, there[Side.SOURCE], groups[Side.SOURCE], flow.runtime.offsets_topic)
    missing = without_copy(found, there[Side.TARGET])
    for each in missing:
        yield Examined(
            Health.WARN, CONNECT_TOPICS, f"{each.topic} on {flow.source.alias} is {each}; {flow.target.alias} has no "
            "topic of that name: a source connector started there takes a new snapshot", CONNECT_TODO,
        )  # fmt: skip
    hidden = in_full(hosted.get(Side.SOURCE, NOT_ASKED), topics[Side.SOURCE])
    if isinstance(hidden, Failure):
        seen = f"{flow.source.alias} may have more of them: it does not tell which topics it hides ({hidden.code})"
        yield Examined(Health.WARN, CONNECT_TOPICS, seen, HIDDEN_TODO)
    elif not missing:
        seen = f"{many(len(found), 'topic')} on {flow.source.alias}, all of that name on {flow.target.alias} too"
        seen = seen if found else f"none is known by its name on {flow.source.alias}"
        yield Examined(Health.OK, CONNECT_TOPICS, seen)


def _java_client(
    spark: BackgroundSpark, cluster: Cluster, deadline: float, hosted: dict[Side, frozenset[str] | Failure]
) -> Iterator[Examined]:
    what = f"{cluster.side} {cluster.alias}, by Kafka's Java client"
    found = hosted[cluster.side] = hosted_by(spark, cluster, deadline)
    if not isinstance(found, Failure):
        yield Examined(Health.OK, what, f"reached, with {many(len(found), 'topic')}")
    elif found.code == "CLUSTER_AUTHORIZATION_FAILED":
        yield Examined(Health.OK, what, "reached; without DESCRIBE on the cluster it does not tell all its topics")
    else:
        todo = "plan reads through this client: check the settings that only Java reads (stores, callback handlers)."
        todo += f" {JAVA_ADDRESSES}" if found.code == "REQUEST_TIMED_OUT" else ""
        yield Examined(Health.FAIL, what, f"{found.code}: {found.message}", todo)


def _rights(
    flow: Flow,
    admins: dict[Side, ConfluentRights],
    topics: dict[Side, dict[str, int]],
    groups: dict[Side, frozenset[str]],
    hosted: dict[Side, frozenset[str] | Failure],
    filters: Filters,
) -> Iterator[Examined]:
    """Examine the rights that each command needs on either side."""
    subjects = Subjects()
    if Side.SOURCE in admins:
        listed = [group for group in groups[Side.SOURCE] if filters.group_verdict(group) is None]
        subjects = subjects_of(listed, admins[Side.SOURCE].commits(listed, require_stable=False), filters)
    for side, admin in admins.items():
        told = in_full(hosted[side], topics[side]) if side in hosted else None
        everything = told if isinstance(told, frozenset) else None
        resources = names_to_ask(flow, side, subjects, everything if everything is not None else topics[side])
        seen = admin.rights(
            resources[Resources.GROUPS], [n for kind, names in resources.items() if kind.is_topic for n in names]
        )
        if everything is not None:
            hidden = everything - topics[side].keys()
            seen = replace(seen, hidden=frozenset(t for t in hidden if not is_infrastructure(t)))
        yield from examine_rights(side, admin.alias, resources, seen)


def _try(what: str, examination: Callable[[], Iterator[Examined]]) -> list[Examined]:
    """Turn what an examination raises into its line, so that one fault does not hide the next."""
    found: list[Examined] = []
    try:
        found.extend(examination())
    except MigrateError as error:
        found.append(Examined(Health.FAIL, what, error.problem, error.todo))
    return found


def _java() -> Iterator[Examined]:
    from migrate.spark.java import java_executable, java_version

    yield Examined(Health.OK, "Java", f"{java_version()} at {java_executable()}")


def _jars(conf: dict[str, str]) -> Iterator[Examined]:
    from migrate.spark.jars import connector_coordinate, connector_jars

    jars = connector_jars(conf)
    where = f"{len(jars)} jars in {jars[0].parent}" if jars else "brought by your own Spark settings"
    yield Examined(Health.OK, "Spark's jars", f"{connector_coordinate()}, {where}")


def _cluster(
    admin: ClusterAdmin, topics: dict[Side, dict[str, int]], groups: dict[Side, frozenset[str]]
) -> Iterator[Examined]:
    what = f"{admin.side} {admin.alias}"
    facts = admin.facts()
    yield Examined(Health.OK, what, f"cluster {facts.cluster_id}, {many(facts.brokers, 'broker')}")
    if facts.may_describe:
        yield Examined(Health.OK, what, "we may DESCRIBE the cluster: listings are complete")
    else:
        yield Examined(
            Health.FAIL, what, "we may not DESCRIBE the cluster, or it does not tell: listings may be cut short",
            f"Grant DESCRIBE on the cluster {admin.alias} to this principal.",
        )  # fmt: skip
    listed = topics[admin.side] = dict(admin.topics())
    shown = groups[admin.side] = admin.groups()
    yield Examined(Health.OK, what, f"{many(len(listed), 'topic')} and {many(len(shown), 'consumer group')} listed")


def _mm2_topics(
    flow: Flow, topics: dict[Side, dict[str, int]], admins: Mapping[Side, ClusterAdmin]
) -> Iterator[Examined]:
    for side, topic, what in (
        (Side.TARGET, flow.checkpoints_topic, "checkpoints topic"),
        (flow.syncs_side, flow.offset_syncs_topic, "offset-syncs topic"),
    ):
        if side not in topics:
            continue
        admin = admins[side]
        if topic not in topics[side]:
            yield Examined(
                Health.FAIL, f"MM2's {what}", f"{admin.alias} shows us no topic {topic}",
                "Check the aliases, the separator, --offset-syncs-location and READ on that topic; is MM2 running?",
            )  # fmt: skip
            continue
        yield from _try(
            f"MM2's {what}",
            lambda a=admin, t=topic, w=what: _log_of(a, t, w),  # type: ignore[misc]
        )


def _own_positions(flow: Flow, topics: dict[Side, dict[str, int]], deadline_seconds: float) -> Iterator[Examined]:
    """Examine where MM2 keeps its own positions: without them only the records tell whether a topic is drained."""
    what, topic = "MM2's own positions", flow.connect_offsets_topic
    if Side.TARGET not in topics:
        return
    if topic in topics[Side.TARGET]:
        yield Examined(Health.OK, what, f"topic {topic} on {flow.target.alias}")
    elif not topic and flow.runtime.url:
        yield from _try(what, lambda: _told_by_worker(flow, deadline_seconds))
    else:
        seen = f"{flow.target.alias} has no topic {topic}" if topic else "nobody named the worker's offsets topic"
        yield Examined(Health.WARN, what, seen, f"{capital(ASK_FOR_TOPIC)}.")


def _told_by_worker(flow: Flow, deadline_seconds: float) -> Iterator[Examined]:
    reader = position_reader_of(flow, deadline_seconds)
    if reader is not None:
        yield Examined(
            Health.OK, "MM2's own positions", f"{reader.where} tells of {many(len(reader.positions()), 'partition')}"
        )


def _log_of(admin: ClusterAdmin, topic: str, what: str) -> Iterator[Examined]:
    found = admin.log_ranges([TopicPartition(topic, 0)]).get(TopicPartition(topic, 0))
    if isinstance(found, LogRange):
        health = Health.OK if found.end > found.start else Health.WARN
        seen = f"{topic} on {admin.alias}, offsets {found.start} to {found.end}"
        yield Examined(health, f"MM2's {what}", seen, "" if health is Health.OK else "It is empty.")
    else:
        why = "no answer" if found is None else f"{found.code}: {found.message}"
        yield Examined(Health.FAIL, f"MM2's {what}", f"{topic} on {admin.alias}: {why}", "Grant DESCRIBE on it.")


_COLOURS = {Health.OK: Colour.GREEN, Health.WARN: Colour.YELLOW, Health.FAIL: Colour.RED}


def _report(found: list[Examined], colour: bool, width: int) -> Iterator[str]:
    for line in found:
        word = f"{line.health:<4}"
        for text in wrapped(f"{line.what}: {line.seen}", width, f"{word}  "):
            yield text.replace(word, paint(word, _COLOURS[line.health], colour), 1) if text.startswith(word) else text
        if line.todo:
            yield from wrapped(line.todo, width, "      > ", "        ")
    failed = sum(e.health is Health.FAIL for e in found)
    yield f"{failed} of {len(found)} examinations failed." if failed else "All is well."
