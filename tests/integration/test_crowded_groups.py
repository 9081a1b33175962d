"""Groups of 500 members on either side: who is in the way is told in a few lines, and nothing is written under them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.cli import CommandLine, Ran, wider
from tests.integration.clusters import commits_on
from tests.integration.rawmember import crowd
from tests.integration.scene import Scene
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab

pytestmark = pytest.mark.long

MEMBERS = 500
PLAN, LATER = "before.plan", "amid.plan"
# The results of apply are as wide as their names.
WIDTH = 110
# What people read: a screen or two, and no line for each member.
MOST_LINES, MOST_NAMED = 110, 30
# All members join in one rebalance.
TOGETHER = {"group.initial.rebalance.delay.ms": "10000"}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A topic, copied in full, and three groups amid it."""
    own_clusters_only()
    folder = tmp_path_factory.mktemp("crowded")
    with Lab(folder, source_overrides=TOGETHER, target_overrides=TOGETHER) as lab:
        scene = Scene(lab, "crowded", seed=8)
        pool = scene.create("pool", 2)
        scene.write_synced_early([(pool, 0), (pool, 1)], 500)
        scene.wait_replicated()
        for name in ("source", "target", "quiet"):
            scene.commit({scene.group(name): {(pool, 0): 100, (pool, 1): 120}})
        lab.mirror.wait_checkpoints(scene.commits, quiet_seconds=1.0)
        yield scene


@contextmanager
def crowds(scene: Scene) -> Iterator[None]:
    """One group with 500 members on the source, and one on the target."""
    pool = scene.topic("pool")
    with ExitStack() as stack:
        stack.enter_context(crowd(scene.lab.source_bootstrap, scene.group("source"), pool, MEMBERS))
        stack.enter_context(crowd(scene.lab.target_bootstrap, scene.group("target"), scene.copy(pool), MEMBERS))
        yield


def readable(ran: Ran) -> str:
    """What it says on one line, where a person can read it all."""
    lines = ran.stdout.splitlines()
    assert len(lines) <= MOST_LINES and not wider(lines, WIDTH), str(ran)
    text = " ".join((ran.stdout + ran.stderr).split())
    assert text.count("worker-") <= 2 * MOST_NAMED and "Traceback" not in text, str(ran)
    return text


def test_500_members_are_counted_and_not_listed_and_their_groups_are_left_alone(scene: Scene, tmp_path: Path) -> None:
    commands = replace(CommandLine.of(scene.lab, tmp_path), launcher=("env", f"COLUMNS={WIDTH}"))
    target = scene.lab.target_bootstrap
    on_source, on_target = scene.group("source"), scene.group("target")
    chosen = ("--group", f".*{scene.suffix}")
    commands.plan(PLAN, *chosen).expect(0)
    with crowds(scene):
        told = readable(commands.run("status", *commands.clusters, *chosen, "--settle", "1").expect(3))
        assert f"{on_source}: Stable on A, {MEMBERS} members: worker-" in told, told
        assert f"{on_target}: Stable on B, {MEMBERS} members: worker-" in told, told
        words = ("status", *commands.clusters, *chosen, "--settle", "1", "--format", "json")
        document = json.loads(commands.run(*words).expect(3).stdout)
        states = {g["group"]: (g["on_source"], g["on_target"]) for g in document["groups"]}
        for state in (states[on_source][0], states[on_target][1]):
            assert state["member_count"] == MEMBERS and 0 < len(state["members"]) <= MOST_NAMED, state

        planned = readable(commands.plan(LATER, *chosen).expect(3))
        shown = readable(commands.run("show", LATER).expect(0))
        for text in (planned, shown):
            assert f"Stable on A with {MEMBERS} members" in text and f"Stable on B with {MEMBERS} members" in text, text
        rows = commands.document(LATER)["rows"]
        assert {row["group"]: row["decision"] for row in rows} == {
            on_source: "block", on_target: "block", scene.group("quiet"): "set",
        }  # fmt: skip

        refused = readable(commands.execute(PLAN).expect(3))
        assert refused.count(f"{MEMBERS} members") == 2, refused
        assert on_source in refused and on_target in refused, refused
        assert not commits_on(target, scene.commits)
        # The third group is in nobody's way.
        readable(commands.execute(PLAN, "--allow-partial").expect(4))
        assert set(commits_on(target, scene.commits)) == {scene.group("quiet")}
        left_out = readable(commands.verify(PLAN).expect(4))
        assert on_source in left_out and on_target in left_out, left_out
    commands.execute(PLAN).expect(0)
    assert set(commits_on(target, scene.commits)) == set(scene.commits)
    commands.verify(PLAN).expect(0)
