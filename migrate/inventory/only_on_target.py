"""Commits on copies that the source has no commit for: whether there is none, or it could not be seen. Pure."""

from collections.abc import Iterator

from migrate.inventory.compared import ComparedRow, CompareVerdict, Loss
from migrate.model import Commit, Failure, GroupPartition, TopicPartition
from migrate.survey.groups import NO_ANSWER
from migrate.survey.survey import Survey, copy_of


def committed_after(survey: Survey, group: str, source: TopicPartition) -> int | None | Failure:
    """Return what the second look at the source found committed; None for nothing."""
    after = survey.commits_after.get(group, NO_ANSWER)
    if isinstance(after, Failure):
        return after
    commit = after.get(source)
    return None if commit is None else commit.offset


def only_on_target(survey: Survey) -> Iterator[ComparedRow]:
    """Yield the commits on copies, inside the filters, that have no commit on the source."""
    flow = survey.flow
    originals: dict[str, str | None] = {}
    for group, commits in survey.priors.items():
        for place, commit in commits.items():
            if place.topic not in originals:
                originals[place.topic] = _original(survey, place.topic)
            topic = originals[place.topic]
            if topic is None or survey.request.filters.verdict(group, topic) is not None:
                continue
            source = TopicPartition(topic, place.partition)
            if GroupPartition(group, *source) in survey.keys or copy_of(flow, source) != place:
                continue
            yield _on_target_only(survey, group, source, place, commit)


def _original(survey: Survey, target_topic: str) -> str | None:
    """Return the source topic that a topic of the target is a copy of; None where it is none, or may be its own."""
    flow = survey.flow
    topic = flow.policy.source_topic(target_topic)
    if topic is None or flow.why_not_replicated(topic):
        return None
    # Where copies are named as their originals are, a topic that the source lacks is the target's own.
    return None if topic == target_topic and topic not in survey.source.topics else topic


def _on_target_only(
    survey: Survey, group: str, source: TopicPartition, target: TopicPartition, commit: Commit
) -> ComparedRow:
    after = committed_after(survey, group, source)
    verdict, reason = CompareVerdict.UNDECIDED, "not-visible"
    if isinstance(after, Failure):
        sentence = f"What the source has committed could not be read: {after}."
    elif after is not None:
        reason = "source-moved"
        sentence = (
            f"The source has {after} at a second look: the group committed it during the look, or was missing from the "
            "list of groups before."
        )
    elif source.topic not in survey.source.topics:
        reason = "source-topic-missing"
        sentence = (
            f"The source shows no topic {source.topic}: it was deleted, or this principal may not DESCRIBE it, and "
            "then commits on it are left out in silence."
        )
    else:
        verdict, reason = CompareVerdict.ONLY_ON_TARGET, ""
        sentence = "The source has no such commit: the group never made it, or it has expired or was deleted there."
    return ComparedRow(
        group, source.topic, target.topic, source.partition, None, commit.offset, None, None, False, verdict, None,
        Loss.POSSIBLE, None, after if isinstance(after, int) else None, reason, sentence,
        survey.target_names.renamed.get(group, ""),
    )  # fmt: skip
