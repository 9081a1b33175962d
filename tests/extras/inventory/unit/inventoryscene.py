"""A cluster's groups in memory, behind the ports that the `groups` commands ask."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.described_group import ListedGroup
from migrate.extras.inventory.read import ClusterGroups, read_groups
from migrate.model import ClusterFacts, Commit, Commits, Failure, Side, TopicPartition
from migrate.progress import Timer
from migrate.survey.cluster import BrokerSettings
from migrate.survey.filters import Filters
from migrate.survey.offsets_topic import GroupRecord
from tests.fakes import FakeClock, NoProgress
from tests.unit.goldenfiles import compare_with_golden

GOLDEN = Path(__file__).parents[1] / "golden"
RETENTION_MS = 7 * 86_400_000
NO_SHARE = Failure("NO_CLIENT", "no client at hand describes share groups")
DENIED = Failure("GROUP_AUTHORIZATION_FAILED", "not authorized")


def commits(**offsets: int) -> Commits:
    """Commits by partition: orders_0=7."""
    named = {tuple(name.rsplit("_", 1)): offset for name, offset in offsets.items()}
    return {TopicPartition(topic, int(partition)): Commit(offset) for (topic, partition), offset in named.items()}


@dataclass
class FakeGroups:
    """What is on a cluster. `asked` are the groups whose commits were read, `described` those described, in `calls`."""

    consumers: dict[str, ListedGroup] = field(default_factory=dict)
    others: Mapping[str, ListedGroup] | Failure = field(default_factory=dict)
    committed: dict[str, Commits | Failure] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int | Failure] = field(default_factory=dict)
    may_describe: bool | None = True
    asked: list[str] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    stable: list[bool] = field(default_factory=list)
    side: Side = Side.SOURCE
    alias = "A"
    records: Mapping[str, GroupRecord] | Failure = field(default_factory=dict)

    def facts(self) -> ClusterFacts:
        return ClusterFacts("id", 1, self.may_describe)

    def topics(self) -> Mapping[str, int]:
        self.calls.append("topics")
        return self.partitions

    def groups(self) -> frozenset[str]:
        self.calls.append("groups")
        return frozenset(self.consumers)

    def described_groups(self, groups: Collection[str]) -> Mapping[str, ListedGroup]:
        self.described += groups
        return {name: self.consumers[name] for name in groups}

    def other_groups(self) -> Mapping[str, ListedGroup] | Failure:
        self.calls.append("other_groups")
        return self.others

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        self.calls.append("commits")
        self.asked += groups
        self.stable.append(require_stable)
        return {name: self.committed.get(name, {}) for name in groups}

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        self.calls.append("high_watermarks")
        gone = Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there")
        return {place: self.ends.get(place, 100 if place.topic in self.partitions else gone) for place in partitions}

    def group_records(self, groups: Collection[str], most: int | None = None) -> Mapping[str, GroupRecord] | Failure:
        self.calls.append("group_records")
        assert most is None
        return self.records if isinstance(self.records, Failure) else dict(self.records)

    def broker_settings(self) -> BrokerSettings:
        return BrokerSettings(RETENTION_MS, takes_kip848=True)

    def close(self) -> None: ...


def read(
    cluster: FakeGroups, filters: Filters | None = None, with_ends: bool = True, with_records: bool = False
) -> ClusterGroups:
    """Read the cluster, everything on it by default."""
    asked: Any = cluster
    records = asked.group_records if with_records else None
    return read_groups(asked, filters, Timer(FakeClock(), NoProgress()), with_ends, records)


def compare_form(name: str, form: str, shown: Iterable[str]) -> None:
    """Compare with the golden form; nothing in it is obeyed by a terminal or a spreadsheet, and text fits its width."""
    lines = list(shown)
    compare_with_golden(f"{name}.{form}", "\n".join(lines) + "\n", GOLDEN)
    assert not any("\x1b" in line or line.startswith("=") for line in lines)
    assert not form.endswith("txt") or all(len(line) <= int(form[:-4]) for line in lines)
