"""Kafka's protocol by hand, for the few requests that confluent-kafka has no call for."""

from __future__ import annotations

import socket
import struct

CALL_SECONDS = 30.0
NULL = struct.pack(">h", -1)


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def data(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


class Connection:
    """One connection to the first broker of a bootstrap address, without TLS and SASL."""

    def __init__(self, bootstrap: str, client: str) -> None:
        host, _, port = bootstrap.partition(",")[0].partition(":")
        self._socket = socket.create_connection((host, int(port)), CALL_SECONDS)
        self._client = client

    def ask(self, api: tuple[int, int], body: bytes) -> bytes:
        """Send a request, given its key and version, and return the body of the answer."""
        self.send(api, body)
        return self.take()

    def send(self, api: tuple[int, int], body: bytes) -> None:
        self._socket.sendall(data(struct.pack(">hhi", *api, 1) + string(self._client) + body))

    def take(self) -> bytes:
        """Return the body of the next answer."""
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)[4:]

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._socket.recv(size - len(found))
            assert part, "the broker closed the connection"
            found += part
        return found
