"""5,000 partitions, most of them empty, and groups that commit on all: the right answers, on one screen."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec  # type: ignore[attr-defined]

from tests.integration.cli import CommandLine, Ran, committed_offsets, wider
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
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.long

TOPICS, PARTITIONS = 50, 100
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
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **QUIET})
    for (topic, p), records in ends.items():
        for number in range(records):
            producer.produce(topic, f"{topic}-{p}-{number}", "k", p)
    assert producer.flush(4 * CALL_SECONDS) == 0
    return ends


def committed(bootstrap: str, ends: Mapping[Partition, int]) -> Commits:
    """Groups that stand at the end, at the start or in between on all partitions, and one on every other."""
    commits: Commits = {f"many-whole-{n}": {place: min(n, end) for place, end in ends.items()} for n in range(3)}
    commits["many-half"] = {(topic, p): end for (topic, p), end in ends.items() if p % 2 == 0}
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


def test_thousands_of_partitions_move_by_group_and_are_told_on_one_screen(tmp_path: Path) -> None:
    """Topics are copied in full, and nothing twice: so every offset is the same on both sides."""
    options = MirrorOptions(topics="many-.*", groups="many-.*", tasks_max=2, extra=MM2_TAKES_ITS_TIME)
    overrides = {"source_overrides": SMALL_INDEXES, "target_overrides": SMALL_INDEXES}
    (tmp_path / "commands").mkdir()
    with Lab(tmp_path / "many", mirror=options, start_mirror=False, kind=Roomy, **overrides) as lab:
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
        walk(lab, CommandLine.of(lab, tmp_path / "commands"), ends, commits)


def walk(lab: Lab, commands: CommandLine, ends: Mapping[Partition, int], commits: Commits) -> None:
    places = by_place(commits)
    assert len(ends) == TOPICS * PARTITIONS and len(places) > 3 * len(ends)

    def run(*words: str) -> Ran:
        with started(commands, *words, environment={"COLUMNS": str(WIDTH)}) as running:
            ran = running.result()
        lines = ran.stdout.splitlines()
        assert len(lines) <= MOST_LINES and not wider(lines, WIDTH), str(ran)[:20_000]
        return ran

    chosen = ("--group", "many-.*")
    run("status", *commands.clusters, *chosen, "--settle", "1").expect(0)
    planned = run("plan", *commands.clusters, *chosen, "--settle", "1", "--out", PLAN).expect(0)
    assert f"READY TO APPLY: {len(places):,} offsets of {len(commits)} groups" in " ".join(planned.stdout.split())
    document = commands.document(PLAN)
    rows = document["rows"]
    assert committed_offsets(rows) == places
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
    commit(lab.target_bootstrap, {"many-half": {("A.many-07", 42): ends["many-07", 42]}})
    run("rollback", PLAN, *commands.clusters, *approval).expect(0)
    assert not groups_on(lab.target_bootstrap) & set(commits)
