"""apply killed at any byte of its journal, and the same command again: nothing is lost, and all can be undone."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from migrate.apply.history import SET, read_history
from migrate.model import TopicPartition
from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from tests.integration.cli import DEADLINE_SECONDS, REPOSITORY, CommandLine
from tests.integration.javajudge import HeldByGroup, JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.lab.cluster import Cluster
from tests.seeds import new_seed

GROUPS, PARTITIONS = 200, 3
KILLS, ALL_KILLS = 2, 50
PLAIN, ODD = "g", "odd"
ODD_EVERY = 5
TOPIC, COPY = "orders", "A.orders"
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
    plans: int = 0
    _journal_sizes: dict[str, int] = field(default_factory=dict)

    def plan(self, offsets: Planned) -> Plan:
        self.plans += 1
        return made_plan(self.cluster.bootstrap, TOPIC, offsets, 1_700_000_000_000 + self.plans)

    def journal_size(self, kind: str) -> int:
        """How many bytes a journal has, at least, of an apply for groups of a kind that nobody kills."""
        if kind not in self._journal_sizes:
            folder = self.folder / kind
            folder.mkdir()
            plan = self.plan(planned_offsets(self.judge.held(), kind))
            path = saved(plan, folder / "cutover.plan")
            commands = CommandLine(folder, options_for(folder, self.cluster.bootstrap))
            commands.execute("cutover.plan").expect(0)
            journal = journal_path(path, plan.fingerprint).read_bytes()
            commands.undo("cutover.plan").expect(0)
            # Process ids have few digits or many.
            self._journal_sizes[kind] = len(journal) - PROCESS_ID_DIGITS
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


def killed_at(commands: CommandLine, plan: Plan, path: Path, size: int) -> Path:
    """Run apply until its journal, or a file before it, has so many bytes, and would get one more; return the journal.

    The kernel ends it there, by a signal that nothing in it handles, as it does for -9: a kill from outside comes late
    on a busy machine, or when apply is done.
    """
    arguments = ("apply", path.name, *commands.clusters, "--approve", plan.fingerprint, "--execute")
    process = subprocess.run(
        [sys.executable, "-c", ENDED_BY_A_FILE_TOO_LARGE, *arguments],
        cwd=commands.folder,
        # A module that is compiled anew is a file, too.
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=DEADLINE_SECONDS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    journal = journal_path(path, plan.fingerprint)
    assert process.returncode == -signal.SIGXFSZ, f"it ended by itself with {process.returncode} at {size} bytes"
    if size < LARGEST_BEFORE and not journal.exists():
        return journal
    assert journal.stat().st_size == size
    return journal


def test_killed_at_any_instant_the_same_command_finishes_and_rollback_brings_all_back(
    ground: Ground, kill: int, tmp_path: Path
) -> None:
    random, kind = Random(f"{ground.seed} {kill}"), PLAIN if kill % ODD_EVERY else ODD
    before = ground.judge.held()
    offsets = planned_offsets(before, kind)
    plan = ground.plan(offsets)
    path = saved(plan, tmp_path / "cutover.plan")
    commands = CommandLine(tmp_path, options_for(tmp_path, ground.cluster.bootstrap))
    size = random.choice([0, *(random.randrange(ground.journal_size(kind)) for _ in range(3))])
    journal = killed_at(commands, plan, path, size)
    story = f"killed at {size} of {ground.journal_size(kind)} bytes of journal: seed {ground.seed}, kill {kill}"

    # Nobody is in the way: what the killed one held fell with it, and with the process that it had started.
    commands.execute("cutover.plan").expect(0)
    planned = {
        group: dict(before.get(group, {})) | {(COPY, p): (offset, "") for p, (offset, *_) in places.items()}
        for group, places in offsets.items()
    }
    assert ground.judge.held() == before | planned, story

    history = read_history(journal.read_bytes(), journal.name, plan.fingerprint)
    assert not history.torn, story
    for group, places in offsets.items():
        trace = history.applied[group]
        assert trace.planned == {TopicPartition(COPY, p): offset for p, (offset, *_) in places.items()}, story
        known, stood = history.prior[group], before.get(group, {})
        assert {tuple(p): c.offset for p, c in known.items()} == {p: offset for p, (offset, _) in stood.items()}, story
        # What stands beside the plan's rows is saved as far as librdkafka reads it, and never brought back.
        assert all(c.metadata == stood[tuple(p)][1] for p, c in known.items() if p.topic == COPY), story
        assert set(trace.results.values()) == {SET} and trace.read_back, story

    commands.undo("cutover.plan").expect(0)
    assert ground.judge.held() == before, story
    commands.execute("cutover.plan").expect(3)
