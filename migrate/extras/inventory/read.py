"""Reads the groups of one cluster, of every kind, with what their lag takes.

Commits come before log ends, so that a group that reads on meanwhile never shows a commit beyond the end. All is read
as `kafka-consumer-groups` reads it: commits without `requireStable`, ends as a read_uncommitted reader sees them.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from migrate.commit_table import without_offset
from migrate.described_group import ListedGroup
from migrate.model import ClusterFacts, Commits, Failure, Side, TopicPartition
from migrate.progress import LOGS_AT_ONCE, Timer
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.expiry import OffsetClocks
from migrate.survey.filters import Filters
from migrate.survey.groups import NO_ANSWER
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupRecord, newest_ms
from migrate.text import many, some

SHARE = "share"
REBALANCING = Failure("REBALANCE_IN_PROGRESS", "the group is rebalancing: what its members read is not visible")
HIDDEN = "groups that this principal may not DESCRIBE: brokers leave them out of the list in silence"


ReadRecords = Callable[[Collection[str]], Mapping[str, GroupRecord] | Failure]
"""Returns what the offsets topic holds of these groups; a group without any is left out."""


@dataclass(frozen=True)
class ClusterGroups:
    """The groups of one cluster inside the filters, sorted, and what was read of them at `time_ms`.

    `commits` and the members' partitions are those on topics inside the filters. `topics` has the partition count of
    every topic that the cluster shows. `log_ends` has an entry for each partition that is committed or assigned,
    where ends were asked for. `filtered` counts groups by the filter that takes them. `missing` are names that were
    asked for and that no group has. `unseen` says in words what the list may lack, nothing where it is whole. `clocks`
    are what the groups' own records tell, None where nobody asked for them.
    """

    side: Side
    alias: str
    time_ms: int
    groups: Mapping[str, ListedGroup]
    commits: Mapping[str, Commits | Failure]
    topics: Mapping[str, int]
    log_ends: Mapping[TopicPartition, int | Failure]
    filtered: Mapping[str, int]
    missing: tuple[str, ...]
    unseen: tuple[str, ...]
    clocks: OffsetClocks | None = None


def read_groups(
    reader: ClusterAdmin,
    filters: Filters | None,
    timer: Timer,
    with_ends: bool = True,
    records: ReadRecords | None = None,
) -> ClusterGroups:
    """Read the groups inside the filters; None takes every group there is. `records` reads their own records too.

    Raises `ClusterError` if the cluster does not answer, or lists its consumer groups only in part.
    """
    facts = timer.run("reach", f"reaching {reader.alias}", reader.facts)
    others, groups, filtered, missing = _list_groups(reader, filters, timer)
    commits = _commits(reader, groups, timer)
    topics = timer.run("topics", f"listing topics of {reader.alias}", reader.topics)
    if filters is not None and (filters.topics or filters.exclude_topics):
        groups, commits = _within_topics(filters, groups, commits, filtered)
    read = ClusterGroups(
        reader.side, reader.alias, timer.clock.now_ms(), groups, commits, topics, {}, filtered, missing,
        _unseen(facts, others) if missing or filters is None or filters.groups_file is None else (),
    )  # fmt: skip
    if not with_ends:
        return read
    # Not asked of the cluster where it lists no such topic: the answer would be the same, one request later.
    places = sorted({place for group in groups for place in places_of(read, group)})
    text = f"reading the ends of {many(len(places), 'log')} on {reader.alias}"
    ends = timer.ask("ends", text, places, reader.high_watermarks, LOGS_AT_ONCE) if places else {}
    read = replace(read, log_ends=ends)
    return read if records is None else replace(read, clocks=_clocks(reader, records, read, timer))


def _clocks(reader: ClusterAdmin, read_records: ReadRecords, read: ClusterGroups, timer: Timer) -> OffsetClocks:
    settings = timer.run("retention", f"asking {read.alias} how long it keeps offsets", reader.broker_settings)
    text = f"reading {OFFSETS_TOPIC} of {read.alias} for {many(len(read.groups), 'group')}"
    records: Mapping[str, GroupRecord] | Failure = {}
    if read.groups:
        records = timer.run("records", text, lambda: read_records(list(read.groups)))
    # Times in the records are the brokers': where our clock is behind, they say how late it is at least.
    return OffsetClocks(read.alias, settings, records, max(timer.clock.now_ms(), newest_ms(records)))


def places_of(read: ClusterGroups, group: str) -> set[TopicPartition]:
    """Return the partitions that a group has committed on or is assigned, as far as that is known."""
    commits = read.commits[group]
    committed = set() if isinstance(commits, Failure) else {*commits, *without_offset(commits)}
    return committed | assigned_to(read.groups[group])


def not_shown(read: ClusterGroups, group: str) -> Failure | None:
    """Return why a group's commits and lag are not known: it is assigned a topic that the cluster does not show.

    Brokers leave commits on topics that a principal may not DESCRIBE out of their answer in silence, and still tell who
    is assigned what. None where every assigned topic is shown.
    """
    topics = sorted({place.topic for place in assigned_to(read.groups[group])} - read.topics.keys())
    if not topics:
        return None
    return Failure("UNKNOWN_TOPIC_OR_PARTITION", f"{some(topics, 3)}: gone, or the principal lacks DESCRIBE on it")


def assigned_to(group: ListedGroup) -> set[TopicPartition]:
    """Return the partitions that the members of a group are assigned."""
    if isinstance(group.description, Failure):
        return set()
    return {place for member in group.description.members for place in member.partitions()}


def why_not_assigned(group: ListedGroup) -> Failure | None:
    """Return why it is not known what the members of a group are assigned; None where it is.

    Of a classic group brokers tell it while it is Stable, and name members without any at other times
    (`ClassicGroup.describe`).
    """
    described = group.description
    if isinstance(described, Failure):
        return described
    is_known = described.state == "Stable" or not described.members or bool(assigned_to(group))
    return None if is_known else REBALANCING


def _list_groups(
    reader: ClusterAdmin, filters: Filters | None, timer: Timer
) -> tuple[Mapping[str, ListedGroup] | Failure, dict[str, ListedGroup], dict[str, int], tuple[str, ...]]:
    """Return the listing of every kind, the groups inside the filters, what was filtered, what is missing."""
    listed = timer.run("groups", f"listing groups on {reader.alias}", reader.groups)
    by_name = filters.groups_file if filters is not None else None
    others: Mapping[str, ListedGroup] | Failure = {}
    # That listing describes every group: where all that were asked for are known, nobody waits for it.
    if by_name is None or not by_name <= listed:
        text = f"listing groups of every kind on {reader.alias}"
        others = timer.run("kinds", text, reader.other_groups)
    known = {} if isinstance(others, Failure) else others
    every = listed | known.keys()
    filtered: dict[str, int] = {}
    wanted = []
    for group in sorted(every):
        verdict = filters.group_verdict(group) if filters is not None else None
        if verdict is None:
            wanted.append(group)
        else:
            filtered[verdict] = filtered.get(verdict, 0) + 1
    asked = [group for group in wanted if group not in known]
    text = f"describing {many(len(asked), 'group')} on {reader.alias}"
    described = timer.ask("states", text, asked, reader.described_groups) if asked else {}
    unanswered = ListedGroup.unseen(NO_ANSWER)
    groups = {group: known.get(group) or described.get(group, unanswered) for group in wanted}
    return others, groups, filtered, filters.unknown_names(every) if filters is not None else ()


def _commits(reader: ClusterAdmin, groups: Mapping[str, ListedGroup], timer: Timer) -> dict[str, Commits | Failure]:
    # A share group's positions are no commits: its coordinator would answer that there are none.
    asked = [name for name, group in groups.items() if group.kind != SHARE]
    text = f"reading commits of {many(len(asked), 'group')} on {reader.alias}"

    def ask(some: Collection[str]) -> Mapping[str, Commits | Failure]:
        return reader.commits(some, require_stable=False)

    answers = timer.ask("commits", text, asked, ask) if asked else {}
    commits: dict[str, Commits | Failure] = {}
    for name, group in groups.items():
        answer = answers.get(name, NO_ANSWER)
        if group.kind == SHARE:
            described = group.description
            answer = (
                described if isinstance(described, Failure) else Failure("NO_CLIENT", "share groups commit nothing")
            )
        elif isinstance(group.kind, Failure) and not answer:
            # Nothing committed, or a kind whose positions are kept elsewhere: nobody can tell.
            answer = group.kind
        commits[name] = answer
    return commits


def _within_topics(
    filters: Filters, groups: Mapping[str, ListedGroup], commits: Mapping[str, Commits | Failure],
    filtered: dict[str, int],
) -> tuple[dict[str, ListedGroup], dict[str, Commits | Failure]]:  # fmt: skip
    """Return groups and commits on topics inside the filters; a group that loses all its topics is counted as filtered.

    A group whose commits could not be read stays, and so does one that is rebalancing: it may read these topics.
    """
    kept, kept_commits = {}, {}
    for name, group in groups.items():
        answer = commits[name]
        topics = {place.topic for place in assigned_to(group)}
        if not isinstance(answer, Failure):
            topics |= {place.topic for place in answer}
        verdicts = {topic: filters.topic_verdict(topic) for topic in topics}
        inside = {topic for topic, verdict in verdicts.items() if verdict is None}
        takes_all = bool(topics or filters.topics) and not inside
        is_known = not isinstance(answer, Failure) and why_not_assigned(group) is None
        if takes_all and is_known:
            filter_name = min((verdict for verdict in verdicts.values() if verdict), default="topic")
            filtered[filter_name] = filtered.get(filter_name, 0) + 1
            continue
        if inside != topics:
            group = _reading_only(group, inside)
            if not isinstance(answer, Failure):
                answer = {place: commit for place, commit in answer.items() if place.topic in inside}
        kept[name], kept_commits[name] = group, answer
    return kept, kept_commits


def _reading_only(group: ListedGroup, topics: Collection[str]) -> ListedGroup:
    described = group.description
    if isinstance(described, Failure):
        return group
    members = tuple(replace(m, assigned=tuple(a for a in m.assigned if a.topic in topics)) for m in described.members)
    return replace(group, description=replace(described, members=members))


def _unseen(facts: ClusterFacts, others: Mapping[str, ListedGroup] | Failure) -> tuple[str, ...]:
    unseen = [] if facts.may_describe else [HIDDEN]
    if isinstance(others, Failure):
        unseen.append(f"share groups, streams groups and those of Connect workers ({others})")
    return tuple(unseen)
