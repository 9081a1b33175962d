"""How consumers are closed: each by a thread of its own, which is waited for a moment only.

Closing joins a client's threads, and where brokers die one of them may never end (librdkafka #4519): whoever closed it
would wait for ever, and with it a `follow` that no signal ends any more.
"""

from collections.abc import Iterable
from concurrent.futures import wait

from confluent_kafka import Consumer

from migrate.progress import in_background

CLOSING_SECONDS = 3.0


def close_consumers(consumers: Iterable[Consumer], seconds: float = CLOSING_SECONDS) -> None:
    """Begin to close consumers, which nobody may use any more, and wait for it, for so many seconds at most."""
    wait([in_background(consumer.close, "closing a consumer") for consumer in consumers], timeout=seconds)
