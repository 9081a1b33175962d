"""The topics that a flow's names depend on, listed before anything else is read."""

from dataclasses import replace

from migrate.errors import UsageError
from migrate.mm2.naming import PolicyKind
from migrate.mm2.other_names import MappedNames
from migrate.survey.policies import NOT_REPLICATED, Untranslatable
from migrate.survey.survey import Clusters, PlanRequest
from migrate.text import name, some


def with_names(request: PlanRequest, clusters: Clusters) -> PlanRequest:
    """Return the request with a flow whose names are known both ways, and which of them two topics would share.

    Only a map of topics has to know which there are where it is copied from; those that the filters leave out are none.
    Raises `ClusterError` where that cluster does not answer, `UsageError` where an offset is to be set all the same on
    a topic that two would share: a group with commits on both would have two offsets for one place.
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
    known = flow.knowing(topics)
    choice = request.policies.for_reason(NOT_REPLICATED)
    if choice in (Untranslatable.EARLIEST, Untranslatable.LATEST) and isinstance(known.policy, MappedNames):
        for target, sharing in known.policy.sources.items():
            if len(sharing) > 1:
                raise UsageError(
                    f"--untranslatable {choice}: {some(map(name, sharing), 3)} would all be {name(target)} on "
                    f"{flow.target.alias}, and one group cannot have an offset for each there.",
                    f"Leave all but one out with --exclude-topic, or add --untranslatable {NOT_REPLICATED}=block.",
                )
    return replace(request, flow=known)
