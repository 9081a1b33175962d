"""What the two sides of a client process say to each other: pickled values, each behind its length.

Only for a socket pair between a process of ours and its own child: a pickle from anybody else could run code.
"""

import copyreg
import gc
import io
import pickle
import socket
import struct
from collections.abc import Mapping
from itertools import islice
from operator import attrgetter
from typing import Any

from migrate.model import ClusterFacts, Failure, GroupState, LogRange, TopicPartition
from migrate.ports import Outcomes

_LENGTH = struct.Struct(">Q")
_READ_SIZE = 1 << 20
# What either side says of commits with metadata, and of single offsets that are to be removed.
NOT_EXACT = Failure(
    "UNSUPPORTED_BY_CLIENT", "librdkafka can neither write commit metadata byte for byte nor remove single offsets"
)


def _values(*kinds: type[Any]) -> dict[type[Any], Any]:
    """Send these as constructor calls: the usual way of frozen dataclasses takes three times as long."""

    def reducer(kind: type[Any]) -> Any:
        fields = attrgetter(*kind.__dataclass_fields__)
        return lambda value: (kind, fields(value))

    return {kind: reducer(kind) for kind in kinds}


_REDUCERS = copyreg.dispatch_table | _values(ClusterFacts, Failure, GroupState, LogRange)
_REDUCERS[TopicPartition] = lambda place: (TopicPartition, tuple(place))


class ByGroup:
    """Sends what became of each group's partitions as a few long columns; the other side gets plain dictionaries.

    A hundred thousand outcomes sent one by one would take a tenth of all the time that writing them takes. Of a group
    without a failure its partitions are sent, once for all groups that have the same.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes

    def columns(self) -> tuple[Any, ...]:
        """Return all of it in the arguments of `_by_group`."""
        known: dict[tuple[TopicPartition, ...], tuple[TopicPartition, ...]] = {}
        done, mixed = {}, {}
        for group, answers in self.outcomes.items():
            if any(answers.values()):
                mixed[group] = answers
            else:
                places = tuple(answers)
                done[group] = known.setdefault(places, places)
        sizes = {group: len(answers) for group, answers in mixed.items()}
        places = tuple(place for answers in mixed.values() for place in answers)
        failures = [failure for answers in mixed.values() for failure in answers.values()]
        return done, sizes, [p.topic for p in places], [p.partition for p in places], failures


def _by_group(
    done: Mapping[str, tuple[TopicPartition, ...]],
    sizes: Mapping[str, int],
    topics: list[str],
    partitions: list[int],
    failures: list[Failure | None],
) -> dict[str, dict[TopicPartition, Failure | None]]:
    places = zip(map(TopicPartition, topics, partitions), failures, strict=True)
    outcomes: dict[str, dict[TopicPartition, Failure | None]]
    outcomes = {group: dict(islice(places, size)) for group, size in sizes.items()}
    return outcomes | {group: dict.fromkeys(of_group) for group, of_group in done.items()}


_REDUCERS[ByGroup] = lambda sent: (_by_group, sent.columns())


def send(channel: socket.socket, value: Any) -> None:
    """Write one value; raises `OSError` if nobody is there to read."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(value)
    content = buffer.getbuffer()
    channel.sendall(_LENGTH.pack(len(content)))
    channel.sendall(content)


def receive(channel: socket.socket) -> Any:
    """Return the next value; raises `EOFError` if the other side has ended, `OSError` if the channel broke."""
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    content = _exactly(channel, length)
    collecting = gc.isenabled()
    # Among a hundred thousand new values the collector would look for garbage again and again, in vain.
    gc.disable()
    try:
        return pickle.loads(content)
    finally:
        if collecting:
            gc.enable()


def _exactly(channel: socket.socket, length: int) -> bytearray:
    content = bytearray(length)
    view, got = memoryview(content), 0
    while got < length:
        count = channel.recv_into(view[got:], min(length - got, _READ_SIZE))
        if not count:
            raise EOFError
        got += count
    return content
