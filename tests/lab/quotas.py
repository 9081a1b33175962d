"""Client quotas: confluent-kafka's admin client cannot set them (AlterClientQuotas 0)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from tests.lab.protocol import NULL, Connection, string
from tests.lab.waiting import LabError

ALTER_CLIENT_QUOTAS = (49, 0)


@contextmanager
def quota(bootstrap: str, entity: Mapping[str, str | None], limits: Mapping[str, float]) -> Iterator[None]:
    """Limit an entity's requests until the end of the block, and then not at all.

    `entity` has the keys "user" and "client-id", or one of them; None is the default of its kind. `limits` are Kafka's,
    such as {"producer_byte_rate": 1000}.
    """
    _alter(bootstrap, entity, limits)
    try:
        yield
    finally:
        _alter(bootstrap, entity, dict.fromkeys(limits))


def _alter(bootstrap: str, entity: Mapping[str, str | None], limits: Mapping[str, float | None]) -> None:
    """Set limits, and remove those that are None."""
    body = struct.pack(">ii", 1, len(entity))
    body += b"".join(string(kind) + (NULL if name is None else string(name)) for kind, name in entity.items())
    body += struct.pack(">i", len(limits))
    body += b"".join(string(key) + struct.pack(">d?", limit or 0.0, limit is None) for key, limit in limits.items())
    validate_only = struct.pack(">?", False)
    with closing(Connection(bootstrap, "quotas")) as connection:
        answer = connection.ask(ALTER_CLIENT_QUOTAS, body + validate_only)
    (error,) = struct.unpack_from(">h", answer, 8)  # behind the throttle time and the number of entities
    if error:
        raise LabError(f"the quota {dict(limits)} of {dict(entity)} was refused: {answer[10:]!r}")
