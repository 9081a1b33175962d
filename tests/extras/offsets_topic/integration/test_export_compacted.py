"""The broker's log cleaner takes records of `__consumer_offsets` between the two passes over it: nothing is lost."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from migrate.errors import ClusterError
from migrate.extras.offsets_topic.chosen import ChosenRecords, export_offsets
from migrate.extras.offsets_topic.request import Exported, ExportRequest
from migrate.kafka.client_config import client_settings
from migrate.kafka.cluster import KafkaCluster
from migrate.mm2.flow import Cluster as FlowCluster
from migrate.model import LogRange, Side
from migrate.spark.consumer_offsets import offsets_session, topic_reader
from migrate.spark.java_settings import JavaSettings, java_settings
from migrate.spark.session import spark_session, stop_session
from migrate.spark.topic_commits import newest_commits
from migrate.survey.offsets_pin import ATTEMPTS, CompactedMeanwhileError, OffsetsPin, pin_offsets_topic
from tests.extras.offsets_topic.integration.exportscene import Line
from tests.integration.clusters import CALL_SECONDS, READ_SECONDS, by_place, commit, commits_on, create_topic
from tests.lab.cluster import Cluster
from tests.lab.reading import topic_reader as raw_reader
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

# The least that brokers let a segment be; and a record later than that begins a new one, which ends the one before.
EAGER = {
    "offsets.topic.segment.bytes": str(1 << 20), "log.roll.ms": "100", "offsets.topic.num.partitions": "2",
    "log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.001",
}  # fmt: skip
BUSY, QUIET_ONES = [f"busy-{n}" for n in range(6)], [f"quiet-{n}" for n in range(6)]
VERSIONS = ("4.3.1", "4.1.1", "3.9.2")
Logs = Mapping[int, LogRange]
Place = tuple[int, int]


@dataclass(frozen=True)
class Scene:
    """A cluster with a cleaner that never rests, groups that commit and groups that do not, and our ways to it."""

    cluster: Cluster
    admin: KafkaCluster
    settings: JavaSettings
    session: SparkSession
    _offsets: Iterator[int] = field(default_factory=lambda: count(1))

    def commit_busily(self) -> None:
        """Let every busy group commit anew, once."""
        offset = next(self._offsets)
        commit(self.cluster.bootstrap, {group: {("t", 0): offset, ("t", 1): offset} for group in BUSY})

    def pin(self) -> OffsetsPin:
        return pin_offsets_topic(self.admin, None)

    def standing(self) -> set[Place]:
        """Partition and offset of every record of the offsets topic, read raw."""
        with raw_reader(self.cluster.bootstrap) as reader:
            partitions = reader.partitions("__consumer_offsets")
            return {(p, m.offset() or 0) for p in partitions for m in reader.records("__consumer_offsets", p)}

    def let_cleaner_take(self, logs: Logs) -> None:
        """Commit anew until the cleaner has taken every commit of a busy group that lies in these ranges."""
        quiet = len(QUIET_ONES)

        def taken() -> bool:
            self.commit_busily()
            inside = [offset for p, offset in self.standing() if logs[p].start <= offset < logs[p].end]
            return len(inside) <= quiet

        wait_until(taken, READ_SECONDS, "the log cleaner", lambda: str(sorted(self.standing())), poll_seconds=0.2)


@pytest.fixture(scope="module", params=VERSIONS)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("compacted")
    cluster = Cluster("compacted", folder / "kafka", version=request.param, overrides=EAGER)
    try:
        cluster.start()
        create_topic(cluster.bootstrap, "t", 2)
        commit(cluster.bootstrap, {group: {("t", 0): 7} for group in QUIET_ONES})
        of = FlowCluster(Side.SOURCE, "A", {"bootstrap.servers": cluster.bootstrap})
        session = spark_session("local[2]")
        try:
            with closing(KafkaCluster(client_settings(of), CALL_SECONDS)) as admin:
                yield Scene(cluster, admin, java_settings(of), session)
        finally:
            stop_session(session)
    finally:
        cluster.kill()


@dataclass
class Held:
    """An export that stands still between its passes, `times` of them, until the cleaner has been there."""

    scene: Scene
    times: int
    pinned: list[OffsetsPin] = field(default_factory=list)
    written: list[list[Line]] = field(default_factory=list)

    def export(self, request: ExportRequest, renews: bool = True) -> Exported:
        self.scene.commit_busily()
        spark = offsets_session(lambda: self.scene.session, is_small=True)
        renewed = self.renewed if renews else None
        self.renewed()
        return export_offsets(spark, self.scene.settings, self.pinned[0], request, None, self.write, renewed)

    def renewed(self) -> Logs:
        self.pinned.append(self.scene.pin())
        return self.pinned[-1].logs

    def write(self, chosen: ChosenRecords) -> int:
        if len(self.written) < self.times:
            self.scene.let_cleaner_take(self.pinned[-1].logs)
        self.written.append([json.loads(line) for line in chosen.json_lines()])
        return len(self.written[-1])


def told_by(lines: list[Line]) -> dict[tuple[str, str, int], int]:
    return {(line["group"], line["topic"], line["partition"]): line["offset"] for line in lines}


def test_what_the_cleaner_took_between_the_passes_is_found_beyond_the_first_pin(scene: Scene) -> None:
    held = Held(scene, times=1)
    exported = held.export(ExportRequest())
    first, second = held.written
    # It bit: of all that was chosen only what nobody has committed since was still there.
    assert {line["group"] for line in first} == set(QUIET_ONES)
    assert told_by(second) == by_place(commits_on(scene.cluster.bootstrap, [*BUSY, *QUIET_ONES]))
    assert exported.lines == len(second) == 2 * len(BUSY) + len(QUIET_ONES)
    assert exported.read == exported.lines + sum(exported.left_out.values()) and not exported.lost
    assert all(held.pinned[1].logs[p].end > log.end for p, log in held.pinned[0].logs.items())


def test_a_history_is_never_written_with_a_record_less_than_was_counted(scene: Scene) -> None:
    held = Held(scene, times=1)
    exported = held.export(ExportRequest(history=True, tombstones=True))
    assert len(held.written) == 2 and exported.lines == len(held.written[1])
    now = by_place(commits_on(scene.cluster.bootstrap, [*BUSY, *QUIET_ONES]))
    assert told_by(sorted(held.written[1], key=lambda line: line["logOffset"])) == now


def test_a_topic_that_is_compacted_time_and_again_is_an_error_and_no_shorter_export(scene: Scene) -> None:
    held = Held(scene, times=ATTEMPTS)
    with pytest.raises(ClusterError, match=f"was compacted {ATTEMPTS} times while it was read"):
        held.export(ExportRequest())
    assert len(held.pinned) == len(held.written) == ATTEMPTS
    with pytest.raises(ClusterError, match="was compacted once while it was read"):
        Held(scene, times=1).export(ExportRequest(), renews=False)


def test_a_plan_is_told_of_the_cleaner_and_reads_the_same_commits_up_to_later_ends(scene: Scene) -> None:
    scene.commit_busily()
    pin = scene.pin()
    read = topic_reader(offsets_session(lambda: scene.session, is_small=True), scene.settings)
    with pytest.raises(CompactedMeanwhileError):
        newest_commits(after_the_first(read, lambda: scene.let_cleaner_take(pin.logs)), pin.logs, pin.partitions)
    later = scene.pin()
    told = newest_commits(read, later.logs, later.partitions).commits
    found = {(g, place.topic, place.partition): c.offset for g, of_g in told.items() for place, c in of_g.items()}
    assert found == by_place(commits_on(scene.cluster.bootstrap, [*BUSY, *QUIET_ONES]))


def after_the_first(read: Callable[[Logs], DataFrame], between: Callable[[], None]) -> Callable[[Logs], DataFrame]:
    """As `read`, with something between its first reading and its second."""
    asked: list[Any] = []

    def reading(logs: Logs) -> DataFrame:
        if asked:
            between()
        asked.append(logs)
        return read(logs)

    return reading
