"""What several plans of one run take from the same source: its topics' ids and its commits, read once."""

from collections.abc import Collection, Iterable, Mapping

from migrate.model import Commits, Failure
from migrate.ports import ClusterAdmin, CommitReader


class SourceMemory:
    """The ids and commits that the first plan has read, for those after it.

    Ids are asked for before any commit, and of all topics: so a remembered commit is on the topic of the remembered id,
    or of none. Nothing else is remembered: log ends must be pinned after those of each plan's own target.
    """

    def __init__(self) -> None:
        self._ids: Mapping[str, str] | None = None
        self._commits: dict[str, Commits] = {}

    def topic_ids(self, admin: ClusterAdmin, topics: Iterable[str], wanted: Collection[str]) -> Mapping[str, str]:
        """Return the ids of those `wanted` as they were when first asked; `topics` are all that the source has.

        A topic that is newer has none.
        """
        if self._ids is None:
            self._ids = admin.topic_ids(sorted(topics))
        return {topic: self._ids[topic] for topic in wanted if topic in self._ids}

    def reader(self, live: CommitReader) -> CommitReader:
        """Return what one plan reads the source's commits through."""
        return _RememberingReader(live, self._commits)


class _RememberingReader:
    """Answers a plan's first question about a group from memory, and every later one from the cluster.

    A plan asks again to see whether commits have moved since: an answer from memory would always say no.
    """

    def __init__(self, live: CommitReader, remembered: dict[str, Commits]) -> None:
        self._live = live
        self._remembered = remembered
        self._asked: set[str] = set()

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        known: dict[str, Commits | Failure] = {}
        if require_stable:
            known = {g: self._remembered[g] for g in groups if g in self._remembered and g not in self._asked}
        self._asked.update(groups)
        rest = [group for group in groups if group not in known]
        answers = self._live.commits(rest, require_stable) if rest else {}
        if require_stable:
            self._remembered.update({g: a for g, a in answers.items() if not isinstance(a, Failure)})
        return {**known, **answers}
