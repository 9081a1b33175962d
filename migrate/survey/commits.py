"""Which commits a plan is about: read from the source, or from MM2's checkpoints while the source is down."""

from collections.abc import Collection, Mapping

from migrate.errors import ClusterError
from migrate.mm2.topics import CheckpointReading
from migrate.model import Commit, Commits, Failure, GroupPartition
from migrate.survey.filters import Filters
from migrate.survey.policies import Uncommitted
from migrate.survey.survey import Clusters, PlanRequest, Timer, Wanted

UNSTABLE = "UNSTABLE_OFFSET_COMMIT"


def from_source(clusters: Clusters, listed: frozenset[str], request: PlanRequest, timer: Timer) -> Wanted:
    """Read every listed group's commits, and sort them into rows and what the filters take.

    Commits of groups that the filters take are read too: they are counted, so that rows + filtered = read.
    Raises `ClusterError` if the commits of a group that is wanted could not be read.
    """
    reader, alias = clusters.source_commits, request.flow.source.alias
    assert reader is not None
    text = f"reading commits of {len(listed)} groups on {alias}"
    answers = timer.ask("commits", text, sorted(listed), reader.commits)
    unstable = _unstable(answers)
    if unstable:
        answers.update(reader.commits(sorted(unstable), require_stable=False))
    _refuse_failures(answers, listed, alias, request.filters)
    kept: dict[GroupPartition, Commit] = {}
    filtered: dict[str, int] = {}
    read = 0
    for group in sorted(answers):
        commits = answers[group]
        if isinstance(commits, Failure):
            continue
        for partition in sorted(commits):
            read += 1
            taken_by = request.filters.verdict(group, partition.topic)
            if taken_by is None:
                kept[GroupPartition(group, partition.topic, partition.partition)] = commits[partition]
            else:
                filtered[taken_by] = filtered.get(taken_by, 0) + 1
    return Wanted(
        kept,
        read,
        filtered,
        frozenset(g for g in unstable if request.filters.group_verdict(g) is None),
        frozenset(g for g, commits in answers.items() if commits),
    )


def from_checkpoints(reading: CheckpointReading, request: PlanRequest) -> Wanted:
    """Stand in for live commits while the source is down: the newest checkpoints' upstream offsets."""
    kept: dict[GroupPartition, Commit] = {}
    filtered: dict[str, int] = {}
    in_order = sorted(reading.latest, key=lambda k: (k.group, k.target_topic, k.partition))
    for key in in_order:
        record = reading.latest[key]
        topic = request.flow.policy.source_topic(key.target_topic) or key.target_topic
        taken_by = request.filters.verdict(key.group, topic)
        if taken_by is None:
            kept[GroupPartition(key.group, topic, key.partition)] = Commit(record.source_offset, record.metadata)
        else:
            filtered[taken_by] = filtered.get(taken_by, 0) + 1
    seen = frozenset(key.group for key in reading.latest)
    return Wanted(kept, len(reading.latest), filtered, frozenset(), seen)


def read_priors(
    clusters: Clusters, groups: Collection[str], timer: Timer
) -> tuple[Mapping[str, Commits], frozenset[str]]:
    """Read what the groups have committed on the target so far, and which have transactions pending there."""
    target, reader = clusters.target, clusters.target_commits
    text = f"reading commits of {len(groups)} groups on {target.alias}"
    answers = timer.ask("commits", text, groups, reader.commits)
    unstable = _unstable(answers)
    if unstable:
        answers.update(reader.commits(sorted(unstable), require_stable=False))
    priors: dict[str, Commits] = {}
    for group in groups:
        answer = answers.get(group, Failure("NO_ANSWER", "the group is missing from the answer"))
        if isinstance(answer, Failure):
            raise ClusterError(
                f"{target.alias} refused the commits of group {group!r}: {answer.code} ({answer.message}).",
                "Grant DESCRIBE on the group and its topics on the target, or leave it out: --exclude-group.",
            )
        priors[group] = answer
    return priors, unstable


def with_uncommitted(
    commits: Mapping[GroupPartition, Commit],
    source_topics: Mapping[str, int],
    target_topics: Mapping[str, int],
    request: PlanRequest,
) -> dict[GroupPartition, Commit | None]:
    """Add the partitions that get a row although nothing is committed there, and sort.

    `--uncommitted earliest` asks for them; while the source is down a partition without a checkpoint may
    hide a commit, so it is a row too.
    """
    keys: dict[GroupPartition, Commit | None] = dict(commits)
    if request.source_down or request.policies.uncommitted is Uncommitted.EARLIEST:
        for group, topic in {(key.group, key.topic) for key in commits}:
            if request.source_down:
                count = target_topics.get(request.flow.policy.target_topic(topic), 0)
            else:
                count = source_topics.get(topic, 0)
            for partition in range(count):
                keys.setdefault(GroupPartition(group, topic, partition), None)
    return dict(sorted(keys.items()))


def _unstable(answers: Mapping[str, Commits | Failure]) -> frozenset[str]:
    return frozenset(g for g, a in answers.items() if isinstance(a, Failure) and a.code == UNSTABLE)


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
        raise ClusterError(
            f"{alias} refused the commits of {len(failed)} groups, first {group!r}: "
            f"{failure.code} ({failure.message}).",
            "Grant DESCRIBE on the group and on its topics, or leave the group out with --exclude-group.",
        )
