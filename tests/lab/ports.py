"""Ports of this machine for servers of the lab, each given to one owner only.

That a port can be bound tells nothing about the next moment: a broker binds what it was given seconds later, when
another may have been given the same. So the range is cut into blocks. A process holds a block by its first port, bound
and never listened on, as long as it lives, and gives out the others one after another, none of them twice.
"""

from __future__ import annotations

import random
import socket
import weakref

from tests.lab.waiting import LabError

HOST = "127.0.0.1"
# Below the range from which systems take the ports of outgoing connections: a client that keeps calling
# a stopped broker must neither take its port nor, by chance, get connected to itself.
PORT_RANGE = (20000, 32000)
BLOCK_PORTS = 50


def family_of(host: str) -> socket.AddressFamily:
    """The family of a literal address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def hold(owner: object, host: str, port: int) -> bool:
    """Keep a port from others while `owner` lives: it is bound, and nobody listens. False if somebody else has it."""
    holding = _bound(host, port)
    if holding is None:
        return False
    weakref.finalize(owner, holding.close)
    return True


class PortBlocks:
    """Blocks of ports that are held as long as this object lives. When one is used up, another is taken.

    `first_block`, counted from the lower end of `PORT_RANGE`, is tried before all others.
    """

    def __init__(self, first_block: int | None = None) -> None:
        self._first_block = first_block
        self._left: list[int] = []

    def take(self, count: int, host: str = HOST) -> list[int]:
        """Ports that `host` could bind just now, and that nobody was given before. Raises LabError without any left."""
        taken: list[int] = []
        while len(taken) < count:
            if not self._left:
                self._hold_another()
            port = self._left.pop(0)
            if (probe := _bound(host, port)) is not None:
                probe.close()
                taken.append(port)
        return taken

    def _hold_another(self) -> None:
        low, high = PORT_RANGE
        blocks = list(range((high - low) // BLOCK_PORTS))
        random.SystemRandom().shuffle(blocks)
        if self._first_block is not None:
            blocks.insert(0, self._first_block)
        for block in blocks:
            first = low + block * BLOCK_PORTS
            if hold(self, HOST, first):
                self._left = list(range(first + 1, first + BLOCK_PORTS))
                return
        raise LabError(f"no port between {low} and {high} is free on {HOST}")


def _bound(host: str, port: int) -> socket.socket | None:
    bound = socket.socket(family_of(host))
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        return None
    return bound


_BLOCKS = PortBlocks()


def free_ports(count: int, host: str = HOST) -> list[int]:
    """Ports of 127.0.0.1, or of another address of this machine, that nobody else of the lab was or will be given."""
    return _BLOCKS.take(count, host)
