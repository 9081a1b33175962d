"""What every wing needs of a cluster that is written to, and of the person who waits."""

from collections.abc import Mapping
from typing import Protocol

from migrate.model import Failure, TopicPartition

Outcomes = Mapping[str, Mapping[TopicPartition, Failure | None]]
"""What became of each group's partitions: None where it was done, else why not."""


class Progress(Protocol):
    """Tells the person what is going on."""

    def step(self, text: str) -> None:
        """Begin a step, e.g. "reading commits of 312 groups on A"."""

    def advance(self, done: int, total: int) -> None:
        """Report progress of the current step."""
