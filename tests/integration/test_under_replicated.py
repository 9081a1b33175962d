"""A target of three brokers that loses one: with offsets under-replicated, below min.insync.replicas, and mid-command.

Every partition has three copies, and all three brokers vote, so that any one of them may go.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from migrate.apply.history import SET, read_history
from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from tests.integration.cli import CommandLine, planned_offsets
from tests.integration.clusters import Commits, all_syncs, alter_topic, by_place, commit, commits_on
from tests.integration.judge import Judge, told
from tests.integration.madeplan import made_plan, options_for, saved
from tests.integration.placement import commit_densely
from tests.integration.running import started
from tests.integration.scene import Scene
from tests.lab.cluster import Broker, Cluster
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

OFFSETS = "__consumer_offsets"
MIN_COPIES = "min.insync.replicas"
PLAN, TOPIC, COPY = "cutover.plan", "orders", "A.orders"
PARTITIONS, GROUPS = 3, 12
MADE_GROUPS = 60
DEADLINE_SECONDS = 180.0
# How long the groups' offsets may stay unwritable before a command gives up.
IMPATIENT = ("--request-timeout", "5", "--group-timeout", "5")
THREE_COPIES = (
    "replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor", "status.storage.replication.factor", "config.storage.replication.factor",
)  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A target of three brokers with three copies of everything, and groups anywhere on what MM2 has copied."""
    own_clusters_only()
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


@pytest.fixture
def commands(scene: Scene, tmp_path: Path) -> CommandLine:
    return CommandLine.of(scene.lab, tmp_path)


Copies = dict[tuple[str, int], tuple[int, frozenset[int]]]
"""By topic and partition: the leader, and the copies in step."""


def copies(cluster: Cluster) -> Copies:
    topics = cluster.admin().list_topics(timeout=5.0).topics
    return {(t, p.id): (p.leader, frozenset(p.isrs)) for t, topic in topics.items() for p in topic.partitions.values()}


def wait_copies(cluster: Cluster, good: Callable[[Copies], bool], what: str) -> Copies:
    def seen() -> Copies | None:
        try:
            found = copies(cluster)
        except KafkaException:
            return None
        return found if found and good(found) else None

    return wait_until(seen, 90, what)


def well(cluster: Cluster) -> None:
    """Wait until every copy of every partition is in step."""
    everybody = frozenset(broker.node_id for broker in cluster.brokers)
    wait_copies(cluster, lambda found: all(isr == everybody for _, isr in found.values()), "all copies to be in step")


def lose(cluster: Cluster, broker: Broker) -> None:
    """Kill a broker, and wait until the others lead, and know that its copies are out of step."""
    broker.kill()
    gone = broker.node_id
    wait_copies(
        cluster,
        lambda found: all(leader not in (gone, -1) and gone not in isr for leader, isr in found.values()),
        f"the cluster to go on without broker {gone}",
    )


def leader_of_most(cluster: Cluster, topics: tuple[str, ...]) -> Broker:
    """The broker that leads most partitions of some topics."""
    ((node, _),) = Counter(leader for (t, _), (leader, _) in copies(cluster).items() if t in topics).most_common(1)
    return cluster.brokers[node - 1]


def chosen(scene: Scene) -> tuple[str, str]:
    return ("--group", f".*{scene.suffix}")


def judged(scene: Scene, commands: CommandLine, name: str) -> dict[tuple[str, str, int], int]:
    """Hold every row of a plan against the truth; returns the planned offsets by group, target topic, partition."""
    rows = commands.document(name)["rows"]
    assert {(r["group"], r["source_topic"], r["partition"]): r["source_committed"] for r in rows} == scene.places
    score = Judge(scene, scene.truth(), all_syncs(scene.lab), whole=True).score(rows)
    assert score.judged["loss"] == len(rows) == GROUPS * len(scene.partitions) and score.judged["best"] > 0
    assert not score.complaints, told(score.complaints)
    return planned_offsets(rows)


def held(scene: Scene) -> dict[tuple[str, str, int], int]:
    return by_place(commits_on(scene.lab.target_bootstrap, scene.commits))


# --- below min.insync.replicas ----------------------------------------------------------------------------


def prior_and_plan(target: Cluster, folder: Path, number: int) -> tuple[Commits, Commits, Plan]:
    """What stands on the target, what a plan wants to stand there, and the plan, saved."""
    names = [f"min{number}-{n:02}" for n in range(MADE_GROUPS)]
    # Every second group stands somewhere already.
    prior = {g: {(COPY, p): 10 + p for p in range(PARTITIONS)} for g in names[::2]}
    commit(target.bootstrap, prior)
    offsets: dict[str, Mapping[int, tuple[int, int | None]]] = {
        g: {p: (1000 + 10 * n + p, prior[g][COPY, p] if g in prior else None) for p in range(PARTITIONS)}
        for n, g in enumerate(names)
    }
    plan = made_plan(target.bootstrap, TOPIC, offsets, 1_700_000_000_000 + number)
    saved(plan, folder / PLAN)
    wanted = {g: {(COPY, p): offset for p, (offset, _) in at.items()} for g, at in offsets.items()}
    return prior, wanted, plan


def written(folder: Path, plan: Plan) -> set[str]:
    """The groups of which the journal says that every offset is set."""
    journal = journal_path(folder / PLAN, plan.fingerprint)
    history = read_history(journal.read_bytes(), journal.name, plan.fingerprint)
    return {g for g, trace in history.applied.items() if trace.results and set(trace.results.values()) == {SET}}


def test_below_min_insync_replicas_apply_says_what_to_look_at_sets_nothing_and_finishes_once_the_broker_is_back(
    target: Cluster, tmp_path: Path
) -> None:
    prior, wanted, plan = prior_and_plan(target, tmp_path, 1)
    commands = CommandLine(tmp_path, options_for(tmp_path, target.bootstrap))
    alter_topic(target.bootstrap, OFFSETS, {MIN_COPIES: "3"})
    lost = target.brokers[-1]
    lose(target, lost)
    ran = commands.execute(PLAN, *IMPATIENT)
    assert "no answer within 5 s (fewer copies of" in ran.stdout and MIN_COPIES in ran.stdout, str(ran)
    # A new leader that has not learnt yet that the last commits are on all copies tells no stable offsets, and apply is
    # refused before it writes. One that has learnt it tells them, and takes writes that it does not answer.
    refused = ran.exit_code == 3
    ran.expect(3 if refused else 4)
    assert ran.stdout.startswith("REFUSED: nothing was written") == refused, str(ran)
    assert refused or not written(tmp_path, plan), str(ran)
    lost.start()
    well(target)
    found = commits_on(target.bootstrap, wanted)
    assert all(found.get(g) in ((prior.get(g),) if refused else (prior.get(g), wanted[g])) for g in wanted), str(ran)
    commands.execute(PLAN).expect(0)
    assert commits_on(target.bootstrap, wanted) == wanted and written(tmp_path, plan) == set(wanted)
    commands.verify(PLAN).expect(0)
    commands.undo(PLAN).expect(0)
    assert commits_on(target.bootstrap, wanted) == prior


def test_an_apply_that_falls_below_min_insync_replicas_midway_is_rolled_back_once_the_broker_is_back(
    target: Cluster, tmp_path: Path
) -> None:
    prior, wanted, plan = prior_and_plan(target, tmp_path, 2)
    commands = CommandLine(tmp_path, options_for(tmp_path, target.bootstrap))
    alter_topic(target.bootstrap, OFFSETS, {MIN_COPIES: "3"})
    lost = leader_of_most(target, (OFFSETS,))

    def is_under_way() -> bool:
        journal = journal_path(tmp_path / PLAN, plan.fingerprint)
        return journal.exists() and b'"event":"outcome"' in journal.read_bytes()

    words = ("apply", PLAN, *commands.clusters, "--approve", plan.fingerprint, "--execute", "--concurrency", "2")
    with started(commands, *words, *IMPATIENT) as running:
        wait_until(
            lambda: is_under_way() or running.has_ended, DEADLINE_SECONDS, "the first groups", poll_seconds=0.002
        )
        assert not running.has_ended, str(running.result())
        running.stop()
        lost.kill()
        running.go_on()
        ran = running.result().expect(4)
    # Brokers refuse a write once they know that the copy is gone; before, and where one waits, nothing is answered at
    # all. librdkafka may die of it again and again.
    assert "10 times in a row" in ran.stdout or MIN_COPIES in ran.stdout, str(ran)
    known = written(tmp_path, plan)
    assert known and known != set(wanted), f"{len(known)} of {len(wanted)} groups written: not midway"
    lost.start()
    well(target)
    # Only now: what was committed with all copies in step is shown by a new leader once they are in step again.
    after = commits_on(target.bootstrap, wanted)
    assert all(after[group] == wanted[group] for group in known), str(ran)
    assert all(after.get(group) in (wanted[group], prior.get(group)) for group in wanted), str(ran)
    commands.undo(PLAN).expect(0)
    assert commits_on(target.bootstrap, wanted) == prior, str(ran)
    assert "has been rolled back" in commands.execute(PLAN).expect(3).complaint()


# --- leaders that move ------------------------------------------------------------------------------------


@contextmanager
def standing_still(cluster: Cluster) -> Iterator[None]:
    """Nobody of the cluster answers; whoever still runs at the end goes on."""
    for broker in cluster.brokers:
        broker.process.pause()
    try:
        yield
    finally:
        for broker in cluster.brokers:
            if broker.process.running:
                broker.process.resume()


def test_a_leader_that_dies_while_spark_reads_records_changes_no_row_of_the_plan(
    scene: Scene, target: Cluster, commands: CommandLine
) -> None:
    read = tuple(scene.copy(topic) for topic in scene.topics)
    lost = leader_of_most(target, read)
    words = ("plan", *commands.clusters, "--settle", "1", "--out", "moved.plan", *chosen(scene))
    with started(commands, *words) as running:
        running.wait_for("comparing ")
        with standing_still(target):
            # What is being read now has no answer before its leader is gone.
            lost.kill()
            reading = running.said
        ran = running.result()
    assert ran.stderr.startswith(reading) and reading.splitlines()[-1].count("comparing "), str(ran)
    ran.expect(0)
    planned = judged(scene, commands, "moved.plan")
    # The broker is still gone, and every copy that it had out of step.
    commands.execute("moved.plan").expect(0)
    assert held(scene) == planned
    commands.verify("moved.plan", "--records").expect(0)
    commands.undo("moved.plan").expect(0)
    assert not held(scene)
