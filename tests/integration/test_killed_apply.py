"""apply killed at any byte of its journal, and the same command again: nothing is lost, and all can be undone."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from migrate.apply.history import SET, read_history
from migrate.model import TopicPartition
from migrate.plan.companions import journal_path
from tests.integration.cli import DEADLINE_SECONDS, REPOSITORY, CommandLine
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.lab.cluster import Cluster
from tests.seeds import new_seed

GROUPS, PARTITIONS = 200, 3
KILLS, ALL_KILLS = 2, 50
PLAIN, ODD = "g", "odd"
ODD_EVERY = 5
PLAN, TOPIC, COPY = "cutover.plan", "orders", "A.orders"
PROCESS_ID_DIGITS = 7
# What apply starts Java with is written before the journal, and has fewer bytes.
LARGEST_BEFORE = 16_384
# Python ignores that signal, unless it is told otherwise.
ENDED_BY_A_FILE_TOO_LARGE = (
    "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); from migrate.cli.main import main; main()"
)
# What these hold is no business of the plan: it must stand in the end as it stood before.
BYSTANDERS: HeldByGroup = {
    "bystander": {(COPY, 0): (3, "é\x00y"), (COPY, 1): (4, "")},
    "g0000": {("elsewhere", 0): (7, "AgAAAZ==\x00")},
}
Planned = dict[str, dict[int, tuple[int, int | None, str]]]


@dataclass
class Ground:
    """A broker with groups that stood somewhere before, and groups that did not exist: 100 of either kind.

    Of the second kind some stood with metadata or on one partition only, which needs a JVM to bring back.
    """

    cluster: Cluster
    judge: JavaJudge
    folder: Path
    seed: int = field(default_factory=new_seed)
    _journal_sizes: dict[str, int] = field(default_factory=dict)

    def saved(self, offsets: Planned, folder: Path) -> tuple[CommandLine, Path]:
        """Save a plan that no other is like; return the commands for it, and where its journal will be."""
        plan = made_plan(self.cluster.bootstrap, TOPIC, offsets, time.time_ns() // 1_000_000)
        commands = CommandLine(folder, options_for(folder, self.cluster.bootstrap))
        return commands, journal_path(saved(plan, folder / PLAN), plan.fingerprint)

    def journal_size(self, kind: str) -> int:
        """How many bytes a journal has, at least, of an apply for groups of a kind that nobody kills."""
        if kind not in self._journal_sizes:
            folder = self.folder / kind
            folder.mkdir()
            commands, journal = self.saved(planned_offsets(self.judge.held(), kind), folder)
            commands.execute(PLAN).expect(0)
            # Process ids have few digits or many.
            self._journal_sizes[kind] = journal.stat().st_size - PROCESS_ID_DIGITS
            commands.undo(PLAN).expect(0)
        return self._journal_sizes[kind]


def planned_offsets(before: HeldByGroup, kind: str) -> Planned:
    return {
        group: {p: (10_000 + 10 * n + p, *before.get(group, {}).get((COPY, p), (None, ""))) for p in range(PARTITIONS)}
        for n, group in enumerate(f"{kind}{n:04}" for n in range(GROUPS))
    }


def stood_before() -> HeldByGroup:
    """Every second group has commits; of the odd kind some on one partition only, and some with metadata."""
    held: HeldByGroup = {}
    for n in range(0, GROUPS, 2):
        held[f"{PLAIN}{n:04}"] = {(COPY, p): (n + p, "") for p in range(PARTITIONS)}
        metadata = f"é\x00{n}" if n % 8 == 0 else ""
        places = range(PARTITIONS) if n % 4 == 0 else (1,)
        held[f"{ODD}{n:04}"] = {(COPY, p): (n + p, metadata if p else "") for p in places}
    return held


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    cluster = Cluster("killed", tmp_path_factory.mktemp("killed"))
    try:
        cluster.start()
        cluster.create_topic(COPY, PARTITIONS)
        cluster.create_topic("elsewhere", 1)
        with JavaJudge(cluster) as judge:
            judge.commit({**BYSTANDERS, **{g: BYSTANDERS.get(g, {}) | held for g, held in stood_before().items()}})
            yield Ground(cluster, judge, tmp_path_factory.mktemp("unkilled"))
    finally:
        cluster.kill()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill" in metafunc.fixturenames:
        metafunc.parametrize("kill", range(ALL_KILLS if metafunc.config.getoption("--long") else KILLS))


def kill_at(commands: CommandLine, journal: Path, size: int) -> None:
    """Run apply until its journal, or a file before it, has so many bytes, and would get one more.

    The kernel ends it there, by a signal that nothing in it handles, as it does for -9: a kill from outside comes late
    on a busy machine, or when apply is done.
    """
    process = subprocess.run(
        [sys.executable, "-c", ENDED_BY_A_FILE_TOO_LARGE, "apply", PLAN, *commands.clusters, *commands.approved(PLAN)],
        cwd=commands.folder,
        # A module that is compiled anew is a file, too.
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=DEADLINE_SECONDS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    assert process.returncode == -signal.SIGXFSZ, f"it ended by itself with {process.returncode} at {size} bytes"
    assert journal.stat().st_size == size if journal.exists() else size < LARGEST_BEFORE


def test_killed_at_any_instant_the_same_command_finishes_and_rollback_brings_all_back(
    ground: Ground, kill: int, tmp_path: Path
) -> None:
    random, kind = Random(f"{ground.seed} {kill}"), PLAIN if kill % ODD_EVERY else ODD
    before = ground.judge.held()
    offsets = planned_offsets(before, kind)
    commands, journal = ground.saved(offsets, tmp_path)
    size = random.choice([0, *(random.randrange(ground.journal_size(kind)) for _ in range(3))])
    kill_at(commands, journal, size)
    story = f"killed at {size} of {ground.journal_size(kind)} bytes of journal: seed {ground.seed}, kill {kill}"

    # Nobody is in the way: what the killed one held fell with it, and with the process that it had started.
    commands.execute(PLAN).expect(0)
    planned = {
        group: dict(before.get(group, {})) | {(COPY, p): (offset, "") for p, (offset, *_) in places.items()}
        for group, places in offsets.items()
    }
    assert ground.judge.held() == before | planned, story

    history = read_history(journal.read_bytes(), journal.name, commands.approved(PLAN)[1])
    assert not history.torn, story
    for group, places in offsets.items():
        trace = history.applied[group]
        assert trace.planned == {TopicPartition(COPY, p): offset for p, (offset, *_) in places.items()}, story
        known, stood = history.prior[group], before.get(group, {})
        assert {tuple(p): c.offset for p, c in known.items()} == {p: offset for p, (offset, _) in stood.items()}, story
        # What stands beside the plan's rows is saved as far as librdkafka reads it, and never brought back.
        assert all(c.metadata == stood[tuple(p)][1] for p, c in known.items() if p.topic == COPY), story
        assert set(trace.results.values()) == {SET} and trace.read_back, story

    commands.undo(PLAN).expect(0)
    assert ground.judge.held() == before, story
    commands.execute(PLAN).expect(3)
