"""The options of a flow behind another replicator than MirrorMaker 2, and what they mean together."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate.errors import UsageError
from migrate.mm2.flow import Cluster, Flow, Replicator, called
from migrate.mm2.name_map import NameMap, read_name_map
from migrate.mm2.naming import PolicyKind, ReplicationPolicy, TopicNames
from migrate.mm2.other_names import MappedNames
from migrate.model import Side

# What only MM2 has, by the names of its options' values.
_OF_MM2 = (
    "mm2_config", "connect_url", "strimzi", "offset_syncs_location", "checkpoints_topic", "offset_syncs_topic",
    "connect_offsets_topic",
)  # fmt: skip


def refuse_mixed(given: Mapping[str, Any]) -> None:
    """Raise `UsageError` where options of MM2 and of another replicator are mixed; `given` has None for what is not."""
    if given["replicator"] != Replicator.ANY:
        if given["topic_map"] is not None:
            raise UsageError(
                "--topic-map says how a replicator other than MM2 names topics.",
                "Give --replicator any as well. MM2's own names are --replication-policy default or identity.",
            )
        return
    of_mm2 = ["--" + name.replace("_", "-") for name in _OF_MM2 if given[name] is not None]
    if of_mm2:
        raise UsageError(
            f"--replicator any: {of_mm2[0]} is about MirrorMaker 2, of which nothing is asked then.",
            "Omit it, and give --source-config FILE and --target-config FILE.",
        )
    if given["topic_map"] is not None and given["replication_policy"] is not None:
        raise UsageError("--topic-map and --replication-policy exclude each other.", "Say once how topics are named.")
    if given["separator"] is not None and given["replication_policy"] != PolicyKind.DEFAULT:
        raise UsageError(
            "--separator stands in names that begin with an alias.",
            "Give --replication-policy default too, or omit it.",
        )


def other_flow(
    source: Mapping[str, str], target: Mapping[str, str], aliases: tuple[str, str], given: Mapping[str, Any]
) -> Flow:
    """Return the flow of another replicator, from the client properties of both clusters and the options.

    Topics are named as on the source unless options say otherwise. Raises `UsageError` for a map that cannot be read.
    """
    return Flow(
        Cluster(Side.SOURCE, called(Side.SOURCE, aliases[0]), dict(source)),
        Cluster(Side.TARGET, called(Side.TARGET, aliases[1]), dict(target)),
        _names(aliases, given["topic_map"], given),
        Side.SOURCE,
        checkpoints_topic="",
        offset_syncs_topic="",
        replicator=Replicator.ANY,
    )


def _names(aliases: tuple[str, str], topic_map: Path | None, given: Mapping[str, Any]) -> TopicNames:
    if given["replication_policy"] == PolicyKind.DEFAULT:
        separator = given["separator"]
        return ReplicationPolicy(PolicyKind.DEFAULT, *aliases, "." if separator is None else separator)
    return MappedNames(*aliases, NameMap() if topic_map is None else read_name_map("--topic-map", topic_map, "topic"))
