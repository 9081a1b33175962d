"""Topics of a Connect worker, and of Debezium, that a source connector takes up from: known by name and shape. Pure.

A worker keeps its connectors' positions, settings and states in three compacted topics (`offset.storage.topic`,
`config.storage.topic`, `status.storage.topic`: `DistributedConfig`) of any name; by convention they differ in one word.
Debezium keeps the history of a database's schema in a topic of the user's own name. Without them on the new cluster
a source connector knows nothing of what it has read, and takes a new snapshot.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from migrate.model import Failure
from migrate.survey.cluster import CLEANUP_POLICY, ClusterAdmin
from migrate.survey.streams import INTERNAL

SINK_PREFIX = "connect-"


class Purpose(StrEnum):
    """What such a topic holds."""

    OFFSETS = "offsets"
    CONFIGS = "configs"
    STATUS = "status"
    HISTORY = "schema history"


@dataclass(frozen=True, slots=True)
class ConnectTopic:
    """One such topic; `siblings` are those of the same worker that are there, by the names."""

    topic: str
    purpose: Purpose
    siblings: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.purpose is Purpose.HISTORY:
            return "a Debezium schema history, by its name"
        beside = f", beside {', '.join(self.siblings)}" if self.siblings else ""
        return f"a Connect worker's {self.purpose}, by its name{beside}"


_WORD = re.compile(r"(?<![a-z0-9])(offsets?|configs?|status(?:es)?)(?![a-z0-9])", re.IGNORECASE)
# What follows is the name of a server (schema-changes.inventory), unless it goes on with the separator of the words
# themselves (schema_changes_audit): then it is one name, of something else.
_HISTORY = re.compile(
    r"(?<![a-z0-9])(?:schema([-._])?(?:changes|history)|(?:db|database)([-._])?history)"
    r"(?:$|\.|(?(1)(?!\1)|(?(2)(?!\2)))[-_])",
    re.IGNORECASE,
)
# As a word: "connected-car-status" and "disconnect-status" are applications' own.
_CONNECT = re.compile(r"(?<![a-z])(?:kafka)?connect(?![a-z])", re.IGNORECASE)
# MM2's own topics move nowhere: its connectors stay where they are. Streams' internal topics are an application's.
_OTHERS = re.compile(r".*[-.]internal|__consumer_offsets|mirrormaker2-cluster-.*")


def candidates(topics: Iterable[str]) -> tuple[str, ...]:
    """Return the topics whose names allow of it: those to ask for their `cleanup.policy`."""
    return tuple(sorted(filter(_is_candidate, topics)))


def connect_topics(
    topics: Iterable[str], groups: Iterable[str], cleanup: Mapping[str, str | Failure], own: Collection[str] = ()
) -> tuple[ConnectTopic, ...]:
    """Return the topics of Connect workers and of Debezium among these.

    `groups` are the groups of the cluster, `cleanup` the topics' `cleanup.policy` as far as it was reported: what is
    not compacted is no worker's topic. `own` are the offsets topics of the workers that run MM2, as far as known: their
    families are left out.
    """
    own_stems = {_stem(topic) for topic in own}
    families: dict[str, list[tuple[Purpose, str]]] = {}
    recognised = []
    for topic in candidates(topics):
        purpose, stem = _purpose(topic), _stem(topic)
        if purpose is Purpose.HISTORY:
            recognised.append(ConnectTopic(topic, purpose))
        elif stem not in own_stems and _may_be_compacted(cleanup.get(topic)):
            families.setdefault(stem, []).append((purpose, topic))
    has_sinks = any(group.startswith(SINK_PREFIX) for group in groups)
    for stem, members in families.items():
        if _is_a_workers(stem, {purpose for purpose, _ in members}, has_sinks):
            names = [topic for _, topic in members]
            recognised += [ConnectTopic(t, purpose, tuple(n for n in names if n != t)) for purpose, t in members]
    return tuple(sorted(recognised, key=lambda each: each.topic))


def read_connect_topics(
    cluster: ClusterAdmin, topics: Iterable[str], groups: Iterable[str], own: Collection[str]
) -> tuple[ConnectTopic, ...]:
    """Ask a cluster for the shape of what its names allow of, and return what is Connect's or Debezium's."""
    named = candidates(topics)
    policies = cluster.topic_settings(named, CLEANUP_POLICY) if named else {}
    return connect_topics(named, groups, {} if isinstance(policies, Failure) else policies, own)


def without_copy(recognised: Iterable[ConnectTopic], target_topics: Collection[str]) -> tuple[ConnectTopic, ...]:
    """Return those that the target has no topic of the same name for."""
    return tuple(each for each in recognised if each.topic not in target_topics)


def _is_a_workers(stem: str, purposes: Collection[Purpose], has_sinks: bool) -> bool:
    """Positions with settings or states beside them; or a name that says Connect; or positions where sinks run."""
    if _CONNECT.search(stem):
        return True
    if Purpose.OFFSETS not in purposes:
        return False  # such as orders-config and orders-status
    return len(purposes) > 1 or (has_sinks and stem.endswith("{}"))


def _may_be_compacted(cleanup: str | Failure | None) -> bool:
    return not isinstance(cleanup, str) or "compact" in cleanup.split(",")


def _is_candidate(topic: str) -> bool:
    is_others = _OTHERS.fullmatch(topic) or topic.endswith(INTERNAL)
    return not is_others and bool(_HISTORY.search(topic) or _WORD.search(topic))


def _purpose(topic: str) -> Purpose:
    if _HISTORY.search(topic):
        return Purpose.HISTORY
    word = _WORD.findall(topic)[-1].lower()
    return next(p for p in (Purpose.OFFSETS, Purpose.CONFIGS, Purpose.STATUS) if word[:4] == p[:4])


def _stem(topic: str) -> str:
    """Return the name without the word that tells a worker's three topics apart: the last, if there are several."""
    words = list(_WORD.finditer(topic))
    return f"{topic[: words[-1].start()]}{{}}{topic[words[-1].end() :]}" if words else topic
