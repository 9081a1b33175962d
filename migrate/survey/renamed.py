"""Groups that have another name on the target. Pure.

Everything between the clusters and a person speaks of a group by its name on the source. Only `migrate.kafka.cluster`
says what it is called on the target, right where it asks or writes there.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap

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
