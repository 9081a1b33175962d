"""Ports that the lab gives out: each to one owner only, in this process and in every other."""

import socket
import subprocess
import sys

from tests.lab.ports import BLOCK_PORTS, HOST, PORT_RANGE, PortBlocks, free_ports


def test_no_port_is_given_twice_though_nobody_has_bound_the_first_yet() -> None:
    given = [port for _ in range(3 * BLOCK_PORTS) for port in free_ports(1)]
    assert len(set(given)) == len(given)
    assert all(port in range(*PORT_RANGE) for port in given)


def test_two_processes_are_given_ports_of_blocks_of_their_own() -> None:
    ours = PortBlocks()
    first = ours.take(BLOCK_PORTS // 2)
    # The other process is told to begin with our very block, and finds it held.
    block = (first[0] - PORT_RANGE[0]) // BLOCK_PORTS
    code = f"from tests.lab.ports import PortBlocks; print(*PortBlocks({block}).take({len(first)}))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    theirs = [int(port) for port in told.stdout.split()]
    assert len(theirs) == len(first) and not set(first) & set(theirs)


def test_a_port_that_somebody_else_listens_on_is_passed_over() -> None:
    blocks = PortBlocks()
    (before,) = blocks.take(1)
    with socket.create_server((HOST, before + 1)):
        (after,) = blocks.take(1)
    assert after > before + 1
