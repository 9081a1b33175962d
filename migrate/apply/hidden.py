"""Offsets to be removed that only seem to be gone: brokers hide commits on topics that we may not DESCRIBE. Pure.

They leave them out of their answer without a word, and the topics out of every listing.
"""

from collections.abc import Iterator, Sequence

from migrate.apply.drift import Drift, World, committed, to_write
from migrate.apply.history import REMOVED, GroupTrace
from migrate.model import Commits, Decision, Failure, Row
from migrate.row_table import GroupRows


def seem_gone(rows: GroupRows, commits: Commits | Failure) -> Sequence[Row]:
    """Return the rows to remove that have nothing committed any more, as far as the target shows."""
    if isinstance(commits, Failure):
        return ()
    return [row for row in to_write(rows) if row.decision is Decision.REMOVE and committed(row, commits) is None]


def hidden(group: str, rows: GroupRows, world: World, trace: GroupTrace | None) -> Iterator[Drift]:
    """Yield the topics of a group's offsets to be removed that the target does not show.

    `trace` is what earlier runs of the same command did: what one of them removed and read back needs no topic.
    """
    if world.target_topics is None:
        return
    removed = trace.results if trace is not None and trace.read_back else {}
    gone = seem_gone(rows, world.target.commits.get(group, {}))
    topics = {row.target_topic for row in gone if removed.get(row.target_partition) != REMOVED}
    for topic in sorted(topics - world.target_topics):
        expected = "listed, so that what is committed on it shows"
        yield Drift(topic, "target topic", expected, "deleted, or the principal lacks DESCRIBE on it", True)
