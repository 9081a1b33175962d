"""A target of three brokers of which some are killed or stand still, while groups are written and records read.

Every partition has three copies, and all three brokers vote, so that any one of them may go.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import KafkaException

from migrate.apply.history import SET, JournalState, read_history
from migrate.plan.companions import journal_path
from tests.integration.cli import CommandLine
from tests.integration.clusters import Commits, alter_topic, commit, commits_on
from tests.integration.javajudge import JavaJudge
from tests.integration.judge import judged_cutover
from tests.integration.madeplan import made_plan, options_for, saved
from tests.integration.placement import commit_densely
from tests.integration.repeated import again_and_again
from tests.integration.running import applying, started
from tests.integration.scene import Scene
from tests.lab.cluster import Broker, Cluster
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

# In every run test_killed_apply interrupts apply itself.
pytestmark = pytest.mark.long

OFFSETS, MIN_COPIES = "__consumer_offsets", "min.insync.replicas"
PLAN, TOPIC, COPY = "cutover.plan", "orders", "A.orders"
PARTITIONS, GROUPS = 3, 12
# How long the groups' offsets may stay unwritable before a command gives up.
IMPATIENT = ("--request-timeout", "5", "--group-timeout", "5")
THREE_COPIES = (
    "replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor", "status.storage.replication.factor", "config.storage.replication.factor",
)  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A target with three copies of everything, two of them needed, and groups anywhere on what MM2 has copied."""
    mirror = MirrorOptions(extra=dict.fromkeys(THREE_COPIES, "3"))
    # Leaders move when a test has them moved, and not by themselves.
    overrides = {MIN_COPIES: "2", "default.replication.factor": "3", "auto.leader.rebalance.enable": "false"}
    folder = tmp_path_factory.mktemp("three")
    with Lab(folder, mirror=mirror, target_brokers=3, target_overrides=overrides) as lab:
        made = Scene(lab, "three", new_seed())
        plain, tx = made.create("plain", PARTITIONS), made.create("tx", 2)
        made.write([(plain, p) for p in range(PARTITIONS)], 3000)
        made.write_transactions([(tx, 0), (tx, 1)], 800)
        made.wait_replicated()
        commit_densely(made, GROUPS)
        lab.target.create_topic(COPY, PARTITIONS, replicas=3)
        yield made


@pytest.fixture
def target(scene: Scene) -> Iterator[Cluster]:
    """The target, well before and after."""
    cluster = scene.lab.target
    well(cluster)
    yield cluster
    for broker in cluster.brokers:
        if not broker.process.running:
            broker.start()
    alter_topic(cluster.bootstrap, OFFSETS, {MIN_COPIES: "2"})


Copies = dict[tuple[str, int], tuple[int, frozenset[int]]]
"""By topic and partition: the leader, and the copies in step."""


def copies(cluster: Cluster) -> Copies:
    topics = cluster.admin().list_topics(timeout=5.0).topics
    return {(t, p.id): (p.leader, frozenset(p.isrs)) for t, topic in topics.items() for p in topic.partitions.values()}


def wait_copies(cluster: Cluster, good: Callable[[int, frozenset[int]], bool], what: str) -> None:
    def seen() -> bool:
        try:
            found = copies(cluster)
        except KafkaException:
            return False
        return bool(found) and all(good(*each) for each in found.values())

    wait_until(seen, 90, what)


def well(cluster: Cluster) -> None:
    everybody = frozenset(broker.node_id for broker in cluster.brokers)
    wait_copies(cluster, lambda _, isr: isr == everybody, "all copies to be in step")


def leader_of_most(cluster: Cluster, topics: tuple[str, ...]) -> Broker:
    """The broker that leads most partitions of some topics."""
    ((node, _),) = Counter(leader for (t, _), (leader, _) in copies(cluster).items() if t in topics).most_common(1)
    return cluster.brokers[node - 1]


@contextmanager
def rolling(cluster: Cluster, random: Random) -> Iterator[list[int]]:
    """Kill and start one broker after the other until the end; yields the ids of those killed so far."""
    killed: list[int] = []

    def roll() -> None:
        broker = random.choice([broker for broker in cluster.brokers if broker.node_id not in killed[-1:]])
        broker.kill()
        killed.append(broker.node_id)
        broker.start()

    with again_and_again(roll, random.uniform(0, 1.0)):
        yield killed


class Made:
    """A plan of groups of which every second one stands somewhere already."""

    def __init__(self, target: Cluster, folder: Path, prefix: str, groups: int) -> None:
        names = [f"{prefix}-{n:03}" for n in range(groups)]
        self.prior = {g: {(COPY, p): 10 + p for p in range(PARTITIONS)} for g in names[::2]}
        commit(target.bootstrap, self.prior)
        offsets = {
            g: {p: (1000 + 10 * n + p, self.prior.get(g, {}).get((COPY, p))) for p in range(PARTITIONS)}
            for n, g in enumerate(names)
        }
        self.wanted: Commits = {g: {(COPY, p): o for p, (o, _) in at.items()} for g, at in offsets.items()}
        plan = made_plan(target.bootstrap, TOPIC, offsets, 1_700_000_000_000)
        self.journal = journal_path(saved(plan, folder / PLAN), plan.fingerprint)
        self.commands = CommandLine(folder, options_for(folder, target.bootstrap))

    def history(self) -> JournalState:
        return read_history(self.journal.read_bytes(), self.journal.name, self.commands.approved(PLAN)[1])

    def written(self) -> set[str]:
        """The groups of which the journal says that every offset is set."""
        traces = self.history().applied
        return {g for g, trace in traces.items() if trace.results and set(trace.results.values()) == {SET}}


def test_applied_under_a_rolling_kill_nothing_is_wrong_and_the_journal_says_where_it_stood(
    target: Cluster, tmp_path: Path
) -> None:
    seed, made = new_seed(), Made(target, tmp_path, "rolled", 1000)
    with applying(made.commands, PLAN, "--request-timeout", "10") as running, rolling(target, Random(seed)) as killed:
        ran = running.result()
        killed_amid_apply = list(killed)
    print(f"seed {seed}: brokers killed {killed_amid_apply}, exit {ran.exit_code}\n{ran.stderr}")
    assert killed_amid_apply and "Traceback" not in ran.stderr
    assert ran.exit_code in (0, 4), f"seed {seed}\n{ran}"
    well(target)
    applied = made.history().applied
    for group, held in commits_on(target.bootstrap, made.wanted).items():
        as_wanted, as_before = held == made.wanted[group], held == made.prior.get(group)
        assert as_wanted or as_before, f"a wrong offset: {group} {held}, seed {seed}"
        assert as_before or group in applied, "set, and the journal does not know"
    made.commands.execute(PLAN).expect(0)
    assert commits_on(target.bootstrap, made.wanted) == made.wanted, f"seed {seed}"
    made.commands.undo(PLAN).expect(0)
    assert commits_on(target.bootstrap, made.wanted) == made.prior, f"seed {seed}"


def test_an_append_that_was_never_acknowledged_and_becomes_visible_later_is_rolled_back(
    target: Cluster, tmp_path: Path
) -> None:
    """With two of three brokers paused a commit is appended and answered with COORDINATOR_NOT_AVAILABLE."""
    made = Made(target, tmp_path, "hidden", 1000)

    def hidden() -> bytes:
        lines = made.journal.read_bytes().splitlines()
        return b"".join(line for line in lines if b"COORDINATOR_NOT_AVAILABLE" in line)

    with (
        ExitStack() as paused,
        applying(made.commands, PLAN, "--request-timeout", "10", concurrency=8) as running,
    ):
        # Kills before may have moved every coordinator to another broker: the one that stays must have some.
        staying = leader_of_most(target, (OFFSETS,))
        for broker in target.brokers:
            if broker is not staying:
                paused.callback(broker.process.resume)
                broker.process.pause()
        wait_until(lambda: hidden() or running.has_ended, 120, "an error that hides an append")
        assert not running.has_ended, str(running.result())
        running.kill()
    well(target)
    with JavaJudge(target) as judge:
        looks: list[set[str]] = [set()]

        def all_that_appear() -> set[str]:
            said = hidden()
            held = {g: {place: o for place, (o, _) in at.items()} for g, at in judge.held().items()}
            looks.append(
                {g for g in made.wanted if held.get(g) == made.wanted[g] and f'"group":"{g}"'.encode() in said}
            )
            return looks[-1] if looks[-1] == looks[-2] else set()

        # They do so once the others have copied them, after their copies count as in step again.
        appeared = wait_until(all_that_appear, 60, "an append to become visible, as this scene is to show")
    made.commands.undo(PLAN).expect(0)
    left = commits_on(target.bootstrap, made.wanted)
    assert left == made.prior, f"not all is as before; {len(appeared)} appends became visible late"
    made.commands.undo(PLAN).expect(0)


def test_below_min_insync_replicas_apply_says_what_to_look_at_sets_nothing_and_finishes_once_the_broker_is_back(
    target: Cluster, tmp_path: Path
) -> None:
    made, lost = Made(target, tmp_path, "few", 60), target.brokers[-1]
    alter_topic(target.bootstrap, OFFSETS, {MIN_COPIES: "3"})
    lost.kill()
    gone = lost.node_id
    wait_copies(target, lambda leader, isr: leader not in (gone, -1) and gone not in isr, f"it to go on without {gone}")
    ran = made.commands.execute(PLAN, *IMPATIENT)
    assert "no answer within 5 s (fewer copies of" in ran.stdout and MIN_COPIES in ran.stdout, str(ran)
    # A new leader that has not learnt yet that the last commits are on all copies tells no stable offsets, and apply is
    # refused before it writes. One that has learnt it tells them, and takes writes that it does not answer.
    refused = ran.exit_code == 3
    ran.expect(3 if refused else 4)
    assert ran.stdout.startswith("REFUSED: nothing was written") == refused, str(ran)
    assert refused or not made.written(), str(ran)
    lost.start()
    well(target)
    found = commits_on(target.bootstrap, made.wanted)
    for group, wanted in made.wanted.items():
        before = made.prior.get(group)
        assert found.get(group) in ((before,) if refused else (before, wanted)), str(ran)
    made.commands.execute(PLAN).expect(0)
    assert commits_on(target.bootstrap, made.wanted) == made.wanted and made.written() == set(made.wanted)
    made.commands.verify(PLAN).expect(0)
    made.commands.undo(PLAN).expect(0)
    assert commits_on(target.bootstrap, made.wanted) == made.prior


def test_a_leader_that_dies_while_spark_reads_records_changes_no_row_of_the_plan(
    scene: Scene, target: Cluster, tmp_path: Path
) -> None:
    commands, lost = CommandLine.of(scene.lab, tmp_path), leader_of_most(target, tuple(map(scene.copy, scene.topics)))
    words = ("plan", *commands.clusters, "--settle", "1", "--out", PLAN, "--group", f".*{scene.suffix}")
    with started(commands, *words) as running:
        running.wait_for("comparing ")
        with ExitStack() as standing_still:
            for broker in target.brokers:
                standing_still.callback(broker.process.resume)
                broker.process.pause()
            # What is being read now has no answer before its leader is gone.
            lost.kill()
            reading = running.said
        ran = running.result()
    assert ran.stderr.startswith(reading) and reading.splitlines()[-1].count("comparing "), str(ran)
    ran.expect(0)
    # The broker is still gone, and every copy that it had out of step.
    judged_cutover(scene, commands, PLAN)
