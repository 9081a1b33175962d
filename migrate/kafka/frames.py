"""What the two sides of a client process say to each other: pickled values, each behind its length.

Only for a socket pair between a process of ours and its own child: a pickle from anybody else could run code.
"""

import copyreg
import gc
import io
import pickle
import socket
import struct
from operator import attrgetter
from typing import Any

from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.model import ClusterFacts, Failure, GroupState, LogRange, TopicPartition

_LENGTH = struct.Struct(">Q")
_READ_SIZE = 1 << 20
# Instead of an answer that is still to come: the cluster has said something.
HEARD = "heard"
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
_REDUCERS |= _values(AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup)
_REDUCERS[TopicPartition] = lambda place: (TopicPartition, tuple(place))


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
