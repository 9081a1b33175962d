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

from migrate.model import ClusterFacts, Commit, Failure, GroupState, LogRange, TopicPartition

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


_REDUCERS = copyreg.dispatch_table | _values(ClusterFacts, Commit, Failure, GroupState, LogRange)
_COMMIT_FIELDS = attrgetter(*Commit.__dataclass_fields__)
_REDUCERS[TopicPartition] = lambda place: (TopicPartition, tuple(place))


class ByGroup:
    """Sends what is known of each group's partitions as a few long columns; the other side gets plain dictionaries.

    `answers`: group to (partition to commit, failure or None), or to the group's failure. A hundred thousand offsets
    sent one by one would take a tenth of all the time that reading them takes.
    """

    def __init__(self, answers: Mapping[str, Mapping[TopicPartition, Any] | Failure]) -> None:
        self.answers = answers

    def columns(self) -> tuple[Any, ...]:
        """Return all of it in the arguments of `_by_group`."""
        sizes = {g: a if isinstance(a, Failure) else len(a) for g, a in self.answers.items()}
        by_partition = [answer for answer in self.answers.values() if not isinstance(answer, Failure)]
        topics, partitions = [p.topic for a in by_partition for p in a], [p.partition for a in by_partition for p in a]
        values = [value for answer in by_partition for value in answer.values()]
        if all(type(value) is Commit for value in values):
            return sizes, topics, partitions, tuple(map(list, zip(*map(_COMMIT_FIELDS, values), strict=True))), None
        return sizes, topics, partitions, (), values


def _by_group(
    sizes: Mapping[str, int | Failure],
    topics: list[str],
    partitions: list[int],
    commits: tuple[Any, ...],
    others: list[Any] | None,
) -> dict[str, dict[TopicPartition, Any] | Failure]:
    values = map(Commit, *commits) if commits else iter(others or ())
    places = zip(map(TopicPartition, topics, partitions), values, strict=True)
    return {g: size if isinstance(size, Failure) else dict(islice(places, size)) for g, size in sizes.items()}


_REDUCERS[ByGroup] = lambda packed: (_by_group, packed.columns())


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
