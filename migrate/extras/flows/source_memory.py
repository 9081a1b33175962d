"""What several plans of one run take from the same source: its topics' ids and its commits, read once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from migrate.model import Commits, Failure
from migrate.survey.cluster import ClusterAdmin


@dataclass
class SourceMemory:
    """The ids and commits that the first plan has read, for those after it.

    A survey asks for ids before any commit, and the first asks for those of all topics: so a remembered commit is on
    the topic of the remembered id, or of none. Nothing else is remembered: log ends must be pinned after those of each
    plan's own target.
    """

    ids: Mapping[str, str] | None = None
    commits: dict[str, Commits] = field(default_factory=dict)

    def source(self, cluster: ClusterAdmin) -> ClusterAdmin:
        """Return the source as one plan asks it."""
        return cast(ClusterAdmin, _RememberedSource(cluster, self))


class _RememberedSource:
    """A source that answers a plan's first question for ids and commits from memory, and hands on all others.

    A plan asks again to see whether commits have moved since. That question goes to the cluster itself: an answer
    from memory would always say no.
    """

    def __init__(self, cluster: ClusterAdmin, memory: SourceMemory) -> None:
        self._cluster, self._memory = cluster, memory
        self._remembered = dict(memory.commits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids as they were when first asked; a topic that is newer has none."""
        if self._memory.ids is None:
            self._memory.ids = self._cluster.topic_ids(sorted(self._cluster.topics()))
        return {topic: self._memory.ids[topic] for topic in topics if topic in self._memory.ids}

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return what is remembered, once for each group and plan; ask for the others."""
        known: dict[str, Commits | Failure] = {g: self._remembered.pop(g) for g in groups if g in self._remembered}
        rest = [group for group in groups if group not in known]
        answers = self._cluster.commits(rest, require_stable) if rest else {}
        for group, answer in answers.items():
            if require_stable and not isinstance(answer, Failure):
                self._memory.commits.setdefault(group, answer)
        return {**known, **answers}
