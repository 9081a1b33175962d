"""Groups that have another name on the target: its edges, as seen from the source's names. Pure.

Everything between the clusters and a person speaks of a group by its name on the source. What asks the target, or
writes there, goes through one of these adapters: so no step can forget that a group is called otherwise there, and
read or write whatever has the group's old name.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap
from migrate.model import Commits, Failure, GroupState, TopicPartition
from migrate.ports import ClusterAdmin, CommitReader, Outcomes
from migrate.survey.group_facts import BrokerSettings, GroupFactsReader
from migrate.survey.offsets_topic import GroupRecord

V = TypeVar("V")


def refuse_map_of_other_clusters(group_map: NameMap, cluster_ids: Iterable[str]) -> None:
    """Raise `UsageError` for a map that holds between other clusters than these: its names mean other groups here.

    A cluster that was not read, now or when the map's plan was made, is "" or missing, and says nothing.
    """
    planned, here = group_map.clusters, frozenset(filter(None, cluster_ids))
    if max(len(planned), len(here)) > 1 and not (planned <= here or here <= planned):
        raise UsageError(
            f"{group_map.option} {group_map.file} is a plan for clusters {' and '.join(sorted(planned))}; "
            f"here they are {' and '.join(sorted(here))}.",
            "Name the plan that moved the groups between these clusters.",
        )


@dataclass(frozen=True)
class TargetNames:
    """What groups are called on the target: `renamed` has those that have another name there, by that on the source.

    No two groups have one name there (`NameMap.all_mapped`, and a plan refuses it too); two may have each other's.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, names: NameMap, groups: Collection[str]) -> "TargetNames":
        """Return what a map makes of these groups; raises `UsageError` where two of them would have one name."""
        if not names:
            return cls()
        return cls({group: target for group, target in names.all_mapped(groups).items() if target != group})

    def __bool__(self) -> bool:
        return bool(self.renamed)

    @cached_property
    def _originals(self) -> Mapping[str, str]:
        return {target: group for group, target in self.renamed.items()}

    def on_target(self, group: str) -> str:
        """Return the target's name of a group."""
        return self.renamed.get(group, group)

    def asked(self, groups: Iterable[str]) -> list[str]:
        """Return the target's names of groups, in their order."""
        return [self.renamed.get(group, group) for group in groups]

    def to_target(self, by_group: Mapping[str, V]) -> dict[str, V]:
        """Return the same by the target's names."""
        return {self.renamed.get(group, group): value for group, value in by_group.items()}

    def to_source(self, by_group: Mapping[str, V]) -> dict[str, V]:
        """Return what the target said, by the source's names; what it said of an old name belongs to no group."""
        originals = self._originals
        return {
            originals.get(said, said): value
            for said, value in by_group.items()
            if said in originals or said not in self.renamed
        }

    def under_old_names(self, listed: Collection[str]) -> tuple[str, ...]:
        """Return, of groups that the target lists, those with the old name of a group that is called otherwise there.

        Where another group of the plan takes that name over, it is that one's.
        """
        return tuple(sorted(self.renamed.keys() & listed - self._originals.keys()))


SAME_NAMES = TargetNames()


class RenamedCommits:
    """Reads commits on the target, asked by the source's names of groups."""

    def __init__(self, reader: CommitReader, names: TargetNames) -> None:
        self._reader = reader
        self._names = names

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """As `CommitReader.commits`."""
        return self._names.to_source(self._reader.commits(self._names.asked(groups), require_stable))


class RenamedAdmin:
    """The target's admin, asked and told by the source's names of groups. It does all that `admin` does."""

    def __init__(self, admin: ClusterAdmin, names: TargetNames) -> None:
        self.side = admin.side
        self.alias = admin.alias
        self._admin = admin
        self._names = names
        self.facts, self.topics, self.topic_ids = admin.facts, admin.topics, admin.topic_ids
        self.log_ranges, self.high_watermarks = admin.log_ranges, admin.high_watermarks
        self.missing_capability, self.close = admin.missing_capability, admin.close
        self.commits = RenamedCommits(admin, names).commits

    def groups(self) -> frozenset[str]:
        """List consumer groups. One that has the old name of a renamed group is not in the list: it is not that one."""
        return frozenset(self._names.to_source(dict.fromkeys(self._admin.groups())))

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        """Describe each group."""
        return self._names.to_source(self._admin.group_states(self._names.asked(groups)))

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit the offsets of each group, under its name on the target."""
        return self._names.to_source(self._admin.alter(self._names.to_target(commits)))

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets of groups, under their names on the target."""
        return self._names.to_source(self._admin.delete_offsets(self._names.to_target(offsets)))

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        """Delete empty groups, by their names on the target."""
        return self._names.to_source(self._admin.delete_groups(self._names.asked(groups)))

    def renewed(self) -> "RenamedAdmin":
        """Return one with a new client."""
        return RenamedAdmin(self._admin.renewed(), self._names)

    def holding(self, lock: int) -> "RenamedAdmin":
        """Return one whose client keeps the lock."""
        return RenamedAdmin(self._admin.holding(lock), self._names)


class RenamedGroupFacts:
    """What the target tells of groups beside states and commits, asked by the source's names."""

    def __init__(self, reader: GroupFactsReader, names: TargetNames) -> None:
        self._reader = reader
        self._names = names
        self.compacted_topics, self.cleanup_policies = reader.compacted_topics, reader.cleanup_policies
        self.newest_record_ms, self.timestamp_types = reader.newest_record_ms, reader.timestamp_types

    def group_kinds(self) -> Mapping[str, str] | Failure:
        """Return the kind of each group."""
        return self._told(self._reader.group_kinds())

    def settings(self) -> BrokerSettings | Failure:
        """Return what the brokers are set to."""
        return self._reader.settings()

    def group_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups."""
        return self._told(self._reader.group_records(self._names.asked(groups)))

    def commit_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups' commits."""
        return self._told(self._reader.commit_records(self._names.asked(groups)))

    def _told(self, answer: Mapping[str, V] | Failure) -> Mapping[str, V] | Failure:
        return answer if isinstance(answer, Failure) else self._names.to_source(answer)


def renamed_admin(admin: ClusterAdmin, names: TargetNames) -> ClusterAdmin:
    """Return the target's admin by the source's names; itself where no group has another."""
    return RenamedAdmin(admin, names) if names else admin


def renamed_facts(reader: GroupFactsReader | None, names: TargetNames) -> GroupFactsReader | None:
    """Return the target's reader of group facts by the source's names; itself where no group has another."""
    return RenamedGroupFacts(reader, names) if reader is not None and names else reader
