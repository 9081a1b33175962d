"""`doctor`: find out weeks before the night what would stop a cutover on the night.

Each examination is a line: what was looked at, what was seen, what to do. Nothing here is written but the cache
of jars.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from migrate.errors import EXIT_DONE, EXIT_FAILED, MigrateError
from migrate.flow import Flow
from migrate.model import LogRange, Side, TopicPartition
from migrate.options import ClusterOptions, resolve_flow
from migrate.ports import ClusterAdmin, Progress
from migrate.recordsurvey import ASK_FOR_TOPIC
from migrate.table import wrapped
from migrate.terminal import Colour, capital, many, paint
from migrate.wiring import admin_of, parse_spark_conf, position_reader_of


class Health(StrEnum):
    """The verdict of one examination."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Examined:
    """One line of the doctor's report."""

    health: Health
    what: str
    seen: str
    todo: str = ""


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
        sides = [flow.target] if options["source_down"] else [flow.source, flow.target]
        topics: dict[Side, dict[str, int]] = {}
        admins: dict[Side, ClusterAdmin] = {}
        for cluster in sides:
            progress.step(f"asking {cluster.alias}")
            admin = admins[cluster.side] = admin_of(cluster, options["request_timeout"])
            found += _try(f"{cluster.side} {cluster.alias}", lambda a=admin: _cluster(a, topics))  # type: ignore[misc]
        found += _mm2_topics(flow, topics, admins)
        found += _own_positions(flow, topics, options["request_timeout"])
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


def _cluster(admin: ClusterAdmin, topics: dict[Side, dict[str, int]]) -> Iterator[Examined]:
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
    groups = admin.groups()
    yield Examined(Health.OK, what, f"{many(len(listed), 'topic')} and {many(len(groups), 'consumer group')} listed")


def _mm2_topics(flow: Flow, topics: dict[Side, dict[str, int]], admins: dict[Side, ClusterAdmin]) -> Iterator[Examined]:
    for side, topic, what in (
        (Side.TARGET, flow.checkpoints_topic, "checkpoints topic"),
        (flow.syncs_side, flow.offset_syncs_topic, "offset-syncs topic"),
    ):
        if side not in topics:
            continue
        admin = admins[side]
        if topic not in topics[side]:
            yield Examined(
                Health.FAIL, f"MM2's {what}", f"{admin.alias} has no topic {topic}",
                "Check the aliases, the separator and --offset-syncs-location; is MM2 running?",
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
