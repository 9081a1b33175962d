"""A machine whose clock is two hours off that of the brokers: the same plan, and what depends on the clock says so.

Only the clock that the product itself reads is moved: libfaketime moves all of them, and neither Java's waiting nor
Python's sleep gets along with it.
"""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import REPOSITORY, CommandLine, Ran, planned_offsets, run
from tests.integration.clusters import by_place, commits_on
from tests.integration.members import stay_and_leave
from tests.integration.scene import Scene
from tests.lab.lab import Lab

pytestmark = pytest.mark.long

HOUR_SECONDS = 3600
AHEAD, BEHIND, RIGHT = 2 * HOUR_SECONDS, -2 * HOUR_SECONDS, 0
PLAN = "cutover.plan"
# Python runs this before anything else, where it finds it on its path.
OTHER_CLOCK = """\
import os, time
_seconds = int(os.environ["SECONDS_OFF"])
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _seconds
time.time_ns = lambda: _time_ns() + _seconds * 10**9
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Two groups, of which one has just lost its last member on the target, where it stands at the start."""
    with Lab(tmp_path_factory.mktemp("clocks")) as lab:
        scene = Scene(lab, "clocks", seed=9)
        pool = scene.create("pool", 2)
        scene.write_synced_early([(pool, 0), (pool, 1)], 500)
        scene.wait_replicated()
        for name in ("fresh", "stayed"):
            scene.commit({scene.group(name): {(pool, 0): 100, (pool, 1): 120}})
        lab.mirror.wait_checkpoints(scene.commits, quiet_seconds=1.0)
        stay_and_leave(lab.target_bootstrap, scene.group("stayed"), scene.copy(pool))
        yield scene


@pytest.fixture
def commands(scene: Scene, tmp_path: Path) -> CommandLine:
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(OTHER_CLOCK)
    return CommandLine.of(scene.lab, tmp_path)


def at(seconds_off: int, commands: CommandLine, *words: str) -> Ran:
    """Run a command on a machine whose clock is so far off."""
    path = f"{commands.folder / 'clock'}:{REPOSITORY}"
    environment = {"PYTHONPATH": path, "SECONDS_OFF": str(seconds_off)}
    return run(*words, folder=commands.folder, environment=environment)


def plan_at(seconds_off: int, commands: CommandLine, scene: Scene, name: str, *options: str) -> Ran:
    words = ("plan", *commands.clusters, "--settle", "1", "--out", name, "--group", f".*{scene.suffix}", *options)
    return at(seconds_off, commands, *words)


def keep_offsets(lab: Lab, minutes: int) -> None:
    """Let the target's broker keep offsets so long, and start it again."""
    lab.target.overrides["offsets.retention.minutes"] = str(minutes)
    (broker,) = lab.target.brokers
    broker.stop()
    broker.write_properties()
    broker.start()


def expiry_of(document: dict[str, Any], group: str) -> dict[str, Any]:
    (found,) = [c for c in document["checks"] if (c["check"], c["subject"]) == ("offsets-expiry", group)]
    return dict(found)


def reckoned(text: str) -> float:
    """The time that a sentence reckons from, in seconds since 1970."""
    found = re.search(r"reckoned at (\d{4}-\d\d-\d\d \d\d:\d\d) UTC", " ".join(text.split()))
    assert found, text
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("seconds_off", [AHEAD, BEHIND], ids=["ahead", "behind"])
def test_a_clock_that_is_off_changes_no_row_and_no_verdict(
    scene: Scene, commands: CommandLine, seconds_off: int
) -> None:
    target = scene.lab.target_bootstrap
    before = commits_on(target, scene.commits)
    plan_at(RIGHT, commands, scene, "right.plan").expect(0)
    plan_at(seconds_off, commands, scene, PLAN).expect(0)
    document = commands.document(PLAN)
    rows = document["rows"]
    assert len(rows) == 4 and rows == commands.document("right.plan")["rows"]
    made = document["header"]["created_at_ms"] / 1000
    assert abs(made - time.time() - seconds_off) < HOUR_SECONDS, "the other clock was not read"

    words = ("status", *commands.clusters, "--group", f".*{scene.suffix}", "--settle", "1")
    told = " ".join(at(seconds_off, commands, *words).expect(0).stdout.split())
    assert told.startswith("READY: "), told
    assert ("newest checkpoint of 20" in told) == (seconds_off < 0), told
    assert json.loads(at(seconds_off, commands, *words, "--format", "json").expect(0).stdout)["ready"]

    approval = ("--approve", document["fingerprint"], "--execute")
    at(seconds_off, commands, "apply", PLAN, *commands.clusters, *approval).expect(0)
    planned = planned_offsets(rows)
    held = commits_on(target, scene.commits)
    assert by_place(held) == planned
    at(seconds_off, commands, "verify", PLAN, *commands.clusters).expect(0)
    # The way back is walked by the right clock: a journal's times decide nothing.
    at(-seconds_off, commands, "rollback", PLAN, *commands.clusters, *approval).expect(0)
    assert commits_on(target, scene.commits) == before


def test_a_clock_that_is_behind_does_not_hide_that_offsets_are_about_to_expire(
    scene: Scene, commands: CommandLine
) -> None:
    stayed = scene.group("stayed")
    only = ("--group", stayed)
    before = commits_on(scene.lab.target_bootstrap, scene.commits)
    commands.run("plan", *commands.clusters, "--settle", "1", "--out", PLAN, *only).expect(0)
    fingerprint = commands.document(PLAN)["fingerprint"]
    execute = ("apply", PLAN, *commands.clusters, "--approve", fingerprint, "--execute")
    keep_offsets(scene.lab, 90)
    try:
        for seconds_off in (RIGHT, BEHIND):
            plan_at(seconds_off, commands, scene, "soon.plan").expect(3)
            check = expiry_of(commands.document("soon.plan"), stayed)
            assert check["counts_as"] == "block" and abs(reckoned(check["seen"]) - time.time()) < HOUR_SECONDS, check
            refused = at(seconds_off, commands, *execute).expect(3)
            assert abs(reckoned(refused.stdout + refused.stderr) - time.time()) < HOUR_SECONDS, str(refused)
        # Three hours and a half are left, and by a clock that is ahead less than two: it says by which time.
        keep_offsets(scene.lab, 210)
        at(RIGHT, commands, *execute[:-1]).expect(0)
        refused = at(AHEAD, commands, *execute).expect(3)
        assert abs(reckoned(refused.stdout + refused.stderr) - time.time() - AHEAD) < HOUR_SECONDS, str(refused)
        assert commits_on(scene.lab.target_bootstrap, scene.commits) == before
    finally:
        keep_offsets(scene.lab, 10_080)
