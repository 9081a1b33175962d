"""Members of groups of every kind, on real brokers."""

import subprocess
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.integration.clusters import CALL_SECONDS, admin, member
from tests.lab.process import java_command
from tests.lab.waiting import wait_until

SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
TOOL_SECONDS = 120.0


def stay_and_leave(bootstrap: str, group: str, topic: str) -> None:
    """Let a classic group have a member and an offset, and then no member."""
    with member(bootstrap, group, topic) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)


def member_of_kip_848(bootstrap: str, group: str, topic: str) -> AbstractContextManager[Consumer]:
    """A group of KIP-848 (Kafka 4.0 and later) that is alive. It commits nothing."""
    return member(bootstrap, group, topic, **{"group.protocol": "consumer"})


@contextmanager
def share_consumer(jars: Path, bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """A share group (Kafka 4.2 and later) that is alive, by Kafka's own consumer."""
    arguments = ("--bootstrap-server", bootstrap, "--topic", topic, "--group", group)
    process = subprocess.Popen(
        java_command(jars, SHARE_CONSUMER, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    client = admin(bootstrap)

    def joined() -> bool:
        assert process.poll() is None, "the share consumer has ended"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return group in {g.id for g in client.list_groups(timeout=CALL_SECONDS)}

    try:
        wait_until(joined, CALL_SECONDS, f"the share group {group}")
        yield
    finally:
        process.terminate()
        process.wait(CALL_SECONDS)


def share_group_without_members(jars: Path, bootstrap: str, group: str, topic: str) -> None:
    """A share group that nobody has joined: its start offsets, as Kafka's own tool sets them (4.2 and later)."""
    arguments = ("--bootstrap-server", bootstrap, "--reset-offsets", "--group", group, "--topic", topic)
    words = java_command(jars, SHARE_GROUPS, *arguments, "--to-earliest", "--execute")
    told = subprocess.run(words, check=True, capture_output=True, text=True, timeout=TOOL_SECONDS)
    assert group in told.stdout, told.stdout + told.stderr
