"""Jobs that keep their own offsets move too: real Structured Streaming queries, stopped on A and continued on B.

MM2 is killed while it copies, and producers write in transactions; a topic is compacted. Queries write the identity of
every record that they read, so that what was lost, and what was read twice, is counted.
"""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from migrate.extras.positions.plan import PositionPlan, read
from migrate.model import Level
from migrate.row_table import row_document
from migrate.spark.session import spark_session, stop_session
from tests.integration import oracle
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import QUIET, READ_SECONDS, Partition, bounds, commits_on, drain
from tests.integration.killedscene import kill_mid_stream, wait_cleaned
from tests.integration.scene import COMPACTED, Scene
from tests.integration.sinkworker import SinkWorker
from tests.lab.jars import DEFAULT_VERSION, fetched, java_executable
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

# A copy that the target's cleaner took while the source's did not is missing, and no offset can bring it.
ACCEPTED = ("--accept", "missing-on-target")
IDENTITY = "cast(filter(headers, h -> h.key = 'id')[0].value as string) id"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = spark_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    yield session
    stop_session(session)


@dataclass(frozen=True, repr=False)
class Queries:
    """Streaming queries over Kafka in a folder; each runs until it has read all there is, and stops between batches."""

    spark: Any
    folder: Path

    def source(self, bootstrap: str, topics: list[str], **options: str) -> Any:
        reading = {
            "kafka.bootstrap.servers": bootstrap, "subscribe": ",".join(topics), "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed", "includeHeaders": "true", "maxOffsetsPerTrigger": "800",
        }  # fmt: skip
        return self.spark.readStream.format("kafka").options(**(reading | options)).load()

    def copy(self, source: Any, checkpoint: str, out: str) -> None:
        """Write where each record stands, and which it is."""
        writing = source.selectExpr("topic", "partition", "offset", IDENTITY).writeStream.format("json")
        self.finish(writing.option("path", str(self.folder / out)), checkpoint)

    def count(self, source: Any, checkpoint: str) -> dict[str, int]:
        """Count the records of each key, in a state that the checkpoint keeps; return the counts in the end."""
        counts: dict[str, int] = {}

        def take(batch: Any, number: int) -> None:
            counts.update({row["key"]: row["count"] for row in batch.collect()})

        counting = source.groupBy(source["key"].cast("string").alias("key")).count()
        self.finish(counting.writeStream.outputMode("complete").foreachBatch(take), checkpoint)
        return counts

    def finish(self, writing: Any, checkpoint: str) -> None:
        query = writing.option("checkpointLocation", str(self.folder / checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(5 * READ_SECONDS), "the query has not read all there is"

    def written(self, out: str) -> list[Any]:
        """What readers of a folder see: Spark goes by the log of its batches."""
        if not (self.folder / out).exists():
            return []
        return list(self.spark.read.schema("topic string, partition int, offset long, id string")
                    .json(str(self.folder / out)).collect())  # fmt: skip


@dataclass(repr=False)
class Moved:
    """A scene whose queries were stopped on A amid it, the plan of their positions, and where each was."""

    scene: Scene
    queries: Queries
    commands: CommandLine
    at: Mapping[Partition, int] = field(default_factory=dict)

    def position(self, holder: str) -> Mapping[Partition, int]:
        """Where a holder was; `early` had come half as far as the queries."""
        return {place: offset // 2 for place, offset in self.at.items()} if holder == "early" else self.at

    @property
    def topics(self) -> list[str]:
        return sorted(self.scene.topics)

    @property
    def countable(self) -> list[str]:
        """The topics of which B has what A has: no cleaner works on them, and no transaction was aborted."""
        return [topic for topic in self.topics if topic.startswith("plain")]

    @property
    def copied(self) -> list[str]:
        return self.copies(self.topics)

    def copies(self, topics: list[str]) -> list[str]:
        return [self.scene.copy(topic) for topic in topics]

    def folder(self, name: str) -> str:
        return str(self.queries.folder / name)

    def plan(self, name: str, *options: str) -> Ran:
        return self.commands.run(
            "positions", "plan", *self.commands.clusters, "--settle", "1", "--out", name, *ACCEPTED, *options
        )

    def positions(self, name: str, form: str, *options: str) -> Ran:
        return self.commands.run("positions", "print", name, "--format", form, *options)

    def verify(self, name: str, **folders: Path | str) -> Ran:
        named = [word for holder, url in folders.items() for word in ("--spark-checkpoint", f"{holder}={url}")]
        return self.commands.run("positions", "verify", name, *named)

    def file(self, name: str) -> PositionPlan:
        return read(self.queries.folder / name)

    def rows(self, name: str) -> dict[tuple[str, str, int], dict[str, Any]]:
        return {row.key: row_document(row) for row in self.file(name).rows}

    def identities(self, places: list[tuple[str, int, int]]) -> dict[Partition, list[str]]:
        """Which records of B stand at these places, by their topics on A."""
        every = self.queries.spark.read.format("kafka").option("includeHeaders", "true")
        every = every.option("kafka.bootstrap.servers", self.scene.lab.target_bootstrap)
        every = every.option("subscribe", ",".join(self.copied)).load()
        rows = every.selectExpr("topic", "partition", "offset", IDENTITY).collect()
        known = {(topic, partition, offset): name for topic, partition, offset, name in rows}
        read: dict[Partition, list[str]] = {}
        source = {self.scene.copy(topic): topic for topic in self.topics}
        for topic, partition, offset in places:
            read.setdefault((source[topic], partition), []).append(known[topic, partition, offset])
        return read


def position_in(checkpoint: Path) -> dict[Partition, int]:
    newest = max(int(p.name) for p in (checkpoint / "offsets").iterdir() if p.name.isdecimal())
    line = json.loads((checkpoint / "offsets" / str(newest)).read_text().split("\n")[2])
    return {(topic, int(p)): offset for topic, places in line.items() for p, offset in places.items()}


@pytest.fixture(scope="module", params=["default", pytest.param("identity", marks=pytest.mark.long)])
def flow_lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab of the run, and one whose topics keep their names."""
    if request.param == "default":
        yield request.getfixturevalue("lab")
        return
    with Lab(tmp_path_factory.mktemp("identity"), mirror=MirrorOptions(policy="identity")) as own:
        yield own


@pytest.fixture(scope="module")
def moved(flow_lab: Lab, spark: Any, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Moved:
    lab = flow_lab
    scene = Scene(lab, "held", new_seed())
    plain, tx = scene.create("plain", 3), scene.create("tx", 2)
    # Waiting for cleaners takes most of a minute.
    compacted = scene.create("compacted", 1, COMPACTED) if pytestconfig.getoption("--long") else ""

    def write() -> None:
        for _ in range(2):
            scene.write([(plain, p) for p in range(3)], 700)
            scene.write_transactions([(tx, p) for p in range(2)], 400)
            if compacted:
                scene.write_compacted([(compacted, 0)], 400)

    kill_mid_stream(scene, write)
    lab.mirror.start()
    write()
    folder = tmp_path_factory.mktemp("held")
    made = Moved(scene, Queries(spark, folder), CommandLine.of(lab, folder))
    source = lab.source_bootstrap
    made.queries.copy(made.queries.source(source, made.topics), "copying", "out")
    made.queries.count(made.queries.source(source, made.countable), "counting")
    made.at = position_in(folder / "copying")
    write()
    scene.wait_replicated()
    if compacted:
        wait_cleaned(scene, [compacted])
    return made


@pytest.fixture(scope="module")
def planned(moved: Moved) -> Moved:
    """The plan of the two queries, and of a loader whose table keeps the last record that it has done."""
    with (moved.queries.folder / "table.csv").open("w") as file:
        file.write("holder,topic,partition,offset,meaning\n")
        file.writelines(f"loader,{t},{p},{offset - 1},last\n" for (t, p), offset in moved.at.items() if offset)
        # Amid what MM2 was copying when it was killed.
        file.writelines(f"early,{t},{p},{offset},next\n" for (t, p), offset in moved.position("early").items())
    ran = moved.plan(
        "held.plan", "--positions", "table.csv", "--spark-checkpoint", f"copying={moved.folder('copying')}",
        "--spark-checkpoint", f"counting={moved.folder('counting')}", "--sink", f"copying={moved.folder('out')}",
        "--accept", "sink-remembers-batches:copying",
    )  # fmt: skip
    ran.expect(0)
    accepted = {(c.check, c.subject) for c in moved.file("held.plan").header.checks if c.accepted
                if c.check != "missing-on-target"}  # fmt: skip
    assert accepted == {("sink-remembers-batches", "copying")}, str(ran)
    return moved


def judge(moved: Moved, holder: str, read: Mapping[Partition, list[str]]) -> Counter[str]:
    """Every owed record that is there was read, exact rows read each once, and no row reads more than it states."""
    truth, rows = moved.scene.truth(), moved.rows("held.plan")
    counted: Counter[str] = Counter()
    for place, at in moved.position(holder).items():
        row, seen = rows[holder, *place], Counter(read.get(place, []))
        owed = oracle.owed(truth[place], at) - oracle.missing(truth[place], at)
        assert not owed - seen.keys(), f"{place}: lost {sorted(owed - seen.keys())[:5]}"
        # MM2 copies aborted records too, and those that A's cleaner has taken since: they are nobody's second time.
        done = {record.identity for record in truth[place].written if record.offset < at}
        more = sum(count if identity in done else count - 1 for identity, count in seen.items())
        assert row["rereads_at_most"] is not None and more <= row["rereads_at_most"], (place, more, row)
        if row["grade"] == "exact" and row["rereads_at_most"] == 0:
            assert all(seen[identity] == 1 for identity in owed), place
            counted["exact, once each"] += len(owed)
        counted["owed"] += len(owed)
        counted["twice"] += more
    print(f"{holder}: {dict(counted)}, lost 0")
    return counted


def by_place(moved: Moved, rows: list[Any]) -> dict[Partition, list[str]]:
    source = {moved.scene.copy(topic): topic for topic in moved.topics}
    read: dict[Partition, list[str]] = {}
    for row in rows:
        read.setdefault((source[row["topic"]], row["partition"]), []).append(row["id"])
    return read


def test_a_query_with_a_new_checkpoint_and_a_new_folder_reads_every_owed_record_on_b(planned: Moved) -> None:
    lab = planned.scene.lab
    ran = planned.positions("held.plan", "spark", "--holder", "copying").expect(0)
    assert "NEW checkpointLocation" in " ".join(ran.stderr.split()) and "_spark_metadata" in ran.stderr
    queries = planned.queries
    source = queries.source(lab.target_bootstrap, planned.copied, startingOffsets=ran.stdout.strip())
    queries.copy(source, "copying-on-b", "out-of-b")
    counted = judge(planned, "copying", by_place(planned, queries.written("out-of-b")))
    verified = planned.verify("held.plan", copying=planned.folder("copying-on-b")).expect(0)
    assert f"POSITIONS VERIFIED: {len(planned.at)} positions" in verified.stdout and "moved on by" in verified.stdout
    own = planned.verify("held.plan", copying=planned.folder("copying")).expect(2)
    assert "is the folder of the query on the source" in " ".join(own.stderr.split())
    if planned.copied != planned.topics:
        shutil.copytree(planned.folder("copying"), planned.folder("copy-of-a"))
        behind = planned.verify("held.plan", copying=planned.folder("copy-of-a"), counting=planned.folder("gone"))
        assert f"POSITIONS NOT AS PLANNED: {len(planned.at)} of" in behind.expect(1).stdout, "it has A's names"
        assert "CHECKPOINT NOT READ: counting: " in behind.stdout
    assert counted["exact, once each"] > 0.5 * counted["owed"] > 0


@pytest.mark.long
def test_a_new_checkpoint_with_the_old_folder_drops_batches_in_silence_and_the_rewritten_one_does_not(
    planned: Moved,
) -> None:
    lab = planned.scene.lab
    queries, folder = planned.queries, planned.queries.folder
    starting = planned.positions("held.plan", "spark", "--holder", "copying").expect(0).stdout.strip()
    shutil.copytree(folder / "out", folder / "trap")
    before = len(queries.written("trap"))
    source = queries.source(lab.target_bootstrap, planned.copied, startingOffsets=starting)
    queries.copy(source, "trapped", "trap")
    trapped = len(queries.written("trap")) - before
    shutil.copytree(folder / "out", folder / "kept")
    overlay(planned, "held.plan", "copying", "continued")
    queries.copy(queries.source(lab.target_bootstrap, planned.copied), "continued", "kept")
    verified = planned.verify("held.plan", copying=folder / "continued").expect(0)
    assert "POSITIONS VERIFIED:" in verified.stdout and "moved on by" in verified.stdout, "its rewritten batch tells"
    on_b = Counter(queries.written("kept")) - Counter(queries.written("out"))
    counted = judge(planned, "copying", by_place(planned, list(on_b.elements())))
    (topic, partition), _ = Counter((row["topic"], row["partition"]) for row in on_b).most_common(1)[0]
    later = json.loads(starting)
    later[topic][str(partition)] += 1
    source = queries.source(lab.target_bootstrap, planned.copied, startingOffsets=json.dumps(later))
    queries.copy(source, "later", "out-of-later")
    late = planned.verify("held.plan", copying=folder / "later").expect(1)
    assert f"POSITIONS NOT AS PLANNED: 1 of {len(planned.at)} positions" in late.stdout
    assert "1 offset beyond the planned" in " ".join(late.stdout.split()) and "never read" in late.stdout
    assert trapped < counted["owed"], "the sink should have dropped what it takes for batches that it has had"
    print(f"trap: {trapped} of {counted['owed']} owed records written with a new checkpoint and the old folder")


def test_a_state_goes_on_from_a_rewritten_checkpoint_and_counts_what_a_batch_over_a_counts(planned: Moved) -> None:
    lab = planned.scene.lab
    queries, folder = planned.queries, planned.queries.folder
    overlay(planned, "held.plan", "counting", "counting-on-b")
    before = {p: p.read_bytes() for p in (folder / "counting").rglob("*") if p.is_file()}
    source = queries.source(lab.target_bootstrap, planned.copies(planned.countable))
    counts = queries.count(source, "counting-on-b")
    whole = (
        planned.queries.spark.read.format("kafka").option("kafka.bootstrap.servers", lab.source_bootstrap)
        .option("subscribe", ",".join(planned.countable)).option("kafka.isolation.level", "read_committed").load()
    )  # fmt: skip
    expected = {row["key"]: row["count"] for row in whole.groupBy(whole["key"].cast("string").alias("key")).count()
                .collect()}  # fmt: skip
    assert counts == expected and sum(counts.values()) > 0
    assert {p: p.read_bytes() for p in (folder / "counting").rglob("*") if p.is_file()} == before, "A's folder"


def overlay(moved: Moved, plan: str, holder: str, checkpoint: str) -> Path:
    """Put a rewritten batch into a copy of a holder's checkpoint, as docs/positions.md says; return its file there."""
    folder = moved.queries.folder
    printed = moved.positions(plan, "spark-checkpoint", "--holder", holder).expect(0)
    (number,) = re.findall(r"N is (\d+)\.", printed.stderr)
    shutil.copytree(folder / holder, folder / checkpoint)
    file = folder / checkpoint / "offsets" / number
    file.write_text(printed.stdout)
    (file.parent / f".{number}.crc").unlink(missing_ok=True)
    return file


@pytest.mark.parametrize(("holder", "meaning"), [("loader", "last"), ("early", "next")])
def test_a_loader_seeks_to_what_csv_says_in_its_own_meaning(planned: Moved, holder: str, meaning: str) -> None:
    lab = planned.scene.lab
    ran = planned.positions("held.plan", "csv", "--holder", holder).expect(0)
    listed = list(csv.DictReader(StringIO(ran.stdout)))
    assert {row["meaning"] for row in listed} == {meaning}
    beyond = meaning == "last"
    places = {(row["topic"], int(row["partition"])): int(row["offset"]) + beyond for row in listed}
    read: dict[Partition, list[str]] = {}
    settings = {"bootstrap.servers": lab.target_bootstrap, "group.id": "loader-never-commits",
                "enable.auto.commit": False, "enable.partition.eof": True,
                "isolation.level": "read_committed", **QUIET}  # fmt: skip
    source = {planned.scene.copy(topic): topic for topic in planned.topics}
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, p, offset) for (topic, p), offset in places.items()])

        def take(message: Any) -> None:
            (mine,) = [value for name, value in message.headers() if name == "id"]
            read.setdefault((source[message.topic()], message.partition()), []).append(mine.decode())

        drain(consumer, set(places), take)
    assert judge(planned, holder, read)["owed"] > 0


def test_kafkas_own_tool_takes_the_holders_that_shall_become_groups(planned: Moved) -> None:
    lab = planned.scene.lab
    planned.positions("held.plan", "kcg", "--holder", "copying", "--out", "held.kcg").expect(0)
    file = planned.queries.folder / "held.kcg"
    tool = lab.kafka_tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", lab.target_bootstrap,
        "--group", "copying", "--reset-offsets", "--from-file", str(file), "--dry-run",
    )  # fmt: skip
    assert tool.returncode == 0, tool.stdout + tool.stderr
    taken = {tuple(line.split()[1:4]) for line in tool.stdout.splitlines() if line.startswith("copying ")}
    rows = planned.rows("held.plan").values()
    wanted = [row for row in rows if row["group"] == "copying"]
    assert taken == {(r["target_topic"], str(r["partition"]), str(r["target_offset"])) for r in wanted}, tool.stdout


KILLED_QUERY = """
import sys, time
from pathlib import Path
from migrate.spark.session import spark_session
bootstrap, topics, folder, identity = sys.argv[1:5]
spark = spark_session("local[1]")
def take(batch, number):
    rows = batch.selectExpr("topic", "partition", "offset", identity).collect()
    with Path(folder, "killed-out").open("a") as out:
        for row in rows[: len(rows) // 2] if number == 2 else rows:
            out.write(f"{row.topic} {row.partition} {row.offset} {row.id}\\n")
    if number == 2:
        Path(folder, "in-batch-2").touch()
        time.sleep(3600)
(spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topics)
 .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "400").option("includeHeaders", "true").load()
 .writeStream.foreachBatch(take).option("checkpointLocation", folder + "/killed").start().awaitTermination())
"""


@pytest.mark.long
def test_a_query_that_was_killed_in_mid_batch_is_blocked_and_the_way_out_works(planned: Moved) -> None:
    lab = planned.scene.lab
    folder, topics = planned.queries.folder, planned.countable
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[4])}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_QUERY, lab.source_bootstrap, ",".join(topics), str(folder), IDENTITY],
        env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until(lambda: (folder / "in-batch-2").exists(), READ_SECONDS, "the query to be in its third batch")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(5 * READ_SECONDS)
    killed = ("--spark-checkpoint", f"killed={folder / 'killed'}")
    ran = planned.plan("killed.plan", *killed).expect(3)
    checks = planned.file("killed.plan").header.checks
    blocks = {(c.check, c.subject) for c in checks if c.counts_as is Level.BLOCK and not c.accepted}
    assert blocks == {("spark-batch-open", "killed")}, str(ran)
    planned.positions("killed.plan", "spark").expect(3)
    accept_the_open_batch(planned, killed)
    source = planned.queries.source(lab.source_bootstrap, topics)
    planned.queries.finish(source.writeStream.foreachBatch(lambda batch, number: None), "killed")
    planned.plan("mended.plan", *killed).expect(0)
    planned.positions("mended.plan", "spark").expect(0)


def accept_the_open_batch(moved: Moved, killed: tuple[str, ...]) -> None:
    """Go on at the begin of a batch of which half is written: nothing is lost, no more twice than the plan says."""
    moved.plan("open.plan", *killed, "--accept", "spark-batch-open:killed").expect(0)
    ran = moved.positions("open.plan", "spark").expect(0)
    assert "WARNING: killed: batch 2 was begun and not finished" in " ".join(ran.stderr.split())
    queries, topics = moved.queries, moved.copies(moved.countable)
    source = queries.source(moved.scene.lab.target_bootstrap, topics, startingOffsets=ran.stdout.strip())
    queries.copy(source, "after-killed", "out-after-killed")
    written: dict[Partition, list[str]] = {}
    for line in (queries.folder / "killed-out").read_text().splitlines():
        topic, partition, _, identity = line.split(" ")
        written.setdefault((topic, int(partition)), []).append(identity)
    read, rows = by_place(moved, queries.written("out-after-killed")), moved.rows("open.plan")
    twice, most = 0, 0
    for place, truth in moved.scene.truth().items():
        if place[0] not in moved.countable:
            continue
        row, before, after = rows["killed", *place], Counter(written.get(place, [])), Counter(read.get(place, []))
        missing = {record.identity for record in truth.written} - before.keys() - after.keys()
        assert not missing, f"{place}: lost {sorted(missing)[:5]}"
        assert "it begins here and ends before" in row["sentence"], row
        again = sum((after & before).values()) + sum((after - Counter(set(after))).values())
        assert again <= row["rereads_at_most"], (place, again, row)
        twice, most = twice + again, most + row["rereads_at_most"]
    assert twice > 0, "half of the batch was written before the kill"
    print(f"open batch accepted: {twice} read twice of at most {most}, lost 0")


@pytest.mark.long
def test_a_partition_that_the_query_never_had_is_named_as_earliest_and_spark_takes_it(planned: Moved) -> None:
    topic = planned.countable[0]
    at = {place: offset for place, offset in planned.at.items() if place[0] == topic and place[1] != 1}
    lines = [f"partly,{t},{p},{offset}\n" for (t, p), offset in at.items()]
    (planned.queries.folder / "partly.csv").write_text("holder,topic,partition,offset\n" + "".join(lines))
    planned.plan("partly.plan", "--positions", "partly.csv").expect(0)
    ran = planned.positions("partly.plan", "spark").expect(0)
    copy, queries = planned.scene.copy(topic), planned.queries
    assert json.loads(ran.stdout)[copy]["1"] == -2 and f"{copy}-1" in " ".join(ran.stderr.split())
    source = queries.source(planned.scene.lab.target_bootstrap, [copy], startingOffsets=ran.stdout.strip())
    queries.copy(source, "partly-on-b", "out-of-partly")
    read = by_place(planned, queries.written("out-of-partly"))
    truth = planned.scene.truth()
    assert {record.identity for record in truth[topic, 1].written} <= set(read[topic, 1])
    for place, offset in at.items():
        assert oracle.owed(truth[place], offset) <= set(read.get(place, [])), place


@pytest.mark.long
def test_a_real_worker_takes_what_is_printed_for_connect_and_its_sink_goes_on_from_there(
    planned: Moved, tmp_path: Path
) -> None:
    lab = planned.scene.lab
    body = planned.positions("held.plan", "connect", "--holder", "copying").expect(0).stdout
    wanted = connect_offsets(json.loads(body))
    transform = "org.apache.kafka.connect.transforms."
    sink = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "file": str(tmp_path / "sunk"),
        "topics": ",".join(planned.copied), "transforms": "hoist,place",
        "transforms.hoist.type": f"{transform}HoistField$Value", "transforms.hoist.field": "value",
        "transforms.place.type": f"{transform}InsertField$Value", "transforms.place.topic.field": "topic",
        "transforms.place.partition.field": "partition", "transforms.place.offset.field": "offset",
    }  # fmt: skip
    with SinkWorker(tmp_path / "sinks", lab.target_bootstrap, DEFAULT_VERSION) as worker:

        def offsets() -> dict[Partition, int]:
            return connect_offsets(worker.ask("GET", "/connectors/sunk/offsets")[1])

        made = {"name": "sunk", "config": sink, "initial_state": "STOPPED"}
        assert worker.ask("POST", "/connectors", json.dumps(made))[0] == 201
        wait_until(lambda: worker.ask("PATCH", "/connectors/sunk/offsets", body)[0] == 200, READ_SECONDS, "the offsets")
        assert offsets() == wanted
        assert commits_on(lab.target_bootstrap, ["connect-sunk"])["connect-sunk"] == wanted, "the group's commits"
        assert worker.ask("PUT", "/connectors/sunk/resume")[0] == 202
        ends = {place: high for place, (_, high) in bounds(lab.target_bootstrap, list(wanted)).items()}
        wait_until(lambda: offsets() == ends, READ_SECONDS, "the sink to have read all")
        assert worker.ask("PUT", "/connectors/sunk/stop")[0] == 204
    found = re.findall(r"\{[^\n]*\}", (tmp_path / "sunk").read_text())
    places = [tuple(re.search(rf"\b{name}=([^,}}]+)", line).group(1) for name in ("topic", "partition", "offset"))  # type: ignore[union-attr]
              for line in found]  # fmt: skip
    read = planned.identities([(topic, int(partition), int(offset)) for topic, partition, offset in places])
    assert judge(planned, "copying", read)["owed"] > 0


def connect_offsets(document: Any) -> dict[Partition, int]:
    """What Kafka Connect says of a sink's offsets, in the document that it takes and gives."""
    return {
        (each["partition"]["kafka_topic"], each["partition"]["kafka_partition"]): each["offset"]["kafka_offset"]
        for each in document["offsets"]
    }


FLINK, KAFKA_FOR_FLINK = "2.2.1", "5.0.0-2.2"
FLINK_ARTIFACTS = [
    *(("org.apache.flink", f"flink-{name}", FLINK) for name in
      ("clients", "connector-base", "table-api-java-bridge", "table-planner-loader", "table-runtime")),
    ("org.apache.flink", "flink-sql-connector-kafka", KAFKA_FOR_FLINK),
]  # fmt: skip


@pytest.mark.long
def test_flink_reads_its_tables_from_what_is_printed_for_it(planned: Moved, tmp_path: Path) -> None:
    lines = planned.positions("held.plan", "flink-sql", "--holder", "copying").expect(0).stdout.splitlines()
    (tmp_path / "options").write_text("\n".join(lines))
    jars = fetched(f"flink-{FLINK}", f"Flink {FLINK}", FLINK_ARTIFACTS)
    opens = [f"--add-opens=java.base/java.{part}=ALL-UNNAMED" for part in ("lang", "util", "time", "net", "nio")]
    ran = subprocess.run(
        [java_executable(), "-Xmx1g", *opens, "-cp", f"{jars}/*", str(Path(__file__).with_name("Flink.java")),
         planned.scene.lab.target_bootstrap, str(tmp_path / "options")],
        capture_output=True, text=True, timeout=5 * READ_SECONDS, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    topics = [line.split("'")[3] for line in lines]
    read = [line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("READ ")]
    places = [(topics[int(table[1:])], int(partition), int(offset)) for table, partition, offset in read]
    assert judge(planned, "copying", planned.identities(places))["owed"] > 0
