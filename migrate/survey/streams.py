"""By what a Kafka Streams application is known, from the outside. Pure.

Three signs, each of which may be missing: the assignor of a group that has members (`StreamsPartitionAssignor`), the
internal topics named after the application, and the metadata of its commits (`TopicPartitionMetadata`).
"""

import struct
from base64 import b64decode
from collections.abc import Collection, Iterable

ASSIGNORS = ("stream", "streams")
INTERNAL = ("-changelog", "-repartition")

_HEAD = struct.Struct(">bq")
_VERSIONS = (1, 2)
# Stream time is a record's timestamp in ms: far beyond is not one. -1 means none.
_LATEST_MS = 10**14


def applications_of(topics: Iterable[str], groups: Collection[str]) -> dict[str, list[str]]:
    """Return the internal topics among these by the group after which each is named, as Kafka Streams names its own.

    The longest name counts: `orders` is no part of the application `orders-enricher`.
    """
    found: dict[str, list[str]] = {}
    for topic in topics:
        # By the topic's name and not by the group's: thousands of groups times thousands of topics take minutes.
        if topic.endswith(INTERNAL):
            ends = (place for place, character in enumerate(topic) if character == "-")
            longest = max((end for end in ends if topic[:end] in groups), default=0)
            if longest:
                found.setdefault(topic[:longest], []).append(topic)
    return found


def signs_of(assignor: str, metadata: Iterable[str], internal_topics: Collection[str]) -> tuple[str, ...]:
    """Return by what signs a group looks like an application of Kafka Streams."""
    signs = (
        (f"assignor {assignor}", assignor in ASSIGNORS),
        ("internal topics", bool(internal_topics)),
        ("commit metadata", any(map(is_metadata, metadata))),
    )
    return tuple(sign for sign, is_there in signs if is_there)


def is_metadata(text: str) -> bool:
    """True if commit metadata is what Kafka Streams writes: base64 of a version byte, a stream time, and more."""
    try:
        raw = b64decode(text, validate=True)
        version, time_ms = _HEAD.unpack_from(raw)
    except (ValueError, struct.error):  # no base64, or too short
        return False
    if version == 1 and len(raw) != _HEAD.size:
        return False
    return version in _VERSIONS and -1 <= time_ms < _LATEST_MS
