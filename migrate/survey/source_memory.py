"""What several plans of one run take from the same source: its topics' ids and its commits, read once."""

from collections.abc import Collection, Iterable, Mapping

from migrate.model import Commits, Failure
from migrate.survey.cluster import ClusterAdmin


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

    def commits(self, source: ClusterAdmin, groups: Collection[str]) -> Mapping[str, Commits | Failure]:
        """Answer a plan's first question for groups' commits, as far as they are remembered; ask for the others.

        A plan asks again to see whether commits have moved since. That question goes to the cluster itself: an answer
        from memory would always say no.
        """
        known: dict[str, Commits | Failure] = {g: self._commits[g] for g in groups if g in self._commits}
        rest = [group for group in groups if group not in known]
        answers = source.commits(rest) if rest else {}
        self._commits.update({g: a for g, a in answers.items() if not isinstance(a, Failure)})
        return {**known, **answers}
