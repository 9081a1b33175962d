"""A command of the user's that prints tokens: who logs in by it gets one that still lives, run anew when it must be.

Each process of ours runs the command for itself, and keeps what it printed in memory. Kafka's Java clients run no
commands, and the one in Spark 4.0 reads a token's file once, not when the token ends: they ask a token endpoint on this
machine's loopback, which only whoever has its secret may ask. No token reaches a disk, a log or a message.
"""

import json
import secrets
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from migrate.errors import ClusterError

LIMIT_SECONDS = 30.0
# Beyond this, it is no time in seconds.
_LAST = 1e11
ENDPOINT_CLIENT = "mm2-migrate"
_FORM = (
    'It must print {"token": "...", "expires": SECONDS SINCE 1970}, or what kubectl\'s exec plugins do: '
    '{"status": {"token": "...", "expirationTimestamp": "2027-01-31T23:59:59Z"}}.'
)
# The endpoints' addresses, none of which another machine can reach.
SERVED: set[str] = set()
_lock = threading.Lock()
_held: "dict[TokenSource, Token]" = {}


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and when it was made and ends, in seconds since 1970."""

    text: str = field(repr=False)
    made: float
    ends: float


class TokenSource(ABC):
    """Whatever has tokens made; equal ones share what this process keeps."""

    __slots__ = ()

    @abstractmethod
    def made(self) -> Token:
        """Return a new token; raises `ClusterError` where there is none."""

    @property
    @abstractmethod
    def advice(self) -> str:
        """What to do where brokers refuse such a login."""

    def token(self) -> Token:
        """Return a token in the first half of its life, or the last one while it lives and no other can be had.

        Raises `ClusterError` as `made` does where there is none.
        """
        with _lock:
            held = _held.get(self)
            # Clients ask again when four fifths of a token's life are over: they must not be given the same one.
            if held is None or time.time() > (held.made + held.ends) / 2:
                try:
                    held = _held[self] = self.made()
                except ClusterError:
                    if held is None or time.time() >= held.ends:
                        raise
            return held

    def __call__(self, _: str) -> tuple[str, float]:
        """Return a token and its end: librdkafka's `oauth_cb`."""
        token = self.token()
        return token.text, token.ends


@dataclass(frozen=True, slots=True)
class TokenCommand(TokenSource):
    """A command and its arguments; `option` is what named it, for messages, which never show an argument."""

    option: str = field(compare=False)
    words: tuple[str, ...] = field(repr=False)

    @property
    def advice(self) -> str:
        """What to do where brokers refuse such a login."""
        return f"Check that the token which {self.option} gets is for these brokers: its issuer, audience and scope."

    def made(self) -> Token:
        """Return what the command prints when it is run; raises `ClusterError` if that is no token."""
        made = time.time()
        try:
            # What it says on stderr is for the user, who sees it; it may ask nothing.
            ran = subprocess.run(
                self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=LIMIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise self._error(f"has not ended within {LIMIT_SECONDS:.0f} seconds") from None
        except (OSError, ValueError) as error:
            raise self._error(f"cannot be run: {getattr(error, 'strerror', None) or 'it has NUL bytes'}") from None
        if ran.returncode:
            raise self._error(f"ended with status {ran.returncode}")
        try:
            document = json.loads(ran.stdout)
            status = document.get("status", document)
            text, ends = status["token"], _seconds(status.get("expirationTimestamp", status.get("expires")))
            if ends > _LAST:
                raise ValueError
        except (ValueError, AttributeError, KeyError, TypeError, OverflowError):
            raise self._error("does not print a token and when it ends", _FORM) from None
        if not isinstance(text, str) or not text.isascii() or not text.isprintable() or " " in text or not text:
            raise self._error("prints a token that is none", _FORM)
        if not ends > made:  # a number that is none, too
            raise self._error(
                "prints a token that has ended", "Check this machine's clock, and what the command keeps."
            )
        return Token(text, made, ends)

    def _error(self, why: str, todo: str = "") -> ClusterError:
        shown = f"The command of {self.option} ({self.words[0]}) {why}."
        return ClusterError(shown, todo or "What it said on stderr stands above; run it by hand.")


def _seconds(ends: Any) -> float:
    """Return seconds since 1970; raises `ValueError` or `TypeError` for what is no moment, or has no zone."""
    if isinstance(ends, str) and not ends.isdecimal():
        moment = datetime.fromisoformat(ends)
        if moment.tzinfo is None:
            raise ValueError
        return moment.timestamp()
    return float(ends)


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where a command's tokens can be had on this machine, and the secret that its client needs there."""

    url: str
    secret: str = field(repr=False)


@cache
def token_endpoint(command: TokenCommand) -> TokenEndpoint:
    """Return the endpoint of a command's tokens, one of OAuth's client credentials grant; it ends with this process."""
    # Here, because few need it.
    from hmac import compare_digest
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    secret = secrets.token_urlsafe(32)
    allowed = b"Basic " + b64encode(f"{ENDPOINT_CLIENT}:{secret}".encode())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not compare_digest(self.headers.get("Authorization", "").encode(), allowed):
                self._answer(HTTPStatus.UNAUTHORIZED, {"error": "invalid_client"})
                return
            try:
                token = command.token()
            except ClusterError as error:
                # One of the answers after which Java's client does not ask again at once.
                self._answer(HTTPStatus.BAD_REQUEST, {"error": "invalid_grant", "error_description": error.problem})
                return
            lives = max(1, int(token.ends - time.time()))
            self._answer(HTTPStatus.OK, {"access_token": token.text, "token_type": "Bearer", "expires_in": lives})

        def _answer(self, status: HTTPStatus, document: dict[str, object]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, name="token-endpoint", daemon=True).start()
    endpoint = TokenEndpoint(f"http://127.0.0.1:{server.server_port}/token", secret)
    SERVED.add(endpoint.url)
    return endpoint
