"""What `status` looks through, from one look to the next: both clusters and plain consumers, without Spark."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from migrate.clock import Clock
from migrate.kafka.cluster import ByJava
from migrate.match.compare import Memory, TasksHere, compare_tails
from migrate.match.protocol import Comparer
from migrate.mm2.flow import Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import Side
from migrate.session.clusters import Endpoint, endpoints, mm2_worker_of
from migrate.session.options import SessionOptions
from migrate.survey.cluster import ClusterAdmin, JavaAdmin
from migrate.survey.commits_source import FROM_COORDINATORS, CommitsSource
from migrate.survey.group_facts import AnswerMemory
from migrate.survey.survey import Clusters

if TYPE_CHECKING:
    from migrate.mm2.connect_worker import ConnectWorker


@dataclass(frozen=True)
class StatusSession:
    """What `status` looks through, from one look to the next; `in_use` is locked during a look.

    Glances share what `memories` have of group facts, by side. `comparer` is None where no records are to be compared.
    """

    source: ClusterAdmin
    target: ClusterAdmin
    mirror: ConsumedMm2Topics
    comparer: Comparer | None
    memories: Mapping[Side, AnswerMemory]
    worker: "ConnectWorker | None" = None
    in_use: Lock = field(default_factory=Lock)

    def clusters(self, commits: CommitsSource = FROM_COORDINATORS) -> Clusters:
        """Return what one look reads through."""
        source, comparer = (self.source, self.comparer) if commits.asks_source else (None, None)
        return Clusters(source, self.target, self.mirror, comparer, worker=self.worker)


@contextmanager
def status_session(
    flow: Flow, clock: Clock, options: SessionOptions, java: Callable[[Endpoint], JavaAdmin] | None = None
) -> Iterator[StatusSession]:
    """Yield what `status` looks through, without Spark.

    `java` gives what reads commits that carry metadata, None where nobody is to know which.
    Where timestamps are to place commits no tail is compared either, as `plan` compares none.
    """
    deadline = options.request_timeout
    sides = endpoints(flow, deadline)
    # Two pairs: MM2's topics are read while records are compared, and of each reader one thread has to wait.
    of_mm2, of_records = ([side.records() for side in sides] for _ in range(2))
    memories = {side.cluster.side: AnswerMemory(clock) for side in sides}
    source, target = [
        side.admin(options.concurrency, java(side) if java else None, ByJava.CARRYING, memories[side.cluster.side])
        for side in sides
    ]
    mirror = ConsumedMm2Topics(flow, *of_mm2)
    edges = StatusSession(
        source,
        target,
        mirror,
        None
        if options.no_match or options.by_timestamp
        else partial(
            compare_tails, TasksHere(lambda: nullcontext((of_records[0], of_records[1])), mirror.sync_pairs), Memory()
        ),
        memories,
        mm2_worker_of(flow, deadline),
    )
    try:
        yield edges
    finally:
        # A client that is closed under a question can take the process with it; what hangs ends with the process.
        if not edges.in_use.locked():
            for admin in (source, target):
                admin.close()
            for reader in (*of_mm2, *of_records):
                reader.close()
