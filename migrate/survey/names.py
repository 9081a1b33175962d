"""The topics that a flow's names depend on, listed before anything else is read."""

from collections.abc import Iterable
from dataclasses import replace

from migrate.errors import UsageError
from migrate.mm2.naming import PolicyKind
from migrate.mm2.other_names import MappedNames
from migrate.model import GroupPartition
from migrate.survey.policies import NOT_REPLICATED, Untranslatable
from migrate.survey.survey import Clusters, PlanRequest
from migrate.text import name


def with_names(request: PlanRequest, clusters: Clusters) -> PlanRequest:
    """Return the request with a flow whose names are known both ways, and which of them two topics would share.

    Only a map of topics has to know which there are where it is copied from; those that the filters leave out are none.
    Raises `ClusterError` where that cluster does not answer.
    """
    flow = request.flow
    copied_from = flow.turned(clusters.source, clusters.target)[0]
    if flow.policy.kind is not PolicyKind.MAP or copied_from is None:
        return request

    def is_asked_for(topic: str) -> bool:
        source_topic = flow.source_topic(topic)
        # Only what is excluded stays behind: what --topic does not name moves with another wave, to the same log.
        return source_topic is not None and request.filters.topic_verdict(source_topic) != "exclude-topic"

    topics = list(filter(is_asked_for, copied_from.topics()))
    return replace(request, flow=flow.knowing(topics))


def refuse_doubled_places(request: PlanRequest, places: Iterable[GroupPartition]) -> None:
    """Raise `UsageError` where a group, or another owner of offsets, would get two for one place on the target.

    It has offsets on two topics that would share a name there, and offsets are to be set on such topics all the same.
    """
    policy, choice = request.flow.policy, request.policies.for_reason(NOT_REPLICATED)
    if choice not in (Untranslatable.EARLIEST, Untranslatable.LATEST) or not isinstance(policy, MappedNames):
        return
    shared = {topic: target for target, topics in policy.sources.items() if len(topics) > 1 for topic in topics}
    taken: dict[tuple[str, str, int], str] = {}
    for place in places if shared else ():
        if (target := shared.get(place.topic)) is None:
            continue
        other = taken.setdefault((place.group, target, place.partition), place.topic)
        if other != place.topic:
            raise UsageError(
                f"--untranslatable {choice}: {name(place.group)} has offsets on {name(other)} and "
                f"{name(place.topic)}, which would both be {name(target)} on {request.flow.target.alias}: it cannot "
                "have an offset for each there.",
                f"Of one of these topics, {request.way_to_leave_out}; or add --untranslatable {NOT_REPLICATED}=block.",
            )
