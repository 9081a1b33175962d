"""apply while the target's brokers are killed and started again, one after the other."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import KafkaException

from migrate.apply.history import read_history
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, Side
from migrate.plan.companions import journal_path
from migrate.plan.plan import Plan
from tests.integration.cli import REPOSITORY, CommandLine
from tests.integration.clusters import commits_on
from tests.integration.javajudge import JavaJudge
from tests.integration.madeplan import made_plan, options_for, saved
from tests.lab.cluster import Broker, Cluster
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

# In every run test_killed_apply interrupts apply itself.
pytestmark = pytest.mark.long

TOPIC, COPY = "orders", "A.orders"
PARTITIONS = 3
GROUPS = 1000
READ_GROUPS = 150
ROUNDS = 9
DEADLINE_SECONDS = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes that all vote; commits need two of the three copies."""
    made = Cluster(
        "rolling", tmp_path_factory.mktemp("rolling"), brokers=3, controllers=3,
        overrides={"min.insync.replicas": "2", "offsets.topic.num.partitions": "12"},
    )  # fmt: skip
    try:
        made.start()
        made.create_topic(COPY, PARTITIONS, replicas=3)
        yield made
    finally:
        made.kill()


@contextmanager
def rolling(cluster: Cluster, random: Random) -> Iterator[list[int]]:
    """Kill and start one broker after the other until the end; yields the ids of those killed so far."""
    enough = threading.Event()
    killed: list[int] = []
    trouble: list[BaseException] = []

    def roll() -> None:
        try:
            while not enough.is_set():
                for broker in random.sample(cluster.brokers, 3):
                    broker.kill()
                    killed.append(broker.node_id)
                    enough.wait(random.uniform(0, 1.5))
                    broker.start()
                    if enough.is_set():
                        return
        except BaseException as error:
            trouble.append(error)

    thread = threading.Thread(target=roll)
    thread.start()
    try:
        yield killed
    finally:
        enough.set()
        thread.join()
    assert not trouble, trouble[0]


def well(cluster: Cluster) -> None:
    """Wait until every broker runs and every copy of every partition has caught up."""

    def in_step() -> bool:
        try:
            topics = cluster.admin().list_topics(timeout=5.0).topics.values()
        except KafkaException:
            return False
        return all(len(p.isrs) == len(p.replicas) for topic in topics for p in topic.partitions.values())

    wait_until(in_step, 90, "all copies to be in step")


@dataclass(frozen=True)
class Applying:
    """An apply that is under way, with few calls in flight, so that there is something to disturb."""

    plan: Plan
    planned: dict[str, dict[tuple[str, int], int]]
    journal: Path
    commands: CommandLine
    process: "subprocess.Popen[str]"

    def has_written(self, word: bytes) -> bool:
        """True once its journal has the word, or it has ended."""
        return self.process.poll() is not None or (self.journal.exists() and word in self.journal.read_bytes())


@contextmanager
def applying(
    cluster: Cluster, folder: Path, prefix: str, groups: int, created_at_ms: int, concurrency: str
) -> Iterator[Applying]:
    """Start apply, and wait until it has written a first offset; it is killed in the end."""
    offsets = {f"{prefix}{n:04}": {p: (1000 + 10 * n + p, None) for p in range(PARTITIONS)} for n in range(groups)}
    plan = made_plan(cluster.bootstrap, TOPIC, offsets, created_at_ms)
    journal = journal_path(saved(plan, folder / "cutover.plan"), plan.fingerprint)
    commands = CommandLine(folder, options_for(folder, cluster.bootstrap))
    arguments = ("apply", "cutover.plan", *commands.clusters, "--approve", plan.fingerprint, "--execute")
    process = subprocess.Popen(
        [sys.executable, "-m", "migrate", *arguments, "--concurrency", concurrency, "--request-timeout", "10"],
        cwd=folder, env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    planned = {g: {(COPY, p): offset for p, (offset, _) in places.items()} for g, places in offsets.items()}
    made = Applying(plan, planned, journal, commands, process)
    try:
        wait_until(lambda: made.has_written(b'"outcome"'), 60, "the first outcome in the journal", poll_seconds=0.01)
        assert process.poll() is None, process.communicate()
        yield made
    finally:
        process.kill()
        process.communicate()


def test_applied_under_a_rolling_kill_nothing_is_wrong_and_the_journal_says_where_it_stood(
    cluster: Cluster, tmp_path: Path
) -> None:
    seed = new_seed()
    with (
        applying(cluster, tmp_path, "g", GROUPS, 1_700_000_000_000, "2") as made,
        rolling(cluster, Random(seed)) as killed,
    ):
        stdout, stderr = made.process.communicate(timeout=DEADLINE_SECONDS)
        killed_amid_apply = list(killed)
    code = made.process.returncode
    print(f"seed {seed}: brokers killed {killed_amid_apply}, exit {code}\n{stderr}")
    assert code in (0, 4), f"seed {seed}\n{stdout}\n{stderr}"
    assert killed_amid_apply and "Traceback" not in stderr
    well(cluster)

    history = read_history(made.journal.read_bytes(), made.journal.name, made.plan.fingerprint)
    for group, held in commits_on(cluster.bootstrap, made.planned).items():
        assert held == made.planned[group], f"a wrong offset: {group} {held}, seed {seed}"
        assert group in history.applied, "set, and the journal does not know"
    made.commands.execute("cutover.plan").expect(0)
    with JavaJudge(cluster) as judge:
        stand = {g: {place: offset for place, (offset, _) in held.items()} for g, held in judge.held().items()}
        assert stand == made.planned, f"seed {seed}"
        made.commands.undo("cutover.plan").expect(0)
        assert not judge.held().keys() & made.planned.keys(), f"seed {seed}"


def test_an_append_that_was_never_acknowledged_and_becomes_visible_later_is_rolled_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    """With two of three brokers paused a commit is appended and answered with COORDINATOR_NOT_AVAILABLE."""
    well(cluster)
    paused: list[Broker] = []
    with applying(cluster, tmp_path, "hidden-", GROUPS, 1_700_000_000_001, "8") as made:
        try:
            # Kills before may have moved every coordinator to another broker: the one that stays must have some.
            led = cluster.admin().list_topics(timeout=30).topics["__consumer_offsets"].partitions.values()
            ((staying, _),) = Counter(partition.leader for partition in led).most_common(1)
            paused = [broker for broker in cluster.brokers if broker.node_id != staying]
            for broker in paused:
                broker.process.pause()
            wait_until(lambda: made.has_written(b"COORDINATOR_NOT_AVAILABLE"), 120, "an error that hides an append")
            assert made.process.poll() is None, made.process.communicate()
        finally:
            made.process.kill()
            made.process.communicate()
            for broker in paused:
                broker.process.resume()
    well(cluster)
    hidden = [line for line in made.journal.read_bytes().splitlines() if b"COORDINATOR_NOT_AVAILABLE" in line]
    with JavaJudge(cluster) as judge:
        looks: list[set[str]] = [set()]

        def all_that_appear() -> set[str]:
            looks.append({g for g in judge.held() if f'"group":"{g}"'.encode() in b"".join(hidden)})
            return looks[-1] if looks[-1] == looks[-2] else set()

        # They do so once the others have copied them, after their copies count as in step again.
        appeared = wait_until(all_that_appear, 60, "an append to become visible, as this scene is to show")
        made.commands.undo("cutover.plan").expect(0)
        left = judge.held().keys() & made.planned.keys()
        assert not left, f"{len(left)} groups keep what apply wrote; {len(appeared)} appends became visible late"
        made.commands.undo("cutover.plan").expect(0)


def test_offsets_read_under_a_rolling_kill_are_right_or_a_failure_whatever_librdkafka_dies_of(
    cluster: Cluster,
) -> None:
    """Reading while coordinators move is what librdkafka dies of: the fault that the client process is there for."""
    seed = new_seed()
    groups = {f"read-{n:04}": {p: 500 + 10 * n + p for p in range(PARTITIONS)} for n in range(READ_GROUPS)}
    well(cluster)
    config = {"bootstrap.servers": cluster.bootstrap}
    hosted = KafkaCluster(ClientSettings(Side.TARGET, "B", f"target B ({cluster.bootstrap})", config), 10.0, 20)
    with JavaJudge(cluster) as judge:
        judge.commit({g: {(COPY, p): (o, "") for p, o in places.items()} for g, places in groups.items()})
    told: Counter[str] = Counter()
    end = time.monotonic() + DEADLINE_SECONDS
    try:
        with rolling(cluster, Random(seed)) as killed:
            while len(killed) <= ROUNDS:
                assert time.monotonic() < end, f"seed {seed}: brokers killed {killed}, answers {dict(told)}"
                try:
                    answers = hosted.renewed().commits(groups)
                except Exception as error:
                    assert type(error).__name__ == "ClusterError", error
                    told[type(error).__name__] += 1
                    continue
                for group, answer in answers.items():
                    if isinstance(answer, Failure):
                        told[answer.code] += 1
                    else:
                        told["right"] += {p.partition: c.offset for p, c in answer.items()} == groups[group]
                        told["wrong"] += {p.partition: c.offset for p, c in answer.items()} != groups[group]
    finally:
        hosted.close()
    print(
        f"seed {seed}: brokers killed {killed}, client processes that died {hosted.client.deaths}, answers {dict(told)}"
    )
    assert not told["wrong"] and told["right"]
