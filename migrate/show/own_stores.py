"""Connectors that keep positions beside their group, which nothing here translates: what to do on the target. Pure."""

import re
from collections.abc import Iterable, Iterator

from migrate.model import Row
from migrate.text import name

# Names that Apache Iceberg's Kafka Connect sink gives to its control group and topic unless it is told others.
_ICEBERG_GROUP, _ICEBERG_TOPIC = re.compile(r"cg-control-.*", re.DOTALL), re.compile(r".*control-iceberg.*", re.DOTALL)
_SNOWFLAKE = re.compile(r"connect-.*snowflake.*", re.DOTALL | re.IGNORECASE)


def kept_elsewhere(group: str, rows: Iterable[Row]) -> Iterator[str]:
    """Yield what a group's connector keeps outside Kafka, by the names that it usually has, and what to do."""
    topics = {row.source_topic for row in rows}
    if _ICEBERG_GROUP.fullmatch(group) or any(map(_ICEBERG_TOPIC.fullmatch, topics)):
        yield (
            f"{name(group)} looks like Apache Iceberg's sink. Its tables keep offsets of its control topic in their "
            "snapshots (kafka.connect.offsets.*), and no plan translates these: a control topic on the target begins "
            "at 0, and all below the number in the snapshot is dropped in silence (apache/iceberg#16360). Give the "
            "sink on the target a new control topic and a new control group; apply moves the group that reads the data."
        )
    if _SNOWFLAKE.fullmatch(group):
        yield (
            f"{name(group)} looks like Snowflake's sink. Snowflake keeps an offset token for each channel, named after "
            "topic and partition, and no plan translates these. Where topics have other names on the target, channels "
            "are new, and the group's commit counts; where names stay, the token wins: use another connector name."
        )
