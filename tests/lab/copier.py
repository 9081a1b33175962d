"""A small replicator that is not MirrorMaker: a consumer, a producer, and its own names. Run as a process of its own.

It copies every record it is shown to the same partition of another topic, in order, and commits now and then: killed
in between, it copies some of them again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from tests.lab.process import GuardedProcess

ROOT = Path(__file__).resolve().parents[2]
COMMIT_EVERY = 700
# librdkafka's word for "now".
NOW = 0


def copy(source: str, target: str, group: str, names: Mapping[str, str], keeps_time: bool, drops_key: str) -> None:
    """Copy the topics of `names` to what they are called on the target, for ever; records of one key are left out."""
    consumer = Consumer(
        {
            "bootstrap.servers": source, "group.id": group, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "isolation.level": "read_committed", "allow.auto.create.topics": False, "fetch.wait.max.ms": 50,
        }
    )  # fmt: skip
    producer = Producer({"bootstrap.servers": target, "enable.idempotence": True, "linger.ms": 5})
    consumer.subscribe(list(names))
    uncommitted = 0
    while True:
        messages = consumer.consume(200, 0.2)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
            if drops_key and message.key() == drops_key.encode():
                continue
            at = message.timestamp()[1] if keeps_time else NOW
            place: Any = (names[message.topic() or ""], message.value(), message.key(), message.partition())
            producer.produce(*place, timestamp=at, headers=message.headers())
        producer.poll(0)
        uncommitted += len(messages)
        if uncommitted >= COMMIT_EVERY or (uncommitted and not messages):
            producer.flush()
            consumer.commit(asynchronous=False)
            uncommitted = 0


class Copier(GuardedProcess):
    """One run after another of the same replicator; `group` is that under which it keeps its place on the source."""

    def __init__(
        self, folder: Path, source: str, target: str, group: str, names: Mapping[str, str], keeps_time: bool = True,
        drops_key: str = "",
    ) -> None:  # fmt: skip
        self.group = group
        asked = json.dumps([source, target, group, dict(names), keeps_time, drops_key])
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.lab.copier import main; main()"
        super().__init__(f"copier {group}", [sys.executable, "-c", start, asked], folder / f"{group}.log")


def main() -> None:
    """Run what the one argument says, as JSON."""
    copy(*json.loads(sys.argv[1]))
