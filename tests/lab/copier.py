"""A small replicator that is not MirrorMaker: a consumer, a producer, and its own names. Run as a process of its own.

It copies every record it is shown to the same partition of another topic, in order, and commits now and then: killed
in between, it copies some of them again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from tests.lab.process import GuardedProcess

ROOT = Path(__file__).resolve().parents[2]
COMMIT_EVERY = 300
# librdkafka's word for "now".
NOW = 0


@dataclass(frozen=True)
class Ways:
    """How it copies: whether timestamps are kept, the key of records that it leaves out ("" for none)."""

    keeps_time: bool = True
    drops_key: str = ""


def copy(source: str, target: str, group: str, names: Mapping[str, str], ways: Ways, commits: int) -> None:
    """Copy the topics of `names` to what they are called on the target, for ever.

    Or, where `commits` is not negative, until it has committed so often: then it kills itself with -9 when all that it
    has copied since is on the target, and not committed.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": source,
            "group.id": group,
            # The next run takes a killed one's place at once, and does not wait for its session to end.
            "group.instance.id": "copier",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": 50,
        }
    )
    producer = Producer({"bootstrap.servers": target, "enable.idempotence": True, "linger.ms": 5})
    consumer.subscribe(list(names))
    uncommitted = 0
    while True:
        messages = consumer.consume(100, 0.2)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
            if ways.drops_key and message.key() == ways.drops_key.encode():
                continue
            at: Any = message.timestamp()[1] if ways.keeps_time else NOW
            topic, partition = names[message.topic() or ""], message.partition() or 0
            headers: Any = message.headers()
            producer.produce(topic, message.value(), message.key(), partition, timestamp=at, headers=headers)
        producer.poll(0)
        uncommitted += len(messages)
        if uncommitted >= COMMIT_EVERY or (uncommitted and not messages):
            producer.flush()
            if commits == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            commits -= 1
            consumer.commit(asynchronous=False)
            uncommitted = 0


class Copier(GuardedProcess):
    """One run after another of the same replicator; `group` is that under which it keeps its place on the source."""

    def __init__(
        self, folder: Path, source: str, target: str, group: str, names: Mapping[str, str], ways: Ways = Ways()
    ) -> None:
        self.group = group
        self._asked = [source, target, group, dict(names), asdict(ways)]
        super().__init__(f"copier {group}", self._command(-1), folder / f"{group}.log")

    def die_amid(self, commits: int, deadline_seconds: float) -> None:
        """Run until it has committed so often, and is gone: what it has copied since, the next run copies again."""
        self.command = self._command(commits)
        self.start()
        assert self.wait_exit(deadline_seconds) == 128 + signal.SIGKILL, self.log_tail()
        self.command = self._command(-1)

    def _command(self, commits: int) -> list[str]:
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.lab.copier import main; main()"
        return [sys.executable, "-c", start, json.dumps([*self._asked, commits])]


def main() -> None:
    """Run what the one argument says, as JSON."""
    source, target, group, names, ways, commits = json.loads(sys.argv[1])
    copy(source, target, group, names, Ways(**ways), commits)
