"""The broker's log cleaner takes records of `__consumer_offsets` between the two passes over it: nothing is lost."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count

import pytest
from pyspark.sql import SparkSession

from migrate.extras.offsets_topic.chosen import ChosenRecords, export_offsets
from migrate.extras.offsets_topic.request import ExportRequest
from migrate.kafka.client_config import client_settings
from migrate.kafka.cluster import KafkaCluster
from migrate.mm2.flow import Cluster as FlowCluster
from migrate.model import LogRange, Side
from migrate.spark.consumer_offsets import offsets_session
from migrate.spark.java_settings import JavaSettings, java_settings
from migrate.spark.session import spark_session, stop_session
from migrate.survey.offsets_pin import OffsetsPin, pin_offsets_topic
from tests.extras.offsets_topic.integration.exportscene import Line, running
from tests.integration.clusters import CALL_SECONDS, READ_SECONDS, by_place, commit, commits_on
from tests.lab.cluster import Cluster
from tests.lab.reading import topic_reader as raw_reader
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

# The least that brokers let a segment be; and a record later than that begins a new one, which ends the one before.
EAGER = {
    "offsets_topic_segment_bytes": str(1 << 20), "log_roll_ms": "100", "offsets_topic_num_partitions": "2",
    "log_cleaner_backoff_ms": "100", "log_cleaner_min_cleanable_ratio": "0.001",
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
    with running(tmp_path_factory.mktemp("compacted"), {"t": 2}, request.param, **EAGER) as cluster:
        commit(cluster.bootstrap, {group: {("t", 0): 7} for group in QUIET_ONES})
        of = FlowCluster(Side.SOURCE, "A", {"bootstrap.servers": cluster.bootstrap})
        session = spark_session("local[2]")
        try:
            with closing(KafkaCluster(client_settings(of), CALL_SECONDS)) as admin:
                yield Scene(cluster, admin, java_settings(of), session)
        finally:
            stop_session(session)


def told_by(lines: list[Line]) -> dict[tuple[str, str, int], int]:
    """The newest offset of each place."""
    ordered = sorted(lines, key=lambda line: line["logOffset"])
    return {(line["group"], line["topic"], line["partition"]): line["offset"] for line in ordered}


@pytest.mark.parametrize("history", [False, True])
def test_what_the_cleaner_took_between_the_passes_is_found_beyond_the_first_pin(scene: Scene, history: bool) -> None:
    pinned, written = list[OffsetsPin](), list[list[Line]]()

    def renewed() -> Logs:
        pinned.append(scene.pin())
        return pinned[-1].logs

    def write(chosen: ChosenRecords) -> int:
        """The first time the export stands still between its passes, until the cleaner has been there."""
        if not written:
            scene.let_cleaner_take(pinned[0].logs)
        written.append([json.loads(line) for line in chosen.json_lines()])
        return len(written[-1])

    scene.commit_busily()
    renewed()
    request = ExportRequest(history=history, tombstones=history)
    spark = offsets_session(lambda: scene.session, is_small=True)
    exported = export_offsets(spark, scene.settings, pinned[0], request, None, write, renewed)
    first, second = written
    # It bit: of all that was chosen only what nobody has committed since was still there.
    assert {line["group"] for line in first} == set(QUIET_ONES)
    assert told_by(second) == by_place(commits_on(scene.cluster.bootstrap, [*BUSY, *QUIET_ONES]))
    assert exported.lines == len(second) and (history or len(second) == 2 * len(BUSY) + len(QUIET_ONES))
    assert exported.read == exported.lines + sum(exported.left_out.values()) and not exported.lost
    assert all(pinned[1].logs[p].end > log.end for p, log in pinned[0].logs.items())
