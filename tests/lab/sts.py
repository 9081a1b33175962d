"""AWS's STS as a login to MSK asks it, where AWS_ENDPOINT_URL_STS names it: whose keys sign, and keys for a role."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from tests.lab.ports import HOST

SKEW_SECONDS = 300
ACCOUNT = "123456789012"


class Sts:
    """Knows key pairs, and hands out `role` to whoever asks for a role; `clock` is added to the time of day."""

    def __init__(self, keys: Mapping[str, str], role: tuple[str, str] = ("", ""), clock: float = 0.0) -> None:
        self.keys = {**dict([role]), **keys}
        self.role = role
        self.clock = clock
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer((HOST, 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_port}"

    def __enter__(self) -> Sts:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, headers: Message, body: bytes) -> tuple[int, str]:
        """Return the status and the document for a request; errors are in AWS's words."""
        scheme, _, rest = headers["Authorization"].partition(" ")
        said = dict(part.strip().split("=", 1) for part in rest.split(","))
        key, *scope = said["Credential"].split("/")
        now, dated = datetime.fromtimestamp(time.time() + self.clock, UTC), headers["X-Amz-Date"]
        apart = (now - datetime.strptime(dated, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)).total_seconds()
        if key not in self.keys:
            return refused("InvalidClientTokenId", "The security token included in the request is invalid.")
        if self.keys[key] == "expired":
            return refused("ExpiredToken", "The security token included in the request is expired")
        if abs(apart) > SKEW_SECONDS:
            word = "expired" if apart > 0 else "not yet current"
            return refused("SignatureDoesNotMatch", f"Signature {word}: {dated} (now {now:%Y%m%dT%H%M%SZ})")
        named = said["SignedHeaders"].split(";")
        lines = "".join(f"{name}:{headers[name].strip()}\n" for name in named)
        request = f"POST\n/\n\n{lines}\n{';'.join(named)}\n{hashlib.sha256(body).hexdigest()}"
        text = f"{scheme}\n{dated}\n{'/'.join(scope)}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signing = f"AWS4{self.keys[key]}".encode()
        for part in scope:
            signing = hmac.digest(signing, part.encode(), "sha256")
        if hmac.digest(signing, text.encode(), "sha256").hex() != said["Signature"]:
            return refused("SignatureDoesNotMatch", "The request signature we calculated does not match.")
        action = parse_qs(body.decode())["Action"][0]
        self.asked.append(action)
        if action == "AssumeRole":
            ends = f"{datetime.fromtimestamp(time.time() + 3600, UTC):%Y-%m-%dT%H:%M:%SZ}"
            given = f"<AccessKeyId>{self.role[0]}</AccessKeyId><SecretAccessKey>{self.role[1]}</SecretAccessKey>"
            given += f"<SessionToken>session</SessionToken><Expiration>{ends}</Expiration>"
            return 200, document(action, f"<Credentials>{given}</Credentials>")
        return 200, document(action, f"<Arn>arn:aws:iam::{ACCOUNT}:user/{key}</Arn><Account>{ACCOUNT}</Account>")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        sts = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                status, text = sts.answer(self.headers, self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response_only(status)
                self.send_header("Date", formatdate(time.time() + sts.clock, usegmt=True))
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                """Say nothing on stderr."""

        return Handler


def document(action: str, result: str) -> str:
    name = "https://sts.amazonaws.com/doc/2011-06-15/"
    return f'<{action}Response xmlns="{name}"><{action}Result>{result}</{action}Result></{action}Response>'


def refused(code: str, why: str) -> tuple[int, str]:
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{why}</Message></Error>"
    return 403, f'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">{error}</ErrorResponse>'
