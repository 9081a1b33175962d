"""5,000 partitions, most of them empty, and groups that commit on all: the right answers, on one screen."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec  # type: ignore[attr-defined]

from tests.integration.cli import CommandLine, Ran, wider
from tests.integration.clusters import (
    CALL_SECONDS,
    QUIET,
    Commits,
    Partition,
    admin,
    by_place,
    commit,
    commits_on,
    groups_on,
)
from tests.integration.running import started
from tests.lab.cluster import Cluster
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

TOPICS, PARTITIONS = 50, 100
WHOLE_GROUPS = 3
PLAN = "cutover.plan"
COPY_SECONDS = 900.0
# All that a command says on stdout: a few screens at most, whatever the number of partitions.
MOST_LINES, WIDTH = 100, 80
# Thousands of logs, each with indexes that are mapped as soon as it is written to.
SMALL_INDEXES = {"log.index.size.max.bytes": "65536", "num.io.threads": "8"}
MM2_TAKES_ITS_TIME = {"refresh.topics.interval.seconds": "5", "consumer.poll.timeout.ms": "500"}


class Roomy(Cluster):
    """Brokers with room for thousands of logs."""

    heap = "1200m"


@dataclass
class Ground:
    """Topics copied in full, none of them twice: so every offset is the same on both sides."""

    lab: Lab
    ends: dict[Partition, int]
    commits: Commits


@dataclass
class Memory:
    """The most that the processes of a command have used at one time, in MB: our own, and the JVMs."""

    most: dict[str, int] = field(default_factory=dict)

    def note(self, session: int) -> None:
        now: dict[str, int] = {}
        for name, kilobytes in processes_of(session):
            kind = "java" if name == "java" else "python"
            now[kind] = now.get(kind, 0) + kilobytes // 1024
        for kind, megabytes in now.items():
            self.most[kind] = max(self.most.get(kind, 0), megabytes)


def processes_of(root: int) -> Iterator[tuple[str, int]]:
    """Name and resident kilobytes of a process and of all below it."""
    found: dict[int, tuple[int, str, int]] = {}
    for entry in Path("/proc").glob("[0-9]*/status"):
        try:
            told = dict(line.split(":\t", 1) for line in entry.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        found[int(told["Pid"])] = (int(told["PPid"]), told["Name"], int(told.get("VmRSS", "0 kB").split()[0]))
    below = {root}
    while more := {pid for pid, (parent, _, _) in found.items() if parent in below} - below:
        below |= more
    for pid in below & found.keys():
        yield found[pid][1:]


@contextmanager
def watched(pid: int) -> Iterator[Memory]:
    memory, enough = Memory(), threading.Event()

    def look() -> None:
        while not enough.wait(0.5):
            memory.note(pid)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield memory
    finally:
        enough.set()
        thread.join()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    own_clusters_only()
    options = MirrorOptions(topics="many-.*", groups="many-.*", tasks_max=2, extra=MM2_TAKES_ITS_TIME)
    folder = tmp_path_factory.mktemp("many")
    overrides = {"source_overrides": SMALL_INDEXES, "target_overrides": SMALL_INDEXES}
    with Lab(folder, mirror=options, start_mirror=False, kind=Roomy, **overrides) as lab:
        topics = [f"many-{number:02}" for number in range(TOPICS)]
        create(lab.source_bootstrap, topics)
        ends = written(lab.source_bootstrap, topics)
        commits = committed(lab.source_bootstrap, ends)
        lab.mirror.start()
        lab.mirror.wait_ready()
        wait_until(
            lambda: copied(lab, ends) == ends, COPY_SECONDS, "MM2 to copy all",
            lambda: f"{sum(copied(lab, ends).values())} of {sum(ends.values())} records", 2.0,
        )  # fmt: skip
        lab.mirror.wait_checkpoints(commits, deadline_seconds=COPY_SECONDS)
        yield Ground(lab, ends, commits)


def create(bootstrap: str, topics: list[str]) -> None:
    client = admin(bootstrap)
    asked = client.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics], operation_timeout=CALL_SECONDS)
    for future in asked.values():
        future.result(2 * CALL_SECONDS)
    wait_until(
        lambda: sum(len(t.partitions) for t in client.list_topics(timeout=5.0).topics.values()) >= len(topics) * 100,
        CALL_SECONDS, "all partitions",
    )  # fmt: skip


def written(bootstrap: str, topics: list[str]) -> dict[Partition, int]:
    """Write one or two records to every third partition; return where each log ends."""
    ends = {(topic, p): (0, 0, 1 + p % 2)[(number + p) % 3] for number, topic in enumerate(topics) for p in range(100)}
    failed: list[KafkaError] = []

    def delivered(problem: KafkaError | None, _: Message) -> None:
        if problem is not None:
            failed.append(problem)

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **QUIET})
    for (topic, p), records in ends.items():
        for number in range(records):
            producer.produce(topic, f"{topic}-{p}-{number}", "k", p, on_delivery=delivered)
    assert producer.flush(4 * CALL_SECONDS) == 0 and not failed, failed[:3]
    return ends


def committed(bootstrap: str, ends: Mapping[Partition, int]) -> Commits:
    """Groups that stand at the end, at the start or in between on all partitions, and one on every other."""
    commits: Commits = {f"many-whole-{n}": {place: min(n, end) for place, end in ends.items()} for n in range(3)}
    commits["many-half"] = {(topic, p): end for (topic, p), end in ends.items() if p % 2 == 0}
    assert len(commits) == WHOLE_GROUPS + 1
    for group, places in commits.items():
        commit(bootstrap, {group: places})
    return commits


def copied(lab: Lab, ends: Mapping[Partition, int]) -> dict[Partition, int]:
    """Where the copies end; those that are not there yet are left out."""
    client = admin(lab.target_bootstrap)
    known = client.list_topics(timeout=CALL_SECONDS).topics
    asked = {}
    for topic, p in ends:
        copy = lab.options.target_topic(topic)
        if copy in known and p in known[copy].partitions:
            asked[TopicPartition(copy, p)] = (topic, p)
    futures = client.list_offsets(dict.fromkeys(asked, OffsetSpec.latest())) if asked else {}
    ends_there = {}
    for place, future in futures.items():
        # A partition that has only just been made may have no leader yet: it is not there.
        with suppress(KafkaException):
            ends_there[asked[place]] = future.result(CALL_SECONDS).offset
    return ends_there


def test_thousands_of_partitions_move_by_group_and_are_told_on_one_screen(ground: Ground, tmp_path: Path) -> None:
    lab, commits = ground.lab, ground.commits
    commands = CommandLine.of(lab, tmp_path)
    places = by_place(commits)
    assert len(ground.ends) == TOPICS * PARTITIONS and len(places) > 3 * len(ground.ends)

    def run(*words: str) -> Ran:
        with (
            started(commands, *words, environment={"COLUMNS": str(WIDTH)}) as running,
            watched(running.process.pid) as memory,
        ):
            ran = running.result()
        lines = ran.stdout.splitlines()
        assert len(lines) <= MOST_LINES and not wider(lines, WIDTH), str(ran)[:20_000]
        print(words[0], *(f"{kind} {megabytes} MB" for kind, megabytes in memory.most.items()))
        return ran

    chosen = ("--group", "many-.*")
    run("status", *commands.clusters, *chosen, "--settle", "1").expect(0)
    planned = run("plan", *commands.clusters, *chosen, "--settle", "1", "--out", PLAN).expect(0)
    assert f"READY TO APPLY: {len(places):,} offsets of {len(commits)} groups" in " ".join(planned.stdout.split())
    document = commands.document(PLAN)
    rows = document["rows"]
    assert {(r["group"], r["source_topic"], r["partition"]): r["source_committed"] for r in rows} == places
    # Nothing was copied twice, and nothing is gone: an offset is the same on both sides.
    assert all(row["target_offset"] == row["source_committed"] and row["decision"] == "set" for row in rows)
    # All rows, as a pager or a file wants them.
    assert len(commands.run("show", PLAN).expect(0).stdout.splitlines()) > len(places)
    assert len(commands.show(PLAN, "kcg").splitlines()) == len(places)

    approval = ("--approve", document["fingerprint"], "--execute")
    run("apply", PLAN, *commands.clusters, *approval).expect(0)
    held = commits_on(lab.target_bootstrap, commits)
    copies = {(g, lab.options.target_topic(t), p): offset for (g, t, p), offset in places.items()}
    assert by_place(held) == copies
    run("verify", PLAN, *commands.clusters).expect(0)
    # It shows each row's records: that is no screen, and asked for.
    commands.verify(PLAN, "--records").expect(0)
    # One offset of 17,500 is not as planned: it is named, and no other.
    commit(lab.target_bootstrap, {"many-half": {("A.many-07", 42): 99}})
    told = run("verify", PLAN, *commands.clusters).expect(1).stdout
    assert "many-half A.many-07:42: is at 99" in " ".join(told.split()) and told.count("many-half") < 5, told
    commit(lab.target_bootstrap, {"many-half": {("A.many-07", 42): ground.ends["many-07", 42]}})
    run("rollback", PLAN, *commands.clusters, *approval).expect(0)
    assert not groups_on(lab.target_bootstrap) & set(commits)
