"""A flow that lives while `follow` runs: producers, consumers on either side, and the passes that it tells."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.integration import oracle
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import QUIET, Commits, Partition, commits_on
from tests.integration.oracle import Truth
from tests.integration.repeated import again_and_again
from tests.integration.running import Running
from tests.integration.scene import Scene
from tests.lab.waiting import wait_until

PASS_SECONDS = 120.0
# librdkafka does not call these retriable, though the next commit finds the coordinator.
COORDINATOR_MOVES = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
PLAN = "follow.plan"


@contextmanager
def producing(scene: Scene, places: Collection[Partition], records: int = 40) -> Iterator[None]:
    """Producers that write a few records, again and again."""
    with again_and_again(lambda: scene.write(places, records), 0.2):
        yield


@contextmanager
def consuming(bootstrap: str, group: str, topics: Collection[str], most: int = 60) -> Iterator[None]:
    """A consumer of a group that reads at its pace and commits what it has read, about once a second."""
    settings = {"enable.auto.commit": False, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **settings, **QUIET})
    consumer.subscribe(list(topics))

    def read_some() -> None:
        if [m for m in consumer.consume(most, 0.7) if m.error() is None]:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                # A broker that restarts: what it has read is committed with what it reads next.
                is_passing = error.args[0].retriable() or error.args[0].code() in COORDINATOR_MOVES
                assert is_passing or "rebalance" in str(error).lower(), error

    try:
        with again_and_again(read_some, 0.05):
            yield
    finally:
        consumer.close()


@dataclass(frozen=True)
class Mandated:
    """A mandate for the groups of a scene, made by the command itself."""

    commands: CommandLine
    fingerprint: str

    @classmethod
    def made(cls, commands: CommandLine, scene: Scene, *options: str) -> "Mandated":
        until = (datetime.now(UTC) + timedelta(hours=2)).isoformat(timespec="seconds")
        chosen = ("--group", f".*{scene.suffix}", "--until", until, "--out", PLAN)
        commands.run("follow", "plan", *commands.clusters, *chosen, *options).expect(0)
        return cls(commands, commands.document(PLAN)["fingerprint"])

    def words(self, every: str, *options: str) -> tuple[str, ...]:
        approved = ("--approve", self.fingerprint, "--execute", "--every", every)
        return "follow", "run", PLAN, *self.commands.clusters, *approved, *options

    def undo(self, *options: str) -> Ran:
        approved = ("--approve", self.fingerprint, "--execute")
        return self.commands.run("follow", "rollback", PLAN, *self.commands.clusters, *approved, *options)


def passes(running: Running) -> list[Mapping[str, Any]]:
    """The passes that a `follow` has told so far."""
    *lines, _begun = running.said.split("\n")
    return [json.loads(line) for line in lines if line.startswith('{"pass"')]


def wait_pass(running: Running, what: str, holds: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    """Wait for a pass that begins from now on and of which this holds; return it."""
    known = passes(running)
    after = known[-1]["pass"] + 1 if known else 0  # the one under way may have looked before

    def found() -> Mapping[str, Any] | None:
        assert not running.has_ended, f"follow has ended\n{running.result()}"
        return next((p for p in passes(running) if p["pass"] > after and holds(p)), None)

    def said() -> str:
        return running.said[-2000:]

    return wait_until(found, PASS_SECONDS, what, said)


def quiet_pass(seen: Mapping[str, Any]) -> bool:
    """True for a pass that found nothing to set and had no trouble."""
    return not seen["trouble"] and seen["rows_set"] == 0


def refused_as(reason: str) -> Callable[[Mapping[str, Any]], bool]:
    """True for a pass that judged its groups, and left out one of them for this reason."""
    return lambda seen: reason in (seen["refused"] or {})


def lost(scene: Scene, truth: Mapping[Partition, Truth], source: Commits, target: Commits) -> dict[str, int]:
    """How many records each group would lose that starts on the target where it stands there, by the oracle."""
    return {
        group: sum(
            len(oracle.lost(truth[topic, p], offset, target[group][scene.copy(topic), p]))
            for (topic, p), offset in places.items()
        )
        for group, places in source.items()
    }


def on_both(scene: Scene, groups: Collection[str]) -> tuple[Commits, Commits]:
    """What groups have committed on the source and on the target."""
    return commits_on(scene.lab.source_bootstrap, groups), commits_on(scene.lab.target_bootstrap, groups)
