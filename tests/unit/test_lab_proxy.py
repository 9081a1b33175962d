"""The lab's proxy before a broker: what it held is closed with it."""

import gc
import socket

from tests.lab.ports import HOST, free_ports
from tests.lab.proxy import Network


def test_a_network_that_is_closed_leaves_no_socket_and_no_loop_open() -> None:
    (port,) = free_ports(1)
    with socket.create_server((HOST, 0)) as upstream:
        network = Network()
        network.add(socket.create_server((HOST, port)), upstream.getsockname()[1])
        with socket.create_connection((HOST, port), 10) as client:
            taken, _ = upstream.accept()
            with taken:
                client.sendall(b"asked")
                assert taken.recv(5) == b"asked"
                network.close()
    del network
    gc.collect()
