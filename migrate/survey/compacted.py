"""A topic that is compacted while it is read: what was taken away has given place to a record beyond the pinned end.

Read again up to the same ends, such a key would be missing without a word; so whoever reads pins anew.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from migrate.errors import ClusterError

ATTEMPTS = 3
T = TypeVar("T")


class CompactedMeanwhileError(ClusterError):
    """Raised where records of a topic were compacted away between two passes over it.

    Not to be read again up to the same ends: what was taken away has given place to a record beyond them.
    """

    def __init__(self, topic: str) -> None:
        super().__init__(f"{topic} was compacted while it was read.", "Run the command again.")


def persistently(read: Callable[[], T]) -> T:
    """Read anew, each time up to later ends, while the topic is compacted in between; the last failure is told."""
    for _ in range(ATTEMPTS - 1):
        with suppress(CompactedMeanwhileError):
            return read()
    return read()
