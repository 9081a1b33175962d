"""Clusters that are reached over IPv6, and under a name that has more addresses than brokers listen on."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.lab.cluster import Broker, Cluster, address
from tests.lab.ports import HOST, family_of, free_ports, hold
from tests.lab.waiting import LabError

SIX = "::1"
PORT_TRIES = 50
NAME = "localhost"


def has_ipv6() -> bool:
    """Whether this machine lets a process listen on ::1."""
    try:
        with socket.socket(family_of(SIX)) as probe:
            probe.bind((SIX, 0))
    except OSError:
        return False
    return True


class SixCluster(Cluster):
    """A cluster of one node on ::1 alone, which also goes by the name `localhost` at `named_bootstrap`.

    Behind that name it listens on one of the name's two addresses only: `named_on`.
    """

    host = SIX

    def __init__(self, name: str, folder: Path, named_on: str = HOST) -> None:
        super().__init__(name, folder)
        self.named_on = named_on
        self._named_port = 0

    @property
    def named_bootstrap(self) -> str:
        return f"{NAME}:{self._named_port}"

    def pick_ports(self) -> None:
        super().pick_ports()
        self._named_port = self._port_that_refuses_elsewhere()

    def _port_that_refuses_elsewhere(self) -> int:
        """A port of `named_on` that is held on the other address too, where nobody listens, while this cluster lives.

        Somebody else's server there would take our clients' connections and not understand them.
        """
        elsewhere = HOST if self.named_on == SIX else SIX
        for _ in range(PORT_TRIES):
            (port,) = free_ports(1, self.named_on)
            if hold(self, elsewhere, port):
                return port
        raise LabError(f"no port is free on both {SIX} and {HOST}")

    def settings(self, broker: Broker) -> dict[str, str]:
        settings = super().settings(broker)
        settings["listeners"] += f",NAMED://{address(self.named_on, self._named_port)}"
        settings["advertised.listeners"] += f",NAMED://{self.named_bootstrap}"
        settings["listener.security.protocol.map"] += ",NAMED:PLAINTEXT"
        return settings
