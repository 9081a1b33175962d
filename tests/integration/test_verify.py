"""`verify` on a real broker: an offset that nobody of ours has set, or consumed, is never certified."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.integration.cli import CommandLine, run
from tests.integration.clusters import commit, member
from tests.integration.madeplan import made_plan, options_for, saved
from tests.lab.cluster import Cluster

TOPIC, COPY = "orders", "A.orders"
NAME = "c.plan"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster("verified", tmp_path_factory.mktemp("verified"))
    try:
        cluster.start()
        cluster.create_topic(COPY, 2)
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture
def commands(cluster: Cluster, tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, options_for(tmp_path, cluster.bootstrap), warm=True)


def verified(commands: CommandLine, exit_code: int, *options: str, name: str = NAME) -> str:
    """What verify says, on one line."""
    return " ".join(commands.verify(name, *options).expect(exit_code).stdout.split())


def test_a_group_that_somebody_moved_is_not_verified_and_a_finding_outranks_what_was_left_out(
    cluster: Cluster, commands: CommandLine
) -> None:
    offsets = {"fine": {0: (60, None)}, "moved": {0: (60, None)}}
    saved(made_plan(cluster.bootstrap, TOPIC, offsets, 1_700_000_000_001), commands.folder / NAME)
    commit(cluster.bootstrap, {"moved": {(COPY, 0): 95}})
    commands.execute(NAME).expect(3)
    told = verified(commands, 1)
    assert "NOT AS PLANNED: 2 of 2 offsets" in told and "no members" in told
    commands.execute(NAME, "--allow-partial").expect(4)
    told = verified(commands, 1)
    assert "NOT AS PLANNED: 1 of 2 offsets" in told and f"moved {COPY}:0: is at 95, 35 beyond the planned 60" in told
    assert "the journal holds no write to it" in told
    # Neither the user's word nor a consumer that came since makes an offset ours that the journal says was never set.
    verified(commands, 1, "--consumers-ran")
    with member(cluster.bootstrap, "moved", COPY):
        verified(commands, 1)
    assert "VERIFIED: 1 offset of 1 group" in verified(commands, 0, "--group", "fine")
    # The journal speaks under the name that the plan was applied by, too.
    (commands.folder / NAME).rename(commands.folder / "renamed.plan")
    assert "the journal holds no write to it" in verified(commands, 1, "--consumers-ran", name="renamed.plan")


def test_ahead_is_good_while_consumers_run_and_then_only_if_the_user_says_that_they_have(
    cluster: Cluster, commands: CommandLine
) -> None:
    offsets = {"reader": {0: (60, None), 1: (61, None)}}
    saved(made_plan(cluster.bootstrap, TOPIC, offsets, 1_700_000_000_002), commands.folder / NAME)
    commands.execute(NAME).expect(0)
    with member(cluster.bootstrap, "reader", COPY) as consumer:
        consumer.commit(offsets=[TopicPartition(COPY, 0, 95)], asynchronous=False)
        told = verified(commands, 0)
        assert "1 ahead, 1 equal" in told and "moved on by 35" in told and "1 member" in told
        assert "set and read back" in told
    assert "no members" in verified(commands, 1)
    environment = {"MM2_MIGRATE_CONSUMERS_RAN": "1"}
    run("verify", NAME, *commands.clusters, folder=commands.folder, environment=environment).expect(1)
    said = verified(commands, 0, "--consumers-ran")
    assert "--consumers-ran" in said and "moved on by 35" in said
    # What somebody writes after a good apply looks the same to the journal: it is never enough alone.
    commit(cluster.bootstrap, {"reader": {(COPY, 1): 99}})
    assert f"{COPY}:1: is at 99" in verified(commands, 1)
    commands.undo(NAME, "--moved", "restore").expect(0)
    assert "ROLLED BACK" in verified(commands, 1)
