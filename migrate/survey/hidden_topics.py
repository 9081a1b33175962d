"""The topics that a cluster has and does not show us: commits on them are left out in silence."""

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import replace

from migrate.model import Failure, Side
from migrate.progress import Timer, in_background
from migrate.survey.survey import Clusters, ClusterSurvey
from migrate.text import many

Hosted = Mapping[Side, "Future[frozenset[str] | Failure]"]


def hosted_ahead(clusters: Clusters) -> Hosted:
    """Begin to ask which topics the clusters have, shown to us or not, beside all else."""
    sides = {Side.SOURCE: clusters.source, Side.TARGET: clusters.target} if clusters.looks_for_hidden else {}
    return {side: in_background(of.hosted_topics, "hosted topics") for side, of in sides.items() if of is not None}


def with_hidden(
    clusters: Clusters, source: ClusterSurvey, target: ClusterSurvey, hosted: Hosted, timer: Timer
) -> tuple[ClusterSurvey, ClusterSurvey]:
    """Add the topics that a cluster has and does not show us, where one could be asked."""
    sides = {Side.SOURCE: source, Side.TARGET: target}
    for side, asked in hosted.items():
        admin = clusters.target if side is Side.TARGET else clusters.source
        assert admin is not None, "who is not asked is not in `hosted`"
        topics = timer.run("topics", f"looking for topics that {admin.alias} does not show us", asked.result)
        # Listed before and after: a topic created in between is not hidden, one deleted in between not lacking either.
        first, now = sides[side].topics.keys(), admin.topics().keys()
        topics = in_full(topics, now & first)
        sides[side] = replace(sides[side], hidden=topics if isinstance(topics, Failure) else topics - now - first)
    return sides[Side.SOURCE], sides[Side.TARGET]


def in_full(hosted: frozenset[str] | Failure, shown: Collection[str]) -> frozenset[str] | Failure:
    """Return the topics in log directories, a `Failure` where one that is shown is not among them: some are missing."""
    if isinstance(hosted, Failure):
        return hosted
    lacking = sorted(set(shown) - hosted)
    if lacking:
        shown_only = f"{many(len(lacking), 'topic')} that it shows, such as {lacking[0]}"
        return Failure("PARTIAL_ANSWER", f"its brokers' log directories do not list {shown_only}")
    return hosted
