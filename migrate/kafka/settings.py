"""One cluster as clients of librdkafka are told of it: resolved once, and handed to whatever opens a client.

Travels to client processes and to Spark's tasks, which may lack what resolving it needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from migrate.model import Side


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Where a cluster is and who we are there.

    `name` is the cluster's in messages, "source A (broker:9092)"; `config` a librdkafka configuration, of which `ready`
    makes what clients take; `secrets` what no message may show.
    """

    side: Side
    alias: str
    name: str
    config: Mapping[str, Any] = field(repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def ready(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration once there is a token, where clients log in by one that a command prints.

    Such a client waits 10 seconds for it as it is made, and says nothing of why there is none. Raises `ClusterError`.
    """
    if command := config.get("oauth_cb"):
        command.token()
    return config
