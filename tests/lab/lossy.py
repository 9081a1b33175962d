"""A line that really loses packets: two network namespaces, and a wire between them that forgets some of them.

The kernel of both ends repeats what is lost, as over a bad line. It takes root, `ip` and /dev/net/tun, and no
queueing discipline of the kernel's (netem), which many do not have. Namespaces and devices have no names anywhere:
they end with the descriptors that hold them.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self, TypeVar

from tests.lab.proxy import ProxiedCluster
from tests.lab.waiting import LabError

T = TypeVar("T")

NEAR, FAR = "10.99.0.1", "10.99.0.2"
DEVICE, TUN = "wire", Path("/dev/net/tun")
PACKET_BYTES = 65_536
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_LIBC = ctypes.CDLL(None, use_errno=True)


def why_not() -> str:
    """What this machine lacks for namespaces with a wire; nothing if it has all."""
    if shutil.which("ip") is None:
        return "there is no `ip` (iproute2)"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} is not there, or not ours to open"
    try:
        Namespace().close()
    except OSError as error:
        return f"network namespaces cannot be made here: {error}"
    return ""


class Namespace:
    """A network namespace that lasts as long as this object, and what was opened in it."""

    def __init__(self) -> None:
        self._descriptor = _in_thread(self._made)

    def enter(self) -> None:
        """Move the calling thread here; for a process that is just being started."""
        _done(_LIBC.setns(self._descriptor, CLONE_NEWNET))

    def run(self, work: Callable[[], T]) -> T:
        """Do something here, and return what it gives: a socket made here stays here."""

        def inside() -> T:
            self.enter()
            return work()

        return _in_thread(inside)

    def close(self) -> None:
        os.close(self._descriptor)

    @staticmethod
    def _made() -> int:
        _done(_LIBC.unshare(CLONE_NEWNET))
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class LossyWire:
    """Packets go between `near` (10.99.0.1) and `far` (10.99.0.2), each of them lost by chance.

    `carried` and `lost` count them.
    """

    def __init__(self, loss: float, seed: int) -> None:
        self.loss = loss
        self.carried = self.lost = 0
        self._dice = Random(seed)
        self.near, self.far = Namespace(), Namespace()
        self._ends = self.near.run(lambda: plugged(NEAR)), self.far.run(lambda: plugged(FAR))
        self._over_read, self._over_write = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="wire", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._over_write)
        self._thread.join()
        for descriptor in (*self._ends, self._over_read):
            os.close(descriptor)
        self.near.close()
        self.far.close()

    def listen(self, port: int) -> socket.socket:
        """A socket that takes connections at the far end."""
        return self.far.run(lambda: socket.create_server((FAR, port)))

    def _carry(self) -> None:
        one, other = self._ends
        across = {one: other, other: one}
        while True:
            ready, _, _ = select.select([one, other, self._over_read], [], [])
            if self._over_read in ready:
                return
            for end in ready:
                packet = os.read(end, PACKET_BYTES)
                if self._dice.random() < self.loss:
                    self.lost += 1
                else:
                    # What a full end does not take is lost as well.
                    with suppress(OSError):
                        os.write(across[end], packet)
                        self.carried += 1


def plugged(address: str) -> int:
    """Make one end of a wire in this namespace; packets are read from and written to the descriptor."""
    descriptor = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    for words in (
        ("link", "set", "lo", "up"), ("addr", "add", f"{address}/30", "dev", DEVICE), ("link", "set", DEVICE, "up"),
    ):  # fmt: skip
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            os.close(descriptor)
            raise LabError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return descriptor


def behind(wire: LossyWire) -> type[ProxiedCluster]:
    """Clusters that clients reach at the far end of a wire."""

    class Behind(ProxiedCluster):
        outer_host = FAR

        def listen(self, port: int) -> socket.socket:
            return wire.listen(port)

    return Behind


def _in_thread(work: Callable[[], T]) -> T:
    """A namespace is a thread's own; this one ends with the work."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def _done(answer: int) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
