"""Clusters that are reached over IPv6."""

from __future__ import annotations

import socket

from tests.lab.cluster import Cluster
from tests.lab.ports import family_of

SIX = "::1"


def has_ipv6() -> bool:
    """Whether this machine lets a process listen on ::1."""
    try:
        with socket.socket(family_of(SIX)) as probe:
            probe.bind((SIX, 0))
    except OSError:
        return False
    return True


class SixCluster(Cluster):
    """A cluster that listens on ::1 alone."""

    host = SIX
