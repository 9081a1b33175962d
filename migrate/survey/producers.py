"""Whether producers still write: how far each log's end moved between two readings. Pure.

Two readings a settle time apart see a producer that writes at least once in between; one that writes more seldom is
found by `apply`, which compares the ends with those that the plan was pinned to.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from migrate.model import Failure, TopicPartition

# Closer together, two readings tell nothing.
LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Growth:
    """How far the end of one log moved: `offsets` in `seconds`. Transaction markers count; negative: it was cut."""

    offsets: int
    seconds: float

    @property
    def is_conclusive(self) -> bool:
        """True if the two readings were far enough apart to tell that nobody writes."""
        return self.seconds >= LEAST_SECONDS

    @property
    def is_idle(self) -> bool:
        """True if the two readings tell that nothing was written."""
        return self.is_conclusive and not self.offsets

    @property
    def per_second(self) -> float:
        """Offsets a second."""
        return self.offsets / self.seconds if self.seconds > 0 else 0.0


def growth_of(
    first: Mapping[TopicPartition, int | Failure], later: Mapping[TopicPartition, int | Failure], seconds: float
) -> dict[TopicPartition, Growth | Failure]:
    """Return how far each end of `first` moved until `later`, or the failure of either reading."""
    growth: dict[TopicPartition, Growth | Failure] = {}
    for partition, before in first.items():
        after = later.get(partition, Failure("NO_ANSWER", "the partition is missing from the answer"))
        if isinstance(before, Failure):
            growth[partition] = before
        elif isinstance(after, Failure):
            growth[partition] = after
        else:
            growth[partition] = Growth(after - before, seconds)
    return growth


def rate_text(per_second: float) -> str:
    """Return "about 82/s", "about 0.4/s"."""
    return f"about {per_second:.0f}/s" if per_second >= 9.5 else f"about {per_second:.1f}/s"
