"""Which commits a plan is about: read from the source, or from MM2's checkpoints while the source is down."""

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType

from migrate.commit_table import GroupCommits, without_offset
from migrate.errors import ClusterError
from migrate.mm2.checkpoint_table import topics_with_checkpoints
from migrate.mm2.topics import CheckpointReading
from migrate.model import Commit, Commits, Failure, GroupPartition, TopicPartition
from migrate.progress import Timer
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.filters import EXCLUDED, Filters
from migrate.survey.groups import answer_of_each
from migrate.survey.policies import Uncommitted
from migrate.survey.survey import Clusters, OffsetsTopicSeen, PlanRequest, SelectedCommits
from migrate.text import many

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"


class CommitsNotVisible(ClusterError):
    """Raised where a cluster answers the question for groups' commits with a failure; `failures` has each of them."""

    def __init__(self, problem: str, todo: str, failures: Mapping[str, Failure]) -> None:
        super().__init__(problem, todo)
        self.failures = failures


def from_source(clusters: Clusters, listed: frozenset[str], request: PlanRequest, timer: Timer) -> SelectedCommits:
    """Read every listed group's commits, and sort them into rows and what the filters take.

    Commits of groups that the filters take are read too: they are counted, so that rows + filtered = read.
    Raises `CommitsNotVisible` if the commits of a group inside the filters could not be read.
    """
    source, alias = clusters.source, request.flow.source.alias
    assert source is not None
    text = f"reading commits of {many(len(listed), 'group')} on {alias}"
    answers, unstable = _read(source, sorted(listed), text, timer)
    _refuse_failures(answers, listed, alias, request.filters)
    commits = {group: answer for group, answer in answers.items() if not isinstance(answer, Failure)}
    unstable = frozenset(group for group in unstable if request.filters.group_verdict(group) is None)
    without = {group: places for group, of_group in commits.items() if (places := without_offset(of_group))}
    seen = frozenset(group for group, answer in answers.items() if answer) | without.keys()
    return within_filters(commits, request, unstable, seen, without=without)


def from_checkpoints(reading: CheckpointReading, request: PlanRequest) -> SelectedCommits:
    """Stand in for live commits while the source is down: the newest checkpoints' upstream offsets."""
    source_topic = cache(request.flow.policy.source_topic)
    commits: dict[str, dict[TopicPartition, Commit]] = {}
    originals = _names_on_source(reading, request)
    for key, record in reading.latest.items():
        place = TopicPartition(source_topic(key.target_topic) or key.target_topic, key.partition)
        group = originals.get(key.group, key.group)
        commits.setdefault(group, {})[place] = Commit(record.source_offset, record.metadata)
    return within_filters(commits, request, frozenset(), frozenset(commits))


def _names_on_source(reading: CheckpointReading, request: PlanRequest) -> dict[str, str]:
    """Return the source's names of groups that have checkpoints under the target's alone, as KIP-1378 has them.

    Only a line with both names tells; an expression cannot be read backwards. A name that the filters exclude is that
    of a group which stays, and so are its checkpoints.
    """
    group_map = request.group_map
    if not group_map.names:
        return {}
    named = {group for group, _ in topics_with_checkpoints(reading.latest)}
    lines = [line for line in group_map.names.values() if line.target in named and line.source not in named]
    sources_of = Counter(line.target for line in lines)
    return {
        line.target: line.source
        for line in lines
        if sources_of[line.target] == 1
        and group_map.line_of(line.target) is None
        and request.filters.group_verdict(line.target) not in EXCLUDED
    }


def within_filters(
    commits: Mapping[str, Commits],
    request: PlanRequest,
    unstable: frozenset[str],
    groups_seen: frozenset[str],
    topic_seen: OffsetsTopicSeen | None = None,
    without: Mapping[str, Collection[TopicPartition]] = MappingProxyType({}),
) -> SelectedCommits:
    """Sort commits into those inside the filters and what the filters take; `without` are commits without an offset."""
    kept: dict[str, Commits] = {}
    filtered: Counter[str] = Counter()
    for group, of_group in commits.items():
        taken_by = {topic: request.filters.verdict(group, topic) for topic in {place.topic for place in of_group}}
        if any(taken_by.values()):
            filtered.update(name for place in of_group if (name := taken_by[place.topic]) is not None)
            kept[group] = {place: commit for place, commit in of_group.items() if taken_by[place.topic] is None}
        else:
            kept[group] = of_group
    inside = {
        group: tuple(place for place in places if request.filters.verdict(group, place.topic) is None)
        for group, places in without.items()
    }
    return SelectedCommits(
        GroupCommits(kept), commits, filtered, unstable, groups_seen, topic_seen,
        without_offset={group: places for group, places in inside.items() if places},
    )  # fmt: skip


def read_priors(
    clusters: Clusters, groups: Collection[str], timer: Timer
) -> tuple[Mapping[str, Commits], frozenset[str]]:
    """Read what the groups have committed on the target so far, and which have transactions pending there.

    Raises `CommitsNotVisible` if that of a group could not be read.
    """
    target = clusters.target
    text = f"reading commits of {many(len(groups), 'group')} on {target.alias}"
    answers, unstable = _read(target, groups, text, timer)
    read = answer_of_each(groups, answers)
    if failures := {group: answer for group, answer in read.items() if isinstance(answer, Failure)}:
        group, failure = next(iter(failures.items()))
        raise CommitsNotVisible(
            f"{target.alias} refused the commits of group {clusters.target_names.on_target(group)!r}: "
            f"{failure.code} ({failure.message}).",
            "Grant DESCRIBE on the group and its topics on the target, or leave it out: --exclude-group.",
            failures,
        )
    return {group: answer for group, answer in read.items() if not isinstance(answer, Failure)}, unstable


def with_uncommitted(
    commits: Mapping[GroupPartition, Commit],
    source_topics: Mapping[str, int],
    target_topics: Mapping[str, int],
    request: PlanRequest,
) -> Mapping[GroupPartition, Commit | None]:
    """Add the partitions that get a row although nothing is committed there; `commits` are sorted, as is the result.

    `--uncommitted earliest` asks for them; while the source is down a partition without a checkpoint may
    hide a commit, so it is a row too.
    """
    asks_source = request.commits.asks_source
    if asks_source and request.policies.uncommitted is not Uncommitted.EARLIEST:
        return commits  # themselves: a million of them need not be there twice
    keys: dict[GroupPartition, Commit | None] = dict(commits)
    for group, topic in {(key.group, key.topic) for key in commits}:
        copy = request.flow.policy.target_topic(topic)
        for partition in range(source_topics.get(topic, 0) if asks_source else target_topics.get(copy, 0)):
            keys.setdefault(GroupPartition(group, topic, partition), None)
    return dict(sorted(keys.items()))


def _read(
    cluster: ClusterAdmin, groups: Collection[str], text: str, timer: Timer
) -> tuple[dict[str, Commits | Failure], frozenset[str]]:
    """Return each group's commits, and which groups have transactions pending: of those what is committed so far."""
    answers = timer.ask("commits", text, groups, cluster.commits)
    unstable = frozenset(g for g, a in answers.items() if isinstance(a, Failure) and a.code == UNSTABLE)
    if unstable:
        answers.update(cluster.commits(sorted(unstable), require_stable=False))
    return answers, unstable


def _refuse_failures(
    answers: Mapping[str, Commits | Failure], listed: Collection[str], alias: str, filters: Filters
) -> None:
    missing = sorted(set(listed) - set(answers))
    if missing:
        raise ClusterError(f"{alias} gave no answer about the commits of group {missing[0]!r}.", "Try again.")
    failed = {
        group: answer
        for group, answer in answers.items()
        if isinstance(answer, Failure) and filters.group_verdict(group) is None
    }
    if failed:
        group, failure = min(failed.items())
        raise CommitsNotVisible(
            f"{alias} refused the commits of {many(len(failed), 'group')}, first {group!r}: "
            f"{failure.code} ({failure.message}).",
            "Grant DESCRIBE on the group and on its topics, or leave the group out with --exclude-group.",
            failed,
        )
