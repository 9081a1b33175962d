"""One cluster as clients of librdkafka are told of it: resolved once, and handed to whatever opens a client.

Travels to client processes and to Spark's tasks, which may lack what resolving it needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.model import Side


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Where a cluster is and who we are there.

    `name` is the cluster's in messages, "source A (broker:9092)"; `config` a ready librdkafka configuration; `secrets`
    what no message may show.
    """

    side: Side
    alias: str
    name: str
    config: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
