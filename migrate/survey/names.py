"""The topics that a flow's names depend on, listed before anything else is read."""

from dataclasses import replace

from migrate.mm2.naming import PolicyKind
from migrate.survey.survey import Clusters, PlanRequest


def with_names(request: PlanRequest, clusters: Clusters) -> PlanRequest:
    """Return the request with a flow whose names are known both ways, and which of them two topics would share.

    Only a map of topics has to know which there are where it is copied from; those that the filters leave out are none.
    Raises `ClusterError` where that cluster does not answer.
    """
    flow = request.flow
    copied_from = clusters.target if flow.failback else clusters.source
    if flow.policy.kind is not PolicyKind.MAP or copied_from is None:
        return request

    def is_asked_for(topic: str) -> bool:
        source_topic = flow.policy.source_topic(topic) if flow.failback else topic
        # Only what is excluded stays behind: what --topic does not name moves with another wave, to the same log.
        return source_topic is not None and request.filters.topic_verdict(source_topic) != "exclude-topic"

    topics = list(filter(is_asked_for, copied_from.topics()))
    return replace(request, flow=flow.knowing(topics))
