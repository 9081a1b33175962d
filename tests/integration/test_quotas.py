"""Clusters that throttle every client by quota: a cutover takes longer there, and comes to the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.integration.cli import CommandLine, planned_offsets
from tests.integration.clusters import QUIET, AnyLab, all_syncs, by_place, commits_on
from tests.integration.judge import Judge, told
from tests.integration.placement import commit_densely
from tests.integration.scene import Scene
from tests.lab.quotas import quota
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

# What any user may do with any client: in percent of one thread, and in bytes a second.
QUOTAS = {"request_percentage": 100, "consumer_byte_rate": 400_000}
# Kafka judges by the last so many seconds: what is read at once in a quiet time is not throttled.
WINDOW_SECONDS = 11
PARTITIONS, GROUPS = 4, 20
DEADLINE_SECONDS = 120.0
PATIENT = ("--request-timeout", "120")


@contextmanager
def throttled(lab: AnyLab) -> Iterator[None]:
    """Both clusters throttle whoever calls."""
    anybody = {"user": None, "client-id": None}
    with quota(lab.source_bootstrap, anybody, QUOTAS), quota(lab.target_bootstrap, anybody, QUOTAS):
        yield


def throttling(bootstrap: str, topic: str) -> float:
    """Read a topic again and again until the broker throttles; returns for how many seconds it does."""
    seconds: list[float] = []

    def note(event: Any) -> None:
        seconds.append(event.throttle_time)

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "throttled-never-commits", "enable.auto.commit": False,
         "enable.partition.eof": True, "throttle_cb": note, **QUIET}
    )  # fmt: skip

    def read() -> bool:
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        consumer.consume(5000, 1.0)
        return any(seconds)

    try:
        wait_until(read, DEADLINE_SECONDS, f"the quota of {bootstrap} to throttle a reader", poll_seconds=0.0)
    finally:
        consumer.close()
    return max(seconds)


def test_where_quotas_throttle_every_client_plan_apply_and_verify_come_to_the_same(lab: AnyLab, tmp_path: Path) -> None:
    scene = Scene(lab, "quota", new_seed())
    pool = scene.create("pool", PARTITIONS)
    scene.write(scene.partitions, 8_000)
    scene.wait_replicated()
    commit_densely(scene, GROUPS)
    commands, chosen = CommandLine.of(lab, tmp_path), ("--group", f".*{scene.suffix}")
    commands.plan("free.plan", *chosen).expect(0)
    free = {key(row): row for row in commands.document("free.plan")["rows"]}

    with throttled(lab):
        for bootstrap, topic in ((lab.source_bootstrap, pool), (lab.target_bootstrap, scene.copy(pool))):
            print(f"{bootstrap} throttles for {throttling(bootstrap, topic):g} s")
        commands.plan("slow.plan", *chosen, *PATIENT).expect(0)
        document = commands.document("slow.plan")
        rows = {key(row): row for row in document["rows"]}
        commands.execute("slow.plan").expect(0)
        found = commits_on(lab.target_bootstrap, scene.commits)
        commands.verify("slow.plan", "--records", *PATIENT).expect(0)

    assert {place: row["source_committed"] for place, row in rows.items()} == scene.places
    for place, row in rows.items():
        assert (row["target_offset"], row["grade"]) == (free[place]["target_offset"], free[place]["grade"]), row
    score = Judge(scene, scene.truth(), all_syncs(lab), whole=True).score(rows.values())
    assert score.judged["loss"] == GROUPS * PARTITIONS and score.judged["best"] > 0
    assert not score.complaints, told(score.complaints)
    planned = planned_offsets(rows.values())
    assert by_place(found) == planned
    commands.undo("slow.plan").expect(0)
    assert not commits_on(lab.target_bootstrap, scene.commits)


def key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group"], row["source_topic"], row["partition"]
