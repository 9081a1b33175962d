"""What is to be translated, and what a reviewer decides: options that `plan` shares with those who look as it does."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import click

from migrate.checks.checklist import parse_waiver
from migrate.cli.options import ParsedBy, flag, option, repeated
from migrate.errors import UsageError
from migrate.match.protocol import Limits
from migrate.mm2.name_map import MapLine, NameMap, read_name_map
from migrate.plan.file import MAGIC, read_plan
from migrate.plan.plan import Plan
from migrate.survey.filters import Filters
from migrate.survey.policies import (
    CommitsFrom,
    Policies,
    Rewind,
    Uncommitted,
    parse_untranslatable,
)
from migrate.text import parse_bytes

GROUP_MAP = "--group-map"


@dataclass(frozen=True, kw_only=True)
class GroupOptions:
    """Which groups."""

    TITLE: ClassVar = "Which groups"
    groups: tuple[str, ...] = repeated("Only groups that match in full.", name="--group", metavar="REGEX")
    exclude_groups: tuple[str, ...] = repeated(
        "Leave these groups out; wins over --group.", name="--exclude-group", metavar="REGEX")  # fmt: skip
    groups_file: Path | None = option("A wave: only the groups listed in this file, one per line.", metavar="FILE")

    def filters(self) -> Filters:
        """Return the filters; raises `UsageError` for a wrong one."""
        return Filters.from_options(self.groups, self.exclude_groups, groups_file=self.groups_file)


@dataclass(frozen=True, kw_only=True)
class TopicOptions:
    """Which topics."""

    topics: tuple[str, ...] = repeated(
        "Only topics that match in full, by their names on the source, or on the one cluster that is read.",
        name="--topic",
        metavar="REGEX",
    )
    exclude_topics: tuple[str, ...] = repeated(
        "Leave these topics out.", name="--exclude-topic", metavar="REGEX")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FilterOptions(TopicOptions, GroupOptions):
    """Which groups, and which topics."""

    def filters(self) -> Filters:
        """Return the filters; raises `UsageError` for a wrong one."""
        return Filters.from_options(
            self.groups, self.exclude_groups, self.topics, self.exclude_topics, self.groups_file
        )


@dataclass(frozen=True, kw_only=True)
class MovedGroupOptions(FilterOptions):
    """Which groups move, and what they are called on the target."""

    group_map: Path | None = option(
        "Groups that have another name on the target: CSV with the heading source_group,target_group, or lines "
        "regex:EXPRESSION,REPLACEMENT (full match; \\1 is a group of it); the first line that matches decides. Or a "
        "plan: its groups are called what it says.", name=GROUP_MAP, metavar="FILE")  # fmt: skip

    def names(self, failback: bool = False) -> NameMap:
        """Return what the groups are called, as they go; an empty map where every group keeps its name.

        On the way back (`failback`) a map of names is read backwards, and so is a plan that went the other way. Raises
        `UsageError` for a map that is wrong, or that cannot be read backwards.
        """
        path = self.group_map
        if path is None:
            return NameMap()
        if _is_plan(path):
            plan = read_plan(path)
            names = _map_of_plan(path, plan)
            return names.reversed() if plan.header.failback is not failback else names
        names = read_name_map(GROUP_MAP, path, "group")
        return names.reversed() if failback else names


def _is_plan(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False  # who reads it says why it cannot


def _map_of_plan(path: Path, plan: Plan) -> NameMap:
    """Return a map with the groups of a plan that have another name on its target."""
    renamed = plan.rows.renamed()
    if not renamed:
        raise UsageError(
            f"{GROUP_MAP} {path}: every group of this plan keeps its name.",
            f"Omit {GROUP_MAP}, or name the plan that renames.",
        )
    lines = {group: MapLine(number, group, target) for number, (group, target) in enumerate(renamed.items(), 1)}
    clusters = frozenset(filter(None, (plan.header.source_cluster_id, plan.header.target_cluster_id)))
    return NameMap(GROUP_MAP, str(path), "group", lines, clusters=clusters)


@dataclass(frozen=True, kw_only=True)
class DecisionOptions:
    """What a reviewer decides of every group alike: waivers, rows that no law translates, what is read twice."""

    TITLE: ClassVar = "Decisions"
    accept: tuple[str, ...] = repeated(
        "Turn that block into a warning. A plan prints both names; docs/checks.md has all checks.",
        metavar="CHECK[:SUBJECT]")  # fmt: skip
    untranslatable: tuple[str, ...] = repeated(
        "What to do with commits that no rule can translate (default block). A plan prints the reasons; "
        "docs/translation.md has all.",
        metavar="[REASON=]block|skip|earliest|latest")  # fmt: skip
    max_rereads: int = option(
        "Block a group that would re-read more records than this.",
        default=1_000_000, type=click.IntRange(min=0), metavar="N")  # fmt: skip

    def policies(self) -> Policies:
        """Return what was decided; raises `UsageError` for a word that is unknown."""
        default, by_reason = parse_untranslatable(self.untranslatable)
        waivers = tuple(parse_waiver(text) for text in self.accept)
        return Policies(waivers, default, by_reason, max_rereads=self.max_rereads)


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(DecisionOptions):
    """What a reviewer decides, also of what stands on the target, and of what has no commit."""

    rewind: Rewind = option(
        "What to do if the target group is already beyond the planned offset.", default=Rewind.BLOCK)  # fmt: skip
    uncommitted: Uncommitted = option(
        "What to do with partitions of a group's topics that it never committed.",
        default=Uncommitted.IGNORE)  # fmt: skip

    def policies(self) -> Policies:
        """Return what was decided; raises `UsageError` for a word that is unknown."""
        return replace(super().policies(), rewind=self.rewind, uncommitted=self.uncommitted)


@dataclass(frozen=True, kw_only=True)
class PlacingOptions:
    """What commits are placed by, and with how much reading."""

    TITLE: ClassVar = "Comparing, and its limits"
    by: str = option(
        "Place commits by comparing records, or by timestamps alone: for copies that cannot be compared. All of the "
        "source from the lowest commit on is read for it.",
        default="records", type=click.Choice(["records", "timestamp"]))  # fmt: skip
    no_match: bool = flag(
        "Compare no records: rows rest on MM2's offset syncs, `status` on MM2's own positions. Takes seconds, and "
        "proves nothing.")  # fmt: skip

    @property
    def by_timestamp(self) -> bool:
        """True if timestamps alone place commits."""
        return self.by == "timestamp"


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What bounds the comparing of records."""

    TITLE: ClassVar = "Comparing, and its limits"
    match_limit: int = option(
        "Read at most this many offsets of either log per partition; rows that would need more are bounded or "
        "estimated.", default=1_000_000, type=click.IntRange(min=1), metavar="RECORDS")  # fmt: skip
    max_fetch: int | None = option(
        "Fetch at most about this much from each cluster: 500M, 2G, 1048576. Partitions beyond it are not compared.  "
        "[default: no limit]", type=ParsedBy(parse_bytes), metavar="BYTES")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MatchingOptions(ReadingOptions, PlacingOptions):
    """What commits are placed by, and what bounds the comparing of records."""

    def limits(self) -> Limits:
        """Return what may be read; raises `UsageError` for options that contradict each other."""
        if self.by_timestamp and self.no_match:
            raise UsageError(
                "--by timestamp and --no-match exclude each other: timestamps are read from the records.",
                "Omit one of them.",
            )
        return Limits(0 if self.no_match else self.match_limit, self.max_fetch, self.by_timestamp)


def commits_from() -> Any:
    """Declare where the commits are read."""
    return option(
        "Ask the groups' coordinators for commits, or read them in __consumer_offsets, pinned, of the cluster that the "
        "groups leave: that also names groups which no listing shows.",
        default=CommitsFrom.ADMIN,
    )
