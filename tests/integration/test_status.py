"""`status` on real clusters: writers, readers and an undrained replica are found; a watch ends when the drain does."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import CALL_SECONDS, QUIET, groups_on, member, portrait
from tests.integration.repeated import again_and_again
from tests.integration.running import started
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.quotas import quota
from tests.lab.waiting import wait_until

# What MM2 may write in a second in a drain that takes several looks, in bytes; ten seconds of it at once to begin with.
SLOW = 30_000


@pytest.fixture(scope="module")
def quiet(lab: Lab) -> Scene:
    """Two topics, copied in full, with groups amid one and at the end of the other; nobody writes, nobody reads."""
    scene = Scene(lab, "status", seed=6)
    pool, other = scene.create("pool", 2), scene.create("other", 2)
    for topic in (pool, other):
        scene.write([(topic, 0), (topic, 1)], 500)
    scene.wait_replicated()
    for name in ("steady", "live"):
        scene.commit({scene.group(name): {(pool, 0): 100, (pool, 1): 120}})
    ends = scene.source_ends()
    scene.commit({scene.group("apart"): {(other, p): ends[other, p][1] for p in (0, 1)}})
    # Of groups that are behind the oldest sync that compaction has left, MM2 rightly writes no checkpoint.
    lab.mirror.wait_checkpoints([scene.group("apart")])
    return scene


@pytest.fixture
def commands(lab: Lab, tmp_path: Path) -> CommandLine:
    return CommandLine.of(lab, tmp_path)


def status(commands: CommandLine, scene: Scene, *options: str, settle: str = "1.5") -> tuple[Ran, dict[str, Any]]:
    """Run it once, and return what it says as JSON."""
    chosen = ("--group", f".*{scene.suffix}", "--settle", settle)
    ran = commands.run("status", *commands.clusters, *chosen, "--format", "json", *options)
    document = json.loads(ran.stdout)
    return ran.expect(0 if document["ready"] else 3), document


def blocks(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(c["check"], c["subject"]) for c in document["checks"] if c["counts_as"] == "block"}


def topic_of(document: dict[str, Any], topic: str) -> dict[str, Any]:
    (found,) = [t for t in document["topics"] if t["source_topic"] == topic]
    return found


def end_of(scene: Scene, name: str) -> int:
    ends = scene.source_ends()
    return sum(ends[scene.topic(name), p][1] for p in (0, 1))


@contextmanager
def producing(bootstrap: str, topic: str) -> Iterator[None]:
    """Somebody writes about twenty records a second."""
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    with again_and_again(lambda: producer.produce(topic, b"forgotten"), 0.05):
        yield
    assert producer.flush(CALL_SECONDS) == 0


def test_a_quiet_drained_flow_is_ready_and_what_it_says_is_true(lab: Lab, quiet: Scene, commands: CommandLine) -> None:
    before = portrait(lab.source_bootstrap, lab.options)
    ran, document = status(commands, quiet)
    ran.expect(0)
    assert document["ready"] and not blocks(document) and document["lag"]["records"] == 0
    pool, end = topic_of(document, quiet.topic("pool")), end_of(quiet, "pool")
    assert (pool["source_end"], pool["copied"], pool["drained"]) == (end, end, True)
    assert pool["written"]["offsets"] == 0 and pool["written"]["seconds"] >= 1.5
    assert {g["group"] for g in document["groups"]} == set(quiet.commits)
    told = {t["holds"]: t["newest_ms"] is not None for t in document["mm2_topics"]}
    assert told == {"offset sync": True, "checkpoint": True}
    assert portrait(lab.source_bootstrap, lab.options) == before
    assert not groups_on(lab.target_bootstrap) & set(quiet.commits)


@pytest.mark.long
def test_a_forgotten_producer_blocks_its_topic_in_status_and_in_plan_until_it_is_stopped(
    lab: Lab, quiet: Scene, commands: CommandLine
) -> None:
    pool = quiet.topic("pool")
    with producing(lab.source_bootstrap, pool):
        ran, document = status(commands, quiet, settle="2")
        ran.expect(3)
        assert ("producers-stopped", pool) in blocks(document)
        assert not {subject for _, subject in blocks(document)} - {pool}
        written = topic_of(document, pool)["written"]
        assert written["offsets"] > 0 and topic_of(document, quiet.topic("other"))["written"]["offsets"] == 0
        commands.plan("rehearsal.plan", "--group", f".*{quiet.suffix}").expect(3)
        planned = commands.document("rehearsal.plan")
        found = {(c["check"], c["subject"]) for c in planned["checks"] if c["counts_as"] == "block"}
        assert ("producers-stopped", pool) in found
        decisions = {(row["source_topic"], row["decision"]) for row in planned["rows"]}
        assert decisions == {(pool, "block"), (quiet.topic("other"), "set")}
    chosen = ("--group", f".*{quiet.suffix}", "--settle", "1.5")
    # Nothing but the product waits for the drain.
    commands.run("status", *commands.clusters, *chosen, "--watch", "--timeout", "60").expect(0)
    told = commands.run("status", *commands.clusters, *chosen, "--rehearsal", "rehearsal.plan").expect(0)
    assert re.search(r"Forecast +plan about \d+ ", told.stdout), str(told)
    assert "Forecast" in commands.show("rehearsal.plan", "table")


def test_a_group_that_is_alive_is_shown_with_its_members_and_hosts_on_either_side(
    lab: Lab, quiet: Scene, commands: CommandLine
) -> None:
    group, pool = quiet.group("live"), quiet.topic("pool")
    with member(lab.source_bootstrap, group, pool), member(lab.target_bootstrap, group, quiet.copy(pool)):
        ran, document = status(commands, quiet)
        ran.expect(3)
        assert blocks(document) >= {("source-group-stopped", group), ("target-group-empty", group)}
        (told,) = [g for g in document["groups"] if g["group"] == group]
        for side in ("on_source", "on_target"):
            assert told[side]["member_count"] == 1 and "@127.0.0.1" in told[side]["members"][0], told
        table = commands.run("status", *commands.clusters, "--group", group, "--settle", "1").expect(3).stdout
        assert table.startswith("NOT READY: ") and f"{group}: Stable on A, 1 member: " in table, table


# --- watching ---------------------------------------------------------------------------------------------


@contextmanager
def watching(commands: CommandLine, *options: str) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """A running `status --watch --format json`; yields the documents so far, and waits for its end on leaving."""
    words = ("status", *commands.clusters, "--watch", "--format", "json", "--timeout", "100", *options)
    with started(commands, *words) as running:
        yield lambda: [json.loads(line) for line in running.out.read_text().split("\n")[:-1]]
        running.result().expect(0)


@pytest.mark.long
def test_a_watch_over_a_paused_mm2_moves_ends_by_itself_and_the_plan_after_it_is_clean_and_exact(
    lab: Lab, tmp_path: Path
) -> None:
    scene = Scene(lab, "watched", seed=7)
    topics = [scene.create("one", 2), scene.create("two", 1)]
    scene.write([(topic, 0) for topic in topics], 300)
    scene.wait_replicated()
    for number in range(6):
        scene.commit({scene.group(f"g{number}"): {(t, 0): 40 * number for t in topics}})
    commands = CommandLine.of(lab, tmp_path)
    chosen = ("--group", f".*{scene.suffix}", "--settle", "3")
    # A drain that takes a while.
    slow = quota(lab.target_bootstrap, {"client-id": None}, {"producer_byte_rate": SLOW})
    lab.mirror.pause()
    try:
        scene.write([(t, 0) for t in topics], 12_000)
        with slow, watching(commands, *chosen) as documents:
            wait_until(lambda: len(documents()) >= 2, 60, "two looks at an MM2 that stands still")
            lab.mirror.resume()
    finally:
        lab.mirror.resume()
    told = documents()
    assert told[-1]["ready"] and not any(d["ready"] for d in told[:2])
    first = {topic for check, topic in blocks(told[0]) if check == "not-drained"}
    assert first == set(topics)
    for topic in topics:
        done = [bar["done"] for d in told if (bar := topic_of(d, topic)["progress"])]
        assert done == sorted(done) and len(set(done)) >= 2, done
        end = topic_of(told[-1], topic)
        assert end["progress"]["done"] == end["progress"]["total"] and end["drained"]
    # The first topic may pass in one burst, which a quota allows.
    left = [d["lag"]["records"] for d in told]
    assert left == sorted(left, reverse=True) and len(set(left)) >= 3, left
    commands.plan("after.plan", "--group", f".*{scene.suffix}").expect(0)
    assert {row["grade"] for row in commands.document("after.plan")["rows"]} == {"exact"}
