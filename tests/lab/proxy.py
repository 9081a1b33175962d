"""A network that is slow, stalls or breaks: a proxy before each broker, whose port is the one that clients are told."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.lab.cluster import Broker, Cluster
from tests.lab.ports import HOST, free_ports

CHUNK_BYTES = 65_536
START_SECONDS = 10.0
# Closing with this lingering sends a reset, not an orderly end.
RESET = struct.pack("ii", 1, 0)


class Network:
    """The lines to every broker, as one: `latency_seconds` each way; `stall`, `flow` and `reset` act at once.

    `held` counts the pieces that a stall has held back, `resets` the connections that `reset` has broken, `passed` the
    bytes that have gone either way.
    """

    def __init__(self) -> None:
        self.latency_seconds = 0.0
        self.held = self.resets = self.passed = 0
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._lines: set[asyncio.StreamWriter] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._thread.start()

    @property
    def is_idle(self) -> bool:
        """True if nobody is connected."""
        return not self._lines

    def add(self, listening: socket.socket, upstream_port: int) -> None:
        """Take connections on a socket and lead them to `upstream_port`."""

        async def serve() -> None:
            async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await self._lead(reader, writer, upstream_port)

            self._servers.append(await asyncio.start_server(taken, sock=listening))

        self._do(serve())

    def stall(self) -> None:
        """Hold back every byte from now on; connections stay open."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def flow(self) -> None:
        """Let bytes pass again, those held back first."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Hold back every byte for a while."""
        self.stall()
        try:
            yield
        finally:
            self.flow()

    def reset(self) -> None:
        """Break every connection that is open, as a firewall does that has forgotten it."""

        async def broken() -> None:
            for writer in list(self._lines):
                line: socket.socket = writer.get_extra_info("socket")
                with suppress(OSError):  # closed by its own end in this very moment
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()
                self.resets += 1

        self._do(broken())

    def close(self) -> None:
        """End all lines, and the thread that serves them."""

        async def ended() -> None:
            for server in self._servers:
                server.close()
            under_way = asyncio.all_tasks() - {asyncio.current_task()}
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

        self.flow()
        self.reset()
        self._do(ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECONDS)
        self._loop.close()

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(START_SECONDS)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream_port: int) -> None:
        try:
            back_reader, back_writer = await asyncio.open_connection(HOST, upstream_port)
        except OSError:
            writer.transport.abort()
            return
        self._lines |= {writer, back_writer}
        try:
            await asyncio.gather(self._pump(reader, back_writer), self._pump(back_reader, writer))
        finally:
            self._lines -= {writer, back_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on, each as late as the line is slow, and in order."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def arriving() -> None:
            while chunk := await reader.read(CHUNK_BYTES):
                under_way.put_nowait((self._loop.time() + self.latency_seconds, chunk))
            under_way.put_nowait((self._loop.time() + self.latency_seconds, b""))

        async def leaving() -> None:
            while True:
                due, chunk = await under_way.get()
                await asyncio.sleep(due - self._loop.time())
                self.held += bool(chunk) and not self._flowing.is_set()
                await self._flowing.wait()
                if not chunk:
                    writer.close()
                    return
                writer.write(chunk)
                self.passed += len(chunk)
                await writer.drain()

        tasks = [asyncio.ensure_future(arriving()), asyncio.ensure_future(leaving())]
        try:
            await asyncio.gather(*tasks)
        except OSError:
            writer.transport.abort()
        finally:
            for task in tasks:
                task.cancel()


class ProxiedCluster(Cluster):
    """A cluster that clients reach through a `Network` at `proxied_bootstrap`, and the lab itself directly."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.network = Network()
        self._ports: dict[int, tuple[int, int]] = {}

    @property
    def proxied_bootstrap(self) -> str:
        """host:port of every node's proxy, comma separated."""
        return ",".join(f"{HOST}:{self._ports[broker.node_id][0]}" for broker in self.brokers)

    def pick_ports(self) -> None:
        super().pick_ports()
        ports = iter(free_ports(2 * len(self.brokers)))
        for broker in self.brokers:
            self._ports[broker.node_id] = outer, inner = next(ports), next(ports)
            self.network.add(socket.create_server((HOST, outer)), inner)

    def settings(self, broker: Broker) -> dict[str, str]:
        outer, inner = self._ports[broker.node_id]
        settings = super().settings(broker)
        settings["listeners"] += f",PROXIED://{HOST}:{inner}"
        settings["advertised.listeners"] += f",PROXIED://{HOST}:{outer}"
        settings["listener.security.protocol.map"] += ",PROXIED:PLAINTEXT"
        return settings

    def kill(self) -> None:
        super().kill()
        self.network.close()
