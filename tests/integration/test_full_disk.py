"""apply on a real cluster, where the disk of its journal is full, becomes full, or takes nothing."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.apply.history import read_history
from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from tests.integration.cli import CommandLine
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.lab.cluster import Cluster
from tests.unit.folders import fill, held, small_disk

pytestmark = pytest.mark.long

GROUPS, PRIOR, PLANNED = 300, 7, 10_000
TOPIC, COPY = "orders", "A.orders"
DISK_PAGES = 512
NAMES = tuple(f"g{n:03}" for n in range(GROUPS))


@dataclass
class Ground:
    """A broker with groups that all stand somewhere, and how many plans were made for it."""

    cluster: Cluster
    judge: JavaJudge
    plans: int = 0

    def plan(self) -> Plan:
        """Each another one: a plan that was rolled back is spent."""
        self.plans += 1
        offsets = {name: {0: (PLANNED + n, PRIOR)} for n, name in enumerate(NAMES)}
        return made_plan(self.cluster.bootstrap, TOPIC, offsets, 1_700_000_000_000 + self.plans)

    def commands(self, folder: Path) -> CommandLine:
        return CommandLine(folder, options_for(folder, self.cluster.bootstrap))


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    cluster = Cluster("full", tmp_path_factory.mktemp("full"))
    try:
        cluster.start()
        cluster.create_topic(COPY, 1)
        with JavaJudge(cluster) as judge:
            judge.commit(before())
            yield Ground(cluster, judge)
    finally:
        cluster.kill()


def before() -> HeldByGroup:
    return {name: {(COPY, 0): (PRIOR, "")} for name in NAMES}


def after() -> HeldByGroup:
    return {name: {(COPY, 0): (PLANNED + n, "")} for n, name in enumerate(NAMES)}


def test_a_disk_that_is_full_when_apply_begins_is_refused_before_the_first_write(
    ground: Ground, tmp_path: Path
) -> None:
    with small_disk(tmp_path, DISK_PAGES):
        plan = ground.plan()
        path = saved(plan, tmp_path / "cutover.plan")
        commands = ground.commands(tmp_path)
        commands.apply("cutover.plan").expect(0)
        filler, there = fill(tmp_path), held(tmp_path)
        said = commands.execute("cutover.plan").expect(1).complaint()
        assert "No space left on device). Nothing was changed. Make room" in said
        assert str(journal_path(path, plan.fingerprint).name) in said
        assert ground.judge.held() == before() and held(tmp_path) | {"filler": b""} == there | {"filler": b""}

        # Room for the first lines, and not for all prior offsets.
        filler.unlink()
        filler = fill(tmp_path, pages_left=2)
        said = commands.execute("cutover.plan").expect(1).complaint()
        assert "The journal could not be written" in said and "Nothing was written to the target. Make room" in said
        assert ground.judge.held() == before()

        filler.unlink()
        commands.execute("cutover.plan").expect(0)
        assert ground.judge.held() == after()
        commands.undo("cutover.plan").expect(0)
        assert ground.judge.held() == before()


def pages_of_backup(ground: Ground, folder: Path) -> int:
    """How many pages the journal of such a plan has when its first group is about to be written, and some more."""
    plan = ground.plan()
    path = saved(plan, folder / "measure.plan")
    commands = ground.commands(folder)
    commands.execute("measure.plan", "--concurrency", "1").expect(0)
    lines = journal_path(path, plan.fingerprint).read_bytes().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if b'"event":"intent"' in line)
    commands.undo("measure.plan").expect(0)
    assert ground.judge.held() == before()
    return sum(map(len, lines[:first])) // os.sysconf("SC_PAGE_SIZE") + 3


def test_a_disk_that_becomes_full_amid_apply_ends_it_and_says_what_is_set_and_what_the_journal_lacks(
    ground: Ground, tmp_path: Path
) -> None:
    room, disk = pages_of_backup(ground, tmp_path), tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, DISK_PAGES):
        plan = ground.plan()
        path = saved(plan, disk / "cutover.plan")
        commands = ground.commands(disk)
        filler = fill(disk, pages_left=room)
        ran = commands.execute("cutover.plan", "--concurrency", "1").expect(4)
        told = " ".join(ran.stdout.split())
        assert "the journal cannot be written any more (No space left on device)" in told, ran
        assert "what the cluster answered from then on, what was read back, and how this run ended" in told, ran
        now = ground.judge.held()
        moved = [name for name in NAMES if now[name] == after()[name]]
        assert 0 < len(moved) < GROUPS and {n: now[n] for n in NAMES if n not in moved} == {
            n: before()[n] for n in NAMES if n not in moved
        }, "some were written, and whole"
        assert re.search(rf"Rows [^A-Z]*\b{len(moved)} set\b", told), ran
        journal = read_history(journal_path(path, plan.fingerprint).read_bytes(), "journal", plan.fingerprint)
        assert journal.prior.keys() == set(NAMES), "all prior offsets are safe"
        assert set(moved) <= journal.applied.keys(), "nothing was written without an intent"

        # Still full: nothing can be noted, so nothing is written.
        commands.execute("cutover.plan").expect(1)
        assert ground.judge.held() == now
        filler.unlink()
        commands.execute("cutover.plan").expect(0)
        assert ground.judge.held() == after()
        commands.undo("cutover.plan").expect(0)
        assert ground.judge.held() == before()
