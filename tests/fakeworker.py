"""A Connect worker's REST as far as the tool asks it: answers by path, on a port of this machine."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.lab.cluster import address


class SixServer(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@contextmanager
def worker(answers: Mapping[str, Any], login: str = "", host: str = "127.0.0.1") -> Iterator[str]:
    """Serve the answers: a document, or a status; a path that is not there is 404. Yields the address.

    `login` is the Authorization header that is demanded. It listens on `host`.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path, 404)
            if login and self.headers.get("Authorization") != login:
                found = 401
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(found if isinstance(found, int) else 200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    kind = SixServer if ":" in host else ThreadingHTTPServer
    server = kind((host, 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://{address(host, server.server_port)}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
